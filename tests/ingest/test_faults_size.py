"""Faults of size and packing: cut files, packed files, long files, files that are larger than they look."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from ingest.traces import (
    LAYOUTS,
    Event,
    Raw,
    document,
    event_text,
    frame,
    kernel,
    launched,
    packed,
    read,
    window_end,
    write,
)
from tracedb.errors import ReadError
from tracedb_torch import ingester

MIB = 1 << 20


def whole_events(content: bytes) -> int:
    """How many events stand in a cut document from their first to their last byte."""
    text = content.decode("utf-8", errors="ignore")
    place, count = text.find("[", text.find('"traceEvents"')) + 1, 0
    if '"traceEvents"' not in text or not place:
        return 0
    decoder = json.JSONDecoder()
    while True:
        while text[place : place + 1] in (" ", "\n", ",", "\r"):
            place += 1
        try:
            _, place = decoder.raw_decode(text, place)
        except ValueError:
            return count
        count += 1


class TestCutFiles:
    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_plain_file_cut_anywhere(self, tmp_path: Path, layout: str) -> None:
        events = [kernel(i, 1, f'k "{i}" \\ {{}},{{', args={"x": [{"a": 1}, {"b": [2]}]}) for i in range(4)]
        content = document(events, layout, after={"traceName": "x"})
        first, last = content.index(b"traceEvents"), content.rindex(b"]")
        for cut in [*range(first + 14, last, len(content) // 11), last]:
            path = write(tmp_path / "x.json", content[:cut])
            whole = whole_events(content[:cut])
            if whole == 0:
                with pytest.raises(ReadError, match=r"cut|ends before its first whole event"):
                    read(path)
                continue
            found = read(path)
            assert found.kernels("start_ns") == [1000 * i for i in range(whole)], cut
            assert found.status == "truncated"

    @pytest.mark.parametrize("layout", ["native", "compact"])
    def test_cut_after_the_events(self, tmp_path: Path, layout: str) -> None:
        content = document([kernel(1), kernel(2)], layout, after={"distributedInfo": {"rank": 3}, "traceName": "x"})
        for cut in range(content.rindex(b"]") + 1, len(content), 7):
            found = read(write(tmp_path / "x.json", content[:cut]))
            assert len(found.kernels()) == 2
            assert found.status == "repaired"

    def test_long_file_cut(self, tmp_path: Path) -> None:
        content = document([kernel(i, 1, args={"x": "y" * 1_000}) for i in range(3_000)], "native")
        for cut in (MIB, 2 * MIB, 2 * MIB + 1, len(content) - 7):
            found = read(write(tmp_path / "x.json", content[:cut]))
            assert len(found.kernels()) == whole_events(content[:cut])
            assert found.status == "truncated"

    def test_gzip_cut_anywhere(self, tmp_path: Path) -> None:
        content = gzip.compress(document(launched(400), "native"), 6, mtime=0)
        for cut in [
            *range(400, len(content) - 9, len(content) // 14),
            len(content) - 9,
            len(content) - 8,
            len(content) - 1,
        ]:
            start = zlib.decompressobj(31).decompress(content[:cut])
            path = tmp_path / "x.json.gz"
            path.write_bytes(content[:cut])
            if not whole_events(start):
                with pytest.raises(ReadError, match=r"cut before its first event|ends before its first whole event"):
                    read(path)
                continue
            found = read(path)
            assert found.capture["events_read"] - found.issues.get("event_cut", 0) == whole_events(start)
            assert found.status == "truncated"
            assert found.issues["stream_damaged"] == 1

    def test_zstd_cut_anywhere(self, tmp_path: Path) -> None:
        content = zstandard.compress(document(launched(4_000), "native"), 1)
        path = tmp_path / "x.json.zst"
        counts = []
        for cut in range(len(content) // 7, len(content), len(content) // 7):
            path.write_bytes(content[:cut])
            try:
                found = read(path)
            except ReadError:
                counts.append(0)
                continue
            assert found.status == "truncated"
            counts.append(len(found.kernels()))
        assert counts == sorted(counts)
        assert 0 < counts[-1] < 4_000

    @pytest.mark.parametrize("ending", [".json", ".json.gz", ".json.zst"])
    def test_nothing_left(self, tmp_path: Path, ending: str) -> None:
        head = document([], "native")
        for content in (
            head[: head.index(b"[\n")],
            b'{"schemaVersion": 1, "deviceProperties": [',
            head[: head.index(b"[\n") + 2],
        ):
            with pytest.raises(ReadError):
                read(write(tmp_path / f"x{ending}", content))

    @pytest.mark.parametrize("damage", ["flipped", "zeros", "overwritten"])
    def test_gzip_damaged_inside(self, tmp_path: Path, damage: str) -> None:
        content = bytearray(gzip.compress(document(launched(2_000), "native"), 6, mtime=0))
        middle = len(content) // 2
        length = {"flipped": 1, "zeros": 512, "overwritten": 4096}[damage]
        content[middle : middle + length] = bytes(
            byte ^ 0x55 if damage == "flipped" else 0 for byte in content[middle:][:length]
        )
        path = tmp_path / "x.json.gz"
        path.write_bytes(content)
        try:
            found = read(path)
        except ReadError as error:
            assert "unreadable" in str(error)
            return
        assert found.status == "truncated"
        assert 0 < len(found.kernels()) < 2_000


class TestPacking:
    EVENTS = (*launched(300), window_end())

    def test_gzip_of_several_members(self, tmp_path: Path) -> None:
        content = document(list(self.EVENTS), "native")
        path = tmp_path / "x.json.gz"
        for size in (1_000, len(content) // 2, len(content) - 1):
            parts = [gzip.compress(content[i : i + size], mtime=0) for i in range(0, len(content), size)]
            for between in (b"", b"\0" * 700):
                path.write_bytes(between.join(parts) + between)
                found = read(path)
                assert (len(found.kernels()), found.status) == (300, "complete")

    def test_zstd_of_several_frames(self, tmp_path: Path) -> None:
        content = document(list(self.EVENTS), "native")
        path = tmp_path / "x.json.zst"
        path.write_bytes(zstandard.compress(content[:9_000]) + zstandard.compress(content[9_000:]))
        found = read(path)
        assert (len(found.kernels()), found.status) == (300, "complete")

    @pytest.mark.parametrize("junk", [b"garbage", b"\x1f", b"\x1f\x8b", b"{}", b"\0\0garbage"])
    @pytest.mark.parametrize("ending", [".gz", ".zst"])
    def test_garbage_behind(self, tmp_path: Path, ending: str, junk: bytes) -> None:
        path = tmp_path / f"x.json{ending}"
        path.write_bytes(packed(document(list(self.EVENTS), "native"), ending) + junk)
        found = read(path)
        assert len(found.kernels()) == 300
        assert found.status in ("repaired", "truncated")
        assert found.faults == {"stream_damaged": 1}

    @pytest.mark.parametrize("name", ["x.json", "x.json.gz", "x.json.zst", "x"])
    def test_the_name_does_not_matter(self, tmp_path: Path, name: str) -> None:
        path = tmp_path / name
        for packing in ("", ".gz", ".zst"):
            path.write_bytes(packed(document(launched(3), "compact"), packing))
            assert len(read(path).kernels()) == 3


class TestLength:
    @pytest.mark.parametrize("edge", [-1, 0, 1])
    def test_bad_event_at_the_edge_of_a_block(self, tmp_path: Path, edge: int) -> None:
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

    def test_b021_forty_megabytes_on_one_line(self, tmp_path: Path) -> None:
        content = document([kernel(i, 1, "k", args={"x": "y" * 4_100}) for i in range(10_000)], "compact")
        assert len(content) > 40 * MIB
        assert b"\n" not in content
        found = read(write(tmp_path / "x.json.gz", content))
        assert (len(found.kernels()), found.status, found.issues) == (10_000, "complete", {})

    def test_two_decoding_processes_see_the_same(self, tmp_path: Path) -> None:
        """From 48 MB on a second process decodes; damage included."""
        events: list[Event | bytes] = []
        for i in range(15_000):
            events += [kernel(i, 1, f"k{i % 100}", args={"x": "y" * 3_000}), window_end()]
            if i % 2_000 == 1_000:
                nested = kernel(i, 1, "e", args={"x": [{"a": 1}, {"name": 2}]})
                events += [b"garbage", nested, frame(1, 1, Raw('"a"b"'))]
        content = document(events, "native", after={"distributedInfo": {"rank": 3}})
        path = write(tmp_path / "x.json", content)
        alone, shared = read(path, cores=1), read(path, cores=2)
        assert alone.tables == shared.tables
        assert len(alone.kernels()) == 15_007
        assert alone.capture["rank"] == 3
        assert alone.faults == {"event_repaired": 7, "event_unreadable": 7}

    @pytest.mark.parametrize("events", [[], [window_end()]])
    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_no_events(self, tmp_path: Path, events: list[Event | bytes], layout: str) -> None:
        found = read(write(tmp_path / "x.json", events, layout, after={"traceName": "x"}))
        assert found.status == "no_gpu_activity"
        assert found.capture["events_read"] == len(events)

    @pytest.mark.parametrize("text", ["null", "{}", '""', "5"])
    def test_no_event_array(self, tmp_path: Path, text: str) -> None:
        for content in (
            f'{{"schemaVersion": 1, "traceEvents": {text}}}',
            '{"schemaVersion": 1, "distributedInfo": {}}',
        ):
            with pytest.raises(ReadError, match="no traceEvents array was found"):
                read(write(tmp_path / "x.json", content.encode()))

    def test_b018_all_cpu_is_said(self, tmp_path: Path) -> None:
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


class TestBombs:
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
    def test_refused(self, tmp_path: Path, head: bytes, filling: bytes, expected: str) -> None:
        path = tmp_path / "x.json.gz"
        with path.open("wb") as file:
            file.writelines(bomb(head, filling, 80))
        assert path.stat().st_size < 2 * MIB
        before = time.perf_counter()
        with pytest.raises(ReadError, match=expected):
            read(path)
        assert time.perf_counter() - before < 30

    @pytest.mark.parametrize("filling", [b"\0"])
    def test_behind_the_events(self, tmp_path: Path, filling: bytes) -> None:
        path = tmp_path / "x.json.gz"
        with path.open("wb") as file:
            file.writelines(bomb(document([kernel(1), kernel(2)]), filling, 80))
        found = read(path)
        assert len(found.kernels()) == 2

    def test_blanks_before_everything(self, tmp_path: Path) -> None:
        path = tmp_path / "x.json.gz"
        with path.open("wb") as file:
            file.writelines(bomb(b" ", b" ", 100, document([kernel(1)])))
        before = time.perf_counter()
        assert list(ingester.find([path])) == []
        assert time.perf_counter() - before < 5


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_b015_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
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
    for size in (1, 5):
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
