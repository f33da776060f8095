"""Names that mean something to the program that shows them: every format holds them as text, as its reader finds."""

from __future__ import annotations

import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.command import run
from support.loading import ingest
from support.tiny import Tiny
from support.traces import annotation, call, frame, kernel, op, write

NAMES = (
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "'); DROP TABLE main.kernel_event; --",
    '=HYPERLINK("http://example.com")',
    "+1+cmd|' /C calc'!A0",
    "\x1b]0;owned\x07\x1b[31mred\x1b[2J",
    "\u202egnp.exe\u202c",
    "שלום_kernel",
    "one\nline\r\nand | another\t`end`",
    "name_" + "x" * 10_240,
)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a capture with a kernel of each name."""
    tiny = Tiny(tmp_path_factory.mktemp("hostile") / "a.duckdb")
    tiny.capture(0, {"run": NAMES[0]})
    for place, name in enumerate(NAMES):
        tiny.kernel(name, 10_000 * place, 1_000 + place)
    return tiny.save()


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return two steps in which ranges, operators, modules, Python functions and kernels have these names."""
    folder = tmp_path_factory.mktemp("steps")
    events = []
    for place, name in enumerate(NAMES):
        at, number = 10_000 + 1_000 * place, place + 1
        function, module = frame(at + 1, 890, f"{name}.py(12): {name}"), frame(at + 2, 880, f"nn.Module: {name}_0")
        function["args"] = {"Python id": number, "Python parent id": None}
        module["args"] = {"Python id": 100 + number, "Python parent id": number, "Python module id": 0}
        events += [annotation(at, 900, name), function, module, op(at + 10, 300, name, External_id=number)]
        events += [call(at + 20, 5, correlation=number), kernel(at + 50, 400, name, correlation=number)]
    window = annotation(9_000, 1_000 * (len(NAMES) + 2), "ProfilerStep#3")
    trace = write(folder / "t.json", [window, *events])
    assert ingest(trace, db=folder / "t.duckdb").exit_code == 0
    return folder / "t.duckdb"


def written(db: Path, out: Path) -> Path:
    """Write the kernels by name in the format that the ending says."""
    done = run("report", "top-kernels", "--top", "0", "--db", db, "-o", out)
    assert done.exit_code == 0, done.stderr
    return out


def test_machine_formats_give_names_back_exactly(db: Path, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    found = {
        "parquet": polars.read_parquet(written(db, tmp_path / "a.parquet")).get_column("name").to_list(),
        "ndjson": polars.read_ndjson(written(db, tmp_path / "a.ndjson")).get_column("name").to_list(),
        "json": [row["name"] for row in json.loads(written(db, tmp_path / "a.json").read_text("utf-8"))["rows"]],
    }
    assert {kind: sorted(names) for kind, names in found.items()} == dict.fromkeys(found, sorted(NAMES))
    rows = polars.read_csv(written(db, tmp_path / "a.csv")).get_column("name").to_list()
    assert sorted(rows) == sorted(
        f"'{name}" if name[0] in "=+" else name for name in NAMES
    )  # else a spreadsheet runs it


def test_a_workbook_holds_no_formula_and_no_link(db: Path, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    pytest.importorskip("xlsxwriter", reason="XlsxWriter is not installed")
    book = openpyxl.load_workbook(written(db, tmp_path / "a.xlsx"))
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row if cell.value is not None]
    assert [cell.value for cell in cells if cell.data_type == "f" or cell.hyperlink] == []
    texts = "\n".join(str(cell.value) for cell in cells)
    for name in (*NAMES[:5], NAMES[7], NAMES[9]):
        assert name in texts


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_a_terminal_gets_no_control_character(db: Path, form: str) -> None:
    done = run("report", "top-kernels", "--top", "0", "--db", db, "--format", form)
    assert done.exit_code == 0
    for text in (done.stdout, done.stderr):
        assert re.findall("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text) == []
    lines = [line for line in done.stdout.splitlines() if line.startswith("|")]
    assert form == "table" or len(lines) == 2 + len(NAMES)


@pytest.mark.parametrize(
    "words",
    [
        ("why",),
        ("brief",),
        ("whatif", "--remove", "range=*owned*"),
        ("compare", "1", "1"),
        *(
            ("report", name, "--top", "0")
            for name in ("critical-path", "kernel-source", "kernel-stacks", "module-time")
        ),
    ],
)
def test_no_command_prints_control_characters(steps: Path, words: tuple[str, ...]) -> None:
    done = run(*words, "--db", steps)
    assert done.exit_code == 0, done.stderr
    for text in (done.stdout, done.stderr):
        assert re.findall("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text) == []
    assert max(map(len, done.stderr.splitlines()), default=0) < 2_500


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_conclusions_hold_long_and_hostile_names_readably(steps: Path, form: str) -> None:
    given = ("report", "module-time", "--format", form, "--db", steps)
    lines = [*run(*given).stdout.splitlines(), *run(*given, "--range", "name_*").stdout.splitlines()]
    said, long = (line for line in lines if "by class of the innermost module" in line)
    assert re.findall("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", said + long) == []
    assert "…" in long and len(long) < 500


def test_a_browser_shows_names_as_text(db: Path, tmp_path: Path) -> None:
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no chromium on the PATH")
    out = written(db, tmp_path / "a.html")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page: Any = browser.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(out.as_uri())
        texts = "\n".join(page.locator("td").all_text_contents())
        assert [name for name in NAMES[:5] if name not in texts] == []
        assert "owned" not in page.title()
        assert page.locator("img, td script, td a").count() == 0
        assert asked == [out.as_uri()]
        browser.close()


def test_an_export_for_perfetto_gives_names_back(db: Path, tmp_path: Path) -> None:
    done = run("export", "perfetto", "--db", db, "-o", tmp_path / "a.json")
    assert done.exit_code == 0, done.stderr
    events = json.load(io.StringIO((tmp_path / "a.json").read_text("utf-8")))["traceEvents"]
    assert set(NAMES) <= {event.get("name") for event in events}
