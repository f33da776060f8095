"""New databases as copies of an empty one that is kept: making tables and views takes most of a second, a copy none.

The empty one lies in the user's cache folder, under a name made of everything that decides on its content. Where there
is no such folder, or it cannot be written, a database gets its tables and views as they are declared.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import duckdb

from tracedb import schema, views
from tracedb.database import ALIAS, STORAGE_VERSION, attached, in_memory, transaction
from tracedb.spill import spill_folder


def place(database: Path) -> bool:
    """Put an empty database where there is no file yet; False where that was not possible."""
    folder = _folder()
    if folder is None or database.exists() or not database.parent.is_dir():
        return False
    try:
        return _copy(_kept(folder), database)
    except (OSError, duckdb.Error):  # no room, no rights, no hard links, a damaged copy: make it the long way
        return False


def mark_new(connection: duckdb.DuckDBPyConnection) -> None:
    """Say in a copy when it was made. Inside a transaction."""
    connection.execute("UPDATE meta.schema_version SET applied_at = current_timestamp::TIMESTAMP")


def _folder() -> Path | None:
    root = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(root) if root else Path.home() / ".cache") / "tracedb"
    except RuntimeError:  # there is no home
        return None


def _kept(folder: Path) -> Path:
    """Return the empty database of this tracedb and this DuckDB, made if it is not there."""
    kept = folder / f"empty-{_key()}.duckdb"
    if kept.exists():
        return kept
    folder.mkdir(parents=True, exist_ok=True)
    with spill_folder(kept) as made_in:
        fresh = Path(made_in) / "empty.duckdb"
        _make(fresh)
        for older in folder.glob("empty-*.duckdb"):
            older.unlink(missing_ok=True)
        fresh.replace(kept)
    return kept


def _make(path: Path) -> None:
    from tracedb import __version__

    with in_memory({"threads": 1}) as connection, attached(connection, path):
        with transaction(connection):
            schema.apply(connection, __version__)
            views.install(connection)
        connection.execute(f"CHECKPOINT {ALIAS}")


def _copy(kept: Path, database: Path) -> bool:
    """Copy in one step: another process sees no file, or the whole one; a file that is there by now stays."""
    with spill_folder(database) as made_in:
        whole = Path(made_in) / "empty.duckdb"
        shutil.copyfile(kept, whole)
        try:
            os.link(whole, database)
        except FileExistsError:
            return False
    return True


def _key() -> str:
    from tracedb import __version__

    digest = hashlib.sha256(f"{__version__} {duckdb.__version__} {STORAGE_VERSION} ".encode())
    digest.update(schema.ddl().encode())
    for version in views.VERSIONS:
        for view in views.shipped(version):
            digest.update(f"{version}.{view.name}:{view.text}".encode())
    return digest.hexdigest()[:20]
