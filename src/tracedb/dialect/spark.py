"""A view in the SQL of Spark 4: what sqlglot does not translate, or translates into something else.

Found by running each view in Spark and comparing with DuckDB: ``1.5`` is a DECIMAL there and rounds quotients, ``\\1``
stays as it is in a replacement, whole numbers of 128 bits are DECIMAL(38, 0).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.generators.spark import SparkGenerator

from tracedb.dialect.joins import without_asof, without_named_windows
from tracedb.dialect.portable import call, function, is_global, portable
from tracedb.dialect.steps import without_aliases_in_windows

_GROUP = re.compile(r"\\([0-9])")
_MAPS = {"labels", "settings", "shape"}
"""Columns that are maps."""
_GAMMA = (
    *(676.5203681218851, -1259.1392167224028, 771.3234287776531, -176.6150291621406, 12.507343278686905),
    *(-0.13857109526572012, 9.984369578019572e-06, 1.5056327351493116e-07),
)
"""Lanczos' series of the gamma function for g = 7, to 1e-15."""


def rewritten(tree: exp.Expr) -> str:
    """Return the SELECT of a view for Spark."""
    found = without_aliases_in_windows(_without_qualify(without_named_windows(without_asof(portable(tree)))))
    return str(_Generator(dialect="spark").generate(found.transform(_node)))


class _Generator(SparkGenerator):
    """Leaves steps where they are: sqlglot moves them to the top for Hive, where their names may be taken."""

    EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[set[type[exp.Expr]]] = set()


def _without_qualify(tree: exp.Expr) -> exp.Expr:
    """Turn QUALIFY into a filter on a subquery that has its condition as a column.

    sqlglot does the same, but leaves columns of the inner query in the filter.
    """
    for select in list(tree.find_all(exp.Select)):
        condition = select.args.get("qualify")
        if condition is None:
            continue
        select.set("qualify", None)
        names = [column.alias_or_name for column in select.expressions]
        select.set("expressions", [*select.expressions, exp.alias_(condition.this.copy(), "is_kept")])
        inner = select.copy()
        steps = inner.args.get("with_")
        inner.set("with_", None)
        columns = [exp.column(name, table="kept_row", quoted=True) for name in names]
        kept = exp.select(*columns).from_(inner.subquery("kept_row")).where(exp.column("is_kept", table="kept_row"))
        kept.set("with_", steps)
        if select.parent is None:
            return _without_qualify(kept)
        select.replace(kept)
    return tree


def _node(node: exp.Expr) -> exp.Expr:
    rewrite = _REWRITES.get(type(node))
    return rewrite(node) if rewrite else node


def _in(node: exp.Expr) -> exp.Expr:
    return node.transform(_node)


def _double(node: exp.Expr) -> exp.Expr:
    return exp.cast(node, "double")


def _literal(node: exp.Literal) -> exp.Expr:
    return _double(node.copy()) if not node.is_string and "." in node.name else node


def _quotient(node: exp.Div) -> exp.Expr:
    left, right = (_double(exp.Paren(this=_in(side))) for side in (node.left, node.right))
    return exp.Div(this=left, expression=right)


def _whole_quotient(node: exp.IntDiv) -> exp.Expr:
    """Return ``a // b`` also of the sum of a list, which is a DOUBLE here."""
    if not any(call.name.lower() == "list_sum" for call in node.find_all(exp.Anonymous)):
        return node
    left, right = (exp.cast(exp.Paren(this=_in(side)), "DECIMAL(38, 0)") for side in (node.left, node.right))
    return exp.IntDiv(this=left, expression=right)


def _quantile(node: exp.Expr) -> exp.Expr:
    at = node.args.get("expression") or node.args["quantile"]
    if isinstance(at, exp.Array):
        return call("percentile", _in(node.this), exp.Array(expressions=[_double(x.copy()) for x in at.expressions]))
    return call("percentile", _in(node.this), _double(at.copy()))


