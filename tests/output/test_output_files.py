"""-o never overwrites an input, writes a complete file or none, and uses the permissions of any other file."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from support.command import run
from support.loading import trace
from tracedb.errors import TracedbError
from tracedb.output import from_rows, refuse_overwriting
from tracedb.output.answer import Answer, Column
from tracedb.output.write import write


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("loaded")
    done = run("ingest", trace(folder / "rank0.json", 4), "--db", folder / "t.duckdb")
    assert done.exit_code == 0, done.stderr
    return folder


@pytest.fixture
def folder(loaded: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(loaded, tmp_path / "run"))


def table() -> Answer:
    return from_rows([Column("n", "BIGINT")], [(1,)])


def directly(db: Path) -> Path:
    return db


def by_another_spelling(db: Path) -> Path:
    return db.parent / "." / ".." / db.parent.name / db.name


def by_link(db: Path) -> Path:
    link = db.with_name("answer.csv")
    link.symlink_to(db)
    return link


def by_hard_link(db: Path) -> Path:
    link = db.with_name("answer.csv")
    link.hardlink_to(db)
    return link


def by_linked_folder(db: Path) -> Path:
    link = db.parent.with_name("linked")
    link.symlink_to(db.parent)
    return link / db.name


WAYS = (directly, by_another_spelling, by_link, by_hard_link, by_linked_folder)
COMMANDS: dict[str, tuple[str, ...]] = {
    "report": ("report", "top-kernels"),
    "list": ("report", "--list"),
    "sql": ("sql", "SELECT 1 AS a"),
    "doctor": ("doctor",),
    "views": ("views",),
    "show": ("views", "show", "kernels"),
    "verify": ("views", "verify"),
    "schema": ("schema",),
    "compare": ("compare", "a=1", "a=2"),
    "ingest": ("ingest", "{trace}"),
    "dry run": ("ingest", "{trace}", "--dry-run"),
    "predict": ("predict", "--models", "none"),
    "fit": ("fit", "--models", "none"),
    "sample": ("sample", "none.yaml"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_the_database_is_not_replaced(command: tuple[str, ...], way: Callable[[Path], Path], folder: Path) -> None:
    db = folder / "t.duckdb"
    before = db.read_bytes()
    arguments = [text.replace("{trace}", str(folder / "rank0.json")) for text in command]
    done = run(*arguments, "--db", db, "--format", "csv", "-o", way(db))
    assert (done.exit_code, done.stdout, db.read_bytes() == before) == (1, "", True)
    assert "an answer would replace; give -o another name" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("way", WAYS)
def test_the_trace_that_is_read_is_not_replaced(way: Callable[[Path], Path], folder: Path) -> None:
    source = folder / "rank0.json"
    before = source.read_bytes()
    for paths in ([source], [folder]):
        done = run("ingest", *paths, "--db", folder / "new.duckdb", "--format", "csv", "-o", way(source))
        (folder / "answer.csv").unlink(missing_ok=True)
        folder.with_name("linked").unlink(missing_ok=True)
        assert (done.exit_code, source.read_bytes() == before) == (1, True)
        assert "which this command reads and an answer would replace" in done.stderr
        assert not (folder / "new.duckdb").exists()


def test_an_answer_in_the_folder_of_the_traces_is_written_again(folder: Path) -> None:
    for _ in range(2):
        done = run("ingest", folder, "--db", folder / "t.duckdb", "-o", folder / "account.csv")
        assert done.exit_code == 0, done.stderr
    assert (folder / "account.csv").read_text().startswith("capture_id,")


def test_a_side_of_a_comparison_and_models_are_not_replaced(folder: Path) -> None:
    other = Path(shutil.copy(folder / "t.duckdb", folder / "other.duckdb"))
    done = run("compare", folder / "t.duckdb", other, "--format", "csv", "-o", by_link(other))
    assert (done.exit_code, "answer.csv is a DuckDB database" in done.stderr) == (1, True)
    models = folder / "models"
    models.mkdir()
    (models / "models.json").write_text("{}")
    for command in (("fit",), ("predict", "--operator", "x", "--shape", "b=1")):
        done = run(*command, "--models", models, "--db", other, "-o", models / "models.json")
        assert (done.exit_code, "which this command reads" in done.stderr) == (1, True)
    assert (models / "models.json").read_text() == "{}"


def test_a_database_that_is_not_there_yet(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to("real")
    source = trace(tmp_path / "rank0.json", 2)
    for name in ("new.csv", "NEW.csv", "new.csv.wal"):
        done = run(
            "ingest", source, "--db", tmp_path / "linked" / "new.csv", "--format", "csv", "-o", tmp_path / "real" / name
        )
        assert (done.exit_code, "is the database" in done.stderr) == (1, True)
        assert not list((tmp_path / "real").iterdir())


def test_the_log_of_the_database_and_any_other_database(folder: Path) -> None:
    done = run("report", "top-kernels", "--db", folder / "t.duckdb", "--format", "csv", "-o", folder / "t.duckdb.wal")
    assert (done.exit_code, (folder / "t.duckdb.wal").exists()) == (1, False)
    shutil.copy(folder / "t.duckdb", folder / "other.csv")
    done = run("report", "top-kernels", "--db", folder / "t.duckdb", "-o", folder / "other.csv")
    assert (done.exit_code, "other.csv is a DuckDB database" in done.stderr) == (1, True)


def test_the_second_file_of_an_export(folder: Path) -> None:
    db = folder / "t.duckdb"
    beside = folder / "job_kernel_list.txt"
    command = ("export", "rocprof-yaml", "--db", db, "--report", "top-kernels", "-o", folder / "job.yaml")
    assert run(*command).exit_code == 0
    assert (folder / "job.yaml").exists()
    beside.unlink()
    beside.symlink_to(db)
    before = db.read_bytes()
    assert (run(*command).exit_code, db.read_bytes() == before) == (1, True)


def test_standard_output_that_is_the_database(folder: Path) -> None:
    db = folder / "t.duckdb"
    before = db.read_bytes()
    with db.open("ab") as out:
        command = [sys.executable, "-m", "tracedb", "report", "top-kernels", "--db", str(db)]
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, db.read_bytes() == before) == (1, True)
    assert "standard output is the database" in done.stderr


class TestWriting:
    def test_a_failed_write_leaves_what_was_there(self, tmp_path: Path) -> None:
        out = tmp_path / "o.csv"
        out.write_text("old")
        answer = from_rows([Column("n", "BIGINT")], [])

        def failing() -> object:
            yield (1,)
            raise OSError(28, "No space left on device")

        answer.rows = failing()  # type: ignore[assignment]
        with pytest.raises(TracedbError, match="cannot be written: No space left on device"):
            write(answer, "csv", out)
        assert out.read_text() == "old"
        assert list(tmp_path.iterdir()) == [out]

    def test_rights_are_those_of_any_file_and_stay(self, tmp_path: Path) -> None:
        out = tmp_path / "o.csv"
        before = os.umask(0o027)
        try:
            write(table(), "csv", out)
            assert stat.S_IMODE(out.stat().st_mode) == 0o640
            out.chmod(0o604)
            write(table(), "csv", out)
            assert stat.S_IMODE(out.stat().st_mode) == 0o604
            write(table(), "parquet", tmp_path / "o.parquet")
            assert stat.S_IMODE((tmp_path / "o.parquet").stat().st_mode) == 0o640
        finally:
            os.umask(before)

    def test_a_link_stays_one_and_its_target_is_written(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "o.csv").symlink_to("real/there.csv")
        write(table(), "csv", tmp_path / "o.csv")
        assert (tmp_path / "o.csv").is_symlink()
        assert (tmp_path / "real" / "there.csv").read_text() == "n\n1\n"

    def test_the_longest_name(self, tmp_path: Path) -> None:
        out = tmp_path / ("x" * 251 + ".csv")
        write(table(), "csv", out)
        assert out.read_text() == "n\n1\n"

    def test_a_pipe_and_nothing(self, tmp_path: Path) -> None:
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        read: list[str] = []
        reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
        reader.start()
        write(table(), "csv", pipe)
        reader.join()
        assert read == ["n\n1\n"]
        assert stat.S_ISFIFO(pipe.stat().st_mode)
        write(table(), "csv", Path(os.devnull))

    def test_standard_output_by_its_path(self, folder: Path) -> None:
        words = (
            f"{sys.executable} -m tracedb sql 'SELECT 1 AS n' --db {folder / 't.duckdb'} --format csv -o /dev/stdout"
        )
        piped = subprocess.run(f"{words} | cat", shell=True, capture_output=True, text=True, check=True)
        assert piped.stdout == "n\n1\n"
        out = folder / "o.csv"
        for redirection in (">>", ">"):
            out.unlink(missing_ok=True)
            subprocess.run(f"{{ echo first; {words}; echo last; }} {redirection} {out}", shell=True, check=True)
            assert out.read_text() == "first\nn\n1\nlast\n"

    def test_a_folder_and_no_folder(self, tmp_path: Path) -> None:
        with pytest.raises(TracedbError, match="is a folder; name a file in it"):
            write(table(), "csv", tmp_path)
        with pytest.raises(TracedbError, match=r"o\.csv: cannot be written: there is no folder .*none"):
            write(table(), "csv", tmp_path / "none" / "o.csv")

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_a_folder_that_takes_no_files_is_named(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o500)
        try:
            with pytest.raises(TracedbError, match=r"the folder .* cannot be written: Permission denied"):
                write(table(), "csv", tmp_path / "o.csv")
        finally:
            tmp_path.chmod(0o700)


def test_nothing_is_refused_that_is_another_file(tmp_path: Path) -> None:
    for name in ("t.duckdb", "T.duckdb", "in.json"):
        (tmp_path / name).write_text(name)
    if (tmp_path / "t.duckdb").read_text() == "t.duckdb":  # the file system tells cases apart
        refuse_overwriting(tmp_path / "T.duckdb", tmp_path / "t.duckdb", [tmp_path / "in.json"])
    refuse_overwriting(tmp_path / "new.csv", tmp_path / "t.duckdb", [tmp_path / "in.json", tmp_path / "none"])
