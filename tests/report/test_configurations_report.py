"""``tracedb report configurations``: its summary, and its message if there is no answer."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq

from support.command import run
from support.tiny import ADD, Tiny


def add(tiny: Tiny, channels: str, durations: tuple[int, ...], name: str = "ProfilerStep#{}", **values: str) -> None:
    tiny.capture(0, {"channels": channels}, **values)
    for number, duration in enumerate(durations):
        start = 10_000_000 * number
        event = tiny.kernel(ADD, start, 50)
        tiny.range(number + 1, name.format(number), start, start + duration, (event,))


def test_gist(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "x.duckdb")
    add(tiny, "4", (2_000_000, 2_000_001, 2_000_002, 2_000_003))
    add(tiny, "8", (3_000_000, 3_000_001, 3_000_002, 3_000_003))
    db = tiny.save()
    done = run("report", "configurations", "--db", db)
    assert done.exit_code == 0
    assert (
        "best: channels=4, 2.000 ms a step; next: channels=8, 1.50 times as long, beyond noise (p = 0.03 over steps of "
        "one run each: says nothing about other runs)" in done.stderr
    )
    done = run("report", "configurations", "--db", db, "--skip-warmup", "1", "--by", "channels", "--format", "json")
    assert "best: channels=4, 2.000 ms a step; next: channels=8, 1.50 times as long, too few steps" in done.stderr
    assert [(row["channels"], row["is_best"], row["beyond_noise"]) for row in json.loads(done.stdout)["rows"]] == [
        ("4", True, None),
        ("8", False, None),
    ]
    done = run("report", "configurations", "--db", db, "--where", "channels=8")
    assert "only one configuration" in done.stderr
    done = run("report", "configurations", "--db", db, "--where", "channels=4,8,run=none")  # several labels in one
    assert done.exit_code == 2 and "no capture has a label 'run'; label keys here: channels" in done.stderr


def test_ranges_as_steps_and_no_steps(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "x.duckdb")
    add(tiny, "4", (2_000_000, 4_000_000), name="iteration {}")
    db = tiny.save()
    done = run("report", "configurations", "--db", db)
    assert done.exit_code == 3 and done.stdout == ""
    assert "no steps are marked: record with" in done.stderr and "--step-range GLOB" in done.stderr
    done = run("report", "configurations", "--db", db, "--step-range", "iteration*", "--format", "json")
    assert [row["step_mean_ns"] for row in json.loads(done.stdout)["rows"]] == [3_000_000]


def test_what_is_left_out_and_pooled_is_said(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "x.duckdb")
    add(tiny, "4", (2_000_000,))
    add(tiny, "4", (2_500_000,), path="/traces/again.json")
    add(tiny, "8", ())
    tiny.kernel(ADD, 0, 50)
    done = run("report", "configurations", "--db", tiny.save())
    assert "1 capture without steps: no steps marked" in done.stderr
    assert "2 captures with the same source, rank and labels pooled" in done.stderr


def test_files_hold_the_gist_and_how_many_rows_are_left_out(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "x.duckdb")
    for channels in ("4", "8", "16"):
        add(tiny, channels, (2_000_000, 2_000_000))
    db = tiny.save()
    for ending in ("txt", "md", "html", "json", "parquet", "csv"):
        path = tmp_path / f"x.{ending}"
        assert run("report", "configurations", "--db", db, "--top", "1", "-o", path).exit_code == 0
        if ending == "parquet":
            held = pq.read_schema(path).metadata
            text = held[b"tracedb.notes"].decode()
        else:
            text = path.read_text(encoding="utf-8")
        said = "1 of 3 rows" in text and "too few steps to tell from noise" in text
        assert said == (ending != "csv")  # pure data


def test_a_configuration_without_labels_is_named_by_its_capture(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "x.duckdb")
    tiny.capture(0, {}, path="/traces/small/alone.json")
    event = tiny.kernel(ADD, 0, 50)
    tiny.range(1, "ProfilerStep#0", 0, 1_000_000, (event,))
    add(tiny, "4", (2_000_000,))
    add(tiny, "8", (3_000_000,))
    done = run("report", "configurations", "--db", tiny.save())
    assert "best: alone.json, 1.000 ms a step; next: channels=4, 2.00 times as long" in done.stderr
    assert "may not be comparable, they differ in labels (some captures have none): --where" in done.stderr


def test_ranked_configurations_of_other_ranks_gpus_or_profilers_are_warned_of(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "x.duckdb")
    add(tiny, "4", (2_000_000,))
    add(tiny, "8", (3_000_000,), path="/traces/8.json")
    tiny.capture(1, {"channels": "8"}, path="/traces/8.json")
    event = tiny.kernel(ADD, 0, 50)
    tiny.range(1, "ProfilerStep#0", 0, 3_000_000, (event,))
    add(tiny, "16", (4_000_000,), source="nsys")
    tiny.connection.execute("UPDATE main.device SET name = CASE capture_id WHEN 4 THEN 'H200' ELSE 'H100' END")
    db = tiny.save()
    said = run("report", "configurations", "--db", db).stderr
    assert "they differ in number of ranks (1, 2); GPU (H100, H200); profiler (nsys, torch): --where" in said
    assert "comparable" not in run("report", "configurations", "--db", db, "--where", "channels=4").stderr
    assert (
        "comparable" not in run("report", "configurations", "--db", db, "--where", "channels=4,8", "--rank", "0").stderr
    )
