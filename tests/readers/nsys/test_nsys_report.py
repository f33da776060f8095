"""Reports (.nsys-rep) through `nsys export`: with programs that imitate nsys, and with the real one if installed."""

from __future__ import annotations

import csv
import io
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from support.command import run
from support.loading import own_cache
from support.nsys_files import Nsys
from support.nsys_loaded import Loaded
from tracedb.storage import spill_folder
from tracedb.storage.connection import connect
from tracedb_nsys.export import cache as exports
from tracedb_nsys.export import nsys_rep
from tracedb_nsys.export.nsys_rep import programs

SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "nsys"
CONTENT = b"NVIDIA Tegra Profiler Report 36398880.\n" + bytes(200) + b"2\n2025.3.1.0:\x0836398880"
Make = Callable[[str], Path]

# Prints a bar as nsys does, then what the test wants done with the arguments.
PROGRAM = """#!{python}
import os, shutil, sys, time
if sys.argv[1:] == ["--version"]:
    print("NVIDIA Nsight Systems version 2022.4.2.1-df9881f")
    sys.exit(0)
open({log!r}, "a").write("called\\n")
output = next(item for item in sys.argv if item.startswith("--output="))[9:]
assert sys.argv[1] == "export" and "--type=sqlite" in sys.argv and os.path.exists(sys.argv[-1])
for percent in (1, 50, 100):
    print(f"\\rExporting 148 events: [=={{percent}}%    ]", end="", flush=True)
{body}
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, and no nsys."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(own_cache(tmp_path / "cache")))
    monkeypatch.delenv("TRACEDB_NSYS", raising=False)
    return tmp_path / "cache" / "tracedb" / "nsys"


@pytest.fixture
def rep(tmp_path: Path) -> Path:
    """A folder with a report."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "report1.nsys-rep").write_bytes(CONTENT)
    return folder


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes a program, and names it in the environment."""

    def make(body: str, name: str = "nsys") -> Path:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(PROGRAM.format(python=sys.executable, log=str(tmp_path / "calls"), body=body))
        path.chmod(0o755)
        monkeypatch.setenv("TRACEDB_NSYS", str(path))
        return path

    return make


def exporting(folder: Path) -> str:
    """A program's body that exports one kernel."""
    made = Nsys()
    made.kernel(0, 10)
    return f"shutil.copy({str(made.sqlite(folder / 'made.db'))!r}, output)"


def left_in(folder: Path) -> list[str]:
    return sorted(item.name for item in folder.rglob("*")) if folder.exists() else []


