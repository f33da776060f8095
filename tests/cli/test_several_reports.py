"""``tracedb report A B C -o FILE``, ``-o FOLDER`` and ``--all``: several reports, some without an answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command import run
from support.tiny import ADD, GEMM, Tiny

HOSTILE = 'k<script>alert(1)</script>|`"&\x1b[2J'
NAMES = ("top-kernels", "kernel-counters", "gpu-timeline")
REASON = "no hardware counters were captured"


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two ranks with kernels, and a capture without any GPU activity."""
    tiny = Tiny(tmp_path_factory.mktemp("several") / "x.duckdb")
    for rank in (0, 1):
        tiny.capture(rank, {"run": "a"}, path=f"/runs/rank{rank}/trace.json")
        tiny.kernel(GEMM, 0, 100 + rank)
        tiny.kernel(HOSTILE, 200, 50)
    tiny.capture(2, {"run": "a"}, path="/runs/../<b>cpu.json", status="no_gpu_activity")
    return tiny.save()


def test_one_page(db: Path, tmp_path: Path) -> None:
    done = run("report", *NAMES, "--db", db, "-o", tmp_path / "all.html")
    assert (done.exit_code, done.stdout) == (0, "")
    assert f"no answer: kernel-counters: {REASON}" in done.stderr
    text = (tmp_path / "all.html").read_text(encoding="utf-8")
    assert [text.count(f'<h2 id="{name}">') for name in NAMES] == [1, 1, 1]
    assert (text.count("<table>"), text.count("<html"), text.count("<script>")) == (2, 1, 1)
    assert f"No answer: {REASON}" in text and "&lt;script&gt;" in text


def test_one_document_one_object_and_tables(db: Path, tmp_path: Path) -> None:
    for name in ("all.md", "all.json", "all.txt"):
        assert run("report", *NAMES, "--db", db, "-o", tmp_path / name).exit_code == 0
    document = (tmp_path / "all.md").read_text(encoding="utf-8")
    assert [line for line in document.splitlines() if line.startswith("#")] == [f"## {name}" for name in NAMES]
    assert f"No answer: `` {REASON}" in document.replace("No answer: ``no", "No answer: `` no")
    found = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))["reports"]
    assert [(item["report"], len(item.get("rows", []))) for item in found] == [
        ("top-kernels", 2),
        ("kernel-counters", 0),
        ("gpu-timeline", 2),
    ]
    assert found[1]["no_answer"].startswith(REASON)
    tables = (tmp_path / "all.txt").read_text(encoding="utf-8")
    assert [f"\n{name}: " in f"\n{tables}" for name in NAMES] == [True] * 3 and f"no answer: {REASON}" in tables


def test_one_workbook_with_a_sheet_each(db: Path, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("xlsxwriter")
    assert run("report", *NAMES, "--db", db, "-o", tmp_path / "all.xlsx").exit_code == 0
    book = openpyxl.load_workbook(tmp_path / "all.xlsx")
    assert book.sheetnames == ["top-kernels", "gpu-timeline", "Notes"]
    notes = [[cell.value for cell in row] for row in book["Notes"].iter_rows()]
    (missing,) = [row for row in notes if row[0] == "kernel-counters"]
    assert missing[1] == "no answer" and str(missing[3]).startswith(REASON)


def test_a_folder(db: Path, tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    done = run("report", *NAMES, "--db", db, "-o", folder, "--format", "csv")
    assert (done.exit_code, done.stdout) == (0, "")
    made = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert {name for name in made if "/" in name} == {
        f"{group}/{name}.csv"
        for group in ("all_captures", "1_rank0", "2_rank1")
        for name in ("top-kernels", "gpu-timeline")
    }
    assert {name for name in made if "/" not in name} == {"index.html", "README.md"}
    assert (folder / "2_rank1/top-kernels.csv").read_text(encoding="utf-8").count(",101,") > 0
    for name in ("index.html", "README.md"):
        text = (folder / name).read_text(encoding="utf-8")
        assert REASON in text and "2_rank1/top-kernels.csv" in text
        assert "no GPU activity" in text and "3_b_cpu.json" in text.replace("\\", "")  # a folder whose reports abstain
        assert "<b>" not in text.replace("\\<b\\>", "")


def test_all_reports(db: Path, tmp_path: Path) -> None:
    done = run("report", "--all", "--db", db, "--rank", "0", "-o", tmp_path / "all.md")
    assert done.exit_code == 0, done.stderr
    document = (tmp_path / "all.md").read_text(encoding="utf-8")
    listed = run("report", "--list", "--format", "csv").stdout.splitlines()[1:]
    assert [line[3:] for line in document.splitlines() if line.startswith("## ")] == [
        line.partition(",")[0] for line in listed
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--all",), 2, "name a folder for all reports with -o FOLDER"),
        ((*NAMES, "-o", "x.csv"), 2, "a csv file holds one report"),
        (("kernel-counters", "counter-summary"), 3, "none of 2 reports has an answer"),
        (("kernel-counters", "counter-summary", "-o", "x.html"), 3, "none of 2 reports has an answer"),
        (("kernel-counters", "counter-summary", "-o", "folder"), 3, "no report has an answer"),
        (("top-kernels", "matmul-fraction", "--by", "nope"), 2, "cannot group by 'nope'"),
        (("top-kernels", "top-kernel"), 2, "did you mean top-kernels?"),
        (("--all", "-o", "there.txt/folder"), 1, "the folder cannot be created"),
    ],
)
def test_what_cannot_be_is_one_line(
    db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: int, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.txt").write_text("", encoding="utf-8")
    done = run("-q", "report", *arguments, "--db", db)
    assert (done.exit_code, done.stdout) == (code, "")
    assert words in done.stderr and done.stderr.count("\n") == 1
    assert not Path("x.html").exists()


def test_a_report_that_a_filter_does_not_fit_is_said_and_left_out(db: Path) -> None:
    done = run("report", "top-kernels", "nvtx-sum", "--db", db, "--device", "0")
    assert done.exit_code == 0 and "top-kernels: " in done.stdout and "no answer: " in done.stdout


def test_statements_of_several(db: Path) -> None:
    done = run("report", "top-kernels", "gpu-timeline", "--db", db, "--show-sql")
    assert done.exit_code == 0
    assert [line for line in done.stdout.splitlines() if line.startswith("-- ")] == [
        "-- top-kernels",
        "-- gpu-timeline",
    ]
    assert ADD not in done.stdout
