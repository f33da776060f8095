"""Compressed files and UTF-16 are opened like plain UTF-8, in bounded memory and disk space."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from tracedb.errors import ReadError
from tracedb.ingester.decompress import MOST_RATIO, RATIO_FROM, Stream, on_disk, opened

TEXT = "Kernel,Ünïcode\r\n1,2\r\n" * 20_000
PLAIN = TEXT.encode()
PARTS = (PLAIN[:100_001], PLAIN[100_001:])


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def content(path: Path, size: int = -1) -> tuple[bytes, list[str], int]:
    """What is read of a file, ``size`` bytes at a time; what is said of its packing; bytes that were reported."""
    told: list[int] = []
    faults: list[str] = []
    with opened(path, told.append, faults) as file:
        found = file.read() if size < 0 else b"".join(iter(lambda: file.read(size), b""))
    return found, faults, sum(told)


@pytest.mark.parametrize(
    "stored",
    [
        PLAIN,
        b"\xef\xbb\xbf" + PLAIN,
        TEXT.encode("utf-16"),
        b"\xfe\xff" + TEXT.encode("utf-16-be"),
        TEXT.encode("utf-32"),
        gzip.compress(PLAIN),
        gzip.compress(TEXT.encode("utf-16")),
        gzip.compress(b"\xef\xbb\xbf" + PLAIN),
        b"".join(map(gzip.compress, PARTS)),
        gzip.compress(PARTS[0]) + bytes(512) + gzip.compress(PARTS[1]) + bytes(512),
        zstd(PLAIN),
        zstd(PARTS[0]) + zstd(PARTS[1]),
    ],
    ids=range(12),
)
@pytest.mark.parametrize("size", [-1, 1 << 12, 77_777])
def test_the_same_text_however_it_is_stored(tmp_path: Path, stored: bytes, size: int) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(stored)
    assert content(path, size) == (PLAIN, [], len(stored))


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
@pytest.mark.parametrize("size", [0, 1])
def test_hardly_anything(tmp_path: Path, pack: Callable[[bytes], bytes], size: int) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(pack(PLAIN[:size]))
    assert content(path)[:2] == (PLAIN[:size], [])


@pytest.mark.parametrize(
    ("stored", "fault"),
    [
        (gzip.compress(PLAIN)[:-100], "the gzip stream is cut"),
        (gzip.compress(PLAIN) + b"rest", "bytes that are not gzip follow the last gzip member"),
        (zstd(PLAIN) + b"rest", "bytes that are not zstd follow the last zstd frame"),
    ],
)
def test_what_is_said_of_the_packing(tmp_path: Path, stored: bytes, fault: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(stored)
    found, faults, _ = content(path)
    assert PLAIN.startswith(found)
    assert len(found) > len(PLAIN) // 2
    assert faults == [fault]


def test_half_a_character_at_the_end_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("1,234".encode("utf-16")[:-1])
    assert content(path)[0].decode() == "1,23\ufffd"


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_a_copy_on_disk(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "a.db.x"
    path.write_bytes(b"\xff\xfe" + PLAIN)  # binary: what looks like UTF-16 is not decoded
    with on_disk(path) as same:
        assert same == path
    path.write_bytes(pack(b"\xff\xfe" + PLAIN))
    with on_disk(path) as copy:
        assert (copy.name, copy.read_bytes()) == ("a.db", b"\xff\xfe" + PLAIN)
    assert not copy.exists()


def test_a_copy_is_not_made_to_fill_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "a.db.gz"
    with gzip.open(path, "wb") as file:
        for _ in range((RATIO_FROM >> 20) + 8):
            file.write(bytes(1 << 20))
    with pytest.raises(ReadError, match=f"more than {MOST_RATIO} times its size"), on_disk(path):
        pass


def test_pieces_are_bounded_whatever_the_ratio(tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(bytes(64 << 20)))
    sizes = [len(piece) for piece in Stream(path).pieces()]
    assert sum(sizes) == 64 << 20
    assert max(sizes) <= 2 << 20


def test_a_file_is_closed_though_it_was_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(PLAIN))
    with opened(path) as file:
        assert file.read(6) == b"Kernel"
    assert isinstance(file, io.BufferedReader)
    assert file.closed
