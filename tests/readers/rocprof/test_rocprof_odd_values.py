"""Every field of a recording with every odd value: rows are stored without unreadable fields, which are reported."""

from __future__ import annotations

import copy
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import product, zip_longest
from pathlib import Path
from typing import Any

import pytest

from support import rocpd_files, rocprof_json_files
from support.rocprof_files import AGENT_INFO, CALLS, COPIES, COUNTERS, ERAS, Set, direct, small, write
from support.rocprof_loaded import Reading, read
from tracedb.errors import ReadError
from tracedb.ingester.native_library import CHOICE

HUGE = 1 << 63
MISSING = object()
JSON_VALUES = [MISSING, None, "x", "", -1, HUGE, -HUGE, -HUGE - 1, 1e300, 1.5, True, [], {}, [[1]], {"a": [None]}]
CSV_VALUES = [
    "",
    "x",
    '"',
    "-1",
    str(HUGE),
    str(-HUGE),
    str(HUGE << 70),
    "1.5",
    "1e400",
    "nan",
    "\ufffd\x00",
    "a b",
    "[]",
]
SQL_VALUES = [None, "x", "", -1, HUGE - 1, -HUGE, 1.5, 1e300, b"\xff\x00", "{", "[1]"]


def outcome(path: Path) -> Reading | str:
    """Return what reading gives; of a refusal, its line. ``read`` checks the account."""
    try:
        found = read(path)
    except ReadError as error:
        said = str(error)
        assert "\n" not in said
        assert "Traceback" not in said
        return said
    for row in found.tables.get("kernel_event", []):
        for name in ("grid_x", "block_x", "registers_per_thread", "queue_id", "correlation_id", "bytes", "device_id"):
            assert row[name] is None or row[name] >= 0, (name, row[name])
    return found


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the places of all values in a document; of a list, those in its first item."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else list(enumerate(value))[:1] if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a copy of a document with another value, or none, at a place."""
    found = copy.deepcopy(document)
    *above, last = path
    parent = found
    for key in above:
        parent = parent[key]
    if value is MISSING:
        del parent[last]
    else:
        parent[last] = value
    return found


def json_document(pid: int = 17) -> dict[str, Any]:
    made = rocprof_json_files.Document(pid)
    made.kernel(1_000, 1_500, correlation=1)
    made.call("hipLaunchKernel", 900, 950, 1)
    made.marker("roctxThreadRangeA", 800, 1_900, "forward")
    made.copy("MEMORY_COPY_HOST_TO_DEVICE", 3_000, 3_500, 0, 5, 4_096)
    made.count(7, 4_000, 4_500, (1, 3.0))
    return made.entry()


TOP = "rocprofiler-sdk-tool"
FREE = (
    "size",
    "external",
    "private_segment_size",
    "thread_id",
    "kind",
    "operation",
    "graph_exec_id",
    "records",
    "bytes",
)
"""Fields that are not read, or of which a value of another kind means something."""
JSON_EVENTS = ("kernel_dispatch", "hip_api", "marker_api", "memory_copy", "counter_collection")


@pytest.mark.parametrize("section", JSON_EVENTS)
def test_json_events(section: str, tmp_path: Path) -> None:
    """One event for each odd value of a field; what is no object at all is lost, alone."""
    entry = json_document()
    records = "callback_records" if section == "counter_collection" else "buffer_records"
    (sound,) = entry[records][section]
    path = tmp_path / "a.json"
    for place in places(sound):
        events = [changed(sound, place, value) for value in JSON_VALUES]
        path.write_text(json.dumps({TOP: [changed(entry, (records, section), [sound, *events, 5, None, "x"])]}))
        found = outcome(path)
        assert isinstance(found, Reading), (place, found)
        assert found.issues["event_unreadable"] == 3
        if section == "counter_collection":  # whose events are one dispatch, of which little is read
            continue
        assert "field_unreadable" in found.faults or "timestamp_unusable" in found.faults or place[-1] in FREE, place
        if place[-1] not in ("start_timestamp", "end_timestamp", "kind", "operation"):
            kept = {"hip_api": "launch", "marker_api": "annotation"}.get(section, "kernel_event")
            assert len(found.rows(kept, "name")) >= len(events) + 1, place


RECORDS = ("buffer_records", "callback_records")


