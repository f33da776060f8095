"""Where a lake is: a local folder, or an address in an object store (``s3://…``, ``gs://…``, ``az://…``).

A lake consists of files that are written once and never changed, so a store only has to list, read, write whole files
and remove them. Files appear complete or not at all.
"""

from __future__ import annotations

import filecmp
import hashlib
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracedb.errors import TracedbError

if TYPE_CHECKING:
    import duckdb

MARK = "lake.json"
"""The file that makes a folder a lake."""
PROTOCOLS = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "memory")
_ADDRESS = re.compile(rf"({'|'.join(PROTOCOLS)}):/+(.+)", re.DOTALL)
ATTEMPTS = 20
"""To make a file in a folder that other processes remove when it is empty."""
HIDDEN = ".tracedb-"
"""Prefix of files that are being written or removed; other engines ignore them, a killed process leaves them."""
_HIDDEN_ROWS = re.compile(rf"(.*/){re.escape(HIDDEN)}.*-(part-[0-9a-f]{{64}}\.parquet)", re.DOTALL)
DEPTH = 2
"""A file of a lake is in the folder of a table, and there perhaps in that of a run."""
_PATTERN = re.compile(r"[*?\[]")


def is_remote(path: Path) -> bool:
    """Whether a path, as the command line gives it, is an address in an object store (``Path`` makes ``//`` one)."""
    return _ADDRESS.fullmatch(str(path)) is not None


def is_lake(path: Path) -> bool:
    """Whether there is a lake at the path; an address is taken for one."""
    try:
        return is_remote(path) or (path / MARK).is_file()
    except (OSError, ValueError):
        return False


def name_before(path: str) -> str | None:
    """Return the name that a hidden file (``Store.hide``) had; None if a file is not hidden, or never had one."""
    found = _HIDDEN_ROWS.fullmatch(path)
    return None if found is None else found[1] + found[2]


def shown(path: Path) -> str:
    """Return the path as a user writes it."""
    found = _ADDRESS.fullmatch(str(path))
    return f"{found[1]}://{found[2]}" if found else str(path)


