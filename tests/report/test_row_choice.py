"""Selecting, grouping and ordering rows: ``--by capture``, ``--path``, ``--sort``, lists with commas, ``--wide``."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from support.command import calls, report, run
from support.tiny import ADD, GEMM, NCCL, Tiny


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of two ranks with 4 and 8 channels, a third one with a comma in its label."""
    tiny = Tiny(tmp_path_factory.mktemp("choice") / "x.duckdb")
    for channels, folder in (("4", "before"), ("8", "after"), ("4,8", "odd")):
        for rank in (0, 1):
            capture = tiny.capture(rank, {"channels": channels, "sweep": "s"}, path=f"/data/{folder}/rank{rank}.json")
            inside = [tiny.kernel(GEMM, 10 * capture, 100 + capture), tiny.kernel(ADD, 500, 7)]
            tiny.kernel(NCCL, 600, 50)
            tiny.range(1, "forward", 0, 300, (inside[0],))
            tiny.range(2, "backward", 400, 600, (inside[1],))
    return tiny.save()


def test_a_label_that_holds_what_looks_like_another_key(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "x.duckdb")
    for note in ("a", "a,b=c"):
        tiny.capture(0, {"note": note})
        tiny.kernel(GEMM, 10, 100)
    assert captures_of(tiny.save(), "--where", "note=a\\,b=c") == [2]


def captures_of(db: Path, *options: str) -> list[int]:
    return sorted({row["capture"] for row in report(db, "top-kernels", "--by", "capture", *options)})


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--path", "*rank0*"], [1, 3, 5]),
        (["--path", "before/*"], [1, 2]),
        (["--path", "/data/*/rank1.json"], [2, 4, 6]),
        (["--path", "before", "--path", "after/rank1*"], [1, 2, 4]),
        (["--path", "*rank0*", "--capture", "1,2"], [1]),
        (["--path", "*rank0*", "--where", "channels=8"], [3]),
        (["--rank", "0,1", "--where", "channels=4"], [1, 2]),
        (["--rank", "1"], [2, 4, 6]),
        (["--capture", "2, 3"], [2, 3]),
        (["--where", "channels=4,8"], [5, 6]),  # a value that holds the comma itself
        (["--where", "channels=8,4", "--rank", "0"], [1, 3]),
        (["--where", "channels=8", "--where", "channels=4"], [1, 2, 3, 4]),
        (["--where", "channels=8,4\\,8"], [3, 4, 5, 6]),  # a backslash takes a comma into the value
    ],
)
def test_captures_are_chosen_by_path_and_by_lists(db: Path, options: list[str], expected: list[int]) -> None:
    assert captures_of(db, *options) == expected


def test_classes_and_ranges_are_given_several_at_once(db: Path) -> None:
    assert set(calls(db, "--class", "matmul,elementwise")) == {GEMM, ADD}
    assert set(calls(db, "--class", "!matmul,elementwise")) == {NCCL}
    assert set(calls(db, "--range", "forward")) == {GEMM}
    assert set(calls(db, "--range", "forw*", "--range", "back*")) == {GEMM, ADD}
    ranges = report(db, "nvtx-ranges", "--range", "forward", "--range", "backward")
    assert {row["name"] for row in ranges} == {"forward", "backward"}


def test_groups_are_given_with_commas_and_by_capture(db: Path) -> None:
    rows = report(db, "top-kernels", "--by", "sweep,channels", "--class", "matmul")
    assert [(row["sweep"], row["channels"], row["total_ns"]) for row in rows] == [
        ("s", "4", 203),
        ("s", "8", 207),
        ("s", "4,8", 211),
    ]
    rows = report(db, "gemm-variance", "--by", "capture")
    assert [(row["capture"], row["total_ns"]) for row in rows] == [(number, 100 + number) for number in range(1, 7)]
    table = run("report", "top-kernels", "--by", "capture", "--class", "matmul", "--db", db)
    assert [line.split()[:2] for line in table.stdout.splitlines()[-2:]] == [
        ["5", "odd/rank0.json"],
        ["6", "odd/rank1.json"],
    ]
    assert "pooled" not in table.stderr


