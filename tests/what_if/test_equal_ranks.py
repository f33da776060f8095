"""``tracedb whatif --ranks-equal`` of work that is shared out unevenly: pipeline stages and experts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command import run
from support.pipelines import Pipeline, document
from support.tiny import Tiny
from tracedb.pipeline.run import ingest

US = 1_000


def asked(db: Path, *options: str) -> dict[str, int]:
    done = run("whatif", "--db", db, *options, "--format", "json")
    assert done.exit_code == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    return {"measured": row["measured_ns"], "predicted": row["predicted_ns"]}


def recorded(folder: Path, forward: list[int], backward: list[int]) -> Path:
    """Write and load a step of a pipeline of two stages and four micro-batches; times in us."""
    pipeline = Pipeline(forward, backward, 4, transfer=4, waits=True).run()
    folder.mkdir()
    for stage in range(2):
        (folder / f"rank{stage}.json").write_text(document(pipeline, stage))
    ingest(folder, db=folder / "t.duckdb")
    return folder / "t.duckdb"


def test_unequal_stages(tmp_path: Path) -> None:
    """Stages of six and two layers become as fast as two of four, which still wait for each other's data."""
    even = asked(recorded(tmp_path / "even", [400, 400], [800, 800]), "--scale", "class=host:1")["measured"]
    uneven = asked(recorded(tmp_path / "uneven", [600, 200], [1200, 400]), "--ranks-equal")
    assert uneven["measured"] > 1.15 * even
    assert uneven["predicted"] == pytest.approx(even, rel=0.02)


def test_equal_stages_have_nothing_to_gain(tmp_path: Path) -> None:
    """The bubble of the schedule stays."""
    even = asked(recorded(tmp_path / "even", [400, 400], [800, 800]), "--ranks-equal")
    assert even["predicted"] == even["measured"]


def exchange(tiny: Tiny, rank: int, tokens: int, compute: int) -> None:
    """Add a rank that computes for so many us and then takes part in an all-to-all of both ranks, until 1,100 us."""
    tiny.capture(rank=rank, world_size=2)
    tiny.kernel("sgemm", 0, compute * US, stream_id=7)
    tiny.kernel("ncclDevKernel_SendRecv", compute * US, (1_100 - compute) * US, stream_id=7, collective="all_to_allv",
                group_name="0", group_size=2, message_in_elements=tokens, message_out_elements=tokens)  # fmt: skip


@pytest.mark.parametrize(("tokens", "right"), [((350, 650), 900), ((500, 500), 700)])
def test_uneven_experts_take_the_mean(tmp_path: Path, tokens: tuple[int, int], right: int) -> None:
    """Rank 1 computes 1,000 us and rank 0 600; with as many tokens for both, rank 1 is slow and becomes like rank 0."""
    tiny = Tiny(tmp_path / "t.duckdb")
    for rank, compute in enumerate((600, 1_000)):
        exchange(tiny, rank, tokens[rank], compute)
    assert asked(tiny.save(), "--ranks-equal") == {"measured": 1_100 * US, "predicted": right * US}
