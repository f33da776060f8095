"""Labels that tell rows apart are abbreviated alike in every table, whichever rows come first."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import run
from support.tiny import GEMM, Tiny


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tiny = Tiny(tmp_path_factory.mktemp("labels") / "x.duckdb")
    for sweep in ("base", "tree"):
        for rank in (0, 1):
            tiny.capture(rank, {"sweep": f"sweep_20261127_{sweep}"})
            tiny.kernel(GEMM, 0, 100)
    return tiny.save()


@pytest.mark.parametrize("name", ["gpu-timeline", "kernels"])
def test_one_row_has_the_abbreviation_of_all(db: Path, name: str) -> None:
    """A single row, whose label no other row's could be compared with."""
    done = run("-q", "report", name, "--db", db, "--top", "1")
    assert "base/r0" in done.stdout and "sweep_2026" not in done.stdout


def test_groups_too_but_not_in_machine_formats(db: Path) -> None:
    lines = run("-q", "report", "top-kernels", "--db", db, "--by", "sweep", "--top", "1").stdout.splitlines()
    assert [line.split()[0] for line in lines[-2:]] == ["base", "tree"]
    text = run("-q", "report", "top-kernels", "--db", db, "--by", "sweep", "--format", "csv").stdout
    assert "sweep_20261127_base" in text


def test_no_column_of_ranks_where_no_capture_has_one(tmp_path: Path) -> None:
    """The column of captures tells rows apart then; one known rank among them is shown."""
    for name, ranks in (("none", (None, None)), ("one", (None, 3, 3))):
        tiny = Tiny(tmp_path / f"{name}.duckdb")
        for number, rank in enumerate(ranks):
            tiny.capture(rank, path=f"/traces/{number}.json")
            tiny.kernel(GEMM, 0, 100)
        head = run("-q", "report", "gpu-timeline", "--db", tiny.save()).stdout.partition("─")[0]
        assert "capture" in head and ("rank" in head) == (name == "one")
