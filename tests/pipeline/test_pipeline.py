"""From paths to a database: what is loaded once, rolled back or ignored."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import duckdb
import pytest

from support.command import run
from support.loading import ask, broken, contents, ingest, trace
from support.rocprof_files import small
from support.traces import write
from tracedb.pipeline import digest as hashing
from tracedb.pipeline import discovery
from tracedb.pipeline import run as pipeline
from tracedb.pipeline.batch_load import load
from tracedb.pipeline.task import Request


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class TestOnce:
    def test_the_same_bytes_change_nothing(self, tmp_path: Path) -> None:
        path, db = trace(tmp_path / "rank1.json.gz"), tmp_path / "db"
        first = ingest(path, db=db, new=True)
        assert (first.exit_code, [row["status"] for row in json.loads(first.stdout)["rows"]]) == (0, ["complete"])
        before = digest(db)
        other = tmp_path / "elsewhere" / "rank2.json.gz"
        other.parent.mkdir()
        shutil.copy(path, other)
        for paths in ([path], [other], [path, other], [tmp_path]):
            again = ingest(*paths, db=db)
            assert again.exit_code == 0
            assert {row["status"] for row in json.loads(again.stdout)["rows"]} == {"known"}
            assert digest(db) == before

    def test_twice_in_one_call(self, tmp_path: Path) -> None:
        path = trace(tmp_path / "a.json")
        shutil.copy(path, tmp_path / "b.json")
        for number, paths in enumerate(([path, tmp_path / "b.json"], [path, path], [path, tmp_path / "." / "a.json"])):
            done = ingest(*paths, db=tmp_path / f"{number}.duckdb")
            assert done.exit_code == 0
            assert ask(tmp_path / f"{number}.duckdb", "SELECT count(*) FROM capture") == [(1,)]

    def test_packed_and_unpacked(self, tmp_path: Path) -> None:
        trace(tmp_path / "in" / "x.json")
        trace(tmp_path / "in" / "x.json.gz", 4)
        trace(tmp_path / "in" / "y.json.gz", 5)
        assert ingest(tmp_path / "in", db=tmp_path / "db").exit_code == 0
        rows = ask(tmp_path / "db", "SELECT path, rows_written FROM capture ORDER BY path")
        assert rows == [(str(tmp_path / "in" / "x.json"), 9), (str(tmp_path / "in" / "y.json.gz"), 15)]
        issue = "SELECT detail, severity FROM ingest_issue WHERE code = 'duplicate_recording'"
        assert ask(tmp_path / "db", issue) == [("x.json.gz holds the same trace and was not read", "note")]

    def test_packed_beside_an_empty_unpacked(self, tmp_path: Path) -> None:
        trace(tmp_path / "in" / "x.json.gz", 4)
        (tmp_path / "in" / "x.json").touch()
        assert ingest(tmp_path / "in", db=tmp_path / "db").exit_code == 0
        assert ask(tmp_path / "db", "SELECT rows_written FROM capture") == [(12,)]


class TestFailures:
    @pytest.mark.parametrize("jobs", [1, 2])
    def test_a_bad_file_fails_alone(self, tmp_path: Path, jobs: int) -> None:
        db = tmp_path / "db"
        ingest(trace(tmp_path / "before.json", 7), db=db)
        for name in ("a", "c"):
            trace(tmp_path / "in" / f"{name}.json", len(name) + ord(name))
        bad = broken(tmp_path / "in" / "b.json")
        done = ingest(tmp_path / "in", db=db, jobs=jobs)
        assert done.exit_code == 1
        rows = {Path(row["path"]).name: row["status"] for row in json.loads(done.stdout)["rows"]}
        assert rows == {"a.json": "complete", "b.json": "failed", "c.json": "complete"}
        assert f"tracedb: error: {bad}: a second traceEvents array" in done.stderr
        assert done.stderr.splitlines()[-1].startswith("tracedb: error: 1 of 3 files could not be loaded")
        assert ask(db, "SELECT count(*) FROM capture") == [(3,)]

    def test_the_database_is_as_before(self, tmp_path: Path) -> None:
        db = tmp_path / "db"
        ingest(trace(tmp_path / "a.json"), db=db)
        before, bytes_before = contents(db), digest(db)
        assert ingest(broken(tmp_path / "b.json"), db=db).exit_code == 1
        assert digest(db) == bytes_before
        assert contents(db) == before
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "b.json", "db"]

    def test_a_failure_in_the_middle_of_writing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        db = tmp_path / "db"
        ingest(trace(tmp_path / "a.json"), db=db)
        before = contents(db)

        def finish(*given: object) -> None:
            raise duckdb.InvalidInputException("no more room")

        monkeypatch.setattr("tracedb.derive.run.finish", finish)
        done = ingest(trace(tmp_path / "b.json", 5), db=db)
        assert done.exit_code == 1
        assert "no more room" in done.stderr
        assert contents(db) == before

    def test_an_interrupt_that_duckdb_wraps(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        db = tmp_path / "db"
        ingest(trace(tmp_path / "a.json"), db=db)
        before = contents(db)

        def finish(*given: object) -> None:
            raise duckdb.InvalidInputException("exporting a stream from the object failed: KeyboardInterrupt:")

        monkeypatch.setattr("tracedb.derive.run.finish", finish)
        assert ingest(trace(tmp_path / "b.json", 5), db=db).exit_code == 130
        assert contents(db) == before

    def test_a_name_that_looks_like_an_interrupt_is_none(self, tmp_path: Path) -> None:
        path = broken(tmp_path / "KeyboardInterrupt: failed: KeyboardInterrupt.json")
        done = ingest(path, trace(tmp_path / "b.json", 5), db=tmp_path / "db")
        assert done.exit_code == 1
        assert "1 capture loaded, 0 known before, 1 failed" in done.stderr

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_no_new_file_where_everything_failed(self, tmp_path: Path, jobs: int) -> None:
        paths = [broken(tmp_path / "in" / f"{name}.json") for name in "ab"]
        assert ingest(*paths, db=tmp_path / "db", jobs=jobs, new=True).exit_code == 1
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]

    def test_a_file_that_vanishes(self, tmp_path: Path) -> None:
        paths = [trace(tmp_path / f"{name}.json", ord(name)) for name in "abc"]
        found = discovery.detect(paths)
        paths[1].unlink()
        request = Request(tuple(paths), tmp_path / "db")
        outcomes = load(found.tasks, request, {})
        assert [outcome.error is None for outcome in outcomes] == [True, False, True]
        assert "No such file" in str(outcomes[1].error)

    def test_a_file_that_vanishes_before_it_is_looked_at(self, tmp_path: Path) -> None:
        paths = [trace(tmp_path / f"{name}.json", ord(name)) for name in "ab"]
        paths[0].unlink()
        found = discovery.detect(paths)
        assert [task.capture.files[0] for task in found.tasks] == paths[1:]
        assert found.unrecognised == [(paths[0], "not a regular file")]


class TestOddFiles:
    def test_links_pipes_and_folders(self, tmp_path: Path) -> None:
        folder = tmp_path / "in"
        trace(folder / "real" / "rank1.json")
        trace(tmp_path / "outside" / "rank2.json", 4)
        (folder / "loop").symlink_to(folder)
        (folder / "real" / "up").symlink_to(folder)
        (folder / "linked").symlink_to(tmp_path / "outside")
        (folder / "dangling.json").symlink_to(folder / "missing")
        (folder / "file.json").symlink_to(folder / "real" / "rank1.json")
        os.mkfifo(folder / "pipe.json")
        (folder / "folder.json").mkdir()
        done = ingest(folder, db=tmp_path / "db", flags=["-v"])
        assert done.exit_code == 0
        assert ask(tmp_path / "db", "SELECT rows_written FROM capture ORDER BY 1") == [(9,), (12,)]
        for name in ("pipe.json", "dangling.json"):
            assert f"left aside: {folder / name} (not a regular file)" in done.stderr

    def test_a_pipe_alone_is_not_read(self, tmp_path: Path) -> None:
        """Opening one waits for a writer; this one has something to read, so that nothing waits here."""
        os.mkfifo(tmp_path / "pipe.json")
        number = os.open(tmp_path / "pipe.json", os.O_RDWR)
        try:
            os.write(number, b"PK\x03\x04\n\n\n\n")
            done = ingest(tmp_path / "pipe.json", db=tmp_path / "db")
            assert done.exit_code == 1 and "pipe.json (not a regular file)" in done.stderr
            assert os.read(number, 99) == b"PK\x03\x04\n\n\n\n"
        finally:
            os.close(number)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_unreadable_file(self, tmp_path: Path) -> None:
        trace(tmp_path / "in" / "a.json")
        hidden = trace(tmp_path / "in" / "b.json", 4)
        hidden.chmod(0)
        done = ingest(tmp_path / "in", db=tmp_path / "db")
        assert f"left aside: {hidden} (Permission denied)" in done.stderr

    def test_names_of_any_kind(self, tmp_path: Path) -> None:
        names = [
            "a b.json",
            "quote'.json",
            'double".json',
            "percent%20.json",
            "läufe/ß.json",
            "-x.json",
            "new\nline.json",
        ]
        for place, name in enumerate(names):
            trace(tmp_path / "in" / name, place + 1)
        assert ingest(tmp_path / "in", db=tmp_path / "db").exit_code == 0
        found = {path.removeprefix(f"{tmp_path}/in/") for (path,) in ask(tmp_path / "db", "SELECT path FROM capture")}
        assert found == set(names)

    @pytest.mark.parametrize("change", ["grown", "rewritten"])
    def test_changed_while_it_is_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
        path = trace(tmp_path / "in" / "rank0.json", 4)
        whole = path.read_bytes()
        part = whole[: len(whole) * 2 // 3] if change == "grown" else whole.replace(b"k1", b"k9")
        path.write_bytes(part)
        digest_of = hashing.digest_of

        def later(paths: list[Path]) -> str:
            path.write_bytes(whole)
            return digest_of(paths)

        with monkeypatch.context() as patched:
            patched.setattr(hashing, "digest_of", later)
            done = ingest(path, db=tmp_path / "db", new=True)
        assert done.exit_code == 1
        assert "rank0.json: the file was changed while it was read; load it again once it is complete" in done.stderr
        assert not (tmp_path / "db").exists()
        assert ingest(path, db=tmp_path / "db").exit_code == 0
        assert ask(tmp_path / "db", "SELECT status, size_bytes FROM capture") == [("complete", len(whole))]
        assert ask(tmp_path / "db", "SELECT name FROM kernel_event WHERE name IN ('k1', 'k9')") == [("k1",)]

    def test_name_that_is_no_text(self, tmp_path: Path) -> None:
        try:
            trace(tmp_path / os.fsdecode(b"caf\xe9.json"))
        except OSError:
            pytest.skip("the file system takes no such name")
        (outcome,) = pipeline.ingest(tmp_path, db=tmp_path / "db")
        assert outcome.error is None
        assert ask(tmp_path / "db", "SELECT path FROM capture")[0][0].endswith("/caf\ufffd.json")

    def test_unrecognised_files_are_listed(self, tmp_path: Path) -> None:
        trace(tmp_path / "in" / "a.json")
        for number in range(15):
            (tmp_path / "in" / f"note{number:02}.txt").write_text("x")
        few = ingest(tmp_path / "in", db=tmp_path / "db")
        assert few.stderr.count("left aside: ") == 11
        assert "left aside: 5 more files; -v names all" in few.stderr
        assert ingest(tmp_path / "in", db=tmp_path / "db", flags=["-v"]).stderr.count("left aside: ") == 15


class TestDryRun:
    def test_nothing_is_loaded(self, tmp_path: Path) -> None:
        path = trace(tmp_path / "sweep1" / "256thread" / "rank3.json")
        (tmp_path / "sweep1" / "note.txt").write_text("x")
        done = ingest(tmp_path / "sweep1", db=tmp_path / "db", flags=["--dry-run"], new=True)
        assert (done.exit_code, (tmp_path / "db").exists()) == (0, False)
        (row,) = json.loads(done.stdout)["rows"]
        assert (row["path"], row["source"], row["rank"], row["bytes"]) == (str(path), "torch", 3, path.stat().st_size)
        assert row["labels"] == {"sweep": "sweep1", "threads": "256"}
        assert row["files"] == ["rank3.json"]
        assert "left aside" in done.stderr
        assert "if it goes with other files, name their folder" in done.stderr

    def test_files_that_are_read_together_are_named(self, tmp_path: Path) -> None:
        small(tmp_path / "in").save()
        names = sorted(path.name for path in (tmp_path / "in").rglob("*.csv"))
        plan = ingest(tmp_path / "in", db=tmp_path / "db", flags=["--dry-run"], new=True)
        (row,) = json.loads(plan.stdout)["rows"]
        assert len(names) > 1 and sorted(row["files"]) == names
        table = run("ingest", tmp_path / "in", "--dry-run", "--db", tmp_path / "db").stdout
        assert all(name in table for name in names)

    def test_what_the_ingest_refuses_is_not_in_the_plan(self, tmp_path: Path) -> None:
        good = trace(tmp_path / "in" / "rank0.json")
        span = {"ph": "X", "name": "f", "cat": "mine", "ts": 1, "dur": 2, "pid": 1, "tid": 1}
        other = write(tmp_path / "in" / "other.json", [span], header={"displayTimeUnit": "ns"})
        said = []
        for flags in (["--dry-run"], []):
            done = ingest(tmp_path / "in", db=tmp_path / "db", flags=flags, new=True)
            assert done.exit_code == 1
            said.append([line for line in done.stderr.splitlines() if str(other) in line])
            if flags:
                assert [row["path"] for row in json.loads(done.stdout)["rows"]] == [str(good)]
                assert "1 file would not be loaded; the others would be" in done.stderr
        assert len(said[0]) == 1
        assert said[0] == said[1]
