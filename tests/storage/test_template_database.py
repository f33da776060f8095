"""New databases are copies of a cached template."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from support import few_views
from support.loading import broken, empty_database, ingest, own_cache, trace
from tracedb import errors
from tracedb.catalog import describe
from tracedb.storage import connection as database
from tracedb.storage import template_database


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    """An empty cache folder that is in use, of a tracedb with few views."""
    with few_views.shipped(tmp_path / "cache"):
        yield tmp_path / "cache" / "tracedb"


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder with the template, in use."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(own_cache(tmp_path / "cache")))
    return tmp_path / "cache" / "tracedb"


def described(path: Path) -> list[tuple[object, ...]]:
    """Everything that the catalog says of tables and views; of SQL the words, since EXCLUDE lists are in any order."""
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(
            """SELECT schema_name, table_name, column_name, data_type, comment FROM duckdb_columns() UNION ALL
            SELECT schema_name, view_name, list_sort(regexp_split_to_array(sql, '[ ,()]+'))::VARCHAR, '', comment
            FROM duckdb_views() WHERE NOT internal
            ORDER BY ALL"""
        ).fetchall()


@pytest.fixture(scope="module")
def long_way(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with few views that an ingest made without a cache, in an otherwise empty folder."""
    db = tmp_path_factory.mktemp("long") / "run.duckdb"
    with few_views.shipped(Path("/dev/null/cache")):
        assert ingest(trace(tmp_path_factory.mktemp("traces") / "t.json"), db=db, new=True).exit_code == 0
    return db


def test_a_copy_is_what_is_made_the_long_way_and_older_copies_go(cache: Path, tmp_path: Path, long_way: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "empty-0.duckdb").write_bytes(b"older")
    copy = tmp_path / "copy.duckdb"
    assert template_database.place(copy)
    (kept,) = cache.iterdir()
    assert kept.name != "empty-0.duckdb"
    assert copy.read_bytes() == kept.read_bytes()
    assert described(copy) == described(long_way)
    with database.connect(copy) as connection:
        assert {row[2] for row in describe.verify(connection).rows} == {"ok"}
    assert template_database.place(tmp_path / "second.duckdb")
    assert list(cache.iterdir()) == [kept]


def test_a_file_that_is_there_stays(cache: Path, tmp_path: Path) -> None:
    there = tmp_path / "there.duckdb"
    there.write_bytes(b"mine")
    assert not template_database.place(there)
    assert there.read_bytes() == b"mine"
    with pytest.raises(errors.TracedbError, match="there is no folder"):
        template_database.place(tmp_path / "no such folder" / "x.duckdb")
    (tmp_path / "link.duckdb").symlink_to("no such folder/x.duckdb")
    with pytest.raises(errors.TracedbError, match=r"link.duckdb: is a link, and there is no folder .*no such folder;"):
        template_database.place(tmp_path / "link.duckdb")


def read_from() -> Path | None:
    """Return the folder of the file from which what is shipped is read; None for one in memory."""
    with template_database.opened() as connection:
        assert {row[2] for row in describe.verify(connection).rows} == {"ok"}
        ((opened,),) = connection.execute("SELECT path FROM duckdb_databases() WHERE NOT internal "
                                          "AND database_name = current_database()").fetchall()  # fmt: skip
        return None if opened is None else Path(opened).parent


def test_what_is_shipped_is_read_from_the_template_or_made_in_memory(filled: Path) -> None:
    assert read_from() == filled
    with few_views.shipped(Path("/dev/null/cache")):
        assert read_from() is None


def test_without_a_cache_nothing_is_left_beside_the_database(long_way: Path) -> None:
    assert [path.name for path in long_way.parent.iterdir()] == ["run.duckdb"]


def test_ingest_says_when_the_database_was_made(filled: Path, tmp_path: Path) -> None:
    template_database.place(tmp_path / "first.duckdb")
    begun = datetime.now(UTC).replace(tzinfo=None)
    db = tmp_path / "run.duckdb"
    assert ingest(trace(tmp_path / "t.json"), db=db, new=True).exit_code == 0
    with database.connect(db) as connection:
        ((made,),) = connection.execute("SELECT applied_at FROM meta.schema_version").fetchall()
    assert begun - timedelta(seconds=1) <= made <= begun + timedelta(minutes=5)


