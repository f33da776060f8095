"""Views without session variables: what remains when no variable is set.

``getvariable('captures')`` and ``getvariable('step_range')`` are options of a report. Other engines have no such
variables, so they are NULL, and the branches that depend on them are dropped.
"""

from __future__ import annotations

from sqlglot import exp

_PASSES = 8


def without_variables(tree: exp.Expr) -> exp.Expr:
    """Replace variables by NULL and fold the conditions that are constant then."""
    if not any(_is_variable(node) for node in tree.walk()):
        return tree
    tree = tree.transform(lambda node: exp.Null() if _is_variable(node) else node)
    for _ in range(_PASSES):
        before = tree.sql("duckdb")
        tree = _folded_once(tree)
        if tree.sql("duckdb") == before:
            break
    return tree


def _is_variable(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == "getvariable"


def _folded_once(tree: exp.Expr) -> exp.Expr:
    for node in reversed(list(tree.walk())):
        folded = _folded(node)
        if folded is node:
            continue
        if node.parent is None:
            tree = folded
        else:
            node.replace(folded.copy())
    return tree


def _folded(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Cast | exp.ArrayContains) and _is_null(node.this):
        return exp.Null()
    if isinstance(node, exp.Glob | exp.Like | exp.EQ) and (_is_null(node.this) or _is_null(node.expression)):
        return exp.Null()
    if isinstance(node, exp.Is) and _is_null(node.this) and _is_null(node.expression):
        return exp.true()
    if isinstance(node, exp.Not) and isinstance(node.this, exp.Boolean):
        return exp.Boolean(this=not node.this.this)
    if isinstance(node, exp.Paren) and isinstance(node.this, exp.Null | exp.Boolean):
        return node.this
    if isinstance(node, exp.And):
        return _conjunction(node)
    if isinstance(node, exp.Coalesce):
        return _first_known(node)
    if isinstance(node, exp.Case) and not node.this:
        return _case(node)
    return node


def _is_null(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Null)


def _is_false(node: exp.Expr) -> bool:
    return isinstance(node, exp.Boolean) and not node.this


def _conjunction(node: exp.And) -> exp.Expr:
    if _is_false(node.left) or _is_false(node.right):
        return exp.false()
    if isinstance(node.left, exp.Boolean):
        return node.right
    return node.left if isinstance(node.right, exp.Boolean) else node


def _first_known(node: exp.Coalesce) -> exp.Expr:
    values = [value for value in (node.this, *node.expressions) if not _is_null(value)]
    if not values:
        return exp.Null()
    return values[0] if len(values) == 1 or isinstance(values[0], exp.Boolean) else node


def _case(node: exp.Case) -> exp.Expr:
    branches = [branch for branch in node.args["ifs"] if not _is_false(branch.this) and not _is_null(branch.this)]
    if not branches:
        default: exp.Expr = node.args.get("default") or exp.Null()
        return default
    if isinstance(branches[0].this, exp.Boolean):
        first: exp.Expr = branches[0].args["true"]
        return first
    node.set("ifs", branches)
    return node
