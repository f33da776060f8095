"""Faults of size: long files, long events, files that are larger than they seem."""

from __future__ import annotations

import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.readings import read
from support.traces import LAYOUTS, Event, Raw, document, event_text, frame, kernel, launched, window_end, write
from tracedb.errors import ReadError
from tracedb_torch import ingester

MIB = 1 << 20


class TestLength:
    @pytest.mark.parametrize("edge", [-1, 0, 1])
    def test_a_bad_event_across_a_block_boundary_is_lost_alone(self, tmp_path: Path, edge: int) -> None:
        """A malformed event slides over the places at which the file is cut into pieces."""
        bad = frame(1, 1, Raw('"a"}, {"b\\q"'))
        good = [kernel(1_000 + i, 1, args={"x": "y" * 1_000}) for i in range(4_000)]
        for layout in ("native", "compact"):
            each = len(event_text(good[0], layout)) + (2 if layout == "native" else 1)
            events: list[Event | bytes] = [*good]
            for place in (3 * MIB, 2 * MIB, MIB):
                events.insert(place // each + edge, bad)
            found = read(write(tmp_path / "x.json", events, layout))
            assert len(found.kernels()) == 4_000
            assert found.status == "repaired"

    def test_forty_megabytes_on_one_line_are_read(self, tmp_path: Path) -> None:
        content = document([kernel(i, 1, "k", args={"x": "y" * 4_100}) for i in range(10_000)], "compact")
        assert len(content) > 40 * MIB
        assert b"\n" not in content
        found = read(write(tmp_path / "x.json.gz", content))
        assert (len(found.kernels()), found.status, found.issues) == (10_000, "complete", {})

    def test_two_scanner_threads_find_the_same_damage_as_one(self, tmp_path: Path) -> None:
        events: list[Event | bytes] = []
        for i in range(3_500):  # some ten blocks
            events += [kernel(i, 1, f"k{i % 100}", args={"x": "y" * 3_000}), window_end()]
            if i % 500 == 250:
                nested = kernel(i, 1, "e", args={"x": [{"a": 1}, {"name": 2}]})
                events += [b"garbage", nested, frame(1, 1, Raw('"a"b"'))]
        content = document(events, "native", after={"distributedInfo": {"rank": 3}})
        path = write(tmp_path / "x.json", content)
        alone, shared = read(path, cores=1), read(path, cores=2)
        assert alone.tables == shared.tables
        assert len(alone.kernels()) == 3_507
        assert alone.capture["rank"] == 3
        assert alone.faults == {"event_repaired": 7, "event_unreadable": 7}

    @pytest.mark.parametrize("events", [[], [window_end()]])
    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_a_trace_without_events(self, tmp_path: Path, events: list[Event | bytes], layout: str) -> None:
        found = read(write(tmp_path / "x.json", events, layout, after={"traceName": "x"}))
        assert found.status == "no_gpu_activity"
        assert found.capture["events_read"] == len(events)

    @pytest.mark.parametrize("text", ["null", "{}", '""', "5"])
    def test_a_trace_without_an_event_array(self, tmp_path: Path, text: str) -> None:
        for content in (
            f'{{"schemaVersion": 1, "traceEvents": {text}}}',
            '{"schemaVersion": 1, "distributedInfo": {}}',
        ):
            with pytest.raises(ReadError, match="no traceEvents array was found"):
                read(write(tmp_path / "x.json", content.encode()))

    def test_a_trace_of_host_events_only_is_reported(self, tmp_path: Path) -> None:
        found = read(write(tmp_path / "x.json", [event for event in launched(3) if event["cat"] == "cpu_op"]))
        assert found.status == "no_gpu_activity"
        assert found.tables["ingest_issue"][0]["detail"] == "CPU activity only; record with ProfilerActivity.CUDA"


HEAD = b'{"schemaVersion": 1, "traceEvents": ['


def bomb(head: bytes, filling: bytes, megabytes: int, tail: bytes = b"") -> Iterator[bytes]:
    """A gzip file that unpacks to a thousand times its size."""
    packer = zlib.compressobj(9, wbits=31)
    yield packer.compress(head)
    block = filling * (MIB // len(filling))
    for _ in range(megabytes):
        yield packer.compress(block)
    yield packer.compress(tail) + packer.flush()


class TestDecompressionBombs:
    """Files of a megabyte that unpack to a gigabyte: clear words, in bounded time and memory."""

    @pytest.mark.parametrize(
        ("head", "filling", "expected"),
        [
            (b'{"schemaVersion": 1,', b" ", "no traceEvents array was found"),
            (HEAD, b" ", "longer than 64 MB"),
            (HEAD + b'{"ph": "X", "name": "', b"a", "longer than 64 MB"),
            (HEAD, b"},", "longer than 64 MB"),
        ],
    )
    def test_a_decompression_bomb_is_refused(self, tmp_path: Path, head: bytes, filling: bytes, expected: str) -> None:
        path = tmp_path / "x.json.gz"
        with path.open("wb") as file:
            file.writelines(bomb(head, filling, 66))
        assert path.stat().st_size < 2 * MIB
        before = time.process_time()
        with pytest.raises(ReadError, match=expected):
            read(path)
        assert time.process_time() - before < 30

    @pytest.mark.parametrize("filling", [b"\0"])
    def test_a_decompression_bomb_after_the_events_keeps_them(self, tmp_path: Path, filling: bytes) -> None:
        path = tmp_path / "x.json.gz"
        with path.open("wb") as file:
            file.writelines(bomb(document([kernel(1), kernel(2)]), filling, 66))
        found = read(path)
        assert len(found.kernels()) == 2

    def test_a_gigabyte_of_blanks_before_the_trace(self, tmp_path: Path) -> None:
        path = tmp_path / "x.json.gz"
        with path.open("wb") as file:
            file.writelines(bomb(b" ", b" ", 100, document([kernel(1)])))
        before = time.process_time()
        assert list(ingester.find([path])) == []
        assert time.process_time() - before < 5


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_peak_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    script = """
import sys, duckdb
from pathlib import Path
from tracedb.ingester import Options
from tracedb_torch import ingester
(capture,) = ingester.find([Path(sys.argv[1])])
settings = {"threads": 1, "memory_limit": "100MB", "temp_directory": sys.argv[2]}
with duckdb.connect(":memory:", config=settings) as scratch:
    for rows in ingester.read(capture, scratch, Options()):
        reader = rows.data.to_arrow_reader(50_000) if isinstance(rows.data, duckdb.DuckDBPyRelation) else ()
        for batch in reader:
            pass
print(next(int(line.split()[1]) // 1024 for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
    # The peak of /proc counts from the start of the program; that of getrusage is inherited from the parent.
    peaks = []
    for size in (1, 4):
        path = tmp_path / f"{size}.json.gz"
        with path.open("wb") as file:
            block = b",".join(event_text(event, "compact") for event in launched(20_000))
            packer = zlib.compressobj(1, wbits=31)
            file.write(packer.compress(HEAD + block))
            for _ in range(size - 1):
                file.write(packer.compress(b"," + block))
            file.write(packer.compress(b"]}") + packer.flush())
        done = subprocess.run(
            [sys.executable, "-c", script, str(path), str(tmp_path / "spill")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stdout))
    assert peaks[1] < 500
    assert peaks[1] < peaks[0] + 150
