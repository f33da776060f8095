"""``report --engine``: the answer, formats and messages of the report without it, or a refusal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import tracedb.ray
from support.command import run
from tracedb.distribute.plan import Plan
from tracedb.distribute.task import answer


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of tasks of the reports, whose tasks are run here, the last one first; Ray needs no installation."""
    counted: list[int] = []

    def gather(planned: Plan) -> list[object]:
        counted.append(len(planned.tasks))
        return [answer(task) for task in reversed(planned.tasks)]

    monkeypatch.setattr(tracedb.ray, "gather", gather)
    monkeypatch.setitem(sys.modules, "ray", sys)
    return counted


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("top-kernels --top 5", 3),
        ("top-kernels --by channels,rank --class matmul,collective --format csv", 3),
        ("top-kernels --where channels=4 --format json", 1),
        ("matmul-fraction --by source --attention-as-matmul --format csv", 3),
        ("gemm-variance --by channels --format csv", 3),
        ("gpu-timeline --path *rank1* --format markdown", 2),
        ("stragglers --format csv", 3),
        ("kernels --wide --top 3", 3),
        ("kernels --where channels=4,16", 2),
        ("gpu-gaps --by channels --top 2", 3),
        ("launch-latency --top 0", 3),
        ("collective-summary --where channels=4,16", 2),
    ],
)
def test_the_answer_is_that_without_an_engine(words: str, parts: int, lake: Path, tasks: list[int]) -> None:
    wanted = run("report", *words.split(), "--lake", lake)
    found = run("report", *words.split(), "--lake", lake, "--engine", "ray")
    assert (found.exit_code, found.stdout, found.stderr) == (wanted.exit_code, wanted.stdout, wanted.stderr)
    assert tasks == [parts]


def test_tasks_send_only_the_first_rows_where_that_is_enough(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of three tasks sends the rows that may be among the first, and how many it has."""
    sent: list[int] = []

    def gather(planned: Plan) -> list[Any]:
        answers = [answer(task) for task in planned.tasks]
        sent.extend(table.num_rows for table in answers)
        return answers

    monkeypatch.setattr(tracedb.ray, "gather", gather)
    monkeypatch.setitem(sys.modules, "ray", sys)
    words = ("report", "kernels", "--top", "2", "--lake", lake)
    found = run(*words, "--engine", "ray")
    assert sent == [2, 2, 2]
    wanted = run(*words)
    assert (found.stdout, found.stderr) == (wanted.stdout, wanted.stderr)
    assert "2 of " in found.stdout + found.stderr
    sent.clear()
    run("report", "gpu-gaps", "--by", "channels,rank", "--top", "1", "--lake", lake, "--engine", "ray")
    assert max(sent) <= 4  # one for each rank


def test_runs_that_one_row_pools_are_one_task(lake: Path, tasks: list[int]) -> None:
    """Both settings of the sweep are from torch."""
    words = ("report", "gemm-variance", "--by", "source", "--format", "csv", "--lake", lake)
    assert run(*words, "--engine", "ray").stdout == run(*words).stdout
    assert tasks == [2]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("range-time", "report range-time cannot be divided: its rows pool captures of several runs"),
        ("gemm-variance --by device", "rows pool captures of all runs"),
        ("gpu-timeline kernels", "--engine takes one report"),
        ("critical-path --step-range step*", "takes only the paths found at load with --engine"),
    ],
)
def test_what_cannot_be_divided_is_refused(words: str, reason: str, lake: Path, tasks: list[int]) -> None:
    done = run("report", *words.split(), "--lake", lake, "--engine", "ray")
    assert done.exit_code in (2, 3) and done.stdout == "" and done.stderr.count("\n") == 1
    assert reason in done.stderr and done.exit_code == 2
    assert tasks == []


def test_a_database_is_no_lake(tmp_path: Path, tasks: list[int]) -> None:
    done = run("report", "gpu-timeline", "--db", tmp_path / "run.duckdb", "--engine", "ray")
    assert done.exit_code == 2 and "--engine reads a lake" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(("engine", "package"), [("spark", "pyspark"), ("ray", "ray")])
def test_a_missing_engine_is_one_line(engine: str, package: str, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    done = run("report", "gpu-timeline", "--lake", lake, "--engine", engine)
    assert done.exit_code == 1 and done.stdout == "" and done.stderr.count("\n") == 1
    assert f"needs the package {package}" in done.stderr and f"tracedb-gpu[{engine}]" in done.stderr
