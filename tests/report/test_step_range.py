"""``--step-range``: reports and comparisons with ranges of a selected name as steps."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from support.command import report, run
from support.tiny import ADD, Tiny, two_ranks
from tracedb.pipeline import run as pipeline

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
FSDP = SHARED / "nsys" / "fsdp_4gpu.sqlite"
MARKERS = SHARED / "rocprof" / "markers_aq4"


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_ranks(tmp_path_factory.mktemp("steps") / "x.duckdb")


def test_marked_steps_give_way(db: Path) -> None:
    rows = report(db, "gpu-timeline", "--by", "step")
    assert [row["step"] for row in rows] == [5, 6, None]
    rows = report(db, "gpu-timeline", "--by", "step", "--step-range", "for*")
    assert [row["step"] for row in rows] == [0, None]
    assert report(db, "kernels", "--step-range", "for*", "--skip-warmup", "0")[0]["step"] == 0


def test_what_is_asked_is_in_the_answer(db: Path) -> None:
    done = run("report", "unique-kernels", "--db", db, "--step-range", "forward", "--format", "json")
    assert json.loads(done.stdout)["filters"]["step_range"] == "forward"
    done = run("report", "top-kernels", "--db", db, "--step-range", "forward")
    assert done.exit_code == 0 and "--step-range has no effect here" in done.stderr


@pytest.mark.parametrize("options", [(), ("--by", "step"), ("--skip-warmup", "1")])
def test_a_glob_that_matches_nothing(db: Path, options: tuple[str, ...]) -> None:
    done = run("report", "gpu-timeline", "--db", db, "--step-range", "Forward", *options)
    assert done.exit_code == 3 and done.stdout == ""
    assert done.stderr.startswith("tracedb: error: no range matches --step-range 'Forward'; existing ones include: ")
    assert "forward" in done.stderr and done.stderr.count("\n") == 1
    done = run("report", "gpu-timeline", "--db", db, "--step-range", "forward", "--skip-warmup", "1")
    assert done.exit_code == 3 and "no capture has more than 1 step" in done.stderr


def test_a_capture_without_such_a_range_is_named(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "x.duckdb")
    for name in ("iter", "other"):
        tiny.capture(labels={"run": name})
        tiny.range(1, name, 0, 10, (tiny.kernel(ADD, 0, 5),))
    tiny.capture(labels={"run": "bare"})
    tiny.kernel(ADD, 0, 5)
    db = tiny.save()
    done = run("report", "gpu-timeline", "--db", db, "--step-range", "iter", "--by", "step")
    assert "2 captures without steps: no range matches --step-range 'iter'" in done.stderr
    done = run("report", "gpu-timeline", "--db", db, "--step-range", "*", "--by", "step", "--where", "run=bare")
    assert done.exit_code == 3 and "no ranges (NVTX, roctx, record_function) were captured" in done.stderr
    done = run("compare", "run=iter", "run=other", "--db", db, "--step-range", "iter")
    assert done.exit_code == 3 and "run=other: in 1 of 1 captures no range matches --step-range 'iter'" in done.stderr


def test_compare(db: Path) -> None:
    done = run("-q", "compare", "rank=0", "rank=1", "--db", db, "--step-range", "forward", "--kind", "kernel",
               "--kind", "timeline", "--format", "json")  # fmt: skip
    rows = {row["name"]: row for row in json.loads(done.stdout)["rows"]}
    assert done.exit_code == 0 and json.loads(done.stdout)["filters"]["step_range"] == "forward"
    assert [(row["units"], row["base_units"]) for row in rows.values()] == [(1, 1)] * len(rows)
    assert (rows["computation"]["base_mean_ns"], rows["computation"]["mean_ns"]) == (2_500, 3_500)
    assert rows["total"]["base_mean_ns"] == 5_500  # of the step, where the capture has 21,000


def test_the_shell_does_the_same(db: Path) -> None:
    options = ("--by", "step", "--step-range", "for*")
    text = run("report", "gpu-timeline", "--db", db, "--show-sql", *options).stdout
    assert text.startswith("SET VARIABLE step_range = 'for*';\nSELECT")
    rows = report(db, "gpu-timeline", *options)
    done = run("sql", "-", "--db", db, "--format", "json", stdin=text)
    assert json.loads(done.stdout)["rows"] == rows
    shell = shutil.which("duckdb")
    if shell is None:
        pytest.skip("the DuckDB shell is not installed (pip install duckdb-cli)")
    answer = subprocess.run(
        [shell, "-readonly", "-json", str(db)], input=text, capture_output=True, text=True, check=True
    )
    assert json.loads(answer.stdout) == rows


def test_variables_in_sql_and_in_the_prompt(db: Path) -> None:
    query = "SELECT count(DISTINCT step) AS steps FROM kernels"
    text = f"/* the forward pass */ SET VARIABLE step_range = 'for*;x'; RESET VARIABLE step_range; {query}"
    assert json.loads(run("sql", text, "--db", db, "--format", "json").stdout)["rows"] == [{"steps": 2}]
    for text, words in (
        ("SET VARIABLE step_range = 'x'", "there is no SQL in that"),
        (f"SET VARIABLE a = 1; SET threads = 1; {query}", "that is 2 statements"),
        (f"SET VARIABLE a = 1; {query}; {query}", "that is 2 statements"),
        (f"SET threads = 1; {query}", "that is 2 statements"),
    ):
        done = run("sql", text, "--db", db)
        assert done.exit_code == 1 and words in done.stderr and done.stderr.count("\n") == 1
    lines = f"SET VARIABLE step_range = 'for*';\n{query};\n"
    assert run("shell", "--builtin", "--db", db, stdin=lines).stdout.split() == ["steps", "─────", "1"]


@pytest.mark.shared
@pytest.mark.skipif(not FSDP.exists(), reason="real traces are not here")
def test_nvtx_ranges(tmp_path: Path) -> None:
    """Three steps of each of four processes; what runs in them, counted in the export itself."""
    db = tmp_path / "x.duckdb"
    assert [outcome.error for outcome in pipeline.ingest(FSDP, db=db)] == [None]
    rows = report(db, "kernels", "--step-range", "train_step", "--by", "step", "--top", "0")
    counted: dict[int | None, int] = {}
    for row in rows:
        counted[row["step"]] = counted.get(row["step"], 0) + 1
    with closing(sqlite3.connect(FSDP)) as connection:
        right = connection.execute(
            """WITH steps AS (
                   SELECT globalTid >> 24 AS process, start, "end",
                       row_number() OVER (PARTITION BY globalTid ORDER BY start) - 1 AS step
                   FROM NVTX_EVENTS WHERE text = 'train_step' AND eventType = 59)
               SELECT s.step, count(*)
               FROM CUPTI_ACTIVITY_KIND_KERNEL AS k
               INNER JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r
                   ON r.correlationId = k.correlationId AND r.globalTid >> 24 = k.globalPid >> 24
               LEFT JOIN steps AS s
                   ON s.process = r.globalTid >> 24 AND s.start <= r.start AND r."end" <= s."end"
               GROUP BY s.step"""
        ).fetchall()
    assert counted == dict(right) and {0, 1, 2} <= set(counted)
    stragglers = report(db, "stragglers", "--step-range", "train_step", "--skip-warmup", "1")
    assert {(row["step"], row["rank"]) for row in stragglers if row["is_straggler"]} == {(1, 3), (2, 3)}


@pytest.mark.shared
@pytest.mark.skipif(not MARKERS.exists(), reason="real traces are not here")
def test_roctx_ranges(tmp_path: Path) -> None:
    """Twelve flat markers; by time, since no launches were recorded."""
    db = tmp_path / "x.duckdb"
    assert [outcome.error for outcome in pipeline.ingest(MARKERS, db=db)] == [None]
    rows = report(db, "kernels", "--step-range", "ullm*", "--top", "0")
    assert sum(row["step"] is not None for row in rows) == 11_136
    assert {row["step"] for row in rows} == {None, *range(12)}