class Store:
    """A folder of files. Names are relative to it, with ``/``."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __str__(self) -> str:
        return shown(self.root)

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, sorted; none if there is no such folder."""
        try:
            with os.scandir(self.root / folder) as found:
                return sorted(item.name for item in found if not item.name.startswith(".") and item.is_file())
        except FileNotFoundError:
            return []

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the size in bytes of each file at and below a folder, by its name in the store.

        Files in more than ``DEPTH`` folders are not those of a lake.
        """
        found: dict[str, int] = {}
        for below, folders, files in os.walk(self.root / folder):
            folders.sort()
            if len(Path(below).relative_to(self.root).parts) >= DEPTH:
                folders.clear()  # os.walk itself fails in the thousandth
            for name in files:
                if not name.startswith(".") or name.startswith(HIDDEN):
                    path = Path(below) / name
                    with suppress(FileNotFoundError):  # another process has just removed it
                        found[path.relative_to(self.root).as_posix()] = path.stat().st_size
        return found

    def read(self, name: str) -> bytes:
        """Return the content of a file. Raises FileNotFoundError."""
        return (self.root / name).read_bytes()

    def size(self, name: str) -> int:
        """Return the size of a file in bytes. Raises FileNotFoundError."""
        return (self.root / name).stat().st_size

    def sha256(self, name: str) -> str:
        """Return the SHA-256 of the content of a file. Raises FileNotFoundError."""
        with (self.root / name).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def write(self, name: str, content: bytes) -> None:
        """Write a file, replacing one of that name."""
        _write_whole(self.root / name, lambda made: made.write_bytes(content))

    def put(self, name: str, source: Path) -> None:
        """Copy a local file into the store, unless it is there already."""
        target = self.root / name
        with suppress(FileNotFoundError):
            if filecmp.cmp(target, source, shallow=False):  # of that name, it could be damaged
                return
        _write_whole(target, lambda made: shutil.copyfile(source, made))

    def hide(self, name: str) -> str | None:
        """Give a file a name that nothing reads, and return that; None if the file is not there."""
        folder, slash, last = name.rpartition("/")
        hidden = f"{folder}{slash}{HIDDEN}{secrets.token_hex(8)}-{last}"
        try:
            self.rename(name, hidden)
        except FileNotFoundError:
            return None
        return hidden

    def rename(self, name: str, new: str) -> None:
        """Rename a file within its folder, replacing one of the new name. Raises FileNotFoundError."""
        (self.root / name).replace(self.root / new)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there, and folders that are empty then."""
        path = self.root / name
        path.unlink(missing_ok=True)
        for folder in path.parents:
            if folder == self.root:
                return
            try:
                folder.rmdir()
            except OSError:
                return

    def url(self, name: str) -> str:
        """Return the name of a file for DuckDB, which takes it for a pattern."""
        return _PATTERN.sub(lambda found: f"[{found[0]}]", str(self.root.absolute() / name))

    @property
    def folder_for_engine(self) -> str:
        """The folder that DuckDB must be allowed to read."""
        return f"{self.root.absolute()}/"

    def register(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make the store readable for a DuckDB connection."""


class RemoteStore(Store):
    """A prefix in an object store, through fsspec. A put is atomic there."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        found = _ADDRESS.fullmatch(str(root))
        assert found is not None
        self._protocol, self._prefix = found[1], found[2].rstrip("/")
        self._files = _filesystem(self._protocol, str(self))

    def names(self, folder: str) -> list[str]:
        try:
            listed = self._files.ls(self._path(folder), detail=False, refresh=True)
        except FileNotFoundError:
            return []
        return sorted(str(path).rpartition("/")[2] for path in listed if not str(path).endswith("/"))

    def sizes(self, folder: str) -> dict[str, int]:
        self._files.invalidate_cache()
        found = self._files.find(self._path(folder), detail=True)
        root = len(self._path("")) if self._protocol != "memory" else len("/" + self._path(""))
        return {path[root:]: int(item["size"]) for path, item in found.items()}

    def read(self, name: str) -> bytes:
        content = self._files.cat_file(self._path(name))
        assert isinstance(content, bytes)
        return content

    def size(self, name: str) -> int:
        self._files.invalidate_cache()
        return int(self._files.size(self._path(name)))

    def sha256(self, name: str) -> str:
        return hashlib.sha256(self.read(name)).hexdigest()

    def write(self, name: str, content: bytes) -> None:
        self._files.pipe_file(self._path(name), content)

    def put(self, name: str, source: Path) -> None:
        self._files.put_file(str(source), self._path(name))

    def rename(self, name: str, new: str) -> None:
        self._files.cp_file(self._path(name), self._path(new))
        self._files.rm_file(self._path(name))

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._files.rm_file(self._path(name))

    def url(self, name: str) -> str:
        return f"{self._protocol}://{self._path(name)}"

    @property
    def folder_for_engine(self) -> str:
        return f"{self._protocol}://{self._path('')}"

    def register(self, connection: duckdb.DuckDBPyConnection) -> None:
        connection.register_filesystem(self._files)

    def _path(self, name: str) -> str:
        return f"{self._prefix}/{name}"


def store(root: Path) -> Store:
    """Return the store at a path or address. Raises ``TracedbError`` if a package for the address is missing."""
    return RemoteStore(root) if is_remote(root) else Store(root)


def _filesystem(protocol: str, address: str) -> Any:
    try:
        import fsspec

        return fsspec.filesystem(protocol)
    except ImportError as error:
        raise TracedbError(
            f"{address}: a lake in an object store needs fsspec and its package for {protocol}: "
            f"pip install 'tracedb-gpu[lake]' ({' '.join(str(error).split())})"
        ) from error


def _write_whole(target: Path, fill: Callable[[Path], object]) -> None:
    """Write a file under a hidden name in its folder and rename it. Other processes may remove either meanwhile."""
    for attempt in range(ATTEMPTS):
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with _hidden_in(target.parent) as made:
                fill(made)
                with made.open("rb") as file:
                    os.fsync(file.fileno())
                made.replace(target)
                return
        except (FileNotFoundError, FileExistsError):  # the latter if the folder was removed while it was being made
            if attempt == ATTEMPTS - 1:
                raise


@contextmanager
def _hidden_in(folder: Path) -> Iterator[Path]:
    """Yield a new hidden file; it is removed if it is still there."""
    number, name = tempfile.mkstemp(prefix=HIDDEN, dir=folder)
    os.close(number)
    made = Path(name)
    try:
        yield made
    finally:
        made.unlink(missing_ok=True)
