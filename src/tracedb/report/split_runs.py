"""Captures that labels keep apart from the other ranks of their run, by ``v1._split_configuration``."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from tracedb.storage.views import CURRENT

if TYPE_CHECKING:
    import duckdb

_SHOWN = 3
_LISTED = 8


def said(
    connection: duckdb.DuckDBPyConnection, among: Collection[int], version: str = CURRENT, has_both: bool = False
) -> list[str]:
    """Return a line for each group of captures that is split from its run.

    ``among``: captures of which one is concerned, or, with ``has_both``, one of each part.
    """
    joined = "AND" if has_both else "OR"
    rows = connection.execute(
        f"""SELECT is_extra, odd_ids, odd_ranks, other_ids, other_ranks, pairs FROM {version}._split_configuration
            WHERE list_has_any(odd_ids, $1::BIGINT[]) {joined} list_has_any(other_ids, $1::BIGINT[])
            ORDER BY odd_ids, other_ids""",
        [list(among)],
    ).fetchall()
    lines = [_line(*row) for row in rows[:_SHOWN]]
    return lines + ([f"{len(rows) - _SHOWN} more such splits"] if rows[_SHOWN:] else [])


def _line(
    is_extra: bool,
    odd: Sequence[int],
    odd_ranks: Sequence[int],
    others: Sequence[int],
    other_ranks: Sequence[int],
    pairs: Sequence[str],
) -> str:
    """Return what is split and which command joins it."""
    labels = " ".join(map(shlex.quote, pairs))
    is_one = len(odd) == 1
    has = ("only it has" if is_one else "only they have") if is_extra else ("it lacks" if is_one else "they lack")
    count = "counts as a configuration of its own" if is_one else "count as a configuration of their own"
    joins = [f"`tracedb label {_numbers(others if is_extra else odd)} {labels}`"]
    if is_extra:
        without = " ".join(shlex.quote(pair.partition("=")[0] + "=") for pair in pairs)
        joins.append(f"`tracedb label {_numbers(odd)} {without}`")
    return (
        f"{_named('rank', odd_ranks)} ({_named('capture', odd)}) {count}, apart from {_named('rank', other_ranks)} "
        f"({_named('capture', others)}): {has} {' '.join(pairs)}; {' or '.join(joins)} joins them"
    )


def _numbers(those: Sequence[int]) -> str:
    return " ".join(map(str, those))


def _named(noun: str, those: Sequence[int]) -> str:
    more = f" and {len(those) - _LISTED} more" if len(those) > _LISTED else ""
    return f"{noun}{'' if len(those) == 1 else 's'} {', '.join(map(str, those[:_LISTED]))}{more}"