class TestExport:
    def test_the_report_is_read_through_a_cache(self, tmp_path: Path, rep: Path, program: Make, cache: Path) -> None:
        program(exporting(tmp_path))
        found = Loaded(rep, db=tmp_path / "a.duckdb")
        assert found.errors == []
        assert found.rows("kernel_event", "duration_ns") == [10]
        assert found.one("capture", "path") == str(rep / "report1.nsys-rep")
        assert left_in(rep) == ["report1.nsys-rep"]
        assert len(left_in(cache)) == 1
        again = Loaded(rep, db=tmp_path / "b.duckdb")
        assert again.rows("kernel_event", "duration_ns") == [10]
        assert (tmp_path / "calls").read_text() == "called\n"

    def test_progress_reaches_the_size_of_the_report(self, tmp_path: Path, rep: Path, program: Make) -> None:
        import duckdb

        from tracedb.ingester import Options
        from tracedb_nsys import ingester

        program(exporting(tmp_path))
        steps: list[int] = []
        (capture,) = ingester.find(list(rep.iterdir()))
        with duckdb.connect(":memory:") as scratch:
            for _ in ingester.read(capture, scratch, Options(progress=steps.append)):
                pass
        assert sum(steps) == len(CONTENT)
        assert len(steps) > 1

    def test_a_folder_may_be_named(
        self, tmp_path: Path, rep: Path, program: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TRACEDB_NSYS", str(program(exporting(tmp_path)).parent))
        assert Loaded(rep, db=tmp_path / "a.duckdb").errors == []

    def test_the_command_names_one(
        self, tmp_path: Path, rep: Path, program: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = program(exporting(tmp_path))
        monkeypatch.setenv("TRACEDB_NSYS", str(tmp_path / "nowhere"))
        done = run("ingest", rep, "--db", tmp_path / "a.duckdb", "--nsys", path)
        assert done.exit_code == 0, done.stderr
        assert run("ingest", rep, "--db", tmp_path / "b.duckdb", "--nsys", tmp_path / "nowhere").exit_code == 2

    def test_the_path_is_searched(self, tmp_path: Path, program: Make, monkeypatch: pytest.MonkeyPatch) -> None:
        path = program("")
        monkeypatch.delenv("TRACEDB_NSYS")
        monkeypatch.setenv("PATH", str(path.parent))
        assert programs()[0] == path


class TestCache:
    def put(self, cache: Path, name: str, age_s: float, size: int = 10) -> Path:
        cache.mkdir(parents=True, exist_ok=True)
        path = cache / name
        path.write_bytes(bytes(size))
        os.utime(path, (time.time() - age_s, time.time() - age_s))
        return path

    def test_what_is_old_goes(self, tmp_path: Path, rep: Path, program: Make, cache: Path) -> None:
        old, young = self.put(cache, "a.bare.sqlite", exports.MOST_AGE_S + 60), self.put(cache, "b.bare.sqlite", 60)
        other = self.put(cache, "notes.txt", exports.MOST_AGE_S + 60)
        killed = Path(tempfile.mkdtemp(prefix=spill_folder._prefix(), dir=cache))
        program(exporting(tmp_path))
        assert Loaded(rep, db=tmp_path / "a.duckdb").errors == []
        assert (old.exists(), young.exists(), other.exists(), killed.exists()) == (False, True, True, False)

    def test_the_longest_unused_goes_where_it_is_too_much(
        self, tmp_path: Path, rep: Path, program: Make, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        program(exporting(tmp_path))
        Loaded(rep, db=tmp_path / "a.duckdb")
        (mine,) = cache.glob("*.sqlite")
        monkeypatch.setattr(exports, "MOST_BYTES", mine.stat().st_size + 150)
        unused, recent = self.put(cache, "a.bare.sqlite", 900, 100), self.put(cache, "b.bare.sqlite", 60, 100)
        mine.unlink()
        assert Loaded(rep, db=tmp_path / "b.duckdb").errors == []
        assert (mine.exists(), recent.exists(), unused.exists()) == (True, True, False)

    def test_use_makes_young(self, tmp_path: Path, rep: Path, program: Make, cache: Path) -> None:
        program(exporting(tmp_path))
        Loaded(rep, db=tmp_path / "a.duckdb")
        (mine,) = cache.glob("*.sqlite")
        os.utime(mine, (0, 0))
        assert Loaded(rep, db=tmp_path / "b.duckdb").errors == []
        assert mine.stat().st_mtime > time.time() - 60


class TestPrivacy:
    SECRETS = ("hunter2", "AWS_SECRET", "/home/alice", "train.py --token", "printed by the run", "alice-thread")

    def export(self, tmp_path: Path) -> Path:
        """Return an export that says much of its machine."""
        made = Nsys()
        made.kernel(10, 20, name="gemm<int>")
        kernel, thread, out, path = (
            made.string(text) for text in ("gemm<int>", "alice-thread", "printed by the run", "/home/alice/o.log")
        )
        export = made.sqlite(tmp_path / "whole.db")
        with closing(sqlite3.connect(export)) as connection, connection:
            connection.executescript(
                f"""
                INSERT INTO TARGET_INFO_SYSTEM_ENV (name, value)
                    VALUES ('DeviceEnvironment', 'AWS_SECRET=hunter2'), ('User', '/home/alice');
                CREATE TABLE IF NOT EXISTS META_DATA_CAPTURE (name TEXT, value TEXT);
                INSERT INTO META_DATA_CAPTURE VALUES ('TARGET_COMMAND_LINE', 'train.py --token hunter2');
                CREATE TABLE ProcessStreams (globalPid INT, filenameId INT, contentId INT);
                INSERT INTO ProcessStreams VALUES (1, {path}, {out}), (1, {kernel}, {out});
                CREATE TABLE IF NOT EXISTS ThreadNames (nameId INT, priority INT, globalTid INT);
                INSERT INTO ThreadNames VALUES ({thread}, 1, 1);
                CREATE TABLE TARGET_INFO_PROCESS_ENVIRONMENT (text TEXT);
                INSERT INTO TARGET_INFO_PROCESS_ENVIRONMENT VALUES ('AWS_SECRET=hunter2');
                """
            )
        assert all(text.encode() in export.read_bytes() for text in self.SECRETS)
        return export

    def test_what_is_kept_says_nothing_of_the_environment(
        self, tmp_path: Path, rep: Path, program: Make, cache: Path
    ) -> None:
        program(f"shutil.copy({str(self.export(tmp_path))!r}, output)")
        before = os.umask(0o022)
        try:
            loaded = Loaded(rep, db=tmp_path / "a.duckdb")
        finally:
            os.umask(before)
        assert loaded.errors == []
        (kept,) = cache.iterdir()
        content = kept.read_bytes()
        assert [text for text in self.SECRETS if text.encode() in content] == []
        assert (cache.stat().st_mode & 0o777, kept.stat().st_mode & 0o777) == (0o700, 0o600)
        with connect(tmp_path / "a.duckdb") as connection:
            rows = connection.execute("SELECT name, host FROM kernel_event JOIN capture USING (capture_id)").fetchall()
        assert rows == [("gemm<int>", "node7")]

    def test_a_cache_that_others_may_read_is_closed_and_whole_exports_go(
        self, tmp_path: Path, rep: Path, program: Make, cache: Path
    ) -> None:
        cache.mkdir(parents=True)
        cache.chmod(0o777)
        whole = cache / "of_an_older_tracedb.sqlite"
        whole.write_bytes(b"AWS_SECRET=hunter2")
        program(f"shutil.copy({str(self.export(tmp_path))!r}, output)")
        assert Loaded(rep, db=tmp_path / "a.duckdb").errors == []
        assert (cache.stat().st_mode & 0o777, whole.exists()) == (0o700, False)

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a folder away")
    def test_a_cache_of_somebody_else_is_not_used(self, tmp_path: Path, rep: Path, program: Make, cache: Path) -> None:
        cache.mkdir(parents=True)
        os.chown(cache, 12345, 12345)
        program(f"shutil.copy({str(self.export(tmp_path))!r}, output)")
        assert Loaded(rep, db=tmp_path / "a.duckdb").errors == []
        assert list(cache.iterdir()) == []


class TestRefusals:
    def test_no_program(self, tmp_path: Path, rep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(nsys_rep, "INSTALL_PATTERNS", ())
        error = Loaded(rep, db=tmp_path / "a.duckdb").error
        assert "2025.3.1.0" in error and "TRACEDB_NSYS" in error and "nsys export --type=sqlite" in error

    def test_the_named_program_is_not_there(self, tmp_path: Path, rep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TRACEDB_NSYS", str(tmp_path / "nowhere"))
        assert "nowhere" in Loaded(rep, db=tmp_path / "a.duckdb").error

    def test_no_program_at_all(self, tmp_path: Path, rep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        broken = tmp_path / "nsys"
        broken.write_text("#!/nowhere/python\n")
        broken.chmod(0o755)
        monkeypatch.setenv("TRACEDB_NSYS", str(broken))
        assert "cannot be run" in Loaded(rep, db=tmp_path / "a.duckdb").error

    def test_a_report_newer_than_the_program(self, tmp_path: Path, rep: Path, program: Make, cache: Path) -> None:
        program("sys.exit('Exportation error: Version not supported: 36398880')")
        error = Loaded(rep, db=tmp_path / "a.duckdb").error
        assert "the report of nsys 2025.3.1.0 is newer than nsys 2022.4.2.1" in error
        assert "Version not supported: 36398880. Install Nsight Systems 2025.3.1.0 or later, or run" in error
        assert "%" not in error
        assert left_in(cache) == []
        (rep / "report1.nsys-rep").write_bytes(CONTENT.replace(b"2025.3.1.0", b"later"))
        error = Loaded(rep, db=tmp_path / "a.duckdb").error
        assert "the report is newer than nsys 2022.4.2.1" in error and "Install a newer Nsight Systems, or run" in error

    def test_a_missing_importer(self, tmp_path: Path, rep: Path, program: Make) -> None:
        program("sys.exit('Importer error status: The importer binary and its dependencies were not found.')")
        error = Loaded(rep, db=tmp_path / "a.duckdb").error
        assert "host-linux-x64" in error and "were not found" in error

    @pytest.mark.parametrize(
        "body", ["open(output, 'w').write('half'); sys.exit(3)", "os.kill(os.getpid(), 9)", "pass"]
    )
    def test_a_failure_leaves_nothing(self, tmp_path: Path, rep: Path, program: Make, cache: Path, body: str) -> None:
        program(body)
        assert "export failed" in Loaded(rep, db=tmp_path / "a.duckdb").error
        assert left_in(cache) == []
        assert left_in(rep) == ["report1.nsys-rep"]

    def test_one_that_never_ends(
        self, tmp_path: Path, rep: Path, program: Make, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(nsys_rep, "TIMEOUT_S", 0.5)
        program("time.sleep(60)")
        assert "took longer" in Loaded(rep, db=tmp_path / "a.duckdb").error
        assert left_in(cache) == []


def numbers(row: list[str]) -> tuple[str, ...]:
    """A row with its numbers as numbers are written: 5.0 for 5."""
    return tuple(str(float(item)) if place < 8 else item for place, item in enumerate(row))


REAL = shutil.which("nsys")
ANNOTATED = """
import threading
import nvtx

@nvtx.annotate("work", domain="mine")
def work(count):
    return sum(range(count))

def step(number):
    with nvtx.annotate("step"):
        with nvtx.annotate("forward"):
            work(10_000)
        with nvtx.annotate(f"backward {number % 2}"):
            work(20_000)

outer = nvtx.start_range("outer")
for number in range(5):
    step(number)
other = threading.Thread(target=step, args=(9,))
other.start()
other.join()
nvtx.mark("done")
nvtx.end_range(outer)
nvtx.start_range("left open")
"""


@pytest.mark.skipif(REAL is None, reason="nsys is not installed (Debian: nsight-systems of non-free)")
class TestRealProgram:
    @pytest.fixture
    def recorded(self, tmp_path: Path) -> Path:
        """The report of a small annotated program."""
        python = os.environ.get("TRACEDB_NVTX_PYTHON", sys.executable)
        if subprocess.run([python, "-c", "import nvtx"], capture_output=True, check=False).returncode:
            pytest.skip("the Python module nvtx is not installed (0.2.10 is the last that this nsys captures)")
        folder = tmp_path / "run"
        folder.mkdir()
        (folder / "annotated.py").write_text(ANNOTATED)
        command = [str(REAL), "profile", "-t", "nvtx", "--sample=none", "--cpuctxsw=none", "-o", str(folder / "report")]
        subprocess.run([*command, python, str(folder / "annotated.py")], check=True, capture_output=True, timeout=120)
        if not (folder / "report.nsys-rep").exists():
            pytest.skip("nsys left only a raw stream: its importer is not found beside its target folder")
        return folder

    def summary(self, path: Path, folder: Path) -> list[list[str]]:
        """What `nsys stats` says; the report was named nvtxsum before 2023."""
        shutil.copy(path, folder / path.name)
        for name in ("nvtx_sum", "nvtxsum"):
            command = [
                str(REAL),
                "stats",
                "--report",
                name,
                "--format",
                "csv",
                "--output",
                "-",
                str(folder / path.name),
            ]
            said = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False).stdout
            lines = said.splitlines()
            start = next((place for place, line in enumerate(lines) if line.startswith("Time (%)")), None)
            if start is not None:
                return [row for row in csv.reader(io.StringIO("\n".join(lines[start + 1 :]))) if row]
        raise AssertionError("nsys stats gives no summary of NVTX ranges")

    def test_ranges_are_those_of_nsys(self, tmp_path: Path, recorded: Path) -> None:
        """Every column of the reports as printed, the range that is left open included."""
        db = tmp_path / "a.duckdb"
        done = run("ingest", recorded, "--db", db, "--nsys", str(REAL))
        assert done.exit_code == 0, done.stderr
        elsewhere = tmp_path / "stats"
        elsewhere.mkdir()
        theirs = self.summary(recorded / "report.nsys-rep", elsewhere)
        said = run("report", "nvtx_sum", "--db", db, "--format", "csv").stdout
        mine = list(csv.reader(io.StringIO(said, newline="")))[1:]
        assert sorted(map(numbers, mine)) == sorted(map(numbers, theirs))
        assert {row[-1] for row in mine} >= {"step", "forward", "mine:work", "outer"}
        with connect(db) as connection:
            assert connection.execute("SELECT name FROM main.annotation WHERE style = 'mark'").fetchall() == [("done",)]
        assert sorted(item.name for item in recorded.iterdir()) == ["annotated.py", "report.nsys-rep"]
        assert len(left_in(exports.folder())) == 1

    @pytest.mark.shared
    @pytest.mark.skipif(not SHARED.is_dir(), reason="the real traces are not beside the repository")
    def test_a_report_of_a_later_release(self, tmp_path: Path) -> None:
        folder = tmp_path / "run"
        folder.mkdir()
        shutil.copy(SHARED / "single_train.nsys-rep", folder)
        found = Loaded(folder, db=tmp_path / "a.duckdb")
        if not found.errors:
            assert len(found.rows("kernel_event WHERE kind = 'kernel'", "name")) == 8672
        else:
            assert "newer than nsys" in found.error and "2025.3" in found.error
