"""Conclusions of reports say what they are about: all rows, one of them, one step."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import run
from support.tiny import ADD, NCCL, Tiny
from tracedb.output.display import MISSING


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of two ranks; one rank of four is idle for 80 % of a second, the others never."""
    tiny = Tiny(tmp_path_factory.mktemp("idle") / "x.duckdb")
    for channels in ("4", "8"):
        for rank in (0, 1):
            is_idle = (channels, rank) == ("8", 1)
            tiny.capture(rank, {"channels": channels}, path=f"/traces/{channels}/{rank}.json")
            for start in (0, 900_000_000) if is_idle else (0,):
                tiny.kernel(ADD, start, 100_000_000 if is_idle else 1_000_000_000)
    return tiny.save()


def test_an_idle_device_among_others_is_named(idle: Path) -> None:
    said = run("report", "gpu-timeline", "--db", idle).stderr
    assert "20 % of the time is idle over all 4 rows" in said
    assert "; most in channels=8 rank 1, 80 %: idle-breakdown" in said
    said = run("report", "gpu-timeline", "--db", idle, "--by", "rank", "--by", "channels").stderr
    assert "; most in rank=1 channels=8, 80 %" in said
    said = run("report", "gpu-timeline", "--db", idle, "--where", "channels=8", "--rank", "1").stderr
    assert "tracedb: 80 % of the time is idle, start-up" in said and "most in" not in said


def run_of_ranks(tiny: Tiny, labels: dict[str, str], late: list[int | None], ranks: int = 3) -> None:
    """Steps of eight all-reduces of 1 ms; in each, the rank named for the step begins 0.9 ms after the others."""
    for rank in range(ranks):
        tiny.capture(rank, labels, path=f"/traces/{'-'.join(labels.values())}/{rank}.json")
        for step, late_rank in enumerate(late):
            start, events = 20_000_000 * step, []
            for call in range(8):
                behind = 900_000 if (call % ranks if late_rank is None else late_rank) == rank else 0
                events.append(
                    tiny.kernel(NCCL, start + 2_000_000 * call + behind, 1_000_000 - behind, collective="allreduce",
                                group_name="0", group_size=ranks)
                )  # fmt: skip
            tiny.range(step + 1, f"ProfilerStep#{step}", start, start + 19_000_000, tuple(events))


def straggling(path: Path, *runs: tuple[dict[str, str], list[int | None]]) -> Path:
    tiny = Tiny(path)
    for labels, late in runs:
        run_of_ranks(tiny, labels, late)
    return tiny.save()


def test_waiting_is_said_for_each_rank_and_step(tmp_path: Path) -> None:
    """Two ranks wait 0.9 ms in each of 32 calls: 57.6 ms in sum, but 7.2 ms of each of them in a step."""
    db = straggling(tmp_path / "x.duckdb", ({"channels": "4"}, [1, 1, 1, 1]))
    said = run("report", "stragglers", "--db", db).stderr
    words = "last in 32 of 32 collectives; each of the other ranks waits 7.2 ms per step for it"
    assert f"rank 1 is the straggler in channels=4: {words}" in said


def test_ranks_that_hold_up_single_steps_are_named(tmp_path: Path) -> None:
    db = straggling(tmp_path / "x.duckdb", ({"channels": "4"}, [1, 2, 2]), ({"channels": "8"}, [None, None, None]))
    said = run("report", "stragglers", "--db", db).stderr
    where = "rank 1 in step 0, rank 2 in steps 1, 2: each of the other ranks waits 7.2 ms there"
    assert f"no lasting straggler in channels=4, but {where}" in said
    assert "no straggler in 1 of 2 configurations" in said
    said = run("report", "stragglers", "--db", db, "--where", "channels=4").stderr
    assert f"no lasting straggler, but {where}" in said and "no straggler in" not in said


def test_stragglers_of_part_of_the_recordings_are_counted(tmp_path: Path) -> None:
    runs: list[tuple[dict[str, str], list[int | None]]]
    runs = [({"channels": channels}, [rank] * 4) for channels, rank in (("4", 0), ("8", 1), ("16", 1), ("24", 2))]
    db = straggling(tmp_path / "x.duckdb", *runs, ({"channels": "32"}, [None] * 4))
    said = run("report", "stragglers", "--db", db, "--by", "rank")
    assert "not the same rank in all of them: rank=1: 2 of 5, rank=0: 1 of 5, rank=2: 1 of 5" in said.stderr
    assert "no straggler in 0" not in said.stderr and "1/5" in said.stdout and "2/5" in said.stdout
    said = run("report", "stragglers", "--db", db)
    changes = "the straggler changes from configuration to configuration (rank 0 in 1, rank 1 in 2, rank 2 in 1)"
    assert changes in said.stderr and "straggler in " not in said.stdout


def test_what_was_meant_is_suggested(tmp_path: Path) -> None:
    db = straggling(tmp_path / "x.duckdb", ({"channels": "4"}, [1, 1, 1, 1]), ({"run": "b"}, [1, 1, 1, 1]))
    done = run("report", "top-kernels", "--class", "colective", "--db", db)
    assert done.exit_code == 3 and "did you mean collective? there are: collective" in done.stderr
    done = run("report", "gemm-spread", "--by", "channels", "--db", db)
    assert done.exit_code == 2 and "it has rows for each value of each label already" in done.stderr
    said = run("report", "stragglers", "--by", "channels", "--db", db).stderr
    assert f"channels={MISSING}: rank 1 is the straggler" in said  # as in the table
