"""Mutated ROCm recordings: CSV files, JSON of two versions, SQLite of two tools; and sampling files."""

from __future__ import annotations

import copy
import csv
import gzip
import io
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from readers.rocprof.test_rocprof_legacy import V1, V2, rpd
from robustness.invariants import Case, Way
from robustness.mutations import CELLS, NAMES, Dice, changed_bytes, changed_database, changed_tree, encoded, tree_text
from robustness.reader_results import compared, of_rocprof
from support import rocpd_files, rocprof_json_files
from support.rocprof_files import ERAS, WRITERS, Set, kernel, small
from tracedb.ingester import Capture
from tracedb_rocprof import ingester, unstaged_kernels
from tracedb_rocprof.csv import chunks, row_groups
from tracedb_rocprof.json import stream
from tracedb_rocprof.rocpd import sqlite
from tracedb_samples import ingester as samples_ingester
from tracedb_samples import source

__all__ = ["ingester", "make_csv", "make_json", "make_rocpd", "make_samples", "samples_ingester"]

SMALL_BLOCKS = ((chunks, "BLOCK_BYTES", 1 << 14), (chunks, "ROOM_FOR_REST", 1 << 10))
COMPILED = Way("compiled parser", SMALL_BLOCKS)
NOT_PLAIN = ((chunks.Parser, "_is_plain", lambda *_: False), (chunks, "_is_clean", lambda _: False))
CSV_WAYS = (
    Way("Arrow", SMALL_BLOCKS, is_python=True),
    Way("records", (*SMALL_BLOCKS, *NOT_PLAIN), is_python=True),
    Way("blocks of a line or two", ((chunks, "BLOCK_BYTES", 150),)),
    Way("blocks of a line or two in Python", ((chunks, "BLOCK_BYTES", 150),), is_python=True),
)
DIRECT = Way(
    "direct", ((chunks, "BLOCK_BYTES", 700), (unstaged_kernels, "SMALLEST_BYTES", 0), (row_groups, "ROWS", 3)), cores=2
)
JSON_WAYS = tuple(Way(f"chunks of {size}", ((stream, "CHUNK", size),)) for size in (1, 7, 64, 300))
DATABASE_WAYS = (Way("batches of two rows", ((sqlite, "BATCH_ROWS", 2),)),)
Counts = Callable[[], dict[str, int] | None]
ODD_FIELDS = [item for item in CELLS if isinstance(item, int | float | str)] + list(NAMES)
CHROME_ARGS = {
    "BeginNs": 1_000,
    "EndNs": 1_500,
    "dev-id": 0,
    "queue-id": 0,
    "stream-id": 1,
    "pid": 17,
    "tid": 77,
    "Name": "k",
}


def _case(
    dice: Dice, files: list[Path], ways: tuple[Way, Way], count: Counts = lambda: None, other: tuple[Way, ...] = ()
) -> Case:
    """Return a case whose ways are compared early, and a share of which is read as a whole in one way or two."""

    def early(capture: Capture) -> tuple[str, list[str]]:
        found = [(way, of_rocprof(capture, way)) for way in ways]
        return found[0][1]["state"], compared(found)

    return Case(files, (ways, other or ways, ways[:1], *[()] * 17)[dice.randrange(20)], count, early)


def make_csv(dice: Dice, folder: Path) -> Case:
    """Make a set of CSV files."""
    if dice.randrange(6) == 0:
        path = folder / "results.csv"
        path.write_text(dice.choice((V1, V2)))
    else:
        _save_set(dice, folder)
    files = sorted(folder.iterdir())
    for _ in range(dice.choice((0, 1, 1, 2, 4))):
        path = dice.choice(files)
        data = path.read_bytes()
        path.write_bytes(_changed_lines(dice, data) if dice.randrange(3) == 0 else changed_bytes(dice, data))
    if dice.randrange(15) == 0:
        packed = files[0].with_name(f"{files[0].name}.gz")
        packed.write_bytes(changed_bytes(dice, gzip.compress(files[0].read_bytes(), mtime=0), least=10))
        files[0].unlink()
    files = sorted(folder.iterdir())
    return _case(dice, files, (COMPILED, dice.choice(CSV_WAYS)), lambda: _csv_counted(files), (COMPILED, DIRECT))


