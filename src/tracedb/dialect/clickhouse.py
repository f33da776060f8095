"""A view in the SQL of ClickHouse 26: what sqlglot does not translate, or translates into something else.

Found by running each view in ClickHouse and comparing with DuckDB: ``median`` samples a reservoir there, ``groupArray``
drops NULLs, counts are unsigned, 128-bit integers do not mix with floating point, ``regexp_replace`` has no options.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from tracedb.dialect.portable import call, function, is_global, portable

SETTINGS = {
    "join_use_nulls": "1",
    "prefer_column_name_to_alias": "1",
    "aggregate_functions_null_for_empty": "1",
    "cast_keep_nullable": "1",
    "union_default_mode": "'DISTINCT'",
    "enable_named_columns_in_function_tuple": "1",
    "allow_experimental_nullable_tuple_type": "1",
    "allow_experimental_correlated_subqueries": "1",
    "allow_lossy_numeric_supertype": "1",
    "output_format_json_quote_64bit_integers": "0",
    "output_format_json_escape_forward_slashes": "0",
}
"""Settings of a session in which the views give DuckDB's rows."""
TYPES = {
    "VARCHAR": "Nullable(String)",
    "BIGINT": "Nullable(Int64)",
    "UBIGINT": "Nullable(Int64)",
    "INTEGER": "Nullable(Int32)",
    "DOUBLE": "Nullable(Float64)",
    "BOOLEAN": "Nullable(Bool)",
    "TIMESTAMP": "Nullable(DateTime64(6))",
    "MAP(VARCHAR, VARCHAR)": "Map(String, Nullable(String))",
    "MAP(VARCHAR, BIGINT)": "Map(String, Nullable(Int64))",
}
"""Type of a table's column → its type in ClickHouse. A map cannot be NULL there; it is empty instead."""
_PARSED = {"BIGINT": "toInt64OrNull", "INT": "toInt32OrNull", "DOUBLE": "toFloat64OrNull"}
_LISTS = {
    "BIGINT[]": "Array(Nullable(Int64))",
    "BIGINT[][]": "Array(Array(Nullable(Int64)))",
    "TEXT[]": "Array(Nullable(String))",
    "VARCHAR[]": "Array(Nullable(String))",
}
"""Type of a list that a text of JSON is cast to -> its type in ClickHouse."""
_COUNTING = (exp.RowNumber, exp.DenseRank, exp.Rank, exp.Count)


def rewritten(tree: exp.Expr) -> str:
    """Return the SELECT of a view for ClickHouse."""
    text: str = portable(tree).transform(_node).sql("clickhouse")
    return text


def _node(node: exp.Expr) -> exp.Expr:
    rewrite = _REWRITES.get(type(node))
    return rewrite(node) if rewrite else node


def _in(node: exp.Expr) -> exp.Expr:
    return node.transform(_node)


def _number(value: int) -> exp.Expr:
    return exp.Literal.number(value)


def _element(of: str, place: int) -> exp.Expr:
    return call("tupleElement", exp.column(of), _number(place))


def _list(aggregate: exp.ArrayAgg, condition: exp.Expr | None = None) -> exp.Expr:
    """Return ``list(x ORDER BY k) FILTER (c)``: in tuples, because groupArray drops NULLs but keeps tuples of them."""
    value, keys = aggregate.this, []
    if isinstance(value, exp.Order):
        keys, value = [_in(order.this) for order in value.expressions], value.this
    name = "groupArray"
    if isinstance(value, exp.Distinct):
        name, value = "groupUniqArray", value.expressions[0]
    rows = call("tuple", _in(value), *keys)
    array = call(name, rows) if condition is None else call(f"{name}If", rows, _in(condition))
    if keys:
        descending = {bool(order.args.get("desc")) for order in aggregate.this.expressions}
        assert len(descending) == 1, aggregate
        order = exp.Tuple(expressions=[_element("t", place + 2) for place in range(len(keys))])
        array = call("arrayReverseSort" if True in descending else "arraySort", function("t", order), array)
    return call("arrayMap", function("t", _element("t", 1)), array)


