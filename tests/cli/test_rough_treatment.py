"""Failures around the tool: damaged databases, full disks, closed pipes, meaningless options."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from support import few_views, tiny
from support.command import run
from support.loading import trace

FULL = Path("/dev/full")


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.two_ranks(tmp_path_factory.mktemp("rough") / "trace.duckdb")


def tracedb(*arguments: str | Path, before: str = "", stdout: str = "") -> tuple[int, list[str]]:
    """Run the command in a shell; returns its exit code and what it says on stderr but for hints and warnings."""
    program = f"{before}\nfrom tracedb.cli.main import main\nmain()"
    command = ["sh", "-c", f'"$@" {stdout}', "sh", sys.executable, "-c", program, "-q", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stderr.splitlines()


def test_a_path_that_holds_the_word_lock_is_not_locked(tmp_path: Path) -> None:
    path = tmp_path / "blocks" / "clock.duckdb"
    path.parent.mkdir()
    path.write_text("no database")
    assert "cannot be opened as a DuckDB database: this is text" in run("report", "top-kernels", "--db", path).stderr


@pytest.mark.parametrize(
    "command",
    [("doctor",), ("ingest", "TRACE"), ("compare", "threads=256", "threads=1024"), ("report", "gemm-variance")],
)
def test_a_damaged_database_is_one_line(command: tuple[str, ...], db: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.duckdb"
    whole = db.read_bytes()
    with duckdb.connect(str(db), read_only=True) as connection:
        ((block,),) = connection.execute(
            "SELECT block_id FROM pragma_storage_info('main.capture') WHERE block_id >= 0 LIMIT 1"
        ).fetchall()
    start = 3 * 4096 + block * 262_144
    damaged.write_bytes(whole[:start] + bytes(262_144) + whole[start + 262_144 :])
    arguments = [str(trace(tmp_path / "a.json")) if word == "TRACE" else word for word in command]
    code, said = tracedb(*arguments, "--db", damaged)
    assert code == 1
    assert said
    assert all(line.startswith("tracedb: error: ") for line in said), said


def test_a_full_disk_fails_the_capture_in_one_line(tmp_path: Path) -> None:
    """What was written before is still there; a limit on file sizes stands for the disk."""
    path = tmp_path / "full.duckdb"
    assert run("ingest", trace(tmp_path / "a.json"), "--db", path).exit_code == 0
    limit = (
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({path.stat().st_size},) * 2)"
    )
    code, said = tracedb("ingest", trace(tmp_path / "b.json", 4), "--db", path, before=limit)
    assert code == 1
    assert all(line.startswith("tracedb: error: ") for line in said), said
    assert "File too large" in said[0]
    assert said[-1] == "tracedb: error: 1 of 1 file could not be loaded"
    assert run("report", "top-kernels", "--db", path).exit_code == 0


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
@pytest.mark.parametrize("command", ["report top-kernels", "report top-kernels --show-sql", "views show top_kernels"])
def test_full_stdout_is_one_line(command: str, db: Path) -> None:
    code, said = tracedb(*command.split(), "--db", db, stdout=f"> {FULL}")
    assert (code, len(said)) == (1, 1)
    assert "cannot be written: No space left on device" in said[0]


def test_closed_stdout_is_one_line(db: Path) -> None:
    code, said = tracedb("report", "top-kernels", "--db", db, stdout=">&-")
    assert (code, said) == (1, ["tracedb: error: there is no standard output to write to; name a file with -o"])


def test_known_files_bring_the_views_up_to_date(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    with few_views.shipped(tmp_path_factory.mktemp("cache")):
        bring_views_up_to_date(tmp_path)


def bring_views_up_to_date(tmp_path: Path) -> None:
    path, file = tmp_path / "old.duckdb", trace(tmp_path / "a.json")
    assert run("ingest", file, "--db", path).exit_code == 0
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE meta.view_version SET sha256 = 'older' WHERE name = 'top_kernels'")
    assert "not the views of this tracedb" in run("report", "top-kernels", "--db", path).stderr
    assert "1 known before" in run("ingest", file, "--db", path).stderr
    assert "not the views of this tracedb" not in run("report", "top-kernels", "--db", path).stderr


def test_a_memory_limit_that_is_no_size(db: Path, tmp_path: Path) -> None:
    for size, code in (("much", 2), ("500", 2), ("500MB", 0), ("0.5 GiB", 0)):
        assert run("ingest", trace(tmp_path / "a.json"), "--db", db, "--memory-limit", size).exit_code == code


def test_a_report_within_a_memory_limit(db: Path, tmp_path: Path) -> None:
    assert run("ingest", trace(tmp_path / "a.json"), "--db", db).exit_code == 0
    asked = ("report", "top-kernels", "--db", db, "--format", "csv", "--memory-limit")
    assert run(*asked, "500MB").stdout == run(*asked[:-1]).stdout
    assert run(*asked, "much").exit_code == 2
    done = run(*asked, "100kB")
    assert done.exit_code == 1 and done.stdout == ""
    assert "not enough memory" in done.stderr and "--memory-limit" in done.stderr and "SET " not in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_side_that_is_no_database(tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("no database")
    done = run("compare", other, other.name, "--db", tmp_path / "none.duckdb")
    assert done.exit_code == 2
    assert f"{other}: not a tracedb database" in done.stderr


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--where", "channels!=8"), "labels are compared for equality only"),
        (("--where", "channels>8"), "labels are compared for equality only"),
        (("--where", "channels>=8"), "labels are compared for equality only"),
        (("--class", "!"), "--class takes the name of a class"),
        (("--class", ""), "--class takes the name of a class"),
    ],
)
def test_options_that_mean_nothing(options: tuple[str, str], expected: str, db: Path) -> None:
    done = run("report", "top-kernels", "--db", db, *options)
    assert done.exit_code == 2
    assert expected in done.stderr
