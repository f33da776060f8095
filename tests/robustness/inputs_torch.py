"""Mutated torch.profiler traces, read compiled and in Python, whole and in blocks, serially and ahead."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from readers.torch.test_torch_readers import COMMITTED, KEYS, PLAIN
from robustness.invariants import Case, Way
from robustness.mutations import Dice, changed_bytes, changed_tree, encoded, value
from support.both_readers import FILES, FILLED, WAYS, outcome, python_reader
from support.traces import HEADER, LAYOUTS, Raw, annotation, dumps, event_text, kernel, launched, op
from tracedb_torch import ingester

__all__ = ["ingester", "make"]

BETWEEN = {"native": b",\n", "compact": b",", "indented": b",\n    ", "lines": b",\n"}
GPU = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
COMPILED, PYTHON = Way("compiled"), Way("Python", is_python=True)
EVENTS = ("gpu", "launch", "op", "annotation", "frame", "memory")
BLOCKS = (250, 700, 1 << 20)
FEW = 60


@cache
def _bases() -> tuple[list[dict[str, Any]], ...]:
    """Lists of events: of each sort, launched, nested, begun and ended apart; parts of recorded traces."""
    nested = [
        annotation(0, 900, "ProfilerStep#1"),
        op(10, 500, external=1),
        op(20, 100, "aten::addmm", 2),
        *launched(4),
    ]
    split = [{**op(10 * at, 0), "ph": "BE"[at % 2]} for at in range(8)] + [kernel(5, 2, correlation=1)]
    for event in split[:8]:
        del event["dur"]
    recorded = [json.loads(gzip.decompress(path.read_bytes()))["traceEvents"] for path in COMMITTED[:3]]
    parts = [events[at : at + 25] for events in recorded for at in (0, len(events) // 2)]
    several = [*launched(2, pid=1), *launched(2, 9, pid=2, device=1)]
    return (PLAIN, PLAIN * 2, nested, launched(8), split, several, *parts)


def make(dice: Dice, folder: Path) -> Case:
    """Make a trace, and what is to hold of it."""
    events: list[Any] = [copy.deepcopy(event) for event in dice.choice(_bases())][:FEW]
    header = copy.deepcopy(HEADER)
    for _ in range(dice.choice((0, 1, 2, 5))):
        changed_tree(dice, events, KEYS)
    if dice.randrange(6) == 0:
        changed_tree(dice, header, ("traceEvents", "schemaVersion", "distributedInfo"))
    content = _text(dice, events or [Raw("null")], header)
    for _ in range(dice.choice((0, 0, 1, 1, 3))):
        content = changed_bytes(dice, content, event_text(PLAIN[0], "native"))
    options = {dice.choice(("stacks", "memory_events")): False} if dice.randrange(4) == 0 else {}
    path, stored = folder / "trace.json", content
    if is_packed := dice.randrange(20) == 0:
        path, stored = folder / "trace.json.gz", gzip.compress(content, 1, mtime=0)
        stored = changed_bytes(dice, stored, least=10) if dice.randrange(2) else stored
    path.write_bytes(stored)
    block, way = dice.choice(BLOCKS), dice.choice(WAYS[1:])
    both, one = (COMPILED, PYTHON), (COMPILED,)
    readers = both if is_packed else (both, one, *[()] * 10)[dice.randrange(12)]
    return Case([path], readers, lambda: _counted(content), lambda _: _parted(content, block, way, options))


def _text(dice: Dice, events: list[Any], header: dict[str, Any]) -> bytes:
    layout = dice.choice(LAYOUTS)
    texts = [event_text(event, layout) if isinstance(event, dict) else dumps(event).encode() for event in events]
    body = b"[" + BETWEEN[layout].join(encoded(text.decode()) for text in texts) + b"]"
    if dice.randrange(10) == 0:
        return body
    around = encoded(dumps(header, None if layout == "compact" else 2)[1:-1].rstrip())
    if dice.randrange(8) == 0:
        return b"".join((b'{"traceEvents": ', body, b", ", around, b"}"))
    after = b', "traceName": ' + value(dice).text.encode("utf-8", "surrogatepass") if dice.randrange(8) == 0 else b""
    return b"".join((b"{", around, b", " if around else b"", b'"traceEvents": ', body, after, b"}"))


def _counted(content: bytes) -> dict[str, int] | None:
    """Count the GPU's events with Python's own reader of JSON, where it reads the trace."""
    try:
        found = json.loads(content)
        events = found if isinstance(found, list) else found["traceEvents"]
        kinds = [
            GPU.get(str(item.get("cat")).lower()) for item in events if isinstance(item, dict) and item.get("ph") == "X"
        ]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return {kind: kinds.count(kind) for kind in GPU.values()}


def _parted(content: bytes, block: int, way: str, options: dict[str, Any]) -> tuple[str, list[str]]:
    """Compare what both readers find before anything is linked; the compiled one also in threads."""
    size = max(block, FILLED) if way in FILES else block
    with python_reader():
        expected = outcome(content, size, cores=1, **options)
    wrong = list(_unbalanced(expected))
    for name, found in (
        ("compiled", outcome(content, size, cores=1, **options)),
        (way, outcome(content, block, way, cores=2, **options)),
    ):
        if found != expected:
            parts = [key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key)]
            said = "; ".join(
                f"{key}: {str(expected.get(key))[:300]} against {str(found.get(key))[:300]}" for key in parts
            )
            wrong.append(f"{name}, blocks of {size}, differs from Python in {said}")
    return _state(expected), wrong


def _unbalanced(found: dict[str, Any]) -> Iterator[str]:
    """Tell where the events that were read are not those that gave a row and those left out."""
    if "refused" not in found:
        rows = sum(len(found["rows"].get(table, ())) for table in EVENTS)
        skipped = sum(issue["skipped"] for issue in found["issues"].values())
        if found["events_read"] != rows + skipped:
            yield f"{found['events_read']} events read, {rows} rows, {skipped} skipped"


def _state(found: dict[str, Any]) -> str:
    if "refused" in found:
        return "refused"
    return "truncated" if found["is_cut"] else "repaired" if found["is_repaired"] else "complete"
