"""Archives of traces: read in place, within limits, leaving nothing behind."""

from __future__ import annotations

import bz2
import io
import lzma
import os
import signal
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from support.loading import ask, ingest, trace
from tracedb.ingester.decompress import RATIO_FROM
from tracedb.pipeline import archives
from tracedb.storage import spill_folder

Members = dict[str, bytes]


def contents(folder: Path) -> Members:
    """Two ranks with 3 and 5 kernels."""
    return {
        "run_channels/16channels/rank0.json": trace(folder / "a" / "rank0.json", 3).read_bytes(),
        "run_channels/16channels/rank1.json": trace(folder / "b" / "rank1.json", 5).read_bytes(),
        "notes.md": b"not a trace",
        "empty/": b"",
    }


def zipped(path: Path, members: Members) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def tarred(path: Path, members: Members, mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            member = tarfile.TarInfo(name.rstrip("/"))
            member.size = len(content)
            member.type = tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE
            archive.addfile(member, io.BytesIO(content))
    return path


def zstd_tarred(path: Path, members: Members) -> Path:
    plain = tarred(path.with_name("plain"), members)
    path.write_bytes(zstandard.compress(plain.read_bytes()))
    plain.unlink()
    return path


FORMS: dict[str, Callable[[Path, Members], Path]] = {
    "run.zip": zipped,
    "run.ZIP": zipped,
    "run.tar": tarred,
    "run.tar.gz": lambda path, members: tarred(path, members, "w:gz"),
    "run.tgz": lambda path, members: tarred(path, members, "w:gz"),
    "run.tar.bz2": lambda path, members: tarred(path, members, "w:bz2"),
    "run.tar.xz": lambda path, members: tarred(path, members, "w:xz"),
    "run.tar.zst": zstd_tarred,
}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path


def rows(db: Path) -> list[tuple[object, ...]]:
    return ask(
        db,
        """SELECT c.path, c.rank, c.labels['channels'], count(*) FROM capture AS c JOIN kernel_event USING (capture_id)
           GROUP BY ALL ORDER BY ALL""",
    )


@pytest.mark.parametrize(("name", "jobs"), [*((name, 1) for name in FORMS), ("run.zip", 2)])
def test_members_are_captures_and_the_same_archive_again_is_nothing(here: Path, name: str, jobs: int) -> None:
    archive = FORMS[name](here / "in" / name, contents(here))
    done = ingest(archive, db=here / "db", jobs=jobs)
    assert done.exit_code == 0, done.stderr
    inside = archive / "run_channels" / "16channels"
    assert rows(here / "db") == [(str(inside / "rank0.json"), 0, "16", 3), (str(inside / "rank1.json"), 1, "16", 5)]
    assert str(inside / "rank0.json") in done.stdout
    assert f"left aside: {archive / 'notes.md'} (its name is not that of a trace)" in done.stderr
    again = ingest(here / "in", db=here / "db", jobs=jobs)
    assert (again.exit_code, "2 known before" in again.stderr) == (0, True)
    assert sorted(item.name for item in here.iterdir()) == ["a", "b", "db", "in"]
    assert list((here / "in").iterdir()) == [archive]


def test_a_dry_run_names_members(here: Path) -> None:
    archive = zipped(here / "in" / "run.zip", contents(here))
    done = ingest(archive, db=here / "db", flags=["--dry-run"], new=True)
    assert (done.exit_code, str(archive / "run_channels") in done.stdout) == (0, True)
    assert not (here / "db").exists()


@pytest.mark.parametrize("form", [zipped, tarred])
def test_names_that_lead_out_and_links_do_no_harm(here: Path, form: Callable[[Path, Members], Path]) -> None:
    out = here / "outside.json"
    content = trace(here / "a" / "rank0.json", 3).read_bytes()
    names = ("../../../outside.json", str(out), "..\\..\\back.json", "x/../../y/rank4.json")
    archive = form(here / "in" / "run.zip", {name: content + b" " * at for at, name in enumerate(names)})
    with_links = here / "in" / "links.tar"
    with tarfile.open(with_links, "w") as links:
        for name, kind, target in (
            ("link.json", tarfile.SYMTYPE, "/etc/passwd"),
            ("hard.json", tarfile.LNKTYPE, "../../../outside.json"),
            ("pipe.json", tarfile.FIFOTYPE, ""),
            ("folder", tarfile.SYMTYPE, str(here)),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, target
            links.addfile(member)
        member = tarfile.TarInfo("folder/rank7.json")
        member.size = len(content) + 9
        links.addfile(member, io.BytesIO(content + b" " * 9))
    done = ingest(here / "in", db=here / "db")
    assert done.exit_code == 0, done.stderr
    assert ask(here / "db", "SELECT count(*) FROM capture") == [(5,)]
    assert done.stderr.count("(a link or device in an archive)") == 4
    assert sorted(item.name for item in here.iterdir()) == ["a", "db", "in"]
    assert sorted((here / "in").iterdir()) == sorted([archive, with_links])


def test_what_is_damaged_is_a_line_and_the_rest_is_loaded(here: Path) -> None:
    members = contents(here)
    whole = zipped(
        here / "in" / "whole.zip", {"rank0.json": members.popitem()[1] or trace(here / "c.json").read_bytes()}
    )
    cut = tarred(here / "in" / "cut.tar.gz", {"rank3.json": os.urandom(300_000)}, "w:gz")
    cut.write_bytes(cut.read_bytes()[:100_000])
    (here / "in" / "no.zip").write_bytes(b"PK\x03\x04 nothing else")
    (here / "in" / "no.tar").write_bytes(b"nothing" * 1000)
    flipped = zipped(here / "in" / "flipped.zip", contents(here))
    with zipfile.ZipFile(flipped) as archive:
        at = archive.getinfo("run_channels/16channels/rank0.json").header_offset
    content = bytearray(flipped.read_bytes())
    content[at + 200] ^= 0xFF
    flipped.write_bytes(content)
    done = ingest(here / "in", db=here / "db")
    assert done.exit_code == 1
    said = [line for line in done.stderr.splitlines() if "is damaged" in line]
    assert len(said) == 4
    assert [
        name for name in ("cut.tar.gz", "no.zip", "no.tar", "flipped.zip") if not any(name in s for s in said)
    ] == []
    assert "Traceback" not in done.stderr
    assert [(path, kernels) for path, _, _, kernels in rows(here / "db")] == [
        (str(flipped / "run_channels" / "16channels" / "rank1.json"), 5),
        (str(whole / "rank0.json"), 3),
    ]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.bin", b"PK\x03\x04", "a zip archive by its content; archives are read if their names end in .zip"),
        ("a.7z", b"7z\xbc\xaf\x27\x1c\0\4", "a 7z archive, which is not read; unpack it"),
        ("a.rar", b"Rar!\x1a\7\1\0", "a RAR archive, which is not read; unpack it"),
        ("a.json.xz", lzma.compress(b"{}"), "compressed with xz, which is read only of archives (.tar.xz); unpack it"),
        ("a.json.bz2", bz2.compress(b"{}"), "compressed with bzip2, which is read only of archives (.tar.bz2); unpack"),
    ],
)
def test_what_is_packed_otherwise_is_named(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    done = ingest(tmp_path / name, db=tmp_path / "db", new=True)
    assert (done.exit_code, f"{name} ({words}" in done.stderr) == (1, True), done.stderr


def test_an_encrypted_zip_and_one_within_another(here: Path) -> None:
    locked = zipped(here / "in" / "locked.zip", {"rank0.json": b"x" * 100})
    content = bytearray(locked.read_bytes())
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + at] |= 1
    locked.write_bytes(content)
    inner = zipped(here / "inner.zip", contents(here)).read_bytes()
    zipped(here / "in" / "outer.zip", {"deep/inner.zip": inner, "rank0.json": trace(here / "a.json").read_bytes()})
    done = ingest(here / "in", db=here / "db")
    assert done.exit_code == 1
    assert f"{locked}: is encrypted; unpack it with its password and ingest the files" in done.stderr
    assert "outer.zip/deep/inner.zip (an archive in an archive; unpack it)" in done.stderr
    assert ask(here / "db", "SELECT count(*) FROM capture") == [(1,)]


