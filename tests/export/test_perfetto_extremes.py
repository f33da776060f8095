"""``tracedb export perfetto`` of times at the limits of 64 bits, and of texts that are nearly JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.command import run
from support.perfetto import Proto, written
from support.tiny import ADD, GEMM, Tiny

FAR = 8 * 10**18
"""Two times that far from 0 on different sides are more than 63 bits apart."""


def strict(path: Path) -> dict[str, Any]:
    """Load a file as a reader does that takes no NaN."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    loaded: dict[str, Any] = json.loads(path.read_bytes(), parse_constant=refuse)
    return loaded


def shown(path: Path) -> list[tuple[str, float]]:
    return sorted((event["name"], event["ts"]) for event in strict(path)["traceEvents"] if event["ph"] in "XC")


def test_operators_and_allocator_events_without_a_plausible_time_are_left_out(tmp_path: Path) -> None:
    """Their tables have no ``time_fault``; the GPU event of the operator has."""
    tiny = Tiny(tmp_path / "t.duckdb")
    tiny.capture(0)
    tiny.kernel(GEMM, -FAR, 10, op_id=0, time_fault="far_from_others")
    tiny.kernel(GEMM, FAR, 10, op_id=1)
    of = {"capture_id": 1, "process_id": 1, "thread_id": 1}
    tiny.add("op", **of, op_id=0, name="far", start_ns=-FAR, duration_ns=9)
    tiny.add("op", **of, op_id=1, name="near", start_ns=FAR, duration_ns=9)
    tiny.add("op", **of, op_id=2, name="long", start_ns=FAR, duration_ns=10**18)
    memory = {"device_type": 1, "device_id": 0, "bytes": 1, "total_allocated_bytes": 1, "total_reserved_bytes": 2}
    for number, start in enumerate((-FAR, FAR + 5_000)):
        tiny.add("memory_event", capture_id=1, memory_event_id=number, start_ns=start, **memory)
    db = tiny.save()
    first = FAR / 1000
    assert shown(written(db, tmp_path / "t.json")) == [
        ("GPU 0 allocated", first + 5),
        ("GPU 0 reserved", first + 5),
        ("near", first),
        (GEMM, first),
    ]
    assert sorted(item.name for item in Proto(written(db, tmp_path / "t.pftrace")).slices) == ["near", GEMM]


def test_a_capture_that_begins_before_1970_begins_at_zero(tmp_path: Path) -> None:
    """No format has a number for such a time; what the clock shows is perhaps not the time of day."""
    tiny = Tiny(tmp_path / "t.duckdb")
    tiny.capture(0, clock_zero_unix_ns=0)
    tiny.kernel(GEMM, -5_000, 10)
    tiny.kernel(ADD, 20, 10)
    db = tiny.save()
    assert shown(written(db, tmp_path / "t.json")) == [(GEMM, 0), (ADD, 5.02)]
    assert "baseTimeNanoseconds" not in strict(tmp_path / "t.json")
    found = Proto(written(db, tmp_path / "t.pftrace"))
    assert sorted((item.start_ns, item.name) for item in found.slices) == [(0, GEMM), (5_020, ADD)]


def test_a_time_beyond_64_bits_of_unix_time(tmp_path: Path) -> None:
    zero = (1 << 62) - 1
    tiny = Tiny(tmp_path / "t.duckdb")
    tiny.capture(0, clock_zero_unix_ns=zero)
    tiny.kernel(GEMM, FAR, 10)
    db = tiny.save()
    assert shown(written(db, tmp_path / "t.json")) == [(GEMM, FAR / 1000)]
    (item,) = Proto(written(db, tmp_path / "t.pftrace")).slices
    assert (item.start_ns, item.duration_ns) == (zero + FAR, 10)


def test_captures_too_far_apart_are_named_in_one_line(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "t.duckdb")
    for rank, start in enumerate((-FAR, FAR)):
        tiny.capture(rank, clock_zero_unix_ns=0)
        tiny.kernel(GEMM, start, 10)
    db = tiny.save()
    done = run("export", "perfetto", "--db", db, "-o", tmp_path / "t.json")
    assert done.exit_code == 1
    assert done.stderr == (
        f"tracedb: error: {db}: the selected captures are more than 292 years apart on one clock, and no timeline "
        "holds both; select some with --capture\n"
    )
    assert shown(written(db, tmp_path / "t.json", "--capture", "1")) == [(GEMM, 0)]


@pytest.mark.parametrize("text", ["[NaN]", "[[1,]]", "[1e999]", '["\\ud800"]', "[" * 5_000 + "]" * 5_000, "{"])
def test_texts_that_only_some_readers_take_for_json(text: str, tmp_path: Path) -> None:
    """DuckDB and Python take some of them. As arguments they are shown as texts; in the header they are left out."""
    tiny = Tiny(tmp_path / "t.duckdb")
    tiny.capture(0, metadata=text if text.startswith("{") else f'{{"cuda_runtime_version": {text}}}')
    given = {"input_dims": text, "input_types": text, "concrete_inputs": '["1", null]'}
    tiny.add("op", capture_id=1, op_id=0, thread_id=1, name="aten::mm", start_ns=0, duration_ns=9, **given)
    tiny.kernel(GEMM, 0, 10, op_id=0)
    found = strict(written(tiny.save(), tmp_path / "t.json"))
    (arguments,) = (event["args"] for event in found["traceEvents"] if event["name"] == "aten::mm")
    assert (arguments["Input Dims"], arguments["Input type"]) == (text, text)
    assert arguments["Concrete Inputs"] == ["1", None]
    assert "cuda_runtime_version" not in found