def _regexp_replace(node: exp.RegexpReplace) -> exp.Expr:
    """Replace every match, or the first by a pattern that takes the text before it in."""
    pattern, replacement = _in(node.expression), _in(node.args["replacement"])
    if isinstance(replacement, exp.Literal):
        first = 0 if is_global(node) else 1
        words = _GROUP.sub(lambda group: f"${int(group[1]) + first}", replacement.name)
        replacement = exp.Literal.string(f"$1{words}" if first else words)
    if not is_global(node) and isinstance(pattern, exp.Literal):
        pattern = exp.Literal.string(rf"^([\s\S]*?)(?:{pattern.name})")
    return call("regexp_replace", _in(node.this), pattern, replacement)


def _type(node: exp.DataType) -> exp.Expr:
    return exp.DataType.build("DECIMAL(38, 0)") if node.this == exp.DataType.Type.INT128 else node


def _anonymous(node: exp.Anonymous) -> exp.Expr:
    rewrite = _FUNCTIONS.get(node.name.lower())
    return rewrite([_in(argument) for argument in node.expressions]) if rewrite else node


def _folded(start: int, step: type[exp.Binary]) -> Callable[[list[exp.Expr]], exp.Expr]:
    """Return a fold of an array that skips NULLs, as DuckDB's array functions do."""
    known = call("coalesce", exp.column("x"), exp.Literal.number(start))
    body = step(this=exp.column("so_far"), expression=known)
    return lambda given: call(
        "aggregate", given[0], _double(exp.Literal.number(start)), function("so_far x", body.copy())
    )


_sum = _folded(0, exp.Add)


def _bracket(node: exp.Bracket) -> exp.Expr:
    """Return an element or a slice of an array; an element that is not there is NULL. A map stays as it is."""
    key, of = node.expressions[0], node.this
    if isinstance(key, exp.Slice):
        return _slice(_in(of), key)
    if isinstance(key, exp.Literal):  # sqlglot counts from 0
        return node if key.is_string else call("get", _in(of), key.copy())
    if isinstance(key, exp.Neg) and isinstance(key.this, exp.Literal):  # and has taken 1 from a negative place, too
        return call("try_element_at", _in(of), exp.Neg(this=exp.Literal.number(int(key.this.name) - 1)))
    if isinstance(key, exp.Add) and isinstance(key.expression, exp.Neg):  # and from one that it knows to be a number
        return call("get", _in(of), _in(key))
    is_place = isinstance(key, exp.Binary | exp.Neg) or key.find(
        exp.ArrayPosition, exp.Anonymous
    )  # else perhaps a map's key
    return call("try_element_at", _in(of), exp.cast(_in(key), "INT") if is_place else _in(key))


def _slice(of: exp.Expr, bounds: exp.Slice) -> exp.Expr:
    """Return ``a[m:n]``; ``a[:-n]`` is without the last n - 1 elements in DuckDB."""
    start, end = _in(bounds.this) if bounds.this else exp.Literal.number(1), bounds.expression
    last: exp.Expr = call("size", of.copy())
    if isinstance(end, exp.Neg):
        last = exp.Sub(this=last, expression=exp.Literal.number(int(end.this.name) - 1))
    elif end is not None:
        last = exp.Paren(this=_in(end))
    before = exp.Paren(this=exp.Sub(this=exp.Paren(this=start.copy()), expression=exp.Literal.number(1)))
    length = call("greatest", exp.Sub(this=last, expression=before), exp.Literal.number(0))
    return call("slice", of, start, length)


def _filter(node: exp.Filter) -> exp.Expr:
    if isinstance(node.this, exp.ArrayAgg):
        return _list(node.this, node.expression)
    if isinstance(node.this, exp.IgnoreNulls):
        found = call("any_value", _in(node.this.this.this), exp.true())
        return exp.Filter(this=found, expression=_in(node.expression))
    is_some = isinstance(node.this, exp.Min | exp.Max) and node.this.args.get("count")
    return _extremes(node.this, node.expression) if is_some else node


