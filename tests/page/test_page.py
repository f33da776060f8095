"""``tracedb page``: one self-contained file that loads nothing and in which names from traces stay text."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from support.command import report, run
from support.tiny import GEMM, Tiny, two_ranks

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
HOSTILE = (
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    '"><svg onload="document.title=\'owned\'">',
    "{{ 7 * 7 }}{% raw %}",
    '=HYPERLINK("http://example.com")',
    "\u202egnp.exe\u202c",
    "name_" + "x" * 10_240,
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Return the system's Chromium, without a window."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is on the PATH")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()


LOAD_PICTURES = """() => Promise.all([...document.images].map(image => {
    image.loading = "eager"; // out of sight, they are not loaded
    return image.decode();
}))"""


class Opened:
    """A page in the browser, with what it asked for and complained of."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page = browser.new_page(**options)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(path.as_uri())
        self.asked = [url for url in self.requests if not url.startswith("data:")]

    def column(self, table: str, place: int) -> list[str]:
        """Return the texts of a column in the rows that are shown."""
        script = """([id, at]) => [...document.getElementById(id).tBodies[0].rows].filter(row => !row.hidden)
            .map(row => row.cells[at].textContent)"""
        found: list[str] = self.page.evaluate(script, [table, place])
        return found


def written(db: Path, out: Path, *options: str) -> str:
    """Return the text of a page, which must be written."""
    done = run("page", *options, "--db", db, "-o", out)
    assert done.exit_code == 0, done.stderr
    return out.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def whole(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of the sample run, with every report and picture."""
    out = tmp_path_factory.mktemp("page") / "run.html"
    written(sample, out)
    return out


def hostile(path: Path) -> Path:
    """A capture in which kernels, ranges and labels have hostile names."""
    tiny = Tiny(path)
    tiny.capture(0, {"run": HOSTILE[0]}, clock_zero_unix_ns=10**18)
    for place, name in enumerate(HOSTILE):
        event = tiny.kernel(name, 10_000 * place, 1_000 + place)
        tiny.range(place + 1, name, 10_000 * place, 10_000 * place + 5_000, (event,))
    return tiny.save()


def many_rows(path: Path, count: int) -> Path:
    """A capture of so many kernels, each of its own name."""
    tiny = Tiny(path)
    tiny.capture(0, {})
    for place in range(count):
        tiny.kernel(f"kernel_{place * 7919 % count}", 10_000 * place, 1_000 + place * 7907 % count)
    return tiny.save()


def test_every_report_is_there_or_said_to_be_missing(whole: Path) -> None:
    text = whole.read_text(encoding="utf-8")
    names = [row["report"] for row in _reports()]
    shown = re.findall(r'<(?:section|details class="peer") id="([\w-]+)"', text)
    missing = text.partition('<section id="missing"')[2]
    for name in names:
        assert (name in shown) != bool(re.search(rf"<b>[^<]*\b{name}\b(?!-)", missing)), name
    assert "hardware counters" in missing
    assert text.count("<img decoding=") == text.count("<figure>") > 5
    assert len(text) < 5_000_000


def _reports() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(run("report", "--list", "--format", "json").stdout)["rows"]
    return rows


def test_conclusions_and_sql_are_those_of_the_report(sample: Path, tmp_path: Path) -> None:
    text = _plain(written(sample, tmp_path / "a.html", "gemm-variance", "--by", "channels"))
    asked = ("report", "gemm-variance", "--db", sample, "--by", "channels", "--top", "100")
    said = [line.removeprefix("tracedb: ") for line in run(*asked).stderr.splitlines() if "warning" not in line]
    assert len(said) >= 2
    for line in said:
        assert line in text
    statement = run(*asked, "--show-sql").stdout.strip()
    assert statement in text
    assert "tracedb report gemm-variance --by channels --db run.duckdb" in text


def _plain(text: str) -> str:
    import html

    return html.unescape(text)


def test_comparison_has_the_rows_of_the_command(tmp_path: Path) -> None:
    db, sides = two_ranks(tmp_path / "run.duckdb"), ("threads=256", "threads=1024")
    text = _plain(written(db, tmp_path / "a.html", "top-kernels", "--compare", *sides))
    done = run("compare", *sides, "--db", db, "--kind", "class", "--format", "csv")
    assert done.exit_code == 0, done.stderr
    names = [line.split(",")[2] for line in done.stdout.splitlines()[1:]]
    table = text.partition("<caption>Classes of kernels</caption>")[2].partition("</table>")[0]
    assert names
    assert [name for name in names if f"<div>{name}</div>" not in table] == []
    twice = [word for side in sides for word in ("--compare", side)]
    assert _plain(written(db, tmp_path / "b.html", "top-kernels", *twice)) == text
    assert run("page", "--compare", sides[0], "--db", db, "-o", tmp_path / "c.html").exit_code == 2
    assert run("page", "top-kernel", "--db", db, "-o", tmp_path / "c.html").exit_code == 2


def test_a_page_that_compares_is_about_the_sides(tmp_path: Path) -> None:
    """The database holds a third run, which no number of the page is about, unless captures are chosen."""
    tiny = Tiny(tmp_path / "x.duckdb")
    for run_name, duration in (("a", 100_000), ("b", 250_000), ("other", 900_000)):
        tiny.capture(0, {"run": run_name}, path=f"/traces/{run_name}.json")
        for step in range(4):
            start = 10_000_000 * step
            events = tuple(tiny.kernel(GEMM, start + 1_000_000 * call, duration + call) for call in range(2))
            tiny.range(step + 1, f"ProfilerStep#{step}", start, start + 9_000_000, events)
    db, reports = tiny.save(), ("top-kernels", "gpu-timeline-average")
    text = _plain(written(db, tmp_path / "a.html", *reports, "--compare", "run=a", "run=b"))
    assert "run=b: a step takes 1.1 → 1.3 ms (+13.6 %), slower (over steps of one run each)" in text
    assert "most of the change is in computation, 0.2 → 0.5 ms" in text
    assert "verdicts are over steps, of one run a side: they say nothing about other runs" in text
    compared = text.partition('<section id="comparison"')[2].partition("</section>")[0]
    headings = re.findall(r"<th [^>]*><button[^>]*>(.*?)</button>", compared.partition("</thead>")[0])
    assert "Picture: " in compared and "side" not in headings and headings[0] == "name"
    assert headings.index("verdict") < headings.index("calls")
    assert compared.index("Where the time of a step goes") < compared.index("All kernels")
    assert "traces/other" not in text and "other.json" not in text
    assert "other.json" in _plain(written(db, tmp_path / "b.html", *reports))


def test_conclusions_come_before_the_table_of_captures(whole: Path) -> None:
    text = whole.read_text(encoding="utf-8")
    places = [text.index(f'<section id="{name}"') for name in ("recorded", "conclusions", "captures", "top-kernels")]
    assert places == sorted(places)


def test_every_sql_of_a_page_runs_in_a_plain_shell(sample: Path, tmp_path: Path) -> None:
    shell = shutil.which("duckdb")
    assert shell is not None
    db = tmp_path / "run.duckdb"
    shutil.copy(sample, db)
    filters = ("--rank", "0", "--rank", "1", "--compare", "channels=4", "--compare", "channels=16")
    names = ("top-kernels", "gpu-timeline-average", "stragglers", "gpu-activity")
    text = written(db, tmp_path / "a.html", *names, *filters, "--top", "5")
    blocks = re.split('<section id="', text)[1:]
    statements = {block.partition('"')[0]: _statements(block) for block in blocks}
    assert len(statements["comparison"]) == 2  # of its picture, and of its tables, over files that it attaches
    assert len(statements["gpu-activity"]) == 2  # of its picture, and of its table
    assert "rows; tracedb report gpu-activity --top 0 shows all" in text  # a page takes no --top 0
    for name, found in statements.items():
        for sql in found:
            answers = _answers(shell, tmp_path, sql, *(() if "ATTACH" in sql else ("-readonly", db.name)))
        shown = [body.count("<tr>") for body in re.findall("<tbody>(.*?)</tbody>", _block(blocks, name), re.DOTALL)]
        assert not found or [len(rows) for rows in answers if rows][-len(shown) :] == shown, name


def _block(blocks: list[str], name: str) -> str:
    return next(block for block in blocks if block.startswith(f'{name}"'))


def _statements(block: str) -> list[str]:
    return [_plain(sql) for sql in re.findall('aria-label="SQL"><code>(.*?)</code>', block, re.DOTALL)]


def _answers(shell: str, folder: Path, sql: str, *opened: str) -> list[list[object]]:
    """Return the rows of each SELECT, as the shell printed them."""
    done = subprocess.run(
        [shell, "-bail", "-json", *opened], input=sql, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found, text = [], done.stdout.strip()
    while text:
        rows, end = json.JSONDecoder().raw_decode(text)
        found.append(rows)
        text = text[end:].strip()
    return found


def test_what_was_recorded_is_said_and_nothing_else(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "a.duckdb")
    tiny.capture(None, {})
    tiny.kernel(GEMM, 0, 1_000)
    text = written(tiny.save(), tmp_path / "a.html", "top-kernels")
    assert "<dt>ranks</dt><dd>not captured</dd>" in text
    assert "<dt>captures</dt><dd>1</dd>" in text


def test_page_opens_sorts_and_filters(browser: Any, sample: Path, whole: Path) -> None:
    opened = Opened(browser, whole)
    assert opened.asked == [whole.as_uri()]
    table = "table-top-kernels-1"
    heads = opened.page.locator(f"#{table} th")
    titles = [
        text.strip() for text in heads.all_text_contents()
    ]  # inner text is empty while a section is off the screen
    at = next(place for place, title in enumerate(titles) if title.startswith("calls"))
    truth = [row["calls"] for row in report(sample, "top-kernels", "--top", "100")]
    assert [int(text.replace(",", "")) for text in opened.column(table, at)] == truth
    head = heads.nth(at)
    for direction, down in (("descending", True), ("ascending", False)):
        head.locator("button").press("Enter")
        assert head.get_attribute("aria-sort") == direction
        found = [int(text.replace(",", "")) for text in opened.column(table, at)]
        assert found == sorted(truth, reverse=down)
    opened.page.locator(f'input[data-for="{table}"]').fill("nccl")
    left = opened.column(table, 0)
    assert 0 < len(left) < len(truth)
    assert all("nccl" in row.lower() for row in opened.page.locator(f"#{table} tbody tr:visible").all_inner_texts())
    assert f"{len(left)} of {len(truth)} rows" == opened.page.locator(f'.count[data-for="{table}"]').inner_text()
    assert opened.complaints == []


def test_cells_of_several_numbers_sort_by_all_of_them(browser: Any, whole: Path) -> None:
    page = Opened(browser, whole).page
    ordered = "texts => texts.sort((a, b) => compared(sortable(a), sortable(b), 1))"
    for texts in (
        ["322\u2013322", "322\u2013323", "1,000\u20131,001"],
        ["8\u00d78\u00d71", "8\u00d78\u00d72", "8\u00d716\u00d71", "16\u00d71\u00d71"],
        ["18/0", "18/2"],
        ["<0.001", "0.5", "7", "7 (2)", "\u2013"],
    ):
        assert page.evaluate(ordered, texts[::-1]) == texts


@pytest.mark.parametrize("width", [400, 1280])
def test_links_lead_to_the_heading_they_name(browser: Any, whole: Path, width: int) -> None:
    """From the list of sections and from the page's address, also where sections were not laid out before."""
    viewport = {"width": width, "height": 900}
    opened = Opened(browser, whole, viewport=viewport).page
    names = opened.evaluate("[...document.querySelectorAll('nav li a')].map(link => link.hash.slice(1))")
    for name in (names[len(names) // 2], names[-2]):
        followed = Opened(browser, whole, viewport=viewport).page
        followed.evaluate("document.querySelector('nav details').open = true")
        followed.locator(f'nav a[href="#{name}"]').click()
        addressed = browser.new_page(viewport=viewport)
        addressed.goto(f"{whole.as_uri()}#{name}")
        for page in (followed, addressed):
            page.wait_for_timeout(1_500)
            top = page.evaluate("name => document.getElementById(name).getBoundingClientRect().top", name)
            left = page.evaluate("document.documentElement.scrollHeight - innerHeight - scrollY")
            assert 0 <= top < 40 or (left < 2 and 0 <= top < 900), (name, page is addressed)


def test_every_table_can_be_used_without_seeing_or_pointing(browser: Any, whole: Path) -> None:
    page = Opened(browser, whole).page
    assert page.locator("main").count() == page.locator("header").count() == page.locator("nav").count() == 1
    assert page.locator("table").count() == page.locator("table > caption").count() > 20
    assert page.locator("th:not(:has(button))").count() == 0
    assert page.locator("th:not([aria-sort])").count() == 0
    assert page.locator("img:not([alt]), img[alt='']").count() == 0
    identities = page.evaluate("[...document.querySelectorAll('[id]')].map(each => each.id)")
    assert len(identities) == len(set(identities))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_fits_the_screen_and_follows_its_colours(browser: Any, whole: Path, width: int, scheme: str) -> None:
    page = Opened(browser, whole, viewport={"width": width, "height": 900}, color_scheme=scheme).page
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.querySelector('.about').clientHeight") < 60  # two lines at most
    page.evaluate(LOAD_PICTURES)
    sizes = page.evaluate("[...document.querySelectorAll('.picture img')].map(it => [it.clientWidth, it.naturalWidth])")
    assert sizes and all(shown <= own for shown, own in sizes)
    paper = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(paper)
    assert (before == "rgb(255, 255, 255)") == (scheme == "light")
    page.locator("#theme").click()
    assert (page.evaluate(paper) == "rgb(255, 255, 255)") == (scheme == "dark")


def test_hostile_names_stay_text(browser: Any, tmp_path: Path) -> None:
    out = tmp_path / "hostile.html"
    written(hostile(tmp_path / "hostile.duckdb"), out)
    opened = Opened(browser, out)
    assert opened.page.title() == "Traces in hostile.duckdb"
    assert opened.complaints == []
    assert opened.asked == [out.as_uri()]
    assert opened.page.locator("script").count() == 1
    assert opened.page.locator("main svg, img[src='x']").count() == 0
    names = opened.column("table-top-kernels-1", 0) + opened.column("table-top-kernels-1", 1)
    text = "\n".join(names)
    for name in HOSTILE[:5]:
        assert name in text
    assert "\u202e" not in out.read_text(encoding="utf-8")
    assert "more characters)" in text


def test_policy_forbids_scripts_and_requests_that_are_not_the_page_s_own(browser: Any, whole: Path) -> None:
    opened = Opened(browser, whole)
    opened.page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "document.title = 'owned'";
            document.body.append(script);
            const image = new Image();
            image.src = "http://127.0.0.1:9/x.png";
            document.body.append(image);
        }"""
    )
    for _ in range(300):
        opened.page.wait_for_timeout(100)
        if len(opened.complaints) >= 2:
            break
    assert opened.page.title() != "owned"
    assert len([text for text in opened.complaints if "Content Security Policy" in text]) == 2


def test_two_thousand_rows_sort_at_once(browser: Any, tmp_path: Path) -> None:
    db = many_rows(tmp_path / "many.duckdb", 2_000)
    out = tmp_path / "many.html"
    written(db, out, "top-kernels", "--top", "2000")
    page = Opened(browser, out).page
    assert page.locator("#table-top-kernels-1 tbody tr").count() == 2_000
    took = page.evaluate(
        """() => [...document.querySelectorAll("#table-top-kernels-1 th button")].map(button => {
            const start = performance.now();
            button.click();
            document.body.offsetHeight;
            return performance.now() - start;
        })"""
    )
    assert sorted(took)[len(took) // 2] < 1_000  # ms; the aim is 200 on a machine at rest, and this one may be busy


def test_long_tables_are_whole_though_only_rows_in_sight_are_laid_out(browser: Any, tmp_path: Path) -> None:
    db = many_rows(tmp_path / "many.duckdb", 500)
    out = tmp_path / "many.html"
    written(db, out, "top-kernels", "--top", "500")
    page = Opened(browser, out).page
    table = "document.getElementById('table-top-kernels-1')"
    page.evaluate(f"{table}.scrollIntoView()")
    edges = "[...row.cells].map(cell => Math.round(cell.getBoundingClientRect().left))"
    heads, first = (page.evaluate(f"(row => {edges})({table}.{part}.rows[0])") for part in ("tHead", "tBodies[0]"))
    assert heads == first
    assert page.evaluate("window.find('kernel_499')")
    script = f"[...{table}.tBodies[0].rows].filter(row => row.cells[0].offsetHeight > 0).length"
    page.emulate_media(media="print")
    assert page.evaluate(script) == 500


def test_page_without_the_extra_is_one_line(sample: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.html"
    done = _without("jinja2", "page", "--db", str(sample), "-o", str(out))
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "tracedb: error: page needs the package Jinja2, which is not installed: pip install 'tracedb-gpu[page]'"
    ]
    assert not out.exists()


def test_page_without_pictures_says_so(sample: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.html"
    done = _without("altair", "page", "gemm-spread", "--db", str(sample), "-o", str(out))
    assert done.returncode == 0, done.stderr
    text = _plain(out.read_text(encoding="utf-8"))
    assert "<figure>" not in text
    assert "pip install 'tracedb-gpu[plot]'" in text


def _without(package: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command where a package cannot be imported."""
    program = f"import sys; sys.modules[{package!r}] = None; from tracedb.cli.main import main; main()"
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", [("export", "xlsx"), ("report", "top-kernels", "--format", "xlsx")])
def test_a_workbook_without_the_extra_is_one_line_before_any_work(
    command: tuple[str, ...], sample: Path, tmp_path: Path
) -> None:
    done = _without("xlsxwriter", *command, "--db", str(sample), "-o", str(tmp_path / "sheets"))
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "tracedb: error: xlsx needs the package XlsxWriter, which is not installed: pip install 'tracedb-gpu[xlsx]'"
    ]
    assert list(tmp_path.iterdir()) == []


def test_page_never_replaces_what_it_reads(sample: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run.html"
    shutil.copy(sample, copy)
    done = run("page", "top-kernels", "--db", copy, "-o", copy)
    assert done.exit_code == 1
    assert "is the database" in done.stderr
    assert run("page", "--db", sample).exit_code == 2
    assert run("page", "--db", sample, "-o", tmp_path / "a.pdf").exit_code == 2
    assert run("page", "no-such-report", "--db", sample, "-o", tmp_path / "a.html").exit_code == 2
    assert run("page", "--db", sample, "--rank", "77", "-o", tmp_path / "a.html").exit_code == 3
    assert [path.name for path in tmp_path.iterdir()] == ["run.html"]


def test_views_of_another_tracedb_are_said_before_any_work(sample: Path, tmp_path: Path) -> None:
    db = tmp_path / "old.duckdb"
    shutil.copy(sample, db)
    with duckdb.connect(str(db)) as connection:
        connection.execute("UPDATE meta.view_version SET sha256 = 'another' WHERE name = 'why'")
    done = run("page", "--db", db, "-o", tmp_path / "page.html", "-v")
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "its views are of another tracedb (1 differ, such as v1.why); the next `tracedb ingest`" in done.stderr
    assert not (tmp_path / "page.html").exists()