class TestBounds:
    def refused(self, here: Path, archive: Path, words: str) -> None:
        zipped(here / "in" / "sound.zip", {"rank0.json": trace(here / "a.json").read_bytes()})
        done = ingest(here / "in", db=here / "db")
        assert (done.exit_code, f"{archive}: {words}" in done.stderr) == (1, True), done.stderr
        assert ask(here / "db", "SELECT count(*) FROM capture") == [(1,)]

    def test_one_that_unpacks_to_far_more(self, here: Path) -> None:
        zeros = bytes(RATIO_FROM + (8 << 20))
        bomb = zipped(here / "in" / "bomb.zip", {"rank1.json": trace(here / "b.json", 5).read_bytes(), "z.json": zeros})
        self.refused(here, bomb, "unpacks to more than 250 times its size")

    def test_a_tar_of_zeros_between_its_members(self, here: Path) -> None:
        zeros = bytes(RATIO_FROM + (8 << 20))
        bomb = tarred(here / "in" / "bomb.tgz", {"image.bin": zeros, "rank1.json": b"{}"}, "w:gz")
        self.refused(here, bomb, "unpacks to more than 250 times its size")

    def test_too_large(self, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(archives, "MOST_BYTES", 100_000)
        large = zipped(here / "in" / "large.zip", {"rank1.json": os.urandom(200_000)})
        self.refused(here, large, "is larger than 0 GiB unpacked")

    @pytest.mark.parametrize("form", [zipped, tarred])
    def test_too_many_members(
        self, here: Path, form: Callable[[Path, Members], Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(archives, "MOST_MEMBERS", 20)
        many = form(here / "in" / "many.tar", {f"{number}.json": b"{}" for number in range(21)})
        self.refused(here, many, "has more than 20 members")

    def test_a_name_that_would_fill_the_memory(self, here: Path) -> None:
        path = here / "in" / "name.tgz"
        with tarfile.open(path, "w:gz") as archive:
            member = tarfile.TarInfo("././@LongLink")
            member.type, member.size = tarfile.GNUTYPE_LONGNAME, 4 << 20
            archive.addfile(member, io.BytesIO(b"x" * member.size))
        self.refused(here, path, "has a name or attributes of 4,194,304 bytes")


@pytest.mark.skipif(not spill_folder.BOOT.exists(), reason="the system does not tell when it was started")
def test_what_a_killed_ingest_unpacked_goes_with_the_next(here: Path) -> None:
    archive = zipped(here / "in" / "run.zip", contents(here))
    holds = f"""
import time
from pathlib import Path
from tracedb.pipeline.archives import unpacked
with unpacked([Path({str(archive)!r})], Path({str(here / "db")!r})) as found:
    print(len(found.files), flush=True)
    time.sleep(600)
"""
    holder = subprocess.Popen([sys.executable, "-c", holds], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "2\n"
    (left,) = here.glob(".tracedb-*")
    assert left.stat().st_mode & 0o777 == 0o700
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    assert left.exists()
    assert ingest(here / "in", db=here / "db").exit_code == 0
    assert not list(here.glob(".tracedb-*"))
