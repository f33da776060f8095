"""Columns and unions of a view's steps, written so that all engines understand them; DuckDB gives the same rows."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

_PLACES = "places"


def without_stars(tree: exp.Expr, columns: Callable[[exp.Table], list[str]]) -> exp.Expr:
    """List the columns of ``e.*`` where inputs are joined: ClickHouse calls those of both sides ``e.x``.

    ``columns`` gives the columns of a stored table or view.
    """
    steps: dict[str, list[str]] = {}

    def names_of(source: exp.Expr) -> list[str]:
        if isinstance(source, exp.Table):
            return steps[source.name] if not source.db and source.name in steps else columns(source)
        query = source.this
        return [item.alias_or_name for item in _first(query).expressions]

    def listed(item: exp.Expr, inputs: dict[str, exp.Expr]) -> list[exp.Expr]:
        star, table = (item.this, item.table) if isinstance(item, exp.Column) else (item, next(iter(inputs), ""))
        if not isinstance(star, exp.Star):
            return [item]
        without = {column.name for column in star.args.get("except_") or []}
        return [exp.column(name, table=table) for name in names_of(inputs[table]) if name not in without]

    for select in _inner_first(tree):
        inputs = _inputs(select)
        if any(
            item.is_star and (isinstance(item, exp.Star) or item.this.args.get("replace"))
            for item in select.expressions
        ):
            continue
        found = [column for item in select.expressions for column in listed(item, inputs)]
        if len(inputs) > 1:
            select.set("expressions", found)
        if isinstance(select.parent, exp.CTE):
            steps[select.parent.alias] = [column.alias_or_name for column in found]
    return tree


def _first(query: exp.Expr) -> exp.Expr:
    return _first(query.left) if isinstance(query, exp.SetOperation) else query


def _inner_first(node: exp.Expr) -> list[exp.Select]:
    """Return the selects, those of a step before those that read it."""
    steps = node.args.get("with_")
    parts = [*([steps] if steps else []), *(part for part in node.iter_expressions() if part is not steps)]
    within = [select for part in parts for select in _inner_first(part)]
    return [*within, node] if isinstance(node, exp.Select) else within


def _inputs(select: exp.Select) -> dict[str, exp.Expr]:
    """Return what a select reads, by alias."""
    first = [select.args["from_"].this] if select.args.get("from_") else []
    return {
        source.alias_or_name: source for source in [*first, *(join.this for join in select.args.get("joins") or [])]
    }


def by_place(tree: exp.Expr) -> exp.Expr:
    """Turn ``UNION ALL BY NAME`` into a union by place: a column that a side lacks is NULL there."""
    unions = [union for union in tree.find_all(exp.SetOperation) if union.args.get("by_name")]
    for union in reversed(unions):
        sides = (union.left, union.right)
        given = [{item.alias_or_name: item for item in side.expressions} for side in sides]
        names = list(dict.fromkeys(name for side in given for name in side))
        for side, items in zip(sides, given, strict=True):
            missing = {name: exp.alias_(exp.Null(), name) for name in names if name not in items}
            side.set("expressions", [items.get(name) or missing[name] for name in names])
        union.set("by_name", False)
    return tree


def one_unnest(tree: exp.Expr) -> exp.Expr:
    """Turn lists that a select unnests side by side into a CASE over places: engines would make their product."""
    for select in list(tree.find_all(exp.Select)):
        items = [item for item in select.expressions if isinstance(item.unalias(), exp.Unnest | exp.Explode)]
        if len(items) < 2 or not all(isinstance(_unnested(item), exp.Array) for item in items):
            continue
        (count,) = {len(_unnested(item).expressions) for item in items}
        for item in items:
            values = [
                exp.If(this=_place(no), true=value.copy()) for no, value in enumerate(_unnested(item).expressions)
            ]
            item.set("this", exp.Case(ifs=values))
        rows: exp.Query = exp.select(exp.alias_(exp.Literal.number(0), "place"))
        for no in range(1, count):
            rows = rows.union(exp.select(exp.alias_(exp.Literal.number(no), "place")), distinct=False)
        select.append("joins", exp.Join(this=rows.subquery(_PLACES), kind="CROSS"))
    return tree


def _place(no: int) -> exp.Expr:
    return exp.EQ(this=exp.column("place", table=_PLACES), expression=exp.Literal.number(no))


def _unnested(item: exp.Expr) -> exp.Expr:
    unnest = item.unalias()
    found: exp.Expr = unnest.expressions[0] if isinstance(unnest, exp.Unnest) else unnest.this
    return found


def without_aliases_in_windows(tree: exp.Expr) -> exp.Expr:
    """Put the value in the place of its name where a window of the same select reads it, which Spark does not allow."""
    for select in tree.find_all(exp.Select):
        named = {item.alias: item.this for item in select.expressions if isinstance(item, exp.Alias)}
        for window in select.find_all(exp.Window):
            if window.find_ancestor(exp.Select) is not select:
                continue
            for column in list(window.find_all(exp.Column)):
                value = None if column.table else named.get(column.name)
                if value is not None and not any(other.name == column.name for other in value.find_all(exp.Column)):
                    column.replace(exp.Paren(this=value.copy()))
    return tree
