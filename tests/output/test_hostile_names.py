"""Names that mean something to the program that shows them: every format holds them as text, as its reader finds."""

from __future__ import annotations

import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import tracedb
from support.command import run
from support.loading import ingest
from support.tiny import Tiny
from support.traces import annotation, call, frame, kernel, op, write
from tracedb.output.markdown_html import prose

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
    "zero\ufeffw\u2060i\xadd\u061ct\U000e0041h\u3164",
    "\ufeff \u200b=1+1",
    "\xa0\uff1d1+1",
    "www.evil.example",
    "$$y$$ @everyone",
    "https://evil.example",
)
FORMULAS = {*NAMES[3:5], *NAMES[11:13]}
HIDDEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\U000e0000-\U000e0fff]"
)


def hidden(text: str) -> list[str]:
    """Return the characters that control a terminal, the writing direction, or are not seen; line ends may be there."""
    return HIDDEN.findall(text)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a capture with a kernel of each name."""
    tiny = Tiny(tmp_path_factory.mktemp("hostile") / "a.duckdb")
    tiny.capture(0, {"run": NAMES[0], "team": NAMES[5] + NAMES[6] + NAMES[8]})
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
    label = f"team={NAMES[5]}{NAMES[6]}{NAMES[8]}"
    assert run("ingest", trace, "--label", label, "--db", folder / "t.duckdb").exit_code == 0
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
        f"'{name}" if name in FORMULAS else name for name in NAMES
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


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
def test_a_terminal_gets_no_control_character(db: Path, form: str) -> None:
    done = run("report", "top-kernels", "--top", "0", "--db", db, "--format", form)
    assert done.exit_code == 0
    for text in (done.stdout, done.stderr):
        assert hidden(text) == []
    lines = [line for line in done.stdout.splitlines() if line.startswith("|")]
    assert form != "markdown" or len(lines) == 2 + len(NAMES)


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
        assert hidden(text) == []
    assert max(map(len, done.stderr.splitlines()), default=0) < 2_500


def test_labels_and_headings_are_cleaned_where_they_are_printed(steps: Path) -> None:
    """Of ``why``, and of a query whose heading the user's text gives."""
    said = run("why", "--db", steps).stdout
    assert "team=" in said and "[31mred" in said and not hidden(said)
    done = run("sql", 'SELECT 1 AS "\x1b[31mred\n::error::owned"', "--db", steps)
    assert done.exit_code == 0 and not hidden(done.stdout) and "\n::error" not in done.stdout


def test_errors_of_the_prompt_are_cleaned(steps: Path) -> None:
    query = "SELECT CAST(labels['team'] AS INT) FROM capture;\n.\x1b[31m\n"
    done = run("shell", "--builtin", "--db", steps, stdin=query)
    assert "Could not convert string" in done.stderr and not hidden(done.stderr)


def test_a_line_end_in_a_file_name_begins_no_line_of_stderr(tmp_path: Path) -> None:
    name = "a\n::error file=a::owned\ntracedb: error: fake rank0.json"
    trace = write(tmp_path / name, [kernel(1, 2, "k"), {"ph": "X", "cat": "kernel", "name": "broken", "ts": "?"}])
    db = tmp_path / "t.duckdb"
    for done in (ingest(trace, db=db), run("report", "top-kernels", "--db", db)):
        assert "owned" in done.stderr
        assert [line for line in done.stderr.splitlines() if not line.startswith("tracedb: ")] == []
        assert not [line for line in done.stderr.splitlines() if line.startswith("tracedb: error: fake")]


def test_a_line_end_in_a_gate_begins_no_annotation(steps: Path) -> None:
    limit = "kernel[zz\n::error::owned].total_ns>1%"
    for options in ((), ("--github",)):
        done = run("compare", "1", "1", "--db", steps, "--fail-on", limit, *options)
        assert "owned" in done.stderr
        assert not [line for line in done.stderr.splitlines() if line.startswith("::error::owned")]


def test_stderr_is_written_in_one_place_only() -> None:
    """Where a line is cleaned: elsewhere a file's name could begin a line of its own."""
    source = Path(tracedb.__file__).parent
    writing = re.compile(r"\berr=True|file=sys\.stderr|sys\.stderr\.write|print_exc")
    found = {
        str(path.relative_to(source)): len(writing.findall(path.read_text("utf-8")))
        for path in sorted(source.rglob("*.py"))
        if writing.search(path.read_text("utf-8"))
    }
    help_text_and_line = {"cli/main.py": 1, "cli/options.py": 1}
    assert found == {**help_text_and_line, "ingester/registry.py": 1}  # the last knows no commands, only packages


def test_markdown_has_no_link_mention_or_formula(db: Path) -> None:
    lines = run("report", "top-kernels", "--top", "0", "--db", db, "--format", "markdown").stdout.splitlines()
    for name in NAMES[13:]:
        assert any(f"| `{name}` |" in line for line in lines), name
    assert prose("see www.evil.example or $$y$$, @all *x*") == "see `www.evil.example` or `$$y$$,` `@all` \\*x\\*"


def test_facts_of_a_page_are_cleaned(db: Path, tmp_path: Path) -> None:
    pytest.importorskip("jinja2", reason="Jinja2 is not installed")
    out = tmp_path / "page.html"
    assert run("page", "--db", db, "-o", out).exit_code == 0
    text = out.read_text("utf-8")
    assert "label team" in text and not hidden(text)


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_conclusions_hold_long_and_hostile_names_readably(steps: Path, form: str) -> None:
    given = ("report", "module-time", "--format", form, "--db", steps)
    lines = [*run(*given).stdout.splitlines(), *run(*given, "--range", "name_*").stdout.splitlines()]
    said, long = (line for line in lines if "by class of the innermost module" in line)
    assert hidden(said + long) == []
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
