"""What the end of a step waited for under a scenario: time by kind of bound, along the critical path."""

from __future__ import annotations

from collections import Counter

from tracedb.dependencies.causes import BY_LAUNCH, BY_NOTHING, BY_STREAM
from tracedb.what_if.retiming import Timed


def bounds(rank: Timed) -> Counter[str]:
    """Return the time on the critical path by bound (``v1.critical_path.bound_by``), in ns."""
    found: Counter[str] = Counter()
    begin = rank.model.span.begin
    now = rank.finish()
    last = rank.last_event()
    event = last if last >= 0 and rank.end[last] > rank.host_end() else -1
    place = len(rank.sync_recorded) - 1
    left = 2 * (len(rank.start) + len(rank.sync_recorded)) + 16
    while now > begin and left:
        left -= 1
        if event < 0:
            now, event, place = _on_host(rank, found, now, place, begin)
        else:
            now, event, place = _on_gpu(rank, found, now, event, begin)
    return found


def _on_host(rank: Timed, found: Counter[str], now: int, place: int, begin: int) -> tuple[int, int, int]:
    """Go back to the last call that waited; returns the time, the event waited for and the call before."""
    while place >= 0 and not rank.waited[place]:
        place -= 1
    if place < 0:
        found["host"] += max(now - begin, 0)
        return begin, -1, -1
    back = rank.sync_end[place] + rank.offset[place + 1]
    found["host"] += max(now - max(back, begin), 0)
    event = rank.sync_event[place]
    found["sync"] += max(min(back, now) - max(rank.end[event], begin), 0)
    return min(now, rank.end[event]), event, place - 1


def _on_gpu(rank: Timed, found: Counter[str], now: int, event: int, begin: int) -> tuple[int, int, int]:
    """Go back to what an event started after; returns the time, that event or -1, and the last call before."""
    start = rank.start[event]
    met = rank.met.get(event, start)
    what = "collective" if rank.model.is_collective[event] else "copy" if rank.model.is_copy[event] else "kernel"
    found[what] += max(now - max(met, begin), 0)
    found["wait"] += max(min(met, now) - max(start, begin), 0)
    cause = rank.cause[event]
    now = min(now, start)
    if cause == BY_NOTHING:
        found["host"] += max(now - begin, 0)
        return begin, -1, -1
    if cause == BY_LAUNCH:
        after = rank.after[event]
        launched = rank.launched[event] + rank.offset[after]
        found["launch"] += max(now - max(launched, begin), 0)
        return min(now, launched), -1, after - 1
    source = rank.before[event] if cause == BY_STREAM else rank.awaited[event]
    found["launch" if cause == BY_STREAM else "sync"] += max(now - max(rank.end[source], begin), 0)
    return min(now, rank.end[source]), source, -1