def _save_set(dice: Dice, folder: Path) -> None:
    """Write a set some of whose values are odd."""
    made = small(folder, era=dice.choice(list(ERAS)), writer=dice.choice(list(WRITERS.values())))
    made.kernels = [
        kernel(f"k<{at % 3}, int>", 100 * at, 100 * at + 60, Correlation_Id=at, Dispatch_Id=at)
        for at in range(1, dice.choice((3, 9)))
    ]
    if dice.randrange(2):
        made.calls, made.copies, made.markers = [], [], []
    elif dice.randrange(2):
        made.counter(1, "SQ_WAVES", 7.5, 100, 160)
    for _ in range(dice.choice((0, 0, 1, 2))):
        rows: Any = dice.choice([rows for rows in (made.kernels, made.calls, made.copies, made.markers) if rows])
        row = dice.choice(rows)
        row[dice.choice(list(row)) if isinstance(row, dict) else dice.randrange(len(row))] = dice.choice(ODD_FIELDS)
    if dice.randrange(3) == 0:
        made.agents((4, 4, "GPU"), (0, 0, "CPU"))
    if dice.randrange(5) == 0:
        made.stats("kernel", ("k<1, int>", dice.choice((1, 2)), 120))
    for path in _saved(made):
        path.write_bytes(encoded(path.read_text("utf-8", "surrogatepass")))


def _saved(made: Set) -> list[Path]:
    return [path for path in made.save() if path.suffix == ".csv"]


def _changed_lines(dice: Dice, data: bytes) -> bytes:
    """Change how lines end, begin or follow each other, or the header."""
    lines = data.splitlines(keepends=True) or [b""]
    kind = dice.randrange(8)
    if kind == 0:
        return data.replace(b"\n", dice.choice((b"\r\n", b"\r", b"\n\n", b"\0\n", b" \n", b",\n")))
    if kind == 1:
        return dice.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\n", b"#\n", b" ")) + data
    if kind == 2:
        return data.replace(b",", dice.choice((b";", b"\t", b", ", b",,")))
    if kind == 3:
        return data.replace(b'"', dice.choice((b"", b"'", b'""', b'\\"')))
    at = dice.randrange(len(lines))
    if kind == 4:
        lines.insert(at, dice.choice(lines))
    elif kind == 5:
        lines[at] = lines[at].rstrip(b"\r\n") + dice.choice((b"", b",1\n", b',"a\nb"\n', b'"\n', b",\n"))
    elif kind == 6:
        names = lines[0].split(b",")
        place = dice.randrange(len(names))
        names[place] = dice.choice((b"", b"X", names[place].lower(), names[place - 1], b'" "', b"Kernel_Name"))
        lines[0] = b",".join(names)
    else:
        rest = lines[1:]
        dice.shuffle(rest)
        lines[1:] = rest
    return b"".join(lines)


def _csv_counted(files: list[Path]) -> dict[str, int] | None:
    """Count the kernels with Python's reader of CSV, where each line by itself is a record of as many fields."""
    traces = [path for path in files if path.name.endswith("kernel_trace.csv")]
    if len(traces) != 1 or any("counter" in path.name for path in files):
        return None
    text = traces[0].read_bytes().decode("utf-8-sig", errors="replace")
    if "\r" in text.replace("\r\n", "") or "\0" in text:
        return None
    lines = [line for line in text.split("\n") if line.strip()]
    records = [next(csv.reader(io.StringIO(line))) for line in lines if line.count('"') % 2 == 0 and len(line) < 60_000]
    if len(records) != len(lines) or len({len(record) for record in records}) != 1:
        return None
    return {"kernel": len(records) - 1}


def make_json(dice: Dice, folder: Path) -> Case:
    """Make a document of rocprofv3 or of rocprof v1."""
    keys: tuple[str, ...] = ("start_timestamp", "end_timestamp", "thread_id", "kernel_id", "size")
    if dice.randrange(3):
        documents = [rocprof_json_files.small(pid=17 + at) for at in range(dice.choice((1, 1, 2)))]
        if dice.randrange(4) == 0:
            documents[0].count(1, 1_000, 1_500, (1, 7.5), (2, 9))
        entries: list[Any] = [copy.deepcopy(document.entry()) for document in documents]
        tree: Any = {"rocprofiler-sdk-tool": entries}
        focus: Any = dice.choice((tree, entries[0]["buffer_records"], entries[0]["strings"], entries[0]["agents"]))
    else:
        tree = {"traceEvents": _chrome_events(), "otherData": {}}
        focus, keys = tree, ("BeginNs", "EndNs", "dev-id", "pid", "ph", "Name", "args")
    for _ in range(dice.choice((0, 1, 2, 6))):
        changed_tree(dice, focus, keys)
    data = tree_text(dice, tree)
    for _ in range(dice.choice((0, 0, 1, 2))):
        data = changed_bytes(dice, data, b'{"size": 184, "kind": 5, "operation": 2}, ')
    path = folder / "17_results.json"
    path.write_bytes(data)
    return _case(dice, [path], (Way("whole"), dice.choice(JSON_WAYS)))


