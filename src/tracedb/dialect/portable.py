"""Rewrites that every other engine needs; DuckDB gives the same rows for their result."""

from __future__ import annotations

import re

from sqlglot import exp

from tracedb.dialect.steps import by_place, one_unnest

_ORDERED = (exp.ArrayAgg, exp.GroupConcat)
_FIELD = re.compile(r"\{:(\d*)d\}|\{:s\}")


def portable(tree: exp.Expr) -> exp.Expr:
    """Return the view with named columns, recursion by UNION ALL, and functions that every engine has."""
    tree = (
        tree.transform(_without_comprehension)
        .transform(_without_full_match)
        .transform(_without_try)
        .transform(_without_order)
        .transform(_filled_in)
    )
    return _named(one_unnest(by_place(_by_union_all(tree))))


def _without_full_match(node: exp.Expr) -> exp.Expr:
    """Match a whole text by a pattern from its start to its end."""
    if not isinstance(node, exp.RegexpFullMatch):
        return node
    return exp.RegexpLike(this=node.this, expression=exp.Literal.string(f"^(?:{node.expression.name})$"))


def _without_try(node: exp.Expr) -> exp.Expr:
    """Let an error of an expression be one: the others have no TRY that makes it NULL."""
    return node.this.transform(_without_try) if isinstance(node, exp.Try) else node


def _without_order(node: exp.Expr) -> exp.Expr:
    """Add up values in any order, and put texts together as a list."""
    if isinstance(node, exp.GroupConcat):
        texts = exp.ArrayAgg(this=node.this.transform(_without_order))
        return exp.ArrayToString(this=texts, expression=node.args["separator"])
    if isinstance(node, exp.AggFunc) and not isinstance(node, _ORDERED) and isinstance(node.this, exp.Order):
        node.set("this", node.this.this)
    return node


def _without_comprehension(node: exp.Expr) -> exp.Expr:
    """Turn ``[x FOR p IN list IF c]`` into a transformation of a filtered list."""
    only = node.expressions[0] if isinstance(node, exp.Array) and len(node.expressions) == 1 else None
    if not isinstance(only, exp.Comprehension):
        return node
    name, found = only.expression.name, only.args["iterator"].transform(_without_comprehension)
    if condition := only.args.get("condition"):
        found = exp.ArrayFilter(this=found, expression=function(name, condition.transform(_without_comprehension)))
    return exp.Transform(this=found, expression=function(name, only.this.transform(_without_comprehension)))


def _filled_in(node: exp.Expr) -> exp.Expr:
    """Put texts and whole numbers into a text: ``format('{:4d} of {:s}', a, b)``. Other formats stay as they are."""
    words = re.split(r"(\{[^}]*\})", node.this.name) if isinstance(node, exp.Format) else []
    fields = [_FIELD.fullmatch(word) for word in words[1::2]]
    if not words or not all(fields) or len(fields) != len(node.expressions):
        return node
    found: exp.Expr = exp.Literal.string(words[0])
    for field, value, after in zip(fields, node.expressions, words[2::2], strict=True):
        filled = _padded(value.transform(_filled_in), int((field and field[1]) or 0))
        found = exp.DPipe(this=exp.DPipe(this=found, expression=filled), expression=exp.Literal.string(after))
    return exp.Paren(this=found)


def _padded(value: exp.Expr, width: int) -> exp.Expr:
    """Return a value as text with blanks before it."""
    text = exp.cast(value, "text")
    if not width:
        return text
    length = exp.Greatest(this=exp.Length(this=text.copy()), expressions=[exp.Literal.number(width)])
    return exp.Pad(this=text, expression=exp.cast(length, "int"), fill_pattern=exp.Literal.string(" "), is_left=True)


def _named(tree: exp.Expr) -> exp.Expr:
    """Give every passed-on column its name: ClickHouse calls ``a.x`` of a join ``a.x``, not ``x``."""
    for select in tree.find_all(exp.Select):
        select.set("expressions", [_with_alias(column) for column in select.expressions])
    return tree


def _with_alias(column: exp.Expr) -> exp.Expr:
    is_passed_on = isinstance(column, exp.Column) and not column.is_star and column.table
    return exp.alias_(column.copy(), column.name, quoted=True) if is_passed_on else column


def _by_union_all(tree: exp.Expr) -> exp.Expr:
    """Recurse by UNION ALL from distinct rows.

    The recursive views climb from rows to their parents, of which there is one, so distinct starts stay distinct.
    """
    for clause in tree.find_all(exp.With):
        if not clause.args.get("recursive"):
            continue
        for step in clause.expressions:
            union = step.this
            if isinstance(union, exp.Union) and any(
                table.name == step.alias for table in union.right.find_all(exp.Table)
            ):
                union.set("distinct", False)
                if isinstance(union.left, exp.Select) and not union.left.args.get("distinct"):
                    union.left.set("distinct", exp.Distinct())
    return tree


def call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """Return a call of a function of the engine."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def function(parameters: str, body: exp.Expr) -> exp.Lambda:
    """Return a lambda function; ``parameters`` are names with blanks between."""
    return exp.Lambda(this=body, expressions=[exp.to_identifier(name) for name in parameters.split()])


def is_global(node: exp.RegexpReplace) -> bool:
    """Whether ``regexp_replace`` replaces every match (DuckDB's option ``g``)."""
    modifiers = node.args.get("modifiers")
    return modifiers is not None and "g" in modifiers.name
