"""The compiled reader and the Python reader agree: rows, counts, and the messages of rejections."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import build_native
from support import recordings
from support.both_readers import FILE, PIECES, WAYS, assert_same, outcome, python_reader
from support.command import run
from support.examples import MORE
from support.traces import (
    Raw,
    annotation,
    bare_list,
    call,
    document,
    event_text,
    frame,
    kernel,
    launched,
    memcpy,
    op,
    window_end,
)
from tracedb_torch.decode.block_decoder import BlockReader
from tracedb_torch.decode.event_types import Decoders
from tracedb_torch.scan import native_scanner

ROOT = Path(__file__).resolve().parents[3]
COMMITTED = [
    *sorted((ROOT / "examples" / "run").rglob("*.json.gz"))[:2],
    *sorted((ROOT / "tests" / "data").glob("[!r]*/**/*.json.gz")),
]
RECORDED = [
    *sorted((recordings.DATA / "torch").rglob("*.json.gz")),
    *sorted((recordings.DATA / "sweeps").rglob("*.json.gz"))[:2],
]
MOST = 2 << 20  # bytes read of a recorded trace

pytestmark = pytest.mark.skipif(native_scanner.library() is None, reason="the compiled reader was not built")

MEMORY = {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 4242, "tid": 4242, "ts": 5}
FLOW = {"ph": "s", "id": 3, "pid": 4242, "tid": 4242, "ts": 5, "cat": "ac2g", "name": "ac2g"}
PLAIN: list[dict[str, Any]] = [
    kernel(1000.125, 2.5, correlation=7, External_id=3, grid=[1, 2, 3], args={"est. achieved occupancy %": 61.25}),
    kernel(1000, 2, cat="Kernel", external_id=3, block=[128, 1, 1]),
    memcpy(2000, 1.5, bytes=4096),
    call(990.001, 3, 7, external=3),
    op(980, 30.999, external=3, Input_Dims=[[2, 3], []], Input_type=["float", ""], Concrete_Inputs=["", "1"]),
    op(980, 30, cat="Operator", Input_dims=[[2]]),
    op(975, 40, "nccl:all_reduce", 4, Collective_name="allreduce", In_msg_nelems=5, Group_size=2, dtype="Float"),
    annotation(970, 50, "step"),
    annotation(971, 50, "step", pid=0, tid=7, cat="gpu_user_annotation"),
    frame(960, 10, "train.py(3): step"),
    MEMORY,
    FLOW,
    window_end(),
]
VALUES = [
    *("0", "-0", "-1", "7", "01", "1.", ".5", "-", "1.5", "1.0005", "1e3", "1E400", "123.4567", "1.50", "1.000"),
    *("9007199254740993", "99999999999999999999", "18446744073709551615", "4294967295", "8796093022207.999"),
    *("8796093022208.123", "1700000000000000.123", "1700000000000000", "9000000000000000", "-5.5", "NaN", "null"),
    *("true", "[]", "[1,2,3]", "[1,2]", "[1,2,3,4]", "[1.5,2,3]", "{}", '{"ts":1234567890123.5}', '"X"', '"M"', '"i"'),
    *('"stream 7"', '"12"', '"007"', '"12.5"', '" 3"', '""', '"kernel"', '"ac2g"', '"new category"', '"[memory]"'),
    *('"ProfilerStep#1"', '"a\\u0041"', '"\\"', '"\\q"', '"é"', '"tab\t"', '"del\x7f"', '"CUDA functions"', '"Spans"'),
]
KEYS = ["ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "External id", "correlation", "grid", "Collective name"]


def spoilt(event: dict[str, Any], key: str, value: str, inside: bool) -> dict[str, Any]:
    """One value changed, or a member more, at the top or among the arguments."""
    if inside and isinstance(event.get("args"), dict):
        return {**event, "args": {**event["args"], key: Raw(value)}}
    return {**event, key: Raw(value)}


def test_the_library_is_there_where_there_is_a_compiler() -> None:
    assert build_native.compiler() is None or native_scanner.LIBRARY.exists()
    assert native_scanner.state() == "compiled"
    with python_reader():
        assert native_scanner.library() is None
        assert native_scanner.state() == "Python (TRACEDB_READER=python)"


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.name)
def test_committed_traces(path: Path) -> None:
    assert_same(gzip.decompress(path.read_bytes()))


@pytest.mark.shared
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_recorded_traces(path: Path) -> None:
    with gzip.open(path) as file:
        assert_same(file.read(MOST), stacks="stack" in path.name)


def test_plain_events_are_taken_by_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the other tests would compare the Python reader with itself."""
    monkeypatch.setattr(BlockReader, "_decode", None)
    monkeypatch.setattr(Decoders, "event", None)
    found = outcome(document([event for event in PLAIN if "Collective name" not in event.get("args", {})][:-1]))
    assert {table: len(rows) for table, rows in found["rows"].items()} == {
        **{"gpu": 3, "launch": 1, "op": 2, "annotation": 2, "frame": 1, "memory": 1},
        "process": 2,
    }


@pytest.mark.parametrize("flag", ["stacks", "memory_events", None])
@pytest.mark.parametrize("layout", ["native", "compact", "indented", "lines"])
def test_every_layout(layout: str, flag: str | None) -> None:
    options: dict[str, Any] = {} if flag is None else {flag: False}
    assert_same(document(PLAIN * 3, layout, after={"traceName": "x"}), 700, **options)
    assert_same(bare_list(PLAIN, layout), **options)