def _chrome_events() -> list[dict[str, Any]]:
    """Events as rocprof v1 writes them: names of processes, kernels, a copy, calls, a range, a flow."""
    made: list[dict[str, Any]] = [
        {
            "ph": "X",
            "name": f"k{at}",
            "pid": 6,
            "tid": 0,
            "ts": at,
            "dur": 1,
            "args": {**CHROME_ARGS, "BeginNs": 1_000 * at, "EndNs": 1_000 * at + 500},
        }
        for at in range(1, 5)
    ]
    made.append({"ph": "M", "name": "process_name", "pid": 6, "args": {"name": "GPU0"}})
    made.append({"ph": "X", "name": "hipLaunchKernel", "pid": 2, "tid": 77, "args": {**CHROME_ARGS, "Index": "1"}})
    made.append({"ph": "X", "name": "CopyHostToDevice", "pid": 1, "tid": 0, "args": {**CHROME_ARGS}})
    made.append({"ph": "X", "name": "step", "pid": 0, "tid": 77, "args": {**CHROME_ARGS, "EndNs": 9_000}})
    made.append({"ph": "s", "id": 1, "pid": 2, "tid": 77, "ts": 1, "cat": "DataFlow", "name": "dep"})
    return made


@cache
def _databases() -> list[tuple[str, bytes]]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        counted = rocpd_files.small(guid="00003fd6-c565-7a05", pid=18)
        event = counted.kernel(9_000, 9_100)
        counted.count(event, 1, 3.0)
        paths = [
            rocpd_files.save(folder / "a.db", rocpd_files.small()),
            rocpd_files.save(folder / "b.db", rocpd_files.small(), counted),
            rocpd_files.save(folder / "c.db", counted, suffix=False, views=False),
            rpd(folder / "d.rpd"),
        ]
        return [("trace.rpd" if path.suffix == ".rpd" else "17_results.db", path.read_bytes()) for path in paths]


def make_rocpd(dice: Dice, folder: Path) -> Case:
    """Make a database of rocprofv3 or RPD."""
    name, data = dice.choice(_databases())
    if dice.randrange(4):
        data = changed_database(dice, data, dice.choice((1, 2, 4)))
    for _ in range(dice.choice((0, 0, 1, 3))):
        data = changed_bytes(dice, data, least=dice.choice((0, 100)))
    path = folder / name
    path.write_bytes(data)
    return _case(dice, [path], (Way("ADBC"), dice.choice(DATABASE_WAYS)), lambda: _database_counted(path))


def _database_counted(path: Path) -> dict[str, int] | None:
    """Count the dispatches with SQLite itself; None where it cannot read them all."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            if connection.execute("PRAGMA quick_check").fetchall() != [("ok",)]:
                return None
            tables = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd_kernel_dispatch%'"
            ).fetchall()
            counts = [connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for (name,) in tables]
    except (sqlite3.Error, UnicodeDecodeError):
        return None
    return {"kernel": sum(counts)} if counts else None


def make_samples(dice: Dice, folder: Path) -> Case:
    """Make sampling files: whole, in pieces, or both."""
    head = dice.choice(("mp,b,l,F_dur(us),B_dur(us)\n", "shape,nodes,GPUsPerNode,dur(us)\n"))
    lines = [
        ",".join(str(dice.choice((1, 2.0, 7.5, *ODD_FIELDS[:12]))) for _ in head.split(",")) + "\n" for _ in range(6)
    ]
    names = dice.sample(("X_linear1_fp16.csv", "X_linear1_fp16_1_2.csv", "X_p2p_fp16.csv", "X_p2p_fp16_1_2.csv"), 2)
    for name in names:
        data = encoded(head + "".join(dice.choices(lines, k=4)))
        for _ in range(dice.choice((0, 1, 1, 2))):
            data = _changed_lines(dice, data) if dice.randrange(3) == 0 else changed_bytes(dice, data)
        (folder / name).write_bytes(data)
    few = Way("two lines at a time", ((source, "BATCH_LINES", 2),))
    return Case(sorted(folder.iterdir()), (Way("whole"), few))