def _filter(node: exp.Filter) -> exp.Expr:
    condition = node.expression.this
    if isinstance(node.this, exp.ArrayAgg):
        return _list(node.this, condition)
    if isinstance(node.this, exp.Min | exp.Max) and node.this.args.get("count"):
        return _extremes(node.this, condition)
    if isinstance(node.this, exp.IgnoreNulls):  # any_value
        return call("anyIf", _in(node.this.this.this), call("ifNull", _in(condition), exp.false()))
    if isinstance(node.this, exp.Median):
        return call("quantileExactInclusiveOrNullIf(0.5)", _in(node.this.this), _in(condition))
    if isinstance(node.this, exp.Count) and isinstance(node.this.this, exp.Star):
        return call("toInt64", call("countIf", call("ifNull", _in(condition), exp.false())))
    return node


def _map_from_entries(node: exp.MapFromEntries) -> exp.Expr:
    entries = _in(node.this)
    keys = call("arrayMap", function("e", call("assumeNotNull", _element("e", 1))), entries)
    return call("mapFromArrays", keys, call("arrayMap", function("e", _element("e", 2)), entries.copy()))


def _regexp_replace(node: exp.RegexpReplace) -> exp.Expr:
    name = "replaceRegexpAll" if is_global(node) else "replaceRegexpOne"
    return call(name, _in(node.this), _in(node.expression), _in(node.args["replacement"]))


def _regexp_extract(node: exp.RegexpExtract) -> exp.Expr:
    if node.args.get("parameters"):
        return node
    group = node.args.get("group")
    return call("regexpExtract", _in(node.this), _in(node.expression), _number(int(group.name) if group else 0))


def _extremes(node: exp.Min | exp.Max, condition: exp.Expr | None = None) -> exp.Expr:
    """Return ``min(x, n) FILTER (c)`` or ``max(x, n)``: the n smallest or largest values."""
    if not node.args.get("count"):
        return node
    value = _in(node.this)
    known = None if condition is None else call("ifNull", _in(condition), exp.false())
    values = call("groupArray", value) if known is None else call("groupArrayIf", value, known)
    order = "arraySort" if isinstance(node, exp.Min) else "arrayReverseSort"
    return call("arraySlice", call(order, values), _number(1), node.args["count"])


def _split_part(node: exp.SplitPart) -> exp.Expr:
    parts = call("splitByString", _in(node.args["delimiter"]), _in(node.this))
    return call("arrayElement", parts, _in(node.args["part_index"]))


def _count(node: exp.Count) -> exp.Expr:
    if isinstance(node.parent, exp.Filter | exp.Window) or isinstance(node.this, exp.Distinct):
        return node
    return call("toInt64", call("count", *([] if isinstance(node.this, exp.Star) else [_in(node.this)])))


def _window(node: exp.Window) -> exp.Expr:
    if not isinstance(node.this, _COUNTING):
        return node
    inner = node.copy()
    if isinstance(node.this, exp.Count):
        inner.set("this", call("count", *([] if isinstance(node.this.this, exp.Star) else [_in(node.this.this)])))
    else:
        inner.set("this", call({exp.RowNumber: "row_number", exp.Rank: "rank"}.get(type(node.this), "dense_rank")))
    inner.set("partition_by", [_in(key) for key in node.args.get("partition_by") or []])
    if node.args.get("order"):
        inner.set("order", _in(node.args["order"]))
    return call("toInt64", inner)


def _neighbour(node: exp.Expr) -> exp.Expr:
    """Return ``lag`` or ``lead`` that is NULL at the end; of values that cannot be NULL it would be 0."""
    return call("lag" if isinstance(node, exp.Lag) else "lead", call("toNullable", _in(node.this)))


def _quantile(node: exp.Expr) -> exp.Expr:
    at, value = node.args.get("expression") or node.args["quantile"], _in(node.this)
    if isinstance(at, exp.Array):
        return call(f"quantilesExactInclusive({', '.join(level.name for level in at.expressions)})", value)
    return call(f"quantileExactInclusiveOrNull({at.name})", value)


