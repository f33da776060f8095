"""Large files: the compiled parser gives what Arrow's gives, and kernels that bypass staging equal staged ones."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.examples import MORE
from support.readings import as_dicts, instance
from support.rocprof_files import ERAS, Set, Value, direct, kernel, kernel_trace, proper, small
from support.rocprof_loaded import captures
from tracedb.derive import clipped_event
from tracedb.ingester import Options, ReadAgain
from tracedb.ingester.native_library import CHOICE
from tracedb.pipeline.batch_load import load
from tracedb.pipeline.discovery import detect, discover
from tracedb.pipeline.run import ingest
from tracedb.pipeline.task import Request
from tracedb_rocprof import ingester, unstaged_kernels
from tracedb_rocprof.csv import chunks, native_parser, row_groups
from tracedb_rocprof.csv.chunks import Block, Parser
from tracedb_rocprof.csv.headers import header_of

HEADER = b"Kind,Agent_Id,Kernel_Name,Start_Timestamp,End_Timestamp,Correlation_Id\n"
FIELDS = st.text('",\n\r a1-+x9é\x00', max_size=5) | st.integers(-(1 << 64), 1 << 64).map(str)
LINES = st.lists(st.lists(FIELDS, min_size=5, max_size=7), min_size=1, max_size=5)
needs_library = pytest.mark.skipif(native_parser.library() is None, reason="the compiled parser was not built")


def columns(block: Block) -> dict[str, list[Any]]:
    return {name: array.to_pylist() for name, array in block.columns.items()}


def both(data: bytes, monkeypatch: pytest.MonkeyPatch, header: bytes = HEADER) -> tuple[dict[str, list[Any]], ...]:
    """Parse with the compiled parser before the others, and without it; returns what each found."""
    found = header_of(header)
    assert found is not None
    first = columns(Parser(found).parse(data))
    monkeypatch.setenv(CHOICE, "python")
    second = columns(Parser(found).parse(data))
    monkeypatch.delenv(CHOICE)
    return first, second


@needs_library
class TestCompiled:
    @settings(max_examples=100 * MORE, deadline=None)
    @given(lines=LINES, end=st.sampled_from(["\n", "\r\n"]), is_open=st.booleans(), is_quoted=st.booleans())
    def test_finds_what_the_others_find(self, lines: list[list[str]], end: str, is_open: bool, is_quoted: bool) -> None:
        quote = '"{}"'.format if is_quoted else str
        data = end.join(",".join(map(quote, fields)) for fields in lines).encode() + (b"" if is_open else end.encode())
        with pytest.MonkeyPatch.context() as monkeypatch:
            first, second = both(data, monkeypatch)
        assert first == second

    def test_takes_plain_lines(self, monkeypatch: pytest.MonkeyPatch) -> None:
        found = header_of(HEADER)
        library = native_parser.library()
        assert found is not None and library is not None
        plain = native_parser.PlainParser(library, found)
        made = plain.parse(b'"K","Agent 4","a<b, c>(d)",1,2,\r\nK,"Agent 5",,9223372036854775807,007,"3"')
        assert made is not None
        rows, arrays = made
        assert rows == 2
        assert {name: array.to_pylist() for name, array in arrays.items()} == {
            "agent_id": ["Agent 4", "Agent 5"],
            "kernel_name": ["a<b, c>(d)", ""],
            "start_timestamp": [1, 9223372036854775807],
            "end_timestamp": [2, 7],
            "correlation_id": [None, 3],
        }

    @pytest.mark.parametrize(
        "line",
        [
            b'K,"Agent 4","a""b",1,2,3',  # a quote inside
            b'K,"Agent 4",a"b,1,2,3',
            b'K,"Agent 4","a\nb",1,2,3',
            b'K,"Agent 4","a\rb",1,2,3',
            b'K,"Agent 4",a,1,2',  # too few, too many
            b'K,"Agent 4",a,1,2,3,4',
            b'K,"Agent 4",a,9223372036854775808,2,3',  # no number of 64 bits
            b'K,"Agent 4",a,18446744073709551617,2,3',
            b'K,"Agent 4",a,-,2,3',
            b'K,"Agent 4",a,1,-2,3',
            b'K,"Agent 4",a,1,2,"-3"',
            b'K,"Agent 4",a,1.5,2,3',
            b'K,"Agent 4",a, 1,2,3',
            b'K,"Agent 4","\xff",1,2,3',  # no UTF-8
            b'K,"Agent 4","a',
            b'K,"Agent 4","a"b,1,2,3',
            b"",
        ],
    )
    def test_leaves_odd_blocks_to_the_others(self, line: bytes) -> None:
        found = header_of(HEADER)
        library = native_parser.library()
        assert found is not None and library is not None
        assert native_parser.PlainParser(library, found).parse(b'K,"Agent 4",k,1,2,3\n' + line + b"\n") is None

    def test_many_different_names(self, monkeypatch: pytest.MonkeyPatch) -> None:
        data = b"".join(b"K,Agent 4,kernel %d,1,2,3\n" % (at % 3_000) for at in range(9_000))
        first, second = both(data, monkeypatch)
        assert first == second
        assert first["kernel_name"][:2] == ["kernel 0", "kernel 1"]

    def test_without_the_library(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(native_parser, "LIBRARY", tmp_path / "none.so")
        assert native_parser.library() is None
        other = tmp_path / "other.so"
        other.write_bytes(b"no library")
        monkeypatch.setattr(native_parser, "LIBRARY", other)
        assert native_parser.library() is None


@pytest.fixture
def from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files bypass staging, three rows at once, out of blocks of a few lines."""
    monkeypatch.setattr(unstaged_kernels, "SMALLEST_BYTES", 0)
    monkeypatch.setattr(row_groups, "ROWS", 3)
    monkeypatch.setattr(chunks, "BLOCK_BYTES", 700)


