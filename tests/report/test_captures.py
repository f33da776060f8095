"""Captures with equal rank and labels: tables show their number and path, and both can select them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command import report, run
from support.tiny import GEMM, NCCL, Tiny
from tracedb.errors import UsageError
from tracedb.report import captures
from tracedb.storage.connection import connect

PATHS = {
    1: "/data/before/trace.json",
    2: "/data/after/trace.json",
    3: "/data/after2/x[1].json",
    4: "/data/other/x1.json",
}


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two unlabelled runs of two ranks each."""
    tiny = Tiny(tmp_path_factory.mktemp("captures") / "x.duckdb")
    for run_number, folder in enumerate(("before", "after")):
        for rank in (0, 1):
            tiny.capture(rank, path=f"/data/{folder}/rank{rank}.json", clock_zero_unix_ns=0)
            tiny.kernel(GEMM, 0, 100 + run_number)
            tiny.kernel(
                NCCL, 200 + 10 * rank, 50 - 10 * rank, collective="all_reduce", group_ranks="[0, 1]", group_size=2
            )
    return tiny.save()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2", [2]),
        ("before", [1]),
        ("after", [2]),
        ("after/trace.json", [2]),
        ("x[1].json", [3]),
        ("x1", [4]),
        ("after*", [2, 3]),
        ("after*/trace.*", [2]),
        ("/data/other/x1.json", [4]),
        ("data/*/trace.json", [1, 2]),
        ("efor", [1]),
    ],
)
def test_what_a_word_means(text: str, expected: list[int]) -> None:
    assert captures.chosen(PATHS, text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("trace.json", "--capture trace.json: 2 captures match: 1 before, 2 after"),
        ("9", "no capture has this number; there are: 1 before, 2 after, 3 x[1].json, 4 x1.json"),
        ("nowhere", "no capture has it in its path; there are: 1 before"),
        ("q*", "no capture has it in its path"),
        ("", "no capture has it in its path"),
    ],
)
def test_words_that_mean_no_capture_or_several(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        captures.chosen(PATHS, text)
    assert words in str(caught.value)


def test_a_star_may_stand_for_several_folders() -> None:
    found = {
        1: "/runs/nccl_4channels/torch/rank1/trace.json",
        2: "/runs/nccl_4channels/torch/rank10/trace.json",
        3: "/runs/nccl_8channels/torch/rank1/trace.json",
    }
    assert captures.chosen(found, "nccl_4channels*rank1") == [1]
    assert captures.chosen(found, "nccl_4channels*rank1*") == [1, 2]
    assert captures.chosen(found, "nccl_*rank1/trace.json") == [1, 3]
    with pytest.raises(UsageError, match="no capture has it in its path"):
        captures.chosen(found, "channels*rank1")


def test_a_number_that_no_capture_has_is_looked_for_in_file_names() -> None:
    named = {1: "/runs/host/908_results.db", 2: "/runs/host/1908_results.db", 3: "/runs/12/a.csv"}
    assert captures.chosen(named, "908") == [1]
    assert captures.chosen(named, "12") == [3]
    assert captures.chosen(named, "3") == [3]  # a capture's number comes first
    for option, text in (("--capture", "90"), ("remove", "908")):  # commands that change captures take numbers only
        with pytest.raises(UsageError, match="no capture has this number"):
            captures.chosen(named, text, option)


def test_the_shortest_part_that_tells_apart() -> None:
    assert captures.told_apart(PATHS) == {1: "before", 2: "after", 3: "x[1].json", 4: "x1.json"}
    crossed = {1: "/a/x/t.json", 2: "/a/y/t.json", 3: "/b/x/t.json", 4: "/b/y/t.json"}
    assert captures.told_apart(crossed) == {1: "a/x", 2: "a/y", 3: "b/x", 4: "b/y"}
    assert captures.told_apart({1: "/a/t.json", 2: "/a/t.json", 3: ""}) == {1: "t.json", 2: "t.json", 3: ""}
    for number, name in captures.told_apart(PATHS).items():
        assert captures.chosen(PATHS, name) == [number]


def test_rows_say_their_capture_where_nothing_else_tells_them_apart(db: Path) -> None:
    table = run("report", "gpu-timeline", "--db", db).stdout
    assert [line.split()[:4] for line in table.splitlines()[-4:]] == [
        ["r0", "1", "before/rank0.json", "0"],
        ["r0", "3", "after/rank0.json", "0"],
        ["r1", "2", "before/rank1.json", "0"],
        ["r1", "4", "after/rank1.json", "0"],
    ]
    assert "capture" not in run("report", "gpu-timeline", "--db", db, "--capture", "after*").stdout
    assert {row["capture_id"] for row in report(db, "gpu-timeline")} == {1, 2, 3, 4}


@pytest.mark.parametrize(("words", "mean_ns"), [(["before*"], 100), (["3", "after/rank1.json"], 101)])
def test_choosing_captures(db: Path, words: list[str], mean_ns: int) -> None:
    options = [option for word in words for option in ("--capture", word)]
    (gemm,) = (row for row in report(db, "top-kernels", *options) if row["name"] == GEMM)
    assert (gemm["calls"], gemm["avg_ns"]) == (2, mean_ns)
    answer = json.loads(run("report", "gemm-variance", "--db", db, "--format", "json", *options).stdout)
    assert answer["filters"]["capture"] == sorted({row["capture_id"] for row in answer["rows"]})


@pytest.mark.parametrize("name", ["collectives", "stragglers", "collective-summary"])
def test_ranks_of_a_chosen_run_are_matched_with_each_other(db: Path, name: str) -> None:
    (first, *_) = report(db, name, "--capture", "after/*")
    assert first["calls"] == 1 if "calls" in first else first["ranks"] == 2
    if name == "collectives":
        assert (first["latency_ns"], first["wait_ns"]) == (40, {"0": 10, "1": 0})


def test_the_printed_select_gives_the_same(db: Path) -> None:
    options = ("collectives", "--db", str(db), "--capture", "after/*")
    text = run("report", *options, "--show-sql", "--top", "0").stdout
    with connect(db) as connection:
        rows = connection.execute(text).fetchall()
    assert len(rows) == len(json.loads(run("report", *options, "--format", "json").stdout)["rows"]) == 1


def test_an_unknown_capture_is_one_line(db: Path) -> None:
    for command in (("report", "top-kernels"), ("export", "rocprof-yaml")):
        done = run(*command, "--db", db, "--capture", "rank0.json")
        assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert "2 captures match: 1 before/rank0.json, 3 after/rank0.json" in done.stderr
