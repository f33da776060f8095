"""``tracedb expected``: predictions are stored and compared, causes are found, gates hold."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from support.command import report, run
from support.tiny import Tiny

GPU = "NVIDIA X100"
OPERATORS = {"aten::mm": 200_000, "aten::gelu": 90_000, "aten::add": 60_000, "aten::cat": 40_000, "aten::sum": 30_000}
STEPS, CALLS = 4, 3


def database(path: Path, ranks: int, gpu: str = GPU) -> Path:
    """Ranks with the same operators in the same steps; each call within 1 % of its operator's time."""
    tiny = Tiny(path)
    for rank in range(ranks):
        number = tiny.capture(rank)
        at = op_id = 0
        for step in range(STEPS):
            start, events = at, []
            for name, ns in OPERATORS.items():
                for call in range(CALLS):
                    op_id += 1
                    tiny.add("op", capture_id=number, op_id=op_id, name=name, start_ns=at, duration_ns=5,
                             input_dims="[[64, 32], [32, 16]]", input_types='["float", "float"]')  # fmt: skip
                    events.append(tiny.kernel("k", at, round(ns * (1 + (call - 1) / 200)), op_id=op_id))
                    at += 1_000_000
            tiny.range(step + 1, f"ProfilerStep#{step}", start, at, tuple(events))
            at += 1_000_000
    tiny.connection.execute("UPDATE main.device SET name = ?, is_used = true", [gpu])
    return tiny.save()


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of four ranks."""
    return database(tmp_path_factory.mktemp("expected") / "clean.duckdb", 4)


@pytest.fixture(scope="module")
def models(clean: Path) -> Path:
    """Models of it."""
    folder = clean.parent / "models"
    done = run("-q", "fit", "--from", "traces", "--db", clean, "--models", folder, "--jobs", "1")
    assert done.exit_code == 0, done.stderr
    return folder


@pytest.fixture
def planted(clean: Path, tmp_path: Path) -> Callable[..., Path]:
    """``planted("capture_id = 3", 2.0)``: a copy in which calls of such operators take longer."""

    def plant(condition: str, factor: float) -> Path:
        path = tmp_path / "planted.duckdb"
        shutil.copy(clean, path)
        with duckdb.connect(str(path)) as connection:
            connection.execute(
                f"""UPDATE kernel_event AS e SET duration_ns = e.duration_ns * {factor} FROM op AS o
                    WHERE o.capture_id = e.capture_id AND o.op_id = e.op_id AND {condition}"""
            )
        return path

    return plant


def named(done: Any, *columns: str) -> set[tuple[Any, ...]]:
    """The columns of the rows with a verdict other than as expected."""
    assert done.exit_code == 0, done.stderr
    return {
        tuple(row[name] for name in (*columns, "verdict"))
        for row in json.loads(done.stdout)["rows"]
        if row["verdict"] != "as expected"
    }


def test_nothing_is_named_in_a_clean_run(clean: Path, models: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.duckdb"
    shutil.copy(clean, path)
    done = run("expected", "--models", models, "--db", path, "--format", "json", "--fail-on", "slower>0")
    assert named(done, "name") == set()
    assert "20 predictions" in done.stderr
    assert "20 of 20 operators (and shapes) have a prediction, 100.0 % of the measured time" in done.stderr
    assert named(run("expected", "--others", "--db", path, "--format", "json"), "name") == set()
    rows = report(path, "expected")
    assert {row["basis"] for row in rows} == {"others"}
    assert len(rows) == 20


def test_a_slow_gpu_among_many(planted: Callable[..., Path]) -> None:
    path = planted("e.capture_id = 3", 1.1)
    done = run("expected", "--others", "--db", path, "--format", "json")
    assert named(done, "rank", "name") == {(2, name, "slower") for name in OPERATORS}


def test_another_process_for_a_step(planted: Callable[..., Path], models: Path) -> None:
    """Step 2 of rank 1 takes twice as long: named by step, and as slower at times over all steps."""
    first, last = 2 * CALLS * len(OPERATORS), 3 * CALLS * len(OPERATORS)
    path = planted(f"e.capture_id = 2 AND o.op_id > {first} AND o.op_id <= {last}", 2)
    done = run("expected", "--models", models, "--db", path, "--by", "rank", "--by", "step", "--format", "json")
    assert named(done, "rank", "step", "name") == {(1, 2, name, "slower") for name in OPERATORS}
    done = run("expected", "--db", path, "--format", "json")
    assert named(done, "rank", "name") == {(1, name, "slower at times") for name in OPERATORS}


def test_an_operator_with_another_layout(planted: Callable[..., Path], models: Path) -> None:
    path = planted("o.name = 'aten::cat' AND e.capture_id = 4", 1.5)
    done = run("expected", "--models", models, "--db", path, "--format", "json")
    assert named(done, "rank", "name") == {(3, "aten::cat", "slower")}
    assert json.loads(done.stdout)["rows"][0]["name"] == "aten::cat"


@pytest.mark.parametrize(
    ("limit", "code", "said"),
    [
        ("slower>0", 4, "gate failed: slower>0: 1 slower"),
        ("slower>1", 0, ""),
        ("lost>0.1%", 4, "% of the predicted time lost"),
        ("lost[aten::cat]>100000", 4, "ns lost"),
        ("ratio[aten::c*]>1.1", 4, "1.125 times the predicted time"),
        ("ratio[aten::mm]>1.1", 0, ""),
        ("slower>1.2.3", 2, "1.2.3 is no number"),
        ("slower.calls>1", 2, "expected METRIC[NAME]>LIMIT"),
        ("ratio[aten::bmm]>1.1", 3, "no operator of that name is predicted"),
        ("slower>1%", 2, "expected METRIC[NAME]>LIMIT"),
        ("speed>1", 2, "metrics: slower, lost, ratio"),
    ],
)
def test_gates(limit: str, code: int, said: str, gated: Path) -> None:
    done = run("expected", "--db", gated, "--fail-on", limit)
    assert done.exit_code == code, done.stderr
    assert said in done.stderr


@pytest.fixture(scope="module")
def gated(clean: Path, models: Path) -> Path:
    """A database with stored predictions, in which one operator of one of four ranks takes 1.5 times as long."""
    path = clean.parent / "gated.duckdb"
    shutil.copy(clean, path)
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            """UPDATE kernel_event AS e SET duration_ns = e.duration_ns * 1.5 FROM op AS o
               WHERE o.capture_id = e.capture_id AND o.op_id = e.op_id AND o.name = 'aten::cat' AND e.capture_id = 4"""
        )
    assert run("-q", "expected", "--models", models, "--db", path).exit_code == 0
    return path


def test_predictions_follow_their_captures(gated: Path, tmp_path: Path) -> None:
    """They are removed with a capture, and merged with it."""
    path = tmp_path / "run.duckdb"
    shutil.copy(gated, path)
    assert run("remove", "4", "--db", path).exit_code == 0
    assert {row["rank"] for row in report(path, "expected")} == {0, 1, 2}
    merged = tmp_path / "merged.duckdb"
    assert run("merge", path, "-o", merged).exit_code == 0
    assert len(report(merged, "expected")) == 15


def test_without_predictions(clean: Path, models: Path, tmp_path: Path) -> None:
    done = run("report", "expected", "--db", clean)
    assert (done.exit_code, "tracedb expected --models DIR" in done.stderr) == (3, True)
    done = run("expected", "--models", models, "--others", "--db", clean)
    assert (done.exit_code, "exclude each other" in done.stderr) == (2, True)
    other = database(tmp_path / "y.duckdb", 1, "NVIDIA Y200")
    done = run("expected", "--models", models, "--db", other)
    assert done.exit_code == 3
    assert f"it was recorded on NVIDIA Y200 with fp32, they are of {GPU} with fp32, fitted to operators" in done.stderr
    done = run("expected", "--others", "--db", other)
    assert (done.exit_code, "by two captures" in done.stderr) == (3, True)