def _quantile_disc(node: exp.PercentileDisc) -> exp.Expr:
    value = _in(node.this)
    place = call("ceil", exp.Mul(this=exp.Paren(this=_in(node.args["expression"])), expression=call("count", value)))
    array = call("arraySort", call("groupArray", value.copy()))
    return call("arrayElement", array, call("greatest", _number(1), call("toInt64", place)))


def _cast(node: exp.Cast) -> exp.Expr:
    if node.to.this == exp.DataType.Type.INT128:
        return call("toInt128", _in(node.this))
    return _json(node.this) if node.to.this == exp.DataType.Type.JSON else node


def _json(text: exp.Expr) -> exp.Expr:
    """Return JSON, which remains text; a NULL is no JSON."""
    return call("ifNull", _in(text), exp.Literal.string(""))


def _json_extract(node: exp.JSONExtract) -> exp.Expr:
    """Return the parts of a list, ``$.key[*]``, as texts."""
    path = node.expression.expressions
    if not isinstance(path[-1].args.get("this"), exp.JSONPathWildcard):
        return node
    keys = [exp.Literal.string(part.name) for part in path[1:-1]]
    return call("JSONExtractArrayRaw", _in(node.this), *keys)


def _json_value(node: exp.JSONExtractScalar) -> exp.Expr:
    path = exp.Literal.string(node.expression.sql("duckdb").strip("'"))
    return call("nullIf", call("JSON_VALUE", _in(node.this), path), exp.Literal.string(""))


def _list_of_json(node: exp.TryCast, kind: str) -> exp.Expr:
    """Return the list that a text of JSON holds: an empty one if it holds none, or is NULL."""
    known = _json(node.this.this if isinstance(node.this, exp.Cast) else node.this)
    if kind == "JSON[]":
        return call("JSONExtractArrayRaw", known)
    return call("JSONExtract", known, exp.Literal.string(_LISTS[kind]))


def _try_cast(node: exp.TryCast) -> exp.Expr:
    to = node.to.sql("duckdb")
    if to == "JSON":
        return _json(node.this)
    if to in _LISTS or to == "JSON[]":
        return _list_of_json(node, to)
    return call(_PARSED[to], call("toString", _in(node.this))) if to in _PARSED else node


def _slice(node: exp.Bracket) -> exp.Expr:
    """Return ``a[n:]``, ``a[m:n]``, or ``a[:-n]``, which in DuckDB is without the last n - 1 elements."""
    bounds = node.expressions[0] if len(node.expressions) == 1 else None
    if not isinstance(bounds, exp.Slice):
        return node
    if bounds.expression is None:
        return call("arraySlice", _in(node.this), _in(bounds.this))
    if bounds.this is not None:
        start, end = _in(bounds.this), exp.Paren(this=_in(bounds.expression))
        count = exp.Add(this=exp.Sub(this=end, expression=exp.Paren(this=start)), expression=_number(1))
        return call("arraySlice", _in(node.this), start.copy(), count)
    if not isinstance(bounds.expression, exp.Neg):
        return node
    array = _in(node.this)
    length = call("toInt64", call("length", array.copy()))
    without = _number(int(bounds.expression.this.name) - 1)
    return call("arraySlice", array, _number(1), exp.Sub(this=length, expression=without))


def _range(node: exp.GenerateSeries) -> exp.Expr:
    start, end = (call("toInt64", call("assumeNotNull", _in(node.args[bound]))) for bound in ("start", "end"))
    is_open = node.args.get("is_end_exclusive")
    return call("range", start, end if is_open else exp.Add(this=end, expression=_number(1)))


def _extreme(node: exp.Expr) -> exp.Expr:
    """Return ``least`` or ``greatest``: ClickHouse finds no common type of Int64 and Float64."""
    values = [node.this, *node.expressions]
    if not any(
        isinstance(value, exp.Ceil) or (isinstance(value, exp.Literal) and "." in value.name) for value in values
    ):
        return node
    first, *others = (call("toFloat64", _in(value)) for value in values)
    return type(node)(this=first, expressions=others)


def _struct(node: exp.Struct) -> exp.Expr:
    return call("tuple", *(_field(field) for field in node.expressions))


def _field(field: exp.Expr) -> exp.Expr:
    return exp.alias_(_in(field.expression), field.this.name) if isinstance(field, exp.PropertyEQ) else _in(field)


