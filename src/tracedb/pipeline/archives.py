"""Archives of traces: members that may be traces are unpacked, within limits, into a private folder and read there.

A member's name only decides its place below that folder: names that lead out of it, and links, are rejected.
"""

from __future__ import annotations

import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from tracedb.ingester.decompress import MOST_RATIO, ZSTD, is_too_much
from tracedb.storage.spill_folder import spill_folder

ENDINGS = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.zst", ".tzst", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
TRACES = (
    *(".json", ".jsonl", ".gz", ".zst", ".zstd", ".trace", ".sqlite", ".db", ".rpd", ".csv", ".parquet"),
    *(".nsys-rep", ".qdrep", ".qdstrm"),
)
"""Endings of members that are unpacked; members without any ending are, too."""
MOST_MEMBERS = 100_000
MOST_BYTES = 64 << 30
"""Limit for one archive, unpacked."""
MOST_NAME = 1 << 20
"""Limit for a tar member's header data (names and attributes), which is read into memory."""
ABOUT_OTHERS = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
"""Kinds of tar members that describe the next member."""
PIECE = 1 << 20
DAMAGES = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError)


class TooMuch(Exception):
    """An archive exceeds the limits."""


@dataclass
class Unpacked:
    """The members of all archives."""

    files: list[Path] = field(default_factory=list)
    told: dict[Path, Path] = field(default_factory=dict)
    """File → the path shown to users: the archive's path with the member's below it."""
    left: list[tuple[Path, str]] = field(default_factory=list)
    """Members that were not unpacked, and why."""
    failed: list[tuple[Path, str]] = field(default_factory=list)
    """Archives and members that are damaged, encrypted or too large, with the reason."""


def is_archive(path: Path) -> bool:
    """Whether a file has the name of an archive, and is not empty."""
    try:
        return path.name.lower().endswith(ENDINGS) and path.is_file() and path.stat().st_size > 0
    except OSError:
        return False


@contextmanager
def unpacked(archives: Sequence[Path], beside: Path) -> Iterator[Unpacked]:
    """Unpack archives into a folder next to ``beside``, which is removed at the end of the block."""
    found = Unpacked()
    with ExitStack() as stack:
        if archives:
            room = Path(stack.enter_context(spill_folder(beside, or_elsewhere=True)))
            for number, archive in enumerate(archives):
                _Unpacking(archive, room / str(number) / archive.name, found).run()
        yield found


