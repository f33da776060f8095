"""The suite that every ingester passes. Nothing in it knows a format.

A third party calls the functions from a test module of its own, with its ingester and a few of its files; each raises
AssertionError with what is wrong. ``test_conformance_torch.py`` shows how.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from tracedb.errors import ReadError
from tracedb.ingester import Capture, Ingester, Options, Rows
from tracedb.storage import schema

Tables = dict[str, list[dict[str, Any]]]

KEYS = {
    "kernel_event": "event_id",
    "collective_call": "call_id",
    "launch": "launch_id",
    "op": "op_id",
    "annotation": "annotation_id",
    "frame": "frame_id",
    "memory_event": "memory_event_id",
    "synchronization": "sync_id",
    "operator_sample": "sample_id",
    "measure": "measure_id",
}
"""The column that numbers the rows of a table, within a capture."""

REFERENCES = {
    "kernel_event": {"launch_id": "launch", "op_id": "op", "call_id": "collective_call"},
    "op": {"parent_op_id": "op"},
    "frame": {"parent_id": "frame"},
    "counter": {"event_id": "kernel_event"},
}
"""Columns that hold such a number of another row."""

TOLD = ("name", "start_ns", "duration_ns", "collective", "message_in_elements")
"""Columns by which a row is told from others without its number."""

CAPTURE_COLUMNS = {
    "source": pa.string(),
    "host": pa.string(),
    "pid": pa.int64(),
    "rank": pa.int32(),
    "world_size": pa.int32(),
    "tool_version": pa.string(),
    "clock_zero_unix_ns": pa.int64(),
    "status": pa.string(),
    "events_read": pa.int64(),
    "events_skipped": pa.int64(),
    "rows_written": pa.int64(),
    "metadata": pa.string(),
}
"""What an ingester says of a capture; the pipeline adds the rest."""

FOREIGN = {
    "empty": b"",
    "text.txt": b"just some words\n",
    "data.json": b'{"a": [1, 2, {"b": null}]}',
    "list.json": b"[1, 2, 3]",
    "table.csv": b"a,b\n1,2\n",
    "random.bin": bytes(range(256)) * 64,
    "packed.gz": b"\x1f\x8b\x08\x00garbage",
    "database.sqlite": b"SQLite format 3\x00" + bytes(4096),
}
"""Files that belong to nobody."""


def captures(ingester: Ingester, *files: Path) -> list[Capture]:
    """Return what the ingester claims of the files; nothing else may be claimed."""
    found = list(ingester.find(files))
    claimed = [path for capture in found for path in (*capture.files, *capture.duplicates)]
    assert len(claimed) == len(set(claimed)), "a file is claimed twice"
    assert set(claimed) <= set(files), "a file is claimed that was not given"
    return found


def read(ingester: Ingester, capture: Capture, options: Options | None = None) -> Tables:
    """Read a capture, and check each batch against the schema."""
    tables: Tables = {}
    with duckdb.connect(":memory:", config={"threads": 1}) as scratch:
        closed: set[int] = set()
        for rows in ingester.read(capture, scratch, options or Options()):
            assert rows.part not in closed, "rows of a part come after its capture row"
            if rows.table == "capture":
                closed.add(rows.part)
            tables.setdefault(rows.table, []).extend(_checked(rows))
    assert closed, "there is no capture row"
    return tables


def _checked(rows: Rows) -> Iterable[dict[str, Any]]:
    data = rows.data.to_arrow_table() if isinstance(rows.data, duckdb.DuckDBPyRelation) else rows.data
    assert rows.table in (*schema.INGESTED_TABLES, "capture"), f"{rows.table} is not a table that ingesters fill"
    declared = pa.schema(CAPTURE_COLUMNS) if rows.table == "capture" else schema.arrow(rows.table)
    for column in data.schema:
        assert column.name in declared.names, f"{rows.table} has no column {column.name}"
        wanted = declared.field(column.name).type
        assert _does_for(column.type, wanted), f"{rows.table}.{column.name} is {column.type}, not {wanted}"
    return [{**row, "part": rows.part} for row in data.to_pylist()]


def _does_for(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Tell whether a column has the type of the schema, or one that holds less, in the same words or numbers."""
    if pa.types.is_dictionary(given):
        return bool(given.value_type == wanted)
    return bool(given == wanted or (pa.types.is_int32(given) and pa.types.is_int64(wanted)))


def check_rows(ingester: Ingester, *files: Path) -> list[Tables]:
    """Batches match the schema, numbers are unique and point to rows, times are sane, the account adds up."""
    found = captures(ingester, *files)
    assert found, "nothing is claimed"
    readings = [read(ingester, capture) for capture in found]
    for tables in readings:
        for row in tables["capture"]:
            _check_part(tables, row)
    return readings


def _check_part(tables: Tables, capture: dict[str, Any]) -> None:
    part = capture["part"]
    mine = {name: [row for row in rows if row["part"] == part] for name, rows in tables.items()}
    for table, key in KEYS.items():
        numbers = [row[key] for row in mine.get(table, [])]
        assert len(numbers) == len(set(numbers)), f"{table}.{key} is not unique"
    for table, references in REFERENCES.items():
        for column, target in references.items():
            known = {row[KEYS[target]] for row in mine.get(target, [])} | {None}
            assert {row.get(column) for row in mine.get(table, [])} <= known, f"{table}.{column} points nowhere"
    for table in ("kernel_event", "launch", "op", "annotation", "frame"):
        for row in mine.get(table, []):
            assert row["start_ns"] is not None
            assert row["name"] is not None, f"{table} has a row without a name"
            assert row["duration_ns"] is None or row["duration_ns"] >= 0, f"{table} has a negative duration"
    gave = sum(len(mine.get(table, [])) for table in schema.EVENT_TABLES)
    if capture["events_read"] is not None:
        assert capture["rows_written"] == gave, "rows_written is not the number of rows"
        skipped = sum(row["skipped"] for row in mine.get("ingest_issue", []))
        assert capture["events_skipped"] == skipped, "events_skipped is not the sum over ingest_issue"
    has_gpu = any(mine.get(table) for table in ("kernel_event", "operator_sample", "device_condition"))
    assert capture["status"] in ("complete", "truncated", "repaired", "no_gpu_activity")
    assert has_gpu or capture["status"] != "complete", "complete, though without GPU rows"