@pytest.mark.parametrize("in_records", [False, True])
def test_json_header(in_records: bool, tmp_path: Path) -> None:
    """Whatever stands beside the events, these are all there.

    Each document has five processes with five of the values: one odd place in each member of the process at once.
    """
    members: dict[str, list[tuple[Any, ...]]] = {}
    for place in places(json_document()):
        if not {*JSON_EVENTS, "memory_allocation"}.intersection(place) and (place[0] in RECORDS) == in_records:
            members.setdefault(place[0], []).append(place)
    assert sum(map(len, members.values())) == (3 if in_records else 48)
    path = tmp_path / "a.json"
    for number, chosen in enumerate(zip_longest(*members.values())):
        entries = [json_document(pid) for pid in range(17, 22)]
        for at, (member, place) in product(range(len(entries)), enumerate(chosen)):
            if place is not None:
                entries[at] = changed(entries[at], place, JSON_VALUES[(3 * at + member + number) % 15])
        path.write_text(json.dumps({TOP: entries}))
        found = outcome(path)
        assert isinstance(found, Reading), (chosen, found)
        if not in_records:
            assert len(found.kernels()) == 3 * len(entries), chosen


def replaced(row: list[Any], at: int, value: str) -> str:
    fields = [f'"{field}"' if isinstance(field, str) else str(field) for field in row]
    fields[at] = value
    return ",".join(fields) + "\n"


def csv_set(folder: Path) -> dict[str, tuple[list[str], list[Any]]]:
    """Write a set; returns header and first row of each file."""
    made = small(folder)
    made.counter(1, "SQ_WAVES", 4.0, 1_000, 1_500)
    made.save()
    made.agents((0, 0, "CPU"), (4, 4, "GPU"))
    first = made.kernels[0]
    kernel = [first.get(name, "Agent 4" if name == "Agent_Id" else 0) for name in ERAS["7.0"]]
    agent: list[Any] = [4, 4, "GPU", 304, 2100, 0, "gfx942", "AMD", "MI300X"]
    return {
        "kernel_trace": (ERAS["7.0"], kernel),
        "hip_api_trace": (CALLS, made.calls[0]),
        "marker_api_trace": (CALLS, made.markers[0]),
        "memory_copy_trace": (COPIES, made.copies[0]),
        "counter_collection": (COUNTERS, made.counters[0]),
        "agent_info": (AGENT_INFO, agent),
    }