def rows_of(folder: Path, options: Options) -> tuple[dict[str, list[str]], int]:
    """Return the rows of each table, sorted, and in how many parts kernels came."""
    (capture,) = captures(folder)
    tables: dict[str, list[str]] = {}
    parts = 0
    with instance().cursor() as scratch:
        for rows in ingester.read(capture, scratch, options):
            parts += rows.table == "kernel_event"
            given = [{key: value for key, value in row.items() if value is not None} for row in as_dicts(rows)]
            tables.setdefault(rows.table, []).extend(str(sorted(row.items())) for row in given)
    return {name: sorted(values) for name, values in tables.items()}, parts


def direct_parts(folder: Path) -> int:
    """Return how many tables of kernels bypassed staging, once the rows are found to be those that are staged."""
    staged, few = rows_of(folder, Options(cores=1))
    went, many = rows_of(folder, Options(cores=2))
    assert went == staged
    return many - few


def kernels(count: int, **values: Value) -> list[dict[str, Value]]:
    return [
        kernel(f"k<{at % 4}, int>", 100 * at, 100 * at + 50 + at, Dispatch_Id=at, VGPR_Count=at, **values)
        for at in range(count)
    ]


@pytest.mark.usefixtures("from_the_start")
class TestUnstagedKernels:
    @pytest.mark.parametrize("era", ERAS)
    def test_the_rows_are_those_of_the_staging_table(self, era: str, tmp_path: Path) -> None:
        made = small(tmp_path, era=era)
        made.kernels = kernels(20)
        made.calls = []
        if era == "6.0":
            made.copies = []  # they name agents as later eras do
        made.save()
        made.agents((4, 4, "GPU"), (0, 0, "CPU"))
        assert direct_parts(tmp_path) == (0 if "Guid" in ERAS[era] else 7 - 1)

    def test_a_set_with_calls_or_counters_is_staged(self, tmp_path: Path) -> None:
        made = small(tmp_path)
        made.kernels = kernels(20)
        made.save()
        assert direct_parts(tmp_path) == 0
        made.calls = []
        made.path("hip_api_trace").unlink()
        made.counter(3, "SQ_WAVES", 7, 300, 353)
        made.save()
        assert direct_parts(tmp_path) == 0

    def test_unusable_times_rows_out_of_order_and_large_values(self, tmp_path: Path) -> None:
        rows = kernels(12)
        rows[3]["Start_Timestamp"] = rows[3]["End_Timestamp"] = 0
        rows[5]["End_Timestamp"] = 1
        rows[7]["Start_Timestamp"] = ""
        rows[8]["VGPR_Count"] = 1 << 40
        kernel_trace(tmp_path / "1_kernel_trace.csv", [*rows[6:], *rows[:6]])
        assert direct_parts(tmp_path) == 3 - 1

    def test_names_that_are_settled_late(self, tmp_path: Path) -> None:
        rows = kernels(20)
        rows[9]["Kernel_Name"] = 'a "quoted" name'
        kernel_trace(tmp_path / "1_kernel_trace.csv", rows, writer=proper(csv.QUOTE_MINIMAL))
        assert 0 < direct_parts(tmp_path) < 7

    def test_statistics_are_compared(self, tmp_path: Path) -> None:
        made = Set(tmp_path)
        made.kernels = kernels(8)
        made.stats("kernel", ("k<0, int>", 2, 104), ("k<1, int>", 2, 1))
        made.save()
        assert direct_parts(tmp_path) == 3 - 1
        issues = rows_of(tmp_path, Options(cores=2))[0]["ingest_issue"]
        (said,) = [row for row in issues if "stats_mismatch" in row]
        assert "first in k<1, int>: 2 calls and 1 ns against 2 and 106" in said

    def test_agents_in_their_order(self, tmp_path: Path) -> None:
        kernel_trace(
            tmp_path / "1_kernel_trace.csv", [*kernels(4, Agent_Id="Agent 4"), *kernels(4, Agent_Id="Agent 7")]
        )
        assert direct_parts(tmp_path) == 3 - 1