def _list(node: exp.ArrayAgg, where: exp.Expr | None = None) -> exp.Expr:
    """Return a list in its order, NULL without rows: ``collect_list`` has no order, and is empty then.

    Values are sorted as structs that begin with what they are ordered by, NULL last.
    """
    if where is None and not isinstance(node.this, exp.Order):
        return node
    ordered = node.this.expressions if isinstance(node.this, exp.Order) else []
    descending = [bool(key.args.get("desc")) for key in ordered]
    assert len(set(descending)) < 2, node
    value = _in(node.this.this if ordered else node.this)
    keys = [part for key in ordered for part in (_is_last(key), _in(key.this))]
    values: exp.Expr = call("collect_list", call("named_struct", *_fields([*keys, value])))
    if where is not None:
        values = exp.Filter(this=values, expression=_in(where))
    if ordered:
        values = call("array_sort", values)
    if any(descending):
        values = call("reverse", values)
    found = call("transform", values, function("item", exp.column(f"f{len(keys)}", table="item")))
    return call("nullif", found, call("array"))


def _is_last(key: exp.Ordered) -> exp.Expr:
    unknown = exp.Is(this=_in(key.this), expression=exp.Null())
    return exp.Not(this=unknown) if key.args.get("desc") else unknown


def _fields(values: list[exp.Expr]) -> list[exp.Expr]:
    return [part for place, value in enumerate(values) for part in (exp.Literal.string(f"f{place}"), value)]


def _extremes(node: exp.Min | exp.Max, where: exp.Expr | None = None) -> exp.Expr:
    """Return ``min(x, n)`` or ``max(x, n)``: the n smallest or largest values."""
    if not node.args.get("count"):
        return node
    values: exp.Expr = call("collect_list", _in(node.this))
    if where is not None:
        values = exp.Filter(this=values, expression=_in(where))
    sorted_values = call("sort_array", values, exp.Boolean(this=isinstance(node, exp.Min)))
    return call("slice", sorted_values, exp.Literal.number(1), node.args["count"].copy())


def _quantile_disc(node: exp.PercentileDisc) -> exp.Expr:
    order = exp.Order(expressions=[exp.Ordered(this=_in(node.this), nulls_first=True)])
    return exp.WithinGroup(this=call("percentile_disc", node.args["expression"].copy()), expression=order)


def _is_json(given: list[exp.Expr]) -> exp.Expr:
    return exp.Not(this=exp.Is(this=call("get_json_object", given[0], exp.Literal.string("$")), expression=exp.Null()))


def _map(node: exp.ToMap) -> exp.Expr:
    """Return a map; an empty one has the type of labels."""
    return node if node.this.expressions else exp.cast(call("map"), "MAP<STRING, STRING>", dialect="spark")


def _list_aggregate(given: list[exp.Expr]) -> exp.Expr:
    """Return the number of values of a list that are not NULL, the only such function that the views use."""
    values, name = given
    assert name.name == "count", name
    is_value = exp.Not(this=exp.Is(this=exp.column("x"), expression=exp.Null()))
    return call("size", call("filter", values, function("x", is_value)))


def _to_json(given: list[exp.Expr]) -> exp.Expr:
    """Return JSON in which a NULL is written, as DuckDB does."""
    return call("to_json", *given, call("map", exp.Literal.string("ignoreNullFields"), exp.Literal.string("false")))


def _cast(node: exp.Cast) -> exp.Expr:
    """Return a list of a text, which Spark does not cast; JSON remains text."""
    if node.to.this == exp.DataType.Type.JSON:
        return _in(node.this)
    if node.to.this != exp.DataType.Type.ARRAY or not isinstance(node, exp.TryCast):
        return node
    return call("from_json", _in(node.this), exp.Literal.string(node.to.sql("spark").replace("JSON", "STRING")))


def _equal(node: exp.EQ) -> exp.Expr:
    """Compare maps as lists; Spark does not compare them."""
    if not all(isinstance(side, exp.Column) and side.name in _MAPS for side in (node.left, node.right)):
        return node
    return exp.EQ(**{arg: call("array_sort", call("map_entries", side.copy())) for arg, side in node.args.items()})


