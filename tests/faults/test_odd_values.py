"""Every field that is read, with a value of every JSON type: the result is rows, and every event is counted."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from support.both_readers import WAYS, assert_same, outcome
from support.traces import HEADER, Event, Raw, annotation, call, document, dumps, frame, kernel, launched, op
from tracedb.ingester.issues import Account
from tracedb_torch.header import DISTRIBUTED, READ, header_of
from tracedb_torch.scan import native_scanner
from tracedb_torch.split.blocks import Trace

VALUES = {
    **{text: text for text in ("null", "true", "false", "0", "-1", "7", "1.5", "1e400", "-1e999999999999999999999")},
    **{text: text for text in ("9223372036854775807", "9223372036854775808", "18446744073709551615", "1" + "0" * 40)},
    **{text: text for text in ('""', '"x"', '"7"', '"-7"', '"NaN"', '"\\ud800"', '"\\u0000"', "[]", "[1]", "{}")},
    **{text: text for text in ('[[1],"x",null]', "[1,2,3]", "[1.5,2,3]", "[-1,2,3]", '["a",2,3]', '{"a":{"rank":[]}}')},
    "9223372036854775808 in a list": "[9223372036854775808,1,1]",
    "digits": "1" * 5000,
    "long text": '"' + "y" * 300 + '"',
    "deep": "[" * 900 + "]" * 900,
    "too deep": "[" * 5000 + "]" * 5000,
}
MESSAGE = {"Collective name": "allreduce", "In msg nelems": 5, "Out msg nelems": 5, "Group size": 2, "dtype": "Float"}
MESSAGE |= {"Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Seq": 1}
SIZES = {"registers per thread": 1, "shared memory": 1, "bytes": 2, "graph id": 1, "graph node id": 1, "external id": 0}
SHAPES: dict[str, Any] = {
    "Input Dims": [],
    "Input dims": [],
    "Input type": [],
    "Input Strides": [],
    "Concrete Inputs": [],
}
ALLOCATION = {"Total Reserved": 1, "Total Allocated": 1, "Bytes": 5, "Device Id": 0, "Device Type": 1, "Addr": 9}
EVENTS: list[Event] = [
    kernel(10, 1, correlation=7, External_id=3, grid=[1, 2, 3], block=[1, 1, 1], args={**SIZES, **MESSAGE}),
    kernel(10, 1, args={"est. achieved occupancy %": 5}),
    call(5, 1, 7, external=3),
    op(1, 20, external=3, args={"Sequence number": 1, "Fwd thread id": 2, **SHAPES, **MESSAGE}),
    annotation(1, 30, "range"),
    annotation(1, 30, "range", pid=0, tid=7, cat="gpu_user_annotation"),
    frame(1, 5, "train.py(3): step"),
    {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 5, "args": ALLOCATION},
    {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python3"}},
    {"ph": "X", "cat": "of nobody", "name": "x", "pid": 1, "tid": 0, "ts": 1, "dur": 2, "args": {"device": 0}},
]
TOP = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id")


def with_value(text: str) -> list[Event]:
    """Each event with the value in each of its fields in turn."""
    value = Raw(text)
    changed = [{**event, key: value} for event in EVENTS for key in TOP]
    return changed + [
        {**event, "args": {**event["args"], key: value}} for event in EVENTS for key in event.get("args", {})
    ]


@pytest.fixture(scope="module", autouse=True)
def _no_collection_in_depth() -> Iterator[None]:
    """A finaliser that the collector runs deep in a recursion has no stack left, and pytest fails the test for it."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("name", VALUES)
def test_an_odd_value_in_any_field_loses_no_other_event(name: str) -> None:
    events = with_value(VALUES[name])
    sound = launched(len(events))
    found = outcome(document([*sound, *events]), stacks=True, memory_events=True)
    rows = sum(len(rows) for table, rows in found["rows"].items() if table not in ("process", "message"))
    skipped = sum(issue["skipped"] for issue in found["issues"].values())
    assert found["events_read"] == len(sound) + len(events) == rows + skipped
    assert len(found["rows"]["gpu"]) >= len(events)


@pytest.mark.skipif(native_scanner.library() is None, reason="the compiled reader was not built")
@pytest.mark.parametrize(("name", "way"), zip(VALUES, itertools.cycle(WAYS)))
def test_both_readers_read_odd_values_alike(name: str, way: str) -> None:
    """Values do not depend on the way of reading; test_torch_readers.py reads odd values in every way."""
    events = with_value(VALUES[name])
    # The smaller blocks hold one odd event each among sound ones.
    content = document([event for odd in events for event in (*launched(1), odd)])
    assert_same(content, 2000 if len(VALUES[name]) < 100 else 20_000, [way], stacks=True, memory_events=True)


DEVICE = HEADER["deviceProperties"][0]
HEADERS: dict[str, Any] = {
    **{key: lambda value, key=key: {key: value} for key in READ},
    **{f"device {key}": lambda value, key=key: {"deviceProperties": [{**DEVICE, key: value}]} for key in DEVICE},
    **{
        f"distributed {key}": lambda value, key=key: {"distributedInfo": {"rank": 1, "world_size": 2, key: value}}
        for key in (*DISTRIBUTED, "rank")
    },
    "device": lambda value: {"deviceProperties": [DEVICE, value]},
}


def around(fields: dict[str, Any]) -> Trace:
    """What stands around no events."""
    return Trace(head=dumps(fields)[:-1].encode() + b",", tail=bytearray(b"}"), ended=True)


@pytest.mark.parametrize("key", HEADERS)
def test_an_odd_value_in_the_header_loses_no_event(key: str) -> None:
    for text in VALUES.values():
        fields = {**HEADER, **HEADERS[key](Raw(text))}
        account = Account()
        header = header_of(around(fields), account)
        assert header.rank is None or 0 <= header.rank < 1 << 31
        assert header.base_ns is None or 0 <= header.base_ns < 1 << 62
        assert isinstance(header.metadata, str) and len(header.tool_version or "") < 2000
        assert all(device["id"] is None or device["id"] >= 0 for device in header.devices)
        assert isinstance(header.is_amd, bool) and header.host != ""


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"distributedInfo": {"rank": "x", "world_size": 2}}, {"rank": 1}),
        ({"distributedInfo": {"rank": -1, "world_size": 2.5}}, {"rank": 1, "world_size": 1}),
        ({"distributedInfo": "none"}, {"distributedInfo": 1}),
        ({"deviceProperties": {"id": 0}}, {"deviceProperties": 1}),
        ({"deviceProperties": [{"id": "x"}]}, {"deviceProperties": 1}),
        ({"deviceProperties": [7]}, {"deviceProperties": 1}),
        ({"baseTimeNanoseconds": 2**63}, {"baseTimeNanoseconds": 1}),
        ({"baseTimeNanoseconds": 2**62}, {"baseTimeNanoseconds": 1}),
        ({"distributedInfo": {"rank": "3", "world_size": 4.0}, "deviceProperties": []}, {}),
        ({"distributedInfo": None, "deviceProperties": None, "baseTimeNanoseconds": None}, {}),
    ],
)
def test_odd_values_are_named_by_field_and_counted(fields: dict[str, Any], named: dict[str, int]) -> None:
    account = Account()
    header_of(around(fields), account)
    assert {code: issue.parts for code, issue in account.issues.items()} == (
        {"header_field_unreadable": named} if named else {}
    )