class _Unpacking:
    """Unpacks one archive."""

    def __init__(self, archive: Path, folder: Path, found: Unpacked) -> None:
        self._archive = archive
        self._folder = folder
        self._found = found
        self._packed = 0
        self._bytes = 0
        self._members = 0

    def run(self) -> None:
        try:
            self._packed = self._archive.stat().st_size
            self._folder.mkdir(parents=True)
            with self._archive.open("rb") as file:
                is_zip = file.read(2) == b"PK"
            if self._archive.name.lower().endswith(".zip"):  # by name: a zip may begin with a self-extractor
                is_zip = is_zip or zipfile.is_zipfile(self._archive)
            before = len(self._found.files) + len(self._found.left) + len(self._found.failed)
            if is_zip:
                self._unzip()
            else:
                self._untar()
            if len(self._found.files) + len(self._found.left) + len(self._found.failed) == before:
                self._found.left.append((self._archive, "an archive without files"))
        except TooMuch as error:
            self._give_up(str(error))
        except OSError as error:
            self._fail(f"cannot be unpacked: {error.strerror or error}")
        except Exception as error:  # noqa: BLE001 - whatever a damaged archive raises is its own fault alone
            self._fail(f"is damaged ({' '.join(str(error).split()) or type(error).__name__})")

    def _fail(self, why: str) -> None:
        members = "the member" if self._members == 1 else f"the {self._members:,} members"
        before = f"; {members} before that {'is' if self._members == 1 else 'are'} read" if self._members else ""
        self._found.failed.append((self._archive, f"{why}{before}"))

    def _give_up(self, why: str) -> None:
        """Reject the whole of an archive that is made to fill a disk."""
        mine = {path for path in self._found.files if path.is_relative_to(self._folder)}
        self._found.files = [path for path in self._found.files if path not in mine]
        shutil.rmtree(self._folder, ignore_errors=True)
        self._found.failed.append(
            (self._archive, f"{why}; nothing of it is read; if it is sound, unpack it and ingest the files")
        )

    def _unzip(self) -> None:
        with zipfile.ZipFile(self._archive) as archive:
            members = archive.infolist()
            self._count(len(members))
            if any(member.flag_bits & 1 for member in members):
                self._fail("is encrypted; unpack it with its password and ingest the files")
                return
            for member in members:
                kind = member.external_attr >> 16
                is_file = not member.is_dir() and stat.S_IFMT(kind) in (0, stat.S_IFREG)
                target = self._target(member.filename, is_file, member.is_dir())
                if target is None:
                    continue
                try:
                    with archive.open(member) as source:
                        self._copy(source, target)
                except DAMAGES as error:
                    self._found.failed.append((self._archive / member.filename, f"is damaged ({error})"))

    def _untar(self) -> None:
        with self._archive.open("rb") as file, ExitStack() as stack:
            stream: Any = file
            mode = "r|*"
            if file.read(4) == ZSTD:
                import zstandard

                stream, mode = stack.enter_context(zstandard.ZstdDecompressor().stream_reader(file)), "r|"
            file.seek(0)
            with tarfile.open(fileobj=stream, mode=mode, tarinfo=_Member) as archive:  # type: ignore[call-overload]
                for number, member in enumerate(archive, start=1):
                    self._count(number)
                    self._weigh(archive.offset)
                    archive.members = []  # tarfile would keep all of them in memory
                    target = self._target(member.name, member.isreg(), member.isdir())
                    if target is not None and (source := archive.extractfile(member)) is not None:
                        with source:
                            self._copy(source, target)

    def _count(self, members: int) -> None:
        if members > MOST_MEMBERS:
            raise TooMuch(f"has more than {MOST_MEMBERS:,} members")

    def _weigh(self, size: int) -> None:
        if size > MOST_BYTES:
            raise TooMuch(f"is larger than {MOST_BYTES >> 30} GiB unpacked")
        if is_too_much(size, self._packed):
            raise TooMuch(f"unpacks to more than {MOST_RATIO} times its size, as no traces do")

    def _target(self, name: str, is_file: bool, is_folder: bool) -> Path | None:
        """Return the target path of a member; None, with the reason, if it is skipped."""
        if is_folder:
            return None
        parts = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in ("/", "..", ".")]
        inside = PurePosixPath(*parts)
        told = self._archive / inside
        target = self._folder / inside
        if not is_file or not parts:
            self._found.left.append((told, "a link or device in an archive"))
        elif inside.name.lower().endswith(ENDINGS):
            self._found.left.append((told, "an archive in an archive; unpack it"))
        elif inside.suffix and not inside.name.lower().endswith(TRACES):
            self._found.left.append((told, "its name is not that of a trace"))
        elif target.exists():
            self._found.left.append((told, "a second member of that name"))
        else:
            return target
        return None

    def _copy(self, source: IO[bytes], target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with target.open("xb") as out:
                while piece := source.read(PIECE):
                    self._bytes += len(piece)
                    self._weigh(self._bytes)
                    out.write(piece)
        except BaseException:
            with suppress(OSError):
                target.unlink(missing_ok=True)
            raise
        self._members += 1
        self._found.files.append(target)
        self._found.told[target] = self._archive / target.relative_to(self._folder)


class _Member(tarfile.TarInfo):
    """A tar member whose name and attributes are read only if they are small."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type in ABOUT_OTHERS and self.size > MOST_NAME:
            raise TooMuch(f"has a name or attributes of {self.size:,} bytes")
        return cast(tarfile.TarInfo, super()._proc_member(archive))  # type: ignore[misc]