@pytest.mark.parametrize(
    ("sort", "column", "expected"),
    [
        ("-total_ns", "total_ns", [212, 208, 204]),
        ("total_ns DESC", "total_ns", [212, 208, 204]),
        ("total_ns", "total_ns", [204, 208, 212]),
        ("total_ns asc", "total_ns", [204, 208, 212]),
        ("-calls,-avg_ns", "avg_ns", [106.0, 104.0, 102.0]),
        ("-channels", "channels", ["8", "4", "4,8"]),  # numbers as numbers; others stay behind
        ("channels", "channels", ["4", "8", "4,8"]),
    ],
)
def test_rows_are_sorted(db: Path, sort: str, column: str, expected: list[object]) -> None:
    options = ["--by", "channels", "--class", "matmul", "--rank", "1", "--top", "0", "--sort", sort]
    rows = report(db, "top-kernels", *options)
    factor = 2 if column == "total_ns" else 1
    assert [row[column] * factor if column == "total_ns" else row[column] for row in rows] == expected


def test_the_first_rows_are_those_of_the_order_asked_for(db: Path) -> None:
    rows = report(db, "top-kernels", "--sort", "total_ns", "--top", "1")
    assert [row["name"] for row in rows] == [ADD]
    rows = report(db, "top-kernels", "--by", "capture", "--sort", "total_ns", "--sort", "-capture", "--top", "1")
    assert [(row["capture"], row["name"]) for row in rows] == [(number, ADD) for number in range(6, 0, -1)]


@pytest.mark.parametrize(
    "options",
    [
        ["--by", "capture", "--sort", "-total_ns", "--top", "2"],
        ["--path", "*rank0*", "--where", "channels=8", "--by", "sweep,capture"],
        ["--range", "forward", "--range", "backward", "--sort", "name"],
        ["--class", "matmul,collective", "--rank", "0,1", "--sort", "avg_ns DESC"],
    ],
)
def test_the_printed_sql_gives_the_same_rows_in_a_plain_shell(db: Path, options: list[str]) -> None:
    printed = run("report", "top-kernels", "--db", db, "--show-sql", *options).stdout
    with duckdb.connect(str(db), read_only=True) as connection:
        cursor = connection.execute(printed)
        names = [item[0] for item in cursor.description or ()]
        found = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    assert found == report(db, "top-kernels", *options)


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (
            ["--sort", "total"],
            2,
            "no column 'total' to sort by; did you mean total_ns? there are: name, class",
        ),
        (["--sort", "-sher_percent"], 2, "did you mean share_percent?"),
        (["--path", "nowhere*"], 3, "--path 'nowhere*' matches; there are: 1 before/rank0.json"),
        (["--path", "before", "--capture", "3"], 3, "no capture matches all of --path 'before'"),
        (["--rank", "0,x"], 2, "'0,x' is not a whole number or a list such as 0,1"),
        (["--rank", "0,7"], 3, "no capture has rank 7"),
        (["--where", "channels=4,9"], 3, "no capture has channels=9"),
        (["--class", "matmul,nothing"], 3, "no GPU activity of class nothing"),
        (["--range", "forward", "--range", "x*"], 3, "no range matches 'x*'"),
        (["--by", "channels,chanels"], 2, "cannot group by 'chanels'"),
    ],
)
def test_what_does_not_exist_is_said(db: Path, options: list[str], code: int, words: str) -> None:
    done = run("report", "top-kernels", "--db", db, *options)
    assert (done.exit_code, done.stdout) == (code, "")
    assert words in done.stderr


def test_filters_are_said_in_json(db: Path) -> None:
    options = ["--path", "*rank0*", "--range", "forward", "--range", "backward", "--sort", "-calls", "--rank", "0,1"]
    said = json.loads(run("report", "top-kernels", "--db", db, "--format", "json", *options).stdout)["filters"]
    assert said["path"] == ["*rank0*"]
    assert said["range"] == ["forward", "backward"]
    assert said["sort"] == ["-calls"]
    assert said["rank"] == [0, 1]
    one = json.loads(run("report", "top-kernels", "--db", db, "--format", "json", "--range", "forward").stdout)
    assert one["filters"]["range"] == "forward"


def test_a_wide_table_has_every_column_and_whole_names(db: Path) -> None:
    columns = json.loads(run("report", "gemm-variance", "--db", db, "--format", "json").stdout)["columns"]
    lines = run("report", "gemm-variance", "--db", db, "--wide").stdout.splitlines()
    rule = next(at for at, line in enumerate(lines) if line.startswith("─"))
    headers = [word for line in lines[:rule] for word in line.split()]
    for column in columns:
        bare = column["name"].removesuffix("_ns").removesuffix("_percent")
        assert bare in headers or column["name"] in headers
    assert all(GEMM in line for line in lines[rule + 1 :])
    assert "no collectives" in lines[-1] or "never overlapped" in lines[-1] or "always overlapped" in lines[-1]
