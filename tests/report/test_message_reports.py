"""``tracedb report`` on messages, pipelines and experts: what it says beside the rows, and when there is no answer."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from support.pipelines import Pipeline, document
from support.traces import launched, write
from tracedb.cli.main import cli
from tracedb.pipeline.run import ingest


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pipeline of three stages with a slow one, and a capture without messages in another file."""
    folder = tmp_path_factory.mktemp("reports")
    pipeline = Pipeline([10, 30, 10], [20, 60, 20], 4, steps=2).run()
    for stage in range(3):
        (folder / f"rank{stage}.json").write_text(document(pipeline, stage))
    ingest(folder, db=folder / "t.duckdb")
    write(folder / "none" / "x.json", launched(2))
    ingest(folder / "none", db=folder / "none.duckdb")
    ingest(folder / "rank1.json", db=folder / "one.duckdb")
    return folder


def said(folder: Path, name: str, *arguments: str) -> tuple[int, str]:
    """Run a report and return its exit code and what it wrote to stderr."""
    done = CliRunner().invoke(cli, ["report", name, "--db", str(folder / arguments[0]), *arguments[1:]])
    return done.exit_code, done.stderr


def test_the_stage_that_paces_a_pipeline_is_named(folder: Path) -> None:
    code, text = said(folder, "pipeline-bubble", "t.duckdb")
    assert code == 0
    assert "stage 1 (rank 1) paces it" in text
    assert "ideal 33.3 %" in text
    assert "clocks are not aligned for 32 messages" in text
    assert "collectives are of one rank" not in text


def test_no_stage_is_judged_if_clocks_cannot_be_compared(folder: Path) -> None:
    shutil.copy(folder / "t.duckdb", folder / "apart.duckdb")
    with duckdb.connect(str(folder / "apart.duckdb")) as connection:
        connection.execute("UPDATE main.capture SET clock_zero_unix_ns = NULL WHERE rank = 1")
        connection.execute("DELETE FROM main.clock_alignment")
    _, text = said(folder, "pipeline-bubble", "apart.duckdb")
    assert "its bubble is not known, because the clocks of its ranks cannot be compared; nor is the stage that" in text


def test_collectives_point_to_the_messages(folder: Path) -> None:
    code, text = said(folder, "collectives", "t.duckdb")
    assert code == 0
    assert "kernels of sends and receives are not matched here; point-to-point has their messages" in text


@pytest.mark.parametrize(
    ("name", "database", "why"),
    [
        ("point-to-point", "none.duckdb", "no sends or receives are known"),
        ("pipeline-bubble", "none.duckdb", "no sends or receives are known"),
        ("expert-load", "none.duckdb", "no all-to-all was captured"),
        ("expert-load", "t.duckdb", "no all-to-all was captured"),
        ("point-to-point", "one.duckdb", "of one rank only; ingest the captures of all ranks together"),
        ("pipeline-bubble", "one.duckdb", "of one rank only; ingest the captures of all ranks together"),
    ],
)
def test_why_there_is_no_answer(folder: Path, name: str, database: str, why: str) -> None:
    code, text = said(folder, name, database)
    assert code == 3
    assert why in text