@pytest.mark.usefixtures("from_the_start")
class TestWritten:
    """Kernels that bypass staging give the same rows as staged ones."""

    def written(self, folder: Path, name: str, cores: int) -> dict[str, list[Any]]:
        database = folder / f"{name}.duckdb"
        request = Request((folder / "run",), database, cores=cores)
        (task,) = detect(discover(request.paths)).tasks
        (outcome,) = load([task], request, {})
        assert outcome.error is None
        with duckdb.connect(str(database), read_only=True) as connection:
            return {
                table: connection.execute(f"SELECT * FROM main.{table} ORDER BY ALL").fetchall()
                for table in ("kernel_event", "clipped_event", "device", "ingest_issue")
            }

    def test_missing_columns_and_clipped_events(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[clipped_event.IncrementalClipping] = []
        finish = clipped_event.IncrementalClipping.finish

        def watched(clipping: clipped_event.IncrementalClipping) -> tuple[Any, Any]:
            asked.append(clipping)
            return finish(clipping)

        monkeypatch.setattr(clipped_event.IncrementalClipping, "finish", watched)
        long = kernels(20)
        long[4]["End_Timestamp"] = 5_000
        kernel_trace(tmp_path / "run" / "1_kernel_trace.csv", long)
        staged = self.written(tmp_path, "staged", cores=1)
        assert asked == []
        assert self.written(tmp_path, "direct", cores=2) == staged
        assert len(asked) == 1
        assert [(event, ns) for _, event, ns in staged["clipped_event"]] == [(5, 100)]

    @pytest.mark.parametrize(("grid", "block"), [(-256, 64), (256, -64), (1 << 62, 64)])
    def test_odd_sizes(self, grid: int, block: int, tmp_path: Path) -> None:
        rows = kernels(9)
        rows[7].update(Grid_Size_X=grid, Workgroup_Size_X=block)
        kernel_trace(tmp_path / "run" / "1_kernel_trace.csv", rows)
        assert self.written(tmp_path, "direct", cores=2) == self.written(tmp_path, "staged", cores=1)

    def test_sizes_that_are_not_there(self, tmp_path: Path) -> None:
        rows = kernels(9)
        rows[4].update(Workgroup_Size_X=0, Workgroup_Size_Y="", Grid_Size_Z="")
        rows[5].update(Workgroup_Size_X=1 << 40, Grid_Size_X=1000)
        kernel_trace(tmp_path / "run" / "1_kernel_trace.csv", rows)
        assert self.written(tmp_path, "direct", cores=2) == self.written(tmp_path, "staged", cores=1)


@pytest.mark.usefixtures("from_the_start")
class TestReadAgain:
    @pytest.fixture
    def turned(self, tmp_path: Path) -> Path:
        """A trace whose second agent turns out to be the first GPU."""
        first, second = kernels(6, Agent_Id="Agent 7"), kernels(6, Agent_Id="Agent 4")
        return kernel_trace(tmp_path / "run" / "1_kernel_trace.csv", [*first, *second])

    def test_is_raised_once(self, turned: Path) -> None:
        with pytest.raises(ReadAgain):
            rows_of(turned.parent, Options(cores=2))
        assert rows_of(turned.parent, Options(cores=2, is_second=True)) == rows_of(turned.parent, Options(cores=1))

    def test_what_was_written_before_is_gone(self, turned: Path, tmp_path: Path) -> None:
        (outcome,) = ingest(turned.parent, db=tmp_path / "t.duckdb")
        assert outcome.error is None
        with duckdb.connect(str(tmp_path / "t.duckdb"), read_only=True) as connection:
            found = connection.execute(
                "SELECT device_id, count(*), min(start_ns) FROM kernel_event GROUP BY device_id ORDER BY device_id"
            ).fetchall()
        assert found == [(0, 6, 0), (1, 6, 0)]

    def test_through_the_pipeline_with_copies_of_another_agent(self, tmp_path: Path) -> None:
        made = Set(tmp_path / "run")
        made.kernels = kernels(6, Agent_Id="Agent 7")
        made.copy("HOST_TO_DEVICE", 1, 2, "Agent 0", "Agent 4")
        made.save()
        (outcome,) = ingest(tmp_path / "run", db=tmp_path / "t.duckdb")
        assert (outcome.error, outcome.loaded[0].rows_written) == (None, 7)
        with duckdb.connect(str(tmp_path / "t.duckdb"), read_only=True) as connection:
            found = connection.execute(
                "SELECT kind, device_id, count(*) FROM kernel_event GROUP BY ALL ORDER BY ALL"
            ).fetchall()
        assert found == [("kernel", 1, 6), ("memcpy", 0, 1)]


@needs_library
def test_the_direct_writer_gives_what_the_compiled_parser_takes(tmp_path: Path) -> None:
    """What is measured as fast is the form that the tool writes."""
    library = native_parser.library()
    assert library is not None
    text = direct(ERAS["7.0"], [[row.get(name, 0) for name in ERAS["7.0"]] for row in kernels(3)]).encode()
    head, _, body = text.partition(b"\n")
    found = header_of(head)
    assert found is not None
    assert native_parser.PlainParser(library, found).parse(body) is not None
