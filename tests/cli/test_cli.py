"""The command line: what goes to stdout and stderr, exit codes, and what is rejected."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from support.command import run
from support.processes import reader_of, wait_for
from support.tiny import Tiny, two_ranks
from tracedb.cli.main import COMMANDS


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_ranks(tmp_path_factory.mktemp("db") / "trace.duckdb")


def process(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tracedb", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=600, check=False
    )


class TestWhereThingsAreSaid:
    def test_data_on_stdout_narration_on_stderr(self, db: Path) -> None:
        done = process("report", "top-kernels", "--db", db, "--format", "json")
        assert done.returncode == 0
        assert json.loads(done.stdout)["report"] == "top-kernels"
        assert "warning: 2 configurations pooled" in done.stderr

    def test_quiet_says_nothing(self, db: Path) -> None:
        before = process("-q", "report", "top-kernels", "--db", db, "--format", "csv")
        after = process("report", "top-kernels", "--db", db, "--format", "csv", "-q")
        assert before.stderr == after.stderr == ""
        assert before.stdout == after.stdout != ""

    def test_verbose_says_the_sql(self, db: Path) -> None:
        assert "FROM v1.top_kernels" in run("-v", "report", "top-kernels", "--db", db).stderr

    def test_an_error_is_one_line(self, tmp_path: Path) -> None:
        done = process("report", "top-kernels", "--db", tmp_path / "none.duckdb")
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr.startswith("tracedb: error: ")
        assert done.stderr.count("\n") == 1

    def test_a_reader_that_goes_away_is_no_error(self, db: Path) -> None:
        command = f"{sys.executable} -m tracedb sql 'FROM range(1000000)' --format csv --db {db} | head -n 1"
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "range\n", "")

    def test_interrupt_is_130_in_one_line(self, db: Path) -> None:
        query = "SELECT sum(sqrt(a.range * b.range)) FROM range(10000000) AS a, range(10000000) AS b"
        command = [sys.executable, "-m", "tracedb", "sql", query, "--db", str(db)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            wait_for(lambda: reader_of(child.pid, db))
            child.send_signal(signal.SIGINT)
            said = child.communicate(timeout=300)
        finally:
            child.kill()  # else the query goes on for hours
        assert child.returncode == 130
        assert said[0] == ""
        assert said[1].strip() == "tracedb: error: interrupted"


class TestWhichDatabase:
    def test_option_before_or_after_the_command(self, db: Path) -> None:
        query = ("sql", "SELECT count(*) AS n FROM capture", "--format", "csv")
        assert run("--db", db, *query).stdout == run(*query, "--db", db).stdout == "n\n2\n"

    def test_the_later_option_wins(self, db: Path, tmp_path: Path) -> None:
        assert run("--db", tmp_path / "none", "sql", "SELECT 1", "--db", db).exit_code == 0

    def test_environment_then_the_current_folder(self, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TRACEDB", str(db))
        assert run("sql", "SELECT 1").exit_code == 0
        assert "other.duckdb: no such database" in run("sql", "SELECT 1", "--db", "other.duckdb").stderr
        monkeypatch.delenv("TRACEDB")
        monkeypatch.chdir(db.parent)
        assert run("sql", "SELECT 1").exit_code == 0

    @pytest.mark.parametrize("name", ["main.duckdb", "temp.duckdb", "v1.duckdb"])
    def test_any_file_name_will_do(self, name: str, db: Path, tmp_path: Path) -> None:
        (tmp_path / name).write_bytes(db.read_bytes())
        assert run("report", "top-kernels", "--by", "rank", "--db", tmp_path / name).exit_code == 0

    def test_a_file_of_another_kind(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text("no database at all, but some text")
        done = run("report", "top-kernels", "--db", tmp_path / "a.txt")
        assert done.exit_code == 1
        assert "cannot be opened as a DuckDB database" in done.stderr

    def test_a_duckdb_file_that_is_not_ours(self, tmp_path: Path) -> None:
        duckdb.connect(str(tmp_path / "a.duckdb")).close()
        done = run("report", "top-kernels", "--db", tmp_path / "a.duckdb")
        assert done.exit_code == 1
        assert "not one of tracedb's" in done.stderr

    def test_a_file_that_is_being_written(self, tmp_path: Path) -> None:
        path = Tiny(tmp_path / "a.duckdb").save()
        holder = f"import duckdb, time; c = duckdb.connect({str(path)!r}); print('open', flush=True); time.sleep(600)"
        with subprocess.Popen([sys.executable, "-c", holder], stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None and child.stdout.readline() == "open\n"
            done = run("report", "top-kernels", "--db", path, "--wait", "0.1")
            doctor = run("doctor", "--db", path, "--wait", "0")
            child.kill()
        assert done.exit_code == doctor.exit_code == 1
        assert f"process {child.pid} has the database open" in done.stderr
        assert "python" in doctor.stdout


class TestHelp:
    @pytest.mark.parametrize("name", [name for name in COMMANDS if name != "ingest"])
    def test_each_command_says_what_it_does(self, name: str) -> None:
        done = run(name, "--help")
        assert done.exit_code == 0
        assert done.stdout.startswith(f"Usage: cli {name}")

    def test_nothing_is_usage(self) -> None:
        done = run()
        assert done.exit_code == 2
        assert done.stdout == ""
        assert "Commands:" in done.stderr

    @pytest.mark.parametrize(
        "arguments",
        [
            ("nothing",),
            ("report", "top-kernels", "--nothing"),
            ("report", "top-kernel"),
            ("report", "top-kernels", "--where", "threads"),
            ("report", "top-kernels", "--version", "v9"),
            ("report", "top-kernels", "--format", "parquet"),
            ("report", "top-kernels", "-o", "a.dat"),
            ("schema", "nothing"),
            ("schema", "top_kernel"),
            ("views", "show", "nothing"),
        ],
    )
    def test_usage_errors_are_one_line_and_2(self, arguments: tuple[str, ...], db: Path) -> None:
        done = run("--db", db, *arguments)
        assert done.exit_code == 2
        assert done.stdout == ""
        assert done.stderr.startswith("tracedb: error: ") and done.stderr.count("\n") == 1

    def test_schema_shows_a_view_too_and_folds_what_it_means(self, db: Path) -> None:
        named = [run("schema", name, "--db", db) for name in ("top_kernels", "top-kernels", "v1.top_kernels")]
        assert {done.exit_code for done in named} == {0} and len({done.stdout for done in named}) == 1
        words = " ".join(named[0].stdout.split())
        assert "share_percent DOUBLE percent Share of the total time of all kernels in the" in words
        assert "(with --by: in the group)." in words
        assert max(map(len, named[0].stdout.splitlines())) <= 100
        assert "did you mean top_kernels?" in run("schema", "top_kernel", "--db", db).stderr

    @pytest.mark.parametrize("arguments", [("report", "--list"), ("schema",), ("schema", "kernel_event")])
    def test_meanings_are_folded_and_not_cut(self, arguments: tuple[str, ...], db: Path) -> None:
        told = json.loads(run(*arguments, "--db", db, "--format", "json").stdout)["rows"]
        words = " ".join(run(*arguments, "--db", db).stdout.split())
        meanings = [" ".join(str(row.get("meaning") or row.get("title")).split()) for row in told]
        assert meanings and [meaning for meaning in meanings if meaning not in words] == []

    def test_a_near_miss_is_named(self, db: Path) -> None:
        assert "did you mean top-kernels?" in run("report", "top_kernel", "--db", db).stderr

    def test_version(self) -> None:
        assert run("--version").stdout.startswith("tracedb ")


class TestSql:
    def test_columns_and_rows(self, db: Path) -> None:
        done = run("sql", "SELECT rank, labels FROM capture ORDER BY rank", "--db", db, "--format", "json")
        answer = json.loads(done.stdout)
        assert [column["name"] for column in answer["columns"]] == ["rank", "labels"]
        assert answer["rows"] == [
            {"rank": 0, "labels": {"threads": "256", "channels": "8", "sweep": "a"}},
            {"rank": 1, "labels": {"threads": "1024", "channels": "8", "sweep": "a"}},
        ]

    def test_stdin(self, db: Path) -> None:
        assert run("sql", "-", "--db", db, "--format", "csv", stdin="SELECT 1 AS a").stdout == "a\n1\n"

    def test_names_that_come_twice(self, db: Path) -> None:
        done = run("sql", "SELECT 1 AS a, 2 AS a", "--db", db, "--format", "ndjson")
        assert list(json.loads(done.stdout).values()) == [1, 2]

    def test_top(self, db: Path) -> None:
        done = run("sql", "FROM range(60)", "--db", db)
        assert "the first 50 rows; --top 0 shows all" in done.stderr
        assert len(run("sql", "FROM range(60)", "--db", db, "--top", "0").stdout.splitlines()) == 62
        assert len(run("sql", "FROM range(60)", "--db", db, "--format", "ndjson").stdout.splitlines()) == 60

    @pytest.mark.parametrize(
        "query",
        [
            "FROM capture",
            "WITH a AS (SELECT 1) FROM a",
            "VALUES (1)",
            "DESCRIBE capture",
            "SHOW TABLES",
            "SUMMARIZE capture",
            "EXPLAIN SELECT 1",
            "PIVOT capture ON status USING count(*) GROUP BY rank",
            "SELECT 1;",
        ],
    )
    def test_what_reads_is_answered(self, query: str, db: Path) -> None:
        done = run("sql", query, "--db", db)
        assert done.exit_code == 0
        assert done.stdout

    @pytest.mark.parametrize(
        "query",
        [
            "ATTACH ':memory:' AS a",
            "COPY (SELECT 1) TO 'out.csv'",
            "EXPLAIN ANALYZE COPY (SELECT 1) TO 'out.csv'",
            "INSTALL json",
            "LOAD json",
            "SET threads = 1",
            "CREATE TABLE a AS SELECT 1",
            "CREATE TEMP TABLE a AS SELECT 1",
            "INSERT INTO kernel_rule VALUES (1, 'a', 'b')",
            "DELETE FROM capture",
            "SELECT 1; SELECT 2",
            "SELECT 1; DROP TABLE capture",
            "SELECT * FROM read_csv('/etc/passwd')",
            "SELECT * FROM read_text('/etc/passwd')",
            "FROM '/etc/passwd'",
            "FROM glob('/*')",
            "SELECT nothing FROM capture",
            "SELEC 1",
            "",
            "/* nothing */",
        ],
    )
    def test_what_does_not_is_refused_in_one_line(
        self, query: str, db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = db.read_bytes()
        monkeypatch.chdir(tmp_path)
        done = run("sql", query, "--db", db)
        assert list(tmp_path.iterdir()) == []
        assert done.exit_code == 1
        assert done.stdout == ""
        assert done.stderr.startswith("tracedb: error: ") and done.stderr.count("\n") == 1
        assert db.read_bytes() == before


class TestShell:
    def test_the_small_prompt(self, db: Path) -> None:
        done = process_with_stdin(
            db, "SELECT\n 40 + 2 AS answer;\nDROP TABLE capture;\nSELECT 1 AS last;\n.quit\nSELECT 9;\n"
        )
        assert done.returncode == 0
        assert done.stdout.split() == ["answer", "──────", "42", "last", "────", "1"]
        assert "DROP is refused" in done.stderr

    def test_it_lists_tables(self, db: Path) -> None:
        said = process_with_stdin(db, ".tables\n").stdout
        assert "kernel_event" in said and "top_kernels" in said and "_kernel_class" not in said

    def test_the_last_statement_needs_no_semicolon(self, db: Path) -> None:
        assert "42" in process_with_stdin(db, "SELECT 42").stdout


@pytest.mark.skipif(shutil.which("duckdb") is None, reason="the DuckDB shell is not installed (pip install duckdb-cli)")
def test_the_shell_of_duckdb_where_there_is_one(db: Path) -> None:
    command = [sys.executable, "-m", "tracedb", "shell", "--db", str(db)]
    text = ".mode csv\nSELECT count(*) AS n FROM top_kernels;\nDELETE FROM capture;\n"
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout.split()[:2] == ["n", "3"]
    assert "read-only" in done.stderr


def process_with_stdin(db: Path, text: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tracedb", "shell", "--builtin", "--db", str(db)]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=600, check=False)


class TestCatalogue:
    def test_views(self, db: Path) -> None:
        rows = json.loads(run("views", "--db", db, "--format", "json").stdout)["rows"]
        assert "top_kernels" in [row["name"] for row in rows]
        assert not [row["name"] for row in rows if row["name"].startswith("_") or not row["grain"]]

    @pytest.mark.parametrize("name", ["v1.top_kernels", "top_kernels", "top-kernels"])
    def test_views_show(self, name: str, db: Path) -> None:
        said = run("views", "show", name, "--db", db).stdout
        assert said.startswith("v1.top_kernels\n")
        assert "share_percent" in said and "percent" in said
        assert "CREATE VIEW v1.top_kernels AS" in said

    def test_views_verify(self, db: Path, tmp_path: Path) -> None:
        assert run("views", "verify", "--db", db).exit_code == 0
        other = tmp_path / "other.duckdb"
        other.write_bytes(db.read_bytes())
        with duckdb.connect(str(other)) as connection:
            connection.execute("UPDATE meta.view_version SET sha256 = 'x' WHERE name = 'top_kernels'")
            connection.execute("DROP VIEW v1.matmul_fraction")
        done = run("views", "verify", "--db", other)
        assert done.exit_code == 1
        assert "v1.top_kernels (of another tracedb)" in done.stderr
        assert "v1.matmul_fraction (missing)" in done.stderr

    def test_views_verify_reads_short_names(self, db: Path, tmp_path: Path) -> None:
        other = tmp_path / "other.duckdb"
        other.write_bytes(db.read_bytes())
        with duckdb.connect(str(other)) as connection:
            connection.execute("CREATE OR REPLACE VIEW top_kernels AS SELECT 1 AS one FROM v1.top_kernels")
        done = run("views", "verify", "--db", other)
        assert done.exit_code == 1
        assert "v1.top_kernels (short name replaced)" in done.stderr
        assert "1 of " in run("doctor", "--db", other).stdout
        mend = done.stderr.partition("`")[2].partition("`")[0]
        with duckdb.connect(str(other)) as connection:
            connection.execute(mend)
        assert run("views", "verify", "--db", other).exit_code == 0

    def test_a_similar_name_is_suggested(self, db: Path) -> None:
        done = run("views", "show", "gemm-varience", "--db", db)
        assert done.exit_code == 2
        assert "there is no view 'gemm_varience' in v1; did you mean gemm_variance? `tracedb views`" in done.stderr
        assert len(done.stderr) < 200
        assert "'--limit'. Did you mean '--top'?" in run("report", "top-kernels", "--limit", "5").stderr
        assert "did you mean top_kernels? " in run("schema", "top-kernel", "--db", db).stderr

    def test_schema(self, db: Path) -> None:
        rows = json.loads(run("schema", "--db", db, "--format", "json").stdout)["rows"]
        assert {"table": "capture", "meaning": "One process's trace by one profiler."} in rows
        rows = json.loads(run("schema", "kernel_event", "--db", db, "--format", "json").stdout)["rows"]
        units = {row["column"]: row["unit"] for row in rows}
        assert (units["start_ns"], units["occupancy_percent"], units["grid_x"]) == ("ns", "percent", "blocks")
        assert units["stream_id"] is None  # declared [-]: it identifies

    @pytest.mark.parametrize(
        "arguments", [("views",), ("schema",), ("schema", "op"), ("report", "--list"), ("report",)]
    )
    def test_they_work_without_a_database(self, arguments: tuple[str, ...], tmp_path: Path) -> None:
        done = run("--db", tmp_path / "none.duckdb", *arguments)
        assert done.exit_code == 0
        assert done.stdout
        assert list(tmp_path.iterdir()) == []

    def test_every_public_view_has_a_report(self, db: Path) -> None:
        shown = {row["name"] for row in json.loads(run("views", "--db", db, "--format", "json").stdout)["rows"]}
        listed = {row["report"] for row in json.loads(run("report", "--list", "--format", "json").stdout)["rows"]}
        assert {name.replace("_", "-") for name in shown} == listed

    def test_ingesters_are_listed(self) -> None:
        assert json.loads(run("ingesters", "--format", "json").stdout)["report"] == "ingesters"


class TestDoctor:
    def test_it_says_what_can_be_answered(self, db: Path) -> None:
        answer = json.loads(run("doctor", "--db", db, "--format", "json").stdout)
        assert answer["installation"]["duckdb"]
        assert answer["file"]["storage"].startswith("65 ")
        assert answer["rows"][0]["kernels"] == 5
        assert answer["rows"][0]["collectives"] == 1
        assert answer["rows"][0]["steps"] == 2
        assert answer["rows"][0]["counters"] is None
        assert answer["rows"][1]["rank"] == 1

    def test_for_eyes(self, db: Path) -> None:
        said = run("doctor", "--db", db).stdout.partition("what the captures hold")[2].partition("what ingest noted")[0]
        head, _, *lines = said.strip().splitlines()
        held, lacked = head.index("holds"), head.index("not captured")
        assert "kernels," in " ".join(line[held:lacked] for line in lines)
        assert "counters" in " ".join(line[lacked:] for line in lines)
        assert "…" not in said

    def test_every_group_of_captures_is_shown_and_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "80")
        tiny = Tiny(tmp_path / "x.duckdb")
        for number in range(12):
            tiny.capture(
                number if number % 2 else None, {}, source=f"source{number // 2}", path=f"/t/file{number}.json"
            )
        said = run("doctor", "--db", tiny.save()).stdout
        assert [name for name in (f"file{number}.json" for number in range(12)) if name not in said] == []
        assert "not captured" in said and "…" not in said
        assert max(map(len, said.partition("what the captures hold")[2].splitlines())) <= 80

    def test_captures_with_stacks_or_allocations_are_a_group_of_their_own(self, tmp_path: Path) -> None:
        tiny = Tiny(tmp_path / "x.duckdb")
        for _ in range(3):
            tiny.capture()
        tiny.add("frame", capture_id=2, frame_id=1, kind="module", name="nn.Module: Linear_3", start_ns=0)
        tiny.add("frame", capture_id=2, frame_id=2, kind="function", name="a.py(1): f", start_ns=0)
        tiny.add("memory_event", capture_id=3, memory_event_id=1, start_ns=0)
        path = tiny.save()
        rows = json.loads(run("doctor", "--db", path, "--format", "json").stdout)["rows"]
        names = ("stacks", "modules", "memory_events")
        assert [[row[name] for name in names] for row in rows] == [[None] * 3, [1, 1, None], [None, None, 1]]
        assert "and 1 more" not in run("doctor", "--db", path).stdout

    def test_it_prints_no_environment(self, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SECRET_TOKEN", "hunter2")
        assert "hunter2" not in run("doctor", "--db", db).output

    def test_without_a_database(self, tmp_path: Path) -> None:
        done = run("doctor", "--db", tmp_path / "none.duckdb")
        assert done.exit_code == 0
        assert "python" in done.stdout