def check_same_twice(ingester: Ingester, *files: Path) -> None:
    """The same bytes give the same rows."""
    for capture in captures(ingester, *files):
        assert read(ingester, capture) == read(ingester, capture), "a second reading differs"


def check_shuffled(ingester: Ingester, original: Path, shuffled: Path) -> None:
    """Events in another order give the same rows, but for their numbers."""
    before, after = (read(ingester, captures(ingester, path)[0]) for path in (original, shuffled))
    assert before.keys() == after.keys()
    for table in before:
        assert unnumbered(before, table) == unnumbered(after, table), f"{table} differs"


def unnumbered(tables: Tables, table: str) -> list[str]:
    """Return the rows as text, numbers of other rows replaced by what these rows are, sorted."""
    named = {
        target: {row[KEYS[target]]: tuple(row.get(column) for column in TOLD) for row in tables.get(target, [])}
        for target in ("launch", "op", "frame", "kernel_event", "collective_call")
    }
    found = []
    for row in tables[table]:
        kept = {name: value for name, value in row.items() if name not in (KEYS.get(table), "part")}
        for column, target in REFERENCES.get(table, {}).items():
            kept[column] = named[target].get(row.get(column))
        found.append(repr(sorted(kept.items())))
    return sorted(found)


def check_cut(
    ingester: Ingester, path: Path, folder: Path, cuts: Sequence[float] = (0.0, 0.02, 0.3, 0.7, 0.98)
) -> None:
    """A cut file is not claimed, or gives a named error, or rows whose status says so, and no more than the whole."""
    (whole,) = (read(ingester, capture) for capture in captures(ingester, path))
    content = path.read_bytes()
    for share in cuts:
        cut = folder / path.name
        cut.write_bytes(content[: int(len(content) * share)])
        for capture in captures(ingester, cut):
            try:
                tables = read(ingester, capture)
            except (ReadError, OSError, duckdb.Error) as error:
                assert str(error), "an error without words"
                continue
            assert all(row["status"] in ("truncated", "repaired") for row in tables["capture"]), f"cut at {share:.0%}"
            for table in schema.EVENT_TABLES:
                assert len(tables.get(table, [])) <= len(whole.get(table, [])), f"{table} grew by cutting"


def check_foreign(ingester: Ingester, folder: Path) -> None:
    """Files of nobody are not claimed, and nothing is raised over them, nor over files that cannot be read."""
    for name, content in FOREIGN.items():
        (folder / name).write_bytes(content)
    (folder / "folder.json").mkdir()
    (folder / "nowhere").symlink_to(folder / "missing")
    assert captures(ingester, *sorted(folder.iterdir()), folder / "missing") == []


def check_counts(ingester: Ingester, path: Path, count: Callable[[Path], dict[str, int]]) -> None:
    """No row is lost: the rows are as many as another reader of the file counts.

    ``count`` gives the number of rows by table, of kernel_event also by kind (``kernel``, ``memcpy``, ``memset``), and
    the number of all events as ``events``; what it leaves out is not compared.
    """
    found = dict.fromkeys((*schema.EVENT_TABLES, "kernel", "memcpy", "memset", "graph", "events"), 0)
    (capture,) = captures(ingester, path)
    with duckdb.connect(":memory:", config={"threads": 1}) as scratch:
        for rows in ingester.read(capture, scratch, Options()):
            data = rows.data.to_arrow_table() if isinstance(rows.data, duckdb.DuckDBPyRelation) else rows.data
            if rows.table in schema.EVENT_TABLES:
                found[rows.table] += data.num_rows
            if rows.table == "kernel_event":
                for kind in data["kind"].to_pylist():
                    found[kind] += 1
            if rows.table == "capture":
                found["events"] += sum(data["events_read"].to_pylist())
    expected = count(path)
    assert {name: found[name] for name in expected} == expected


def check_memory(module: str, path: Path, limit_mib: int, folder: Path) -> None:
    """Reading the file in a process of its own stays below the limit. ``module`` holds ``ingester``. Linux only."""
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, module, str(path), str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < limit_mib, f"{done.stdout.strip()} MiB"


_PEAK = """
import importlib, sys, duckdb
from pathlib import Path
from tracedb.ingester import Options
ingester = importlib.import_module(sys.argv[1]).ingester
(capture,) = ingester.find([Path(sys.argv[2])])
settings = {"threads": 1, "memory_limit": "100MB", "temp_directory": sys.argv[3] + "/spill"}
with duckdb.connect(":memory:", config=settings) as scratch:
    scratch.execute("SET enable_progress_bar = false")
    for rows in ingester.read(capture, scratch, Options()):
        if isinstance(rows.data, duckdb.DuckDBPyRelation):
            for batch in rows.data.to_arrow_reader(50_000):
                pass
print(next(int(line.split()[1]) // 1024 for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
