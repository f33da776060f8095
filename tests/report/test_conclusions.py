"""Conclusions of reports say what they are about: all rows, one of them, one step."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import run
from support.tiny import ADD, Tiny


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