@pytest.mark.parametrize(
    "domain",
    ["kernel_trace", "hip_api_trace", "marker_api_trace", "memory_copy_trace", "counter_collection", "agent_info"],
)
def test_csv(domain: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines with one odd field each beside a sound one, read by the compiled parser and by Arrow's."""
    header, row = csv_set(tmp_path)[domain]
    odd = [replaced(row, at, value) for at in range(len(header)) for value in CSV_VALUES]
    write(Set(tmp_path).path(domain), direct(header, [row]) + "".join(odd))
    first = outcome(tmp_path)
    monkeypatch.setenv(CHOICE, "python")
    second = outcome(tmp_path)
    assert isinstance(first, Reading), first
    assert isinstance(second, Reading), second
    assert first.tables == second.tables
    if domain == "kernel_trace":
        assert len(first.kernels()) - 1 + first.capture["events_skipped"] >= len(odd) + 1


def sqlite_columns(path: Path) -> dict[str, list[str]]:
    """Return the columns of each table that hold values of its own."""
    with closing(sqlite3.connect(path)) as connection:
        cells = connection.execute(
            """SELECT m.name, list.name FROM sqlite_master AS m, pragma_table_info(m.name) AS list
            WHERE m.type = 'table' AND list.name <> 'id' AND list.name <> 'guid'"""
        ).fetchall()
    return {table: [column for owner, column in cells if owner == table] for table, _ in cells}


def rocpd_database(path: Path) -> Path:
    made = rocpd_files.small()
    event = made.kernel(6_000, 6_500)
    made.count(event, 1, 10.0)
    return rocpd_files.save(path, made, suffix=False, views=False)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A database without odd values, and the number of its events."""
    path = rocpd_database(tmp_path_factory.mktemp("rocpd") / "source.db")
    return path, read(path).capture["events_read"]


def spoilt(source: Path, path: Path, cells: dict[str, str]) -> Path:
    """Copy a database and spoil a column of each table named: its first row stands once more for each odd value."""
    path.write_bytes(source.read_bytes())
    with closing(sqlite3.connect(path)) as connection:
        for table, column in cells.items():
            names = [name for _, name, *_ in connection.execute(f'PRAGMA table_info("{table}")') if name != "id"]
            chosen = ", ".join("?" if name == column else f'"{name}"' for name in names)
            listed = ", ".join(f'"{name}"' for name in names)
            first = f'(SELECT min(id) FROM "{table}")'
            insert = f'INSERT INTO "{table}" ({listed}) SELECT {chosen} FROM "{table}" WHERE id = {first}'
            connection.executemany(insert, [[value] for value in SQL_VALUES])
            connection.execute(f'UPDATE "{table}" SET "{column}" = \'odd\' WHERE id = {first} + 1')
        connection.commit()
    return path


EVENT_TABLES = ("rocpd_kernel_dispatch", "rocpd_memory_copy", "rocpd_region", "rocpd_memory_allocate", "rocpd_sample")
COUNTERS_TABLE = "rocpd_pmc_event"
"""Its rows are counters of a dispatch: how many events they give depends on the value."""
TOGETHER, ALONE = 18, 13


@pytest.mark.parametrize("part", range(TOGETHER + ALONE))
def test_rocpd(part: int, sound: tuple[Path, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column of each table at once, read in batches of one row and in large ones.

    Columns that give processes of their own are odd alone, so that they come in one order, and so are the counters'.
    """
    source, events = sound
    together: list[dict[str, str]] = []
    alone: list[dict[str, str]] = []
    for table, names in sqlite_columns(source).items():
        single = [name for name in names if name == "pid" or table == COUNTERS_TABLE]
        alone += [{table: name} for name in single]
        for at, name in enumerate(name for name in names if name not in single):
            together += [{}] * (at + 1 - len(together))
            together[at] = {**together[at], table: name}
    assert (len(together), len(alone)) == (TOGETHER, ALONE)
    cells = [*together, *alone][part]
    path = spoilt(source, tmp_path / "a.db", cells)
    found = []
    for batch_rows in (1, 32_768):
        monkeypatch.setattr("tracedb_rocprof.rocpd.sqlite.BATCH_ROWS", batch_rows)
        found.append(outcome(path))
    first, second = found
    assert isinstance(first, Reading), (cells, first)
    assert isinstance(second, Reading)
    assert first.tables == second.tables, cells
    if COUNTERS_TABLE not in cells:
        added = sum(len(SQL_VALUES) for table in cells if table in EVENT_TABLES)
        assert sum(row["events_read"] for row in first.captures) == events + added, cells


LEAST = (-HUGE, -HUGE - 1, -HUGE << 70, -HUGE + 1)
"""Numbers around the one that stands for no value."""


@pytest.mark.parametrize("value", LEAST)
def test_json_number_that_stands_for_none(value: int, tmp_path: Path) -> None:
    """It was recorded, and is as impossible as another negative one."""
    entry = json_document()
    places_of = {
        ("memory_copy", "bytes"): "field_unreadable",
        ("memory_copy", "stream_id", "handle"): "field_unreadable",
        ("memory_copy", "src_agent_id", "handle"): "field_unreadable",
        ("memory_copy", "correlation_id", "internal"): "field_unreadable",
        ("memory_copy", "end_timestamp"): "timestamp_unusable",
        ("kernel_dispatch", "dispatch_info", "grid_size", "x"): "field_unreadable",
        ("kernel_dispatch", "dispatch_info", "queue_id", "handle"): "field_unreadable",
        ("hip_api", "thread_id"): "field_unreadable",
    }
    path = tmp_path / "a.json"
    for (section, *fields), code in places_of.items():
        event = changed(entry["buffer_records"][section][0], tuple(fields), value)
        path.write_text(json.dumps({TOP: [changed(entry, ("buffer_records", section), [event])]}))
        assert read(path).faults == {code: 1}, fields


def test_json_symbol_with_impossible_sizes(tmp_path: Path) -> None:
    entry = json_document()
    dispatch = entry["buffer_records"]["kernel_dispatch"][0]
    at = [symbol["kernel_id"] for symbol in entry["kernel_symbols"]].index(dispatch["dispatch_info"]["kernel_id"])
    path = tmp_path / "a.json"
    for value in (-1, -HUGE, HUGE, 1 << 31):
        path.write_text(json.dumps({TOP: [changed(entry, ("kernel_symbols", at, "arch_vgpr_count"), value)]}))
        found = read(path)
        assert found.faults["field_unreadable"] >= 1, value
        assert found.kernels("registers_per_thread")[0] is None


def test_rocpd_number_that_stands_for_none(tmp_path: Path) -> None:
    source = rocpd_database(tmp_path / "source.db")
    assert read(source).faults == {}
    for table, column, code in (
        ("rocpd_kernel_dispatch", "grid_size_x", "field_unreadable"),
        ("rocpd_kernel_dispatch", "queue_id", "field_unreadable"),
        ("rocpd_kernel_dispatch", "end", "timestamp_unusable"),
        ("rocpd_memory_copy", "size", "field_unreadable"),
        ("rocpd_event", "stack_id", "field_unreadable"),
        ("rocpd_info_process", "pid", "field_unreadable"),
        ("rocpd_info_kernel_symbol", "arch_vgpr_count", "field_unreadable"),
    ):
        path = tmp_path / "a.db"
        path.write_bytes(source.read_bytes())
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f'UPDATE "{table}" SET "{column}" = ?', [-HUGE])
            connection.commit()
        assert read(path).faults[code] >= 1, (table, column)
