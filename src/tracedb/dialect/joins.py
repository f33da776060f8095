"""Joins and windows that only some engines have, written so that all have them; DuckDB gives the same rows."""

from __future__ import annotations

from sqlglot import exp

_NEXT = "next_row_at"


def without_asof(tree: exp.Expr) -> exp.Expr:
    """Turn each ASOF join into a join with the rows that hold at a time.

    Each row of the right side holds from its own time to that of the next row with the same keys, which a window finds:
    ``ASOF JOIN s ON s.k = a.k AND s.t <= a.t`` becomes ``JOIN (SELECT *, lead(t) OVER (PARTITION BY k ORDER BY t) AS
    next_row_at FROM s) AS s ON s.k = a.k AND s.t <= a.t AND (s.next_row_at IS NULL OR s.next_row_at > a.t)``.
    """
    for join in list(tree.find_all(exp.Join)):
        if (join.args.get("method") or "").upper() == "ASOF":
            _hold(join)
    return tree


def _hold(join: exp.Join) -> None:
    right, name = join.this, join.this.alias_or_name
    conditions = list(join.args["on"].flatten()) if isinstance(join.args["on"], exp.And) else [join.args["on"]]
    (time,) = (each for each in conditions if isinstance(each, exp.LT | exp.LTE))
    keys = [_of(each, name) for each in conditions if isinstance(each, exp.EQ | exp.NullSafeEQ)]
    lead = exp.Window(
        this=exp.Anonymous(this="lead", expressions=[exp.column(time.left.name)]),
        partition_by=keys,
        order=exp.Order(expressions=[exp.Ordered(this=exp.column(time.left.name), nulls_first=True)]),
    )
    source = right.copy()
    source.set("alias", None)
    if isinstance(source, exp.Subquery):
        source.set("alias", exp.TableAlias(this=exp.to_identifier("held")))
    held = exp.select("*", exp.alias_(lead, _NEXT)).from_(source).subquery(name)
    after = exp.column(_NEXT, table=name)
    ends = exp.GTE if isinstance(time, exp.LT) else exp.GT
    until = exp.Or(this=after.is_(exp.null()), expression=ends(this=after.copy(), expression=time.right.copy()))
    join.set("this", held)
    join.set("method", None)
    join.set("on", exp.and_(*(each.copy() for each in conditions), exp.Paren(this=until)))


def _of(equality: exp.EQ | exp.NullSafeEQ, name: str) -> exp.Expr:
    """Return the side of an equality that reads the right side of the join only, without the name of that."""
    (side,) = (
        side
        for side in (equality.left, equality.right)
        if {column.table for column in side.find_all(exp.Column)} == {name}
    )
    return side.transform(lambda node: exp.column(node.name) if isinstance(node, exp.Column) else node)


def without_named_windows(tree: exp.Expr) -> exp.Expr:
    """Put the definition of each named window where it is used."""
    for select in tree.find_all(exp.Select):
        named = {window.name: window for window in select.args.get("windows") or []}
        if not named:
            continue
        select.set("windows", None)
        for window in select.find_all(exp.Window):
            used = window.args.get("alias")
            if used is None or used.name not in named or window.find_ancestor(exp.Select) is not select:
                continue
            window.set("alias", None)
            for part in ("partition_by", "order", "spec"):
                found = named[used.name].args.get(part)
                if found and not window.args.get(part):
                    window.set(part, [each.copy() for each in found] if isinstance(found, list) else found.copy())
    return tree