@pytest.mark.parametrize("content", [b"", None, b"x" * 1000])
def test_a_template_that_is_cut_short_or_another_file_is_made_again(
    filled: Path, tmp_path: Path, content: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (kept,) = filled.glob("empty-*.duckdb")
    whole = kept.read_bytes()
    changed = kept if content != b"x" * 1000 else kept.with_name(f"empty-{template_database._key()}-1000.duckdb")
    kept.unlink()
    changed.write_bytes(whole[:-262_144] if content is None else content)
    monkeypatch.setattr(template_database, "_make", lambda path, is_lake: path.write_bytes(whole))
    template_database.fill(tmp_path / "copy.duckdb")
    assert (tmp_path / "copy.duckdb").read_bytes() == whole
    assert list(filled.glob("empty-*.duckdb")) == [kept]


def test_a_template_that_cannot_be_read_is_done_without(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes, or is damaged, after it was looked for."""
    gone = filled / "gone.duckdb"
    monkeypatch.setattr(template_database, "_template", lambda is_lake: gone)
    with few_views.shipped(tmp_path / "other"):
        assert read_from() is None
        gone.write_bytes(b"x" * 100_000)
        assert read_from() is None
        gone.unlink()
        gone.mkdir()
        template_database.fill(tmp_path / "copy.duckdb")
    with database.connect(tmp_path / "copy.duckdb") as connection:
        assert connection.execute("SELECT count(*) FROM main.capture").fetchone() == (0,)


def test_a_cache_that_cannot_be_used_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative one is to be ignored; DuckDB takes what follows a question mark for parameters."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name, folder in (("relative", tmp_path / "home" / ".cache" / "tracedb"), (str(tmp_path / "a?b"), None)):
        monkeypatch.setenv("XDG_CACHE_HOME", name)
        assert template_database._folder() == folder


def test_a_failed_ingest_leaves_no_copy(filled: Path, tmp_path: Path) -> None:
    db = tmp_path / "run.duckdb"
    assert ingest(broken(tmp_path / "bad.json"), db=db, new=True).exit_code == 1
    assert not db.exists()
    assert sorted(path.name for path in tmp_path.iterdir() if path != filled.parent) == ["bad.json"]


@pytest.fixture(scope="module")
def content() -> bytes:
    """The content of a template, made before a test chooses a cache folder."""
    return empty_database()


class TestSeveralProcesses:
    """Another process holds the lock of the cache folder, as one that makes the template does."""

    @pytest.fixture
    def other(self, cache: Path) -> Iterator[subprocess.Popen[str]]:
        cache.mkdir(parents=True)
        code = f"""
import fcntl, os
fcntl.flock(os.open({str(cache)!r}, os.O_RDONLY), fcntl.LOCK_EX)
print(flush=True)
input()
"""
        with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            yield process
            process.kill()

    def test_what_the_other_made_is_taken(
        self,
        content: bytes,
        other: subprocess.Popen[str],
        cache: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def made_meanwhile(seconds: float) -> None:
            name = f"empty-{template_database._key()}-{len(content)}.duckdb"
            (cache / name).write_bytes(content)
            other.communicate("\n")

        monkeypatch.setattr(time, "sleep", made_meanwhile)
        monkeypatch.setattr(template_database, "_make", None)
        template_database.fill(tmp_path / "copy.duckdb")
        assert (tmp_path / "copy.duckdb").read_bytes() == content

    def test_one_that_does_not_end_is_waited_for_only_so_long(
        self, other: subprocess.Popen[str], cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(template_database, "PATIENCE_SECONDS", 0.1)
        monkeypatch.setattr(template_database, "_make", lambda path, is_lake: path.write_bytes(b"made"))
        template_database.fill(tmp_path / "copy.duckdb")
        assert (tmp_path / "copy.duckdb").read_bytes() == b"made"
        assert other.poll() is None
