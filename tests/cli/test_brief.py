"""``tracedb brief``: one page of Markdown."""

from __future__ import annotations

from pathlib import Path

import tracedb
from support.command import run
from support.tiny import Tiny
from support.traces import kernel, write

SECTIONS = ("configurations", "gpu-timeline-average", "top-kernels")


def brief(db: Path, *options: str) -> list[str]:
    done = run("brief", "--db", db, *options)
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_a_page_about_a_run(sample: Path) -> None:
    lines = brief(sample)
    assert len(lines) < 60
    assert lines[0] == "# run.duckdb"
    assert {"- captures: 8", "- profilers: torch", "- status: 8 complete"} <= set(lines)
    assert {"- ranks: 0, 1, 2, 3", "- kernels: 2,400"} <= set(lines)
    assert "- label channels: 4, 16" in lines
    assert [line.split()[1].rstrip(":") for line in lines if line.startswith("### ")] == list(SECTIONS)
    assert any(line.startswith("- **warning**: 2 configurations pooled") for line in lines)
    said = run("report", "top-kernels", "--db", sample, "--top", "4", "--format", "markdown").stdout
    assert {line for line in said.splitlines() if line.startswith("|")} <= set(lines)


def test_what_makes_a_ranking_doubtful_comes_before_the_best(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "a.duckdb")
    for labels, ranks in (({"channels": "4"}, (0,)), ({"channels": "8"}, (0, 1))):
        for rank in ranks:
            number = tiny.capture(rank, labels)
            events = tuple(tiny.kernel("gemm", step * 1000, 100) for step in (1, 2))
            for step, event in zip((1, 2), events, strict=True):
                tiny.range(100 * number + step, f"ProfilerStep#{step}", step * 1000, step * 1000 + 500, (event,))
    lines = brief(tiny.save())
    best = next(at for at, line in enumerate(lines) if "best: " in line)
    doubt = next(at for at, line in enumerate(lines) if "may not be comparable, they differ in number of ranks" in line)
    other = next(at for at, line in enumerate(lines) if "each row pools up to 2 ranks" in line)
    assert doubt < best < other


def test_filters_and_a_file(sample: Path, tmp_path: Path) -> None:
    assert brief(sample, "--where", "channels=4", "-o", str(tmp_path / "page.md")) == []
    lines = (tmp_path / "page.md").read_text(encoding="utf-8").splitlines()
    assert {"- captures: 4", "- status: 4 complete"} <= set(lines)
    assert "- label channels: 4" in lines


def test_labels_with_marks_of_markdown_read_like_the_others(tmp_path: Path) -> None:
    write(tmp_path / "a.json", [kernel(0, 5, name="add")])
    run("ingest", tmp_path / "a.json", "--db", tmp_path / "a.duckdb", "--label", "head_dim=64", "--label", "batch=4")
    assert {"- label `head_dim`: 64", "- label batch: 4"} <= set(brief(tmp_path / "a.duckdb"))


def test_what_was_not_captured_is_said_with_its_reason(tmp_path: Path) -> None:
    write(tmp_path / "a.json", [kernel(0, 5, name="add")])
    tracedb.ingest(tmp_path / "a.json", db=tmp_path / "a.duckdb")
    lines = brief(tmp_path / "a.duckdb")
    assert any(line.startswith("- gemm-variance has no answer: ") for line in lines)
    assert {"- ranks: not captured", "- kernels: 1"} <= set(lines)


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    write(tmp_path / "a.json", [kernel(0, 5, name="<img src=x>|\n# heading\n[a](b)")])
    done = run("ingest", tmp_path / "a.json", "--db", tmp_path / "a.duckdb", "--label", "k=v\n# title <b>")
    assert done.exit_code == 0, done.stderr
    lines = brief(tmp_path / "a.duckdb")
    assert [line for line in lines if line.startswith("# ")] == ["# a.duckdb"]
    (named,) = [line for line in lines if "<img" in line]
    assert "`<img src=x>\\|" in named


def test_ranks_are_in_the_order_of_numbers(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "a.duckdb")
    for rank in (10, 2):
        tiny.capture(rank, {})
        tiny.kernel("k", 0, 100)
    assert "- ranks: 2, 10" in run("brief", "--db", tiny.save()).stdout.splitlines()