def _anonymous(node: exp.Anonymous) -> exp.Expr:
    rewrite = _FUNCTIONS.get(node.name.lower())
    return rewrite([_in(argument) for argument in node.expressions]) if rewrite else node


def _folded(name: str, nothing: int) -> Callable[[list[exp.Expr]], exp.Expr]:
    """Return the call of an array function that, unlike DuckDB's, does not skip NULLs by itself."""
    return lambda given: call(
        name, call("arrayMap", function("p", call("ifNull", exp.column("p"), _number(nothing))), given[0])
    )


def _map_entries(given: list[exp.Expr]) -> exp.Expr:
    entry = call("tuple", exp.alias_(exp.column("k"), "key"), exp.alias_(exp.column("v"), "value"))
    return call("arrayMap", function("k v", entry), call("mapKeys", given[0]), call("mapValues", given[0].copy()))


def _known(given: list[exp.Expr]) -> exp.Expr:
    """Return the number of elements that are not NULL: ``list_aggregate(list, 'count')``."""
    known = exp.Not(this=exp.Is(this=exp.column("p"), expression=exp.Null()))
    return call("toInt64", call("arrayCount", function("p", known), given[0]))


_FUNCTIONS: dict[str, Callable[[list[exp.Expr]], exp.Expr]] = {
    "json_valid": lambda given: call("isValidJSON", call("ifNull", given[0], exp.Literal.string(""))),
    "list_aggregate": _known,
    "list_avg": lambda given: call(
        "arrayAvg", call("arrayMap", function("p", call("assumeNotNull", exp.column("p"))), given[0])
    ),
    "list_last": lambda given: call("arrayElement", *given, exp.Neg(this=_number(1))),
    "list_position": lambda given: call("indexOf", *given),
    "list_product": _folded("arrayProduct", 1),
    "list_zip": lambda given: call("arrayZip", *given),
    "list_sum": _folded("arraySum", 0),
    "map_concat": lambda given: call("mapUpdate", *given),
    "map_entries": _map_entries,
    "to_json": lambda given: call("toJSONString", *given),
}
_REWRITES: dict[type[exp.Expr], Callable[..., exp.Expr]] = {
    exp.Anonymous: _anonymous,
    exp.ArrayAgg: _list,
    exp.ArrayAppend: lambda node: call("arrayPushBack", _in(node.this), _in(node.expression)),
    exp.ArraySize: lambda node: call("toInt64", call("length", _in(node.this))),
    exp.ArraySort: lambda node: call("arraySort", _in(node.this)),
    exp.ArrayToString: lambda node: call("arrayStringConcat", _in(node.this), _in(node.expression)),
    exp.Bracket: _slice,
    exp.Cast: _cast,
    exp.Cbrt: lambda node: call("cbrt", _in(node.this)),
    exp.Count: _count,
    exp.Filter: _filter,
    exp.GenerateSeries: _range,
    exp.Greatest: _extreme,
    exp.JSONExtract: _json_extract,
    exp.JSONExtractScalar: _json_value,
    exp.IntDiv: lambda node: call("intDivOrNull", _in(node.this), _in(node.expression)),
    exp.Lag: _neighbour,
    exp.Lead: _neighbour,
    exp.Least: _extreme,
    exp.LogicalAnd: lambda node: call("min", _in(node.this)),
    exp.LogicalOr: lambda node: call("max", _in(node.this)),
    exp.MapFromEntries: _map_from_entries,
    exp.MapKeys: lambda node: call("mapKeys", _in(node.this)),
    exp.Median: lambda node: call("quantileExactInclusiveOrNull(0.5)", _in(node.this)),
    exp.Max: _extremes,
    exp.Min: _extremes,
    exp.PercentileCont: _quantile,
    exp.PercentileDisc: _quantile_disc,
    exp.Quantile: _quantile,
    exp.RegexpExtract: _regexp_extract,
    exp.RegexpReplace: _regexp_replace,
    exp.SplitPart: _split_part,
    exp.Struct: _struct,
    exp.ToMap: lambda node: call("map"),
    exp.TryCast: _try_cast,
    exp.Window: _window,
}