def test_each_odd_value_at_each_place() -> None:
    """Every value in every field of every sort of event, each in a block of its own among sound events."""
    odd = [
        spoilt(event, key, value, inside)
        for event, key, inside in itertools.product(PLAIN, KEYS, (False, True))
        for value in VALUES
        if key in event or (inside and key in event.get("args", {}))
    ]
    assert len(odd) > 3000
    few = odd[::11]
    events = [other for event in few for other in (PLAIN[0], PLAIN[4], event, PLAIN[3], PLAIN[0])]
    found = assert_same(document(events), 900, ways=(PIECES, FILE))
    assert len(found["rows"]["gpu"]) > 2 * len(few)
    assert_same(document(events[:: len(events) // 500]), 900)  # whether it is begun early does not depend on the value


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[",
        b"[]",
        b'{"traceEvents": []}',
        b'{"traceEvents": [,]}',
        document(PLAIN)[:-2],
        document(PLAIN) + document(PLAIN),
        document(PLAIN, after=b'"traceEvents": []'),
        document([*PLAIN, b"{" + b'"args":[' * 400 + b"]" * 400 + b"}"]),
        document([*PLAIN, b'{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2,"args":{},}']),
        document([*PLAIN, b'{"ph":"X","schemaVersion":1}', *PLAIN]),
        document([{"ph": "M", "name": "process_name", "pid": 1, "ts": 1234567890123.5, "args": {}}, *PLAIN]),
        document([spoilt(event, "ts", "1700000000000000.123", False) for event in PLAIN]),
        document([spoilt(event, "pid", str(place), False) for place, event in enumerate(PLAIN * 9)]),
        document([{**event, "name": ""} for event in PLAIN]),
    ],
    ids=range(16),
)
def test_ends_and_other_shapes(content: bytes) -> None:
    assert_same(content)
    assert_same(content, 300)


@pytest.mark.parametrize("way", WAYS)
def test_what_follows_the_events_is_whole_however_it_is_cut(way: str) -> None:
    content = document(PLAIN, after={"notes": [{"ph": "X", "name": str(place)} for place in range(300)]})
    whole = outcome(content, len(content), cores=1)["tail"]
    assert whole.endswith(b'{"ph":"X","name":"299"}]}')
    for block in (400, 700, 3000):
        assert outcome(content, block, way, cores=2)["tail"] == whole


@st.composite
def contents(draw: st.DrawFn) -> bytes:
    """A trace of sound events some of which are spoilt as values or as bytes."""
    events: list[bytes] = []
    for event in draw(st.lists(st.sampled_from(PLAIN), min_size=1, max_size=12)):
        for _ in range(draw(st.sampled_from((0, 0, 0, 1, 2)))):
            key, value = draw(st.sampled_from(KEYS)), draw(st.sampled_from(VALUES))
            event = spoilt(event, key, value, draw(st.booleans()))
        text = event_text(event, draw(st.sampled_from(("native", "compact"))))
        if draw(st.integers(0, 5)) == 0:
            place = draw(st.integers(0, len(text)))
            text = text[:place] + draw(st.binary(max_size=3)) + text[place + draw(st.integers(0, 3)) :]
        events.append(text)
    whole = document(events)
    return whole if draw(st.integers(0, 4)) else whole[: draw(st.integers(0, len(whole)))]


@settings(max_examples=20 * MORE, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(contents(), st.sampled_from((250, 1000, 1 << 20)))
def test_spoilt_traces(content: bytes, block: int) -> None:
    assert_same(content, block)


def test_the_command_reads_the_same(tmp_path: Path) -> None:
    from support.loading import contents, ingest
    from support.traces import write

    trace = write(tmp_path / "trace.json", [*launched(40), *PLAIN])
    assert ingest(trace, db=tmp_path / "compiled.duckdb").exit_code == 0
    with python_reader():
        assert ingest(trace, db=tmp_path / "python.duckdb").exit_code == 0
        assert "TRACEDB_READER=python" in run("doctor", "--db", tmp_path / "python.duckdb").stdout
    assert contents(tmp_path / "compiled.duckdb") == contents(tmp_path / "python.duckdb")


BLOCKS = (300, 700, 2000, 1 << 20)


@pytest.mark.parametrize("layout", ["native", "compact"])
@pytest.mark.parametrize("key", ["launches", "traceEvents"])
def test_objects_like_events_in_an_event_longer_than_a_block(layout: str, key: str) -> None:
    inner = [kernel(place, 1, f"inner {place}") for place in range(60)]
    content = document([kernel(1), kernel(2, args={"x": {key: inner}}), kernel(3)], layout)
    for block in BLOCKS:
        assert_same(content, block)
        found = outcome(content, block, cores=1)
        assert (len(found["rows"]["gpu"]), found["issues"]) == (3, {})


@pytest.mark.parametrize(
    "time", ['"é"', '"soon"', "true", "1e400", "1e999999999999999999", '"1e999999999999999999"', "[]"]
)
def test_what_is_said_of_a_time_does_not_depend_on_the_block(time: str) -> None:
    """A fraction that no double holds has the times of its block read as decimals, also where it is none of theirs."""
    odd = kernel(Raw(time), 1, args={"x": Raw('{"ts":1234567890123.5}')})
    others = [op(Raw(time), 1), annotation(1, Raw(time), "range")]
    content = document([*launched(3), b'"ph": "X", "oops"}', odd, *launched(3), *others, *launched(2)])
    found = [outcome(content, block, cores=1) for block in BLOCKS]
    for block, one in zip(BLOCKS, found, strict=True):
        assert_same(content, block)
        assert one["issues"] == found[0]["issues"]
    assert found[0]["issues"]["timestamp_unusable"]["parts"] == {"kernel": 1, "cpu_op": 1}
    assert found[0]["issues"]["duration_missing"]["parts"] == {"user_annotation": 1}
