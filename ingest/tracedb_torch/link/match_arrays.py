"""Link staged rows held in memory. Gives the same links as ``link_sql``, as array indices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tracedb.intervals import native_nesting
from tracedb_torch.int_columns import WORDS
from tracedb_torch.link.numpy_columns import Column, Held, Mask, Places, Texts, Values, having
from tracedb_torch.link.rules import Rules, is_collective, is_launch
from tracedb_torch.scan import native_scanner

NOWHERE = -1
KERNEL = WORDS["kind"].to_pylist().index("kernel")


class Links(NamedTuple):
    """Indices of linked rows; ``NOWHERE`` for no link."""

    call: Places
    """Call, by GPU row."""
    op: Places
    """Operator, by GPU row."""
    parent: Places
    """Parent operator, by operator."""
    external_is_correlation: int
    """Number of GPU rows whose External id is the correlation id and so links nothing; else 0."""


def find(held: Held, texts: Texts, rules: Rules) -> Links | None:
    """Link the rows; None if only SQL can: without the compiled library, or if operators cross."""
    if native_scanner.library() is None:
        return None
    call = _calls(held, texts)
    same = _external_is_correlation(held) if rules.is_whole_microseconds else 0
    op = np.full(len(call), NOWHERE) if same else _named_operators(held, rules, call)
    waiting = np.zeros(held.rows("launch"), np.bool_)
    waiting[call[(call != NOWHERE) & (op == NOWHERE)]] = True
    found = _enclosing(held, rules, np.flatnonzero(waiting))
    if found is None:
        return None
    parent, around = found
    return Links(call, np.where(op == NOWHERE, taken(around, call), op), parent, same)


def taken(places: Places, by: Places) -> Places:
    """Return ``places[by]``; ``NOWHERE`` stays ``NOWHERE``."""
    if not len(places):
        return np.full(len(by), NOWHERE)
    return np.where(by == NOWHERE, NOWHERE, places[by])


class _Index(NamedTuple):
    """Sorted ids and their row indices; among equal ids the preferred row is first."""

    ids: Values
    places: Places

    def places_of(self, wanted: Column) -> Places:
        if not len(self.ids):
            return np.full(len(wanted.values), NOWHERE)
        at = np.searchsorted(self.ids, wanted.values)
        at[at == len(self.ids)] = 0
        return np.where((self.ids[at] == wanted.values) & wanted.is_there, self.places[at], NOWHERE)


def _sorted(ids: Column) -> _Index:
    """Return an index that keeps rows of equal id in file order."""
    if ids.there is None:
        order = np.argsort(ids.values, kind="stable")
        return _Index(ids.values[order], order)
    places = np.flatnonzero(ids.there)
    order = places[np.argsort(ids.values[places], kind="stable")]
    return _Index(ids.values[order], order)


def _has_repeated(index: _Index) -> bool:
    return bool((index.ids[1:] == index.ids[:-1]).any())


def _calls(held: Held, texts: Texts) -> Places:
    """Find the call of each GPU row by correlation id; prefer one named as a launch, then the earliest."""
    correlation = held.column("launch", "correlation_id")
    index = _sorted(correlation)
    if _has_repeated(index):
        is_other = ~having(texts.column(held.column("launch", "name")), is_launch)
        start, number = held.column("launch", "start_ns").values, held.column("launch", "launch_id").values
        places = index.places
        order = places[np.lexsort((number[places], start[places], is_other[places], index.ids))]
        index = _Index(correlation.values[order], order)
    return index.places_of(held.column("gpu", "correlation_id"))


def _external_is_correlation(held: Held) -> int:
    external, correlation = held.column("gpu", "external_id"), held.column("gpu", "correlation_id")
    same = (external.values == correlation.values) & external.is_there & correlation.is_there
    return int(same.sum()) if 2 * same.sum() > external.is_there.sum() else 0


def _named_operators(held: Held, rules: Rules, call: Places) -> Places:
    """Find operators by the External id of the GPU row, else of its call; the call must start within the operator."""
    external = held.column("op", "external_id")
    index = _sorted(external)
    if _has_repeated(index):
        number = held.column("op", "op_id").values[index.places]
        order = index.places[np.lexsort((number, index.ids))]
        index = _Index(external.values[order], order)
    op = index.places_of(held.column("gpu", "external_id").or_else(held.column("launch", "external_id").at(call)))
    linked = np.flatnonzero((op != NOWHERE) & (call != NOWHERE))
    begin = held.column("launch", "start_ns").values[call[linked]]
    into = begin - held.column("op", "start_ns").values[op[linked]]
    is_outside = (into < 0) | (into > held.column("op", "duration_ns").values[op[linked]] + rules.slack_ns)
    op[linked[is_outside]] = NOWHERE
    return op


def _enclosing(held: Held, rules: Rules, calls: Places) -> tuple[Places, Places] | None:
    """Find the innermost operator around every operator and around some calls; None if operators cross."""
    lane, start, end = _spans(held, "op")
    order = _nesting_order(held, lane, start, end)
    call_lane, call_start, call_end = (values[calls] for values in _spans(held, "launch"))
    call_order = np.lexsort((call_start, call_lane))
    found = native_nesting.nest(
        native_nesting.Spans(lane[order], start[order], end[order]),
        order.astype(np.int64, copy=False),
        native_nesting.Spans(call_lane[call_order], call_start[call_order], call_end[call_order]),
        rules.slack_ns,
    )
    if found is None:
        return None
    parent, around = np.full(len(order), NOWHERE), np.full(held.rows("launch"), NOWHERE)
    parent[order] = np.where(found.parent == native_nesting.NOTHING, NOWHERE, found.parent)
    around[calls[call_order]] = np.where(found.around == native_nesting.NOTHING, NOWHERE, found.around)
    return parent, around


def _spans(held: Held, table: str) -> native_nesting.Spans:
    thread, start = held.column(table, "tid"), held.column(table, "start_ns").values
    lane = np.where(thread.is_there, thread.values, -1).astype(np.int64)
    return native_nesting.Spans(lane, start, start + held.column(table, "duration_ns").values)


def _nesting_order(held: Held, lane: Values, start: Values, end: Values) -> Places:
    """Sort as ``enclosing.ORDER`` does; keys after the start are compared only if starts are equal."""
    order = np.lexsort((start, lane))
    is_same = (np.diff(start[order]) == 0) & (np.diff(lane[order]) == 0)
    if not is_same.any():
        return order
    number = held.column("op", "op_id")
    tie = held.column("op", "external_id").or_else(number)
    return np.lexsort((number.values, tie.values, -end, start, lane))


class Messages(NamedTuple):
    """Indices of collective metadata; ``NOWHERE`` for none."""

    of_gpu: Places
    """By GPU row: of the kernel itself, else of the operator that launched it."""
    call: Places
    """By GPU row: of the operator that launched it, else of the kernel itself."""
    of_op: Places
    """By operator: its own."""


def messages(held: Held, texts: Texts, links: Links) -> Messages:
    """Find the collective metadata of GPU rows and operators."""
    index = _sorted(held.column("message", "event_id"))
    own = index.places_of(held.column("gpu", "event_id"))
    of_op = index.places_of(held.column("op", "op_id"))
    found = taken(of_op, links.op)
    found = np.where(found == NOWHERE, taken(of_op, taken(links.parent, links.op)), found)
    found = np.where((own == NOWHERE) & ~_is_collective(held, texts), NOWHERE, found)
    return Messages(np.where(own == NOWHERE, found, own), np.where(found == NOWHERE, own, found), of_op)


def _is_collective(held: Held, texts: Texts) -> Mask:
    """Return the mask of GPU rows that are collective kernels by name."""
    names = texts.column(held.column("gpu", "name")).only(held.column("gpu", "kind").values == KERNEL)
    return having(names, is_collective)