def _in_rows(node: exp.In) -> exp.Expr:
    """Compare a row with the columns of a query, not with a row that it makes."""
    query = node.args.get("query")
    select = query.this if isinstance(query, exp.Subquery) else query
    if isinstance(node.this, exp.Tuple) and isinstance(select, exp.Select) and len(select.expressions) == 1:
        select.set("expressions", select.expressions[0].expressions)
    return node


def _json_extract(node: exp.JSONExtract) -> exp.Expr:
    """Return the parts of a list, ``$.key[*]``, as texts."""
    if not isinstance(node.expression.expressions[-1].args.get("this"), exp.JSONPathWildcard):
        return node
    *path, _ = node.expression.expressions
    found = exp.JSONExtract(this=_in(node.this), expression=exp.JSONPath(expressions=path))
    return call("from_json", found, exp.Literal.string("ARRAY<STRING>"))


def _log_gamma(given: list[exp.Expr]) -> exp.Expr:
    """Return the logarithm of the gamma function of a number from 0.5, which Spark lacks."""
    (of,) = given
    series = " + ".join(f"{factor!r}D / (z + {place})" for place, factor in enumerate(_GAMMA))
    text = f"0.9189385332046727D + (z - 0.5D) * ln(z + 6.5D) - (z + 6.5D) + ln(0.9999999999998099D + {series})"
    body = sqlglot.parse_one(text, read="spark")
    return exp.Paren(this=body.transform(lambda node: exp.Paren(this=of.copy()) if _is_z(node) else node))


def _is_z(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and not node.table and node.name == "z"


def _window(node: exp.Window) -> exp.Expr:
    """Count distinct values as the size of their set; give ``row_number`` an order, which it must have."""
    counted = node.this.this if isinstance(node.this, exp.Count) else None
    if isinstance(counted, exp.Distinct):
        (value,) = counted.expressions
        window = node.copy()
        window.set("this", call("collect_set", value.copy()))
        return call("size", _in(window))
    if isinstance(node.this, exp.RowNumber) and not node.args.get("order"):
        node.set("order", exp.Order(expressions=[exp.Ordered(this=exp.Null(), nulls_first=True)]))
    return node


_FUNCTIONS: dict[str, Callable[[list[exp.Expr]], exp.Expr]] = {
    "json_valid": _is_json,
    "lgamma": _log_gamma,
    "list_aggregate": _list_aggregate,
    "list_avg": lambda given: exp.Div(
        this=_folded(0, exp.Add)(given), expression=_double(call("size", given[0].copy()))
    ),
    "list_last": lambda given: call("try_element_at", *given, exp.Neg(this=exp.Literal.number(1))),
    "list_position": lambda given: call("nullif", call("array_position", *given), exp.Literal.number(0)),
    "list_product": _folded(1, exp.Mul),
    "list_sum": _sum,
    "to_json": _to_json,
}
_REWRITES: dict[type[exp.Expr], Callable[..., exp.Expr]] = {
    exp.Anonymous: _anonymous,
    exp.ArrayAgg: _list,
    exp.Bracket: _bracket,
    exp.Cast: _cast,
    exp.DataType: _type,
    exp.Div: _quotient,
    exp.EQ: _equal,
    exp.Filter: _filter,
    exp.In: _in_rows,
    exp.JSONExtract: _json_extract,
    exp.IntDiv: _whole_quotient,
    exp.Literal: _literal,
    exp.Median: lambda node: call("percentile", _in(node.this), _double(exp.Literal.number("0.5"))),
    exp.Max: _extremes,
    exp.Min: _extremes,
    exp.PercentileCont: _quantile,
    exp.PercentileDisc: _quantile_disc,
    exp.Quantile: _quantile,
    exp.RegexpReplace: _regexp_replace,
    exp.ToMap: _map,
    exp.TryCast: _cast,
    exp.Window: _window,
}
