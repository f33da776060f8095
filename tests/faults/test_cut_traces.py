"""Cut, damaged and packed files."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

import pytest
import zstandard

from support.readings import read
from support.traces import LAYOUTS, document, kernel, launched, packed, window_end, write
from tracedb.errors import ReadError
from tracedb.ingester.decompress import Stream

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
    def test_a_trace_cut_anywhere_keeps_the_events_before_the_cut(self, tmp_path: Path, layout: str) -> None:
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
    def test_a_trace_cut_after_its_events_keeps_them_all(self, tmp_path: Path, layout: str) -> None:
        content = document([kernel(1), kernel(2)], layout, after={"distributedInfo": {"rank": 3}, "traceName": "x"})
        for cut in range(content.rindex(b"]") + 1, len(content), 7):
            found = read(write(tmp_path / "x.json", content[:cut]))
            assert len(found.kernels()) == 2
            assert found.status == "repaired"

    def test_a_long_trace_cut_in_the_middle_keeps_its_first_events(self, tmp_path: Path) -> None:
        content = document([kernel(i, 1, args={"x": "y" * 1_000}) for i in range(3_000)], "native")
        for cut in (MIB, 2 * MIB, 2 * MIB + 1, len(content) - 7):
            found = read(write(tmp_path / "x.json", content[:cut]))
            assert len(found.kernels()) == whole_events(content[:cut])
            assert found.status == "truncated"

    def test_a_gzip_file_cut_anywhere_keeps_the_events_before_the_cut(self, tmp_path: Path) -> None:
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

    def test_a_zstd_file_cut_anywhere_keeps_the_events_before_the_cut(self, tmp_path: Path) -> None:
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
    def test_a_trace_cut_before_its_first_event_is_refused(self, tmp_path: Path, ending: str) -> None:
        head = document([], "native")
        for content in (
            head[: head.index(b"[\n")],
            b'{"schemaVersion": 1, "deviceProperties": [',
            head[: head.index(b"[\n") + 2],
        ):
            with pytest.raises(ReadError):
                read(write(tmp_path / f"x{ending}", content))

    @pytest.mark.parametrize("damage", ["flipped", "zeros", "overwritten"])
    def test_a_gzip_file_damaged_inside_is_never_read_as_complete(self, tmp_path: Path, damage: str) -> None:
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

    @pytest.mark.parametrize("place", [40, 2_000, -6])
    def test_gzip_gives_everything_up_to_the_damage(self, tmp_path: Path, place: int) -> None:
        """Also within the first kilobytes, where the file is recognised by them, and in the check sum at the end."""
        whole = document(launched(300), "native")
        content = bytearray(gzip.compress(whole, 6, mtime=0) + gzip.compress(whole[:9_000], 6, mtime=0))
        content[place] ^= 0x55
        path = tmp_path / "x.json.gz"
        path.write_bytes(content)
        expected, rest = b"", bytes(content)
        while rest:
            member = zlib.decompressobj(wbits=31)
            for number, byte in enumerate(rest):
                try:
                    expected += member.decompress(bytes([byte]))
                except zlib.error:
                    rest = b""
                    break
                if member.eof:
                    rest = rest[number + 1 :]
                    break
        stream = Stream(path)
        assert b"".join(stream.pieces()) == expected
        assert stream.fault is not None
        assert "damaged" in stream.fault


class TestCompressedFiles:
    EVENTS = (*launched(300), window_end())

    def test_a_gzip_file_of_several_members_is_read_whole(self, tmp_path: Path) -> None:
        content = document(list(self.EVENTS), "native")
        path = tmp_path / "x.json.gz"
        for size in (1_000, len(content) // 2, len(content) - 1):
            parts = [gzip.compress(content[i : i + size], mtime=0) for i in range(0, len(content), size)]
            for between in (b"", b"\0" * 700):
                path.write_bytes(between.join(parts) + between)
                found = read(path)
                assert (len(found.kernels()), found.status) == (300, "complete")

    def test_a_zstd_file_of_several_frames_is_read_whole(self, tmp_path: Path) -> None:
        content = document(list(self.EVENTS), "native")
        path = tmp_path / "x.json.zst"
        path.write_bytes(zstandard.compress(content[:9_000]) + zstandard.compress(content[9_000:]))
        found = read(path)
        assert (len(found.kernels()), found.status) == (300, "complete")

    @pytest.mark.parametrize("junk", [b"garbage", b"\x1f", b"\x1f\x8b", b"{}", b"\0\0garbage"])
    @pytest.mark.parametrize("ending", [".gz", ".zst"])
    def test_garbage_after_the_compressed_data_loses_no_event(self, tmp_path: Path, ending: str, junk: bytes) -> None:
        path = tmp_path / f"x.json{ending}"
        path.write_bytes(packed(document(list(self.EVENTS), "native"), ending) + junk)
        found = read(path)
        assert len(found.kernels()) == 300
        assert found.status in ("repaired", "truncated")
        assert found.faults == {"stream_damaged": 1}

    @pytest.mark.parametrize("name", ["x.json", "x.json.gz", "x.json.zst", "x"])
    def test_compression_is_detected_by_content_and_not_by_name(self, tmp_path: Path, name: str) -> None:
        path = tmp_path / name
        for packing in ("", ".gz", ".zst"):
            path.write_bytes(packed(document(launched(3), "compact"), packing))
            assert len(read(path).kernels()) == 3
