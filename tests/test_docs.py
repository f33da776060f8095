"""The documentation is true: README's commands run and print what it shows, and it mentions everything that exists."""

from __future__ import annotations

import gzip
import importlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

import console
import cut_sample
import generate
from support.shipped import PACKAGES
from support.shipped import folder as package_folder
from tracedb.cli.main import COMMANDS
from tracedb.pipeline import labels
from tracedb.report import registry
from tracedb.storage import connection as database
from tracedb.storage.views import CURRENT, View

OF_NSYS = [report for report in registry.every() if View(CURRENT, report.view).topic == "nsys_stats"]
ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
INGEST = "\n".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("ingest.md", "issue-codes.md"))
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "examples/**/*.md", "sql/*.md", "benchmarks/*.md")
    for path in ROOT.glob(pattern)
)
SHELL_SQL = (ROOT / "examples" / "shell.sql").read_text(encoding="utf-8")
TRACES = sorted((ROOT / "examples" / "run").rglob("*.json.gz"))
Followed = tuple[Path, list[tuple[console.Command, str, int]]]
"""A folder, and the commands that were run in it with what they said and their exit codes."""


def has_shell() -> bool:
    return shutil.which("duckdb") is not None


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Followed:
    """A folder like a checkout in which README's commands were run one after the other, and what they said."""
    folder = console.prepared(tmp_path_factory.mktemp("readme"))
    said: list[tuple[console.Command, str, int]] = []
    for block in console.fenced(README, "console"):
        for command in console.commands(block):
            if command.line.startswith("duckdb ") and not has_shell() and not os.environ.get("CI"):
                continue
            said.append((command, *console.run(command.line, folder)))
    return folder, said


class TestReadme:
    def test_every_command_prints_what_is_shown(self, followed: Followed) -> None:
        assert len(console.fenced(README, "console")) >= 4
        for command, said, code in followed[1]:
            assert code == 0, f"{command.line}\n{said}"
            assert console.comparable(said) == console.comparable(command.shown), f"{command.line}: run `make docs`"

    def test_its_python_runs(self, followed: Followed) -> None:
        (code,) = console.fenced(README, "python")
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=followed[0], capture_output=True, text=True, check=True)
        assert "('matmul', " in done.stdout

    def test_the_two_set_up_commands_are_targets_of_make(self) -> None:
        commands = console.fenced(README, "sh")[0].split("\n")
        assert commands[:2] == ["make demo", "make test"]
        for command in commands[:2]:
            subprocess.run(
                [*command.split(), "--dry-run", "VENV=/nonexistent"], cwd=ROOT, check=True, capture_output=True
            )

    def test_what_make_demo_runs_works(self, tmp_path: Path) -> None:
        if shutil.which("make") is None:
            pytest.skip("make is not installed")
        said = subprocess.run(
            ["make", "--dry-run", "demo", "VENV=/nonexistent"], cwd=ROOT, check=True, capture_output=True, text=True
        )
        lines = re.findall(r"^/nonexistent/bin/(tracedb .*)$", said.stdout, re.MULTILINE)
        assert [line.split()[1] for line in lines] == ["ingest", "report"]
        for line in lines:
            said_too, code = console.run(line, console.prepared(tmp_path) if "ingest" in line else tmp_path)
            assert code == 0, said_too

    def test_its_query_is_in_shell_sql(self) -> None:
        (query,) = re.findall(r'^\$ duckdb .*?"(.*?)"', README, re.MULTILINE | re.DOTALL)
        assert words(query) in words(SHELL_SQL)

    def test_every_report_is_in_its_table(self) -> None:
        table = README.partition("## Reports")[2].partition("\n## ")[0]
        named = re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE)
        of_nsys = {report.name for report in OF_NSYS}
        assert sorted(named) == sorted({report.name for report in registry.every()} - of_nsys)

    def test_every_report_of_nsys_is_in_the_page_about_them(self) -> None:
        page = (ROOT / "docs" / "from-nsys-stats.md").read_text(encoding="utf-8")
        named = re.findall(r"^\| `(\w+)` \| `tracedb report ", page, re.MULTILINE)
        assert sorted(named) == sorted(report.view for report in OF_NSYS)

    def test_what_says_more_is_a_report_or_a_table(self, sample: Path) -> None:
        with database.connect(sample) as connection:
            tables = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        known = tables | {report.name for report in registry.every()}
        assert all(report.see for report in OF_NSYS)
        assert {name for report in registry.every() for name in report.see} - known == set()

    def test_every_command_is_mentioned(self) -> None:
        missing = [name for name in COMMANDS if not re.search(rf"`tracedb {name}\b", README + INGEST)]
        assert missing == []

    def test_a_newcomer_finishes_it(self) -> None:
        prose = re.sub(r"```.*?```|^\|.*?$|<!--.*?-->", "", README, flags=re.DOTALL | re.MULTILINE)
        assert len(prose.split()) < 800
        assert max(len(line) for block in console.fenced(README, "console") for line in block.split("\n")) <= 100


def words(text: str) -> str:
    return " ".join(text.replace("\\", " ").split())


def command(name: str) -> click.Command:
    module, _, attribute = COMMANDS[name][0].partition(":")
    found = getattr(importlib.import_module(module), attribute)
    assert isinstance(found, click.Command)
    return found


def commands() -> Iterator[tuple[str, click.Command]]:
    for name in COMMANDS:
        found = command(name)
        yield name, found
        for sub, inner in getattr(found, "commands", {}).items():
            yield f"{name} {sub}", inner


@pytest.mark.parametrize(("name", "found"), list(commands()))
def test_every_command_and_option_has_help(name: str, found: click.Command) -> None:
    assert found.help and found.help.split("\n")[0].endswith(".")
    silent = [
        parameter.name
        for parameter in found.params
        if isinstance(parameter, click.Option) and not parameter.help and not parameter.hidden
    ]
    assert silent == []


def test_options_of_ingest_are_documented() -> None:
    options = [option for parameter in command("ingest").params for option in parameter.opts if option[:2] == "--"]
    hidden = {"--quiet", "--verbose", "--output"}
    assert [option for option in options if option not in hidden and f"`{option}" not in INGEST] == []


def issue_codes() -> set[str]:
    """Return the codes that the sources write into ingest_issue, as they stand there as literals."""
    found: set[str] = set()
    for package in PACKAGES:
        for path in package_folder(package).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            call = r"(?:left_aside|lost|mended|noted|warned|_fault|_coerced)\([^\"']*?f?[\"']([a-z]+_[a-z_]+)[:\"']"
            found |= set(re.findall(call, text))
            found |= set(re.findall(r"(?<!\()\(\s*f?[\"']([a-z_]+_(?:events|spans|stored))[:\"']", text))
            found |= set(re.findall(r"_note\(part, [\"']([a-z_]+)[\"']", text))
            found |= set(re.findall(r"INSERT INTO main\.ingest_issue VALUES \(\?, '(\w+)'", text))
    return found


def test_codes_of_issues_are_documented() -> None:
    codes = issue_codes()
    assert {"flow_events", "category_not_stored", "event_cut", "event_repaired", "rank_conflict"} <= codes
    documented = {
        code.partition(":")[0]
        for row in re.findall(r"^\| (`.*?) \| (?:note|warning) \|", INGEST, re.MULTILINE)
        for code in re.findall(r"`([\w:]+)`", row)
    }
    assert sorted(codes - documented) == []
    sources = [path for package in PACKAGES for path in package_folder(package).rglob("*.py")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in [*sources, *(ROOT / "sql" / "derive").glob("*.sql")])
    reasons = [code.removeprefix("time_") for code in documented]  # time_issues.sql puts the prefix before a reason
    assert [code for code in sorted(reasons) if not re.search(rf"[\"'`]{code}[\"'`:]", text)] == []


def test_labels_are_read_from_paths_as_documented() -> None:
    table = INGEST.partition("| part of the path | label |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (`.*?) \| (.*?) \|$", table, re.MULTILINE)
    assert len(rows) == 6
    for parts, meant in rows:
        wanted = dict(re.findall(r"(\w+) = ([\w.]+)", meant))
        found: dict[str, str] = {}
        for part in re.findall(r"`(.*?)`", parts):
            one = labels.from_path(Path("/", part, "trace.json"))
            assert one.items() <= wanted.items() and one, part
            found |= one
        assert found == wanted


def test_generated_pages_are_up_to_date() -> None:
    assert generate.stale() == [], "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_pages_hold_no_path_of_a_machine(page: Path) -> None:
    assert re.findall(r"(?<![\w.])/(?:root|home|work|tmp)/\S*", page.read_text(encoding="utf-8")) == []


PATH = re.compile(r"`((?:src|ingest|sql|schemas|tests|docs|examples|benchmarks|\.ci|\.github)/[\w./*-]*)`")
MODULE = re.compile(r"`(tracedb(?:_\w+)?(?:\.[a-z_]+)+)`")
MADE_UP = re.compile(r"NAME|TOPIC|\bv[N2]\b|v1_to_v2|RELEASED|stream_time")
"""Names that stand for any, and files that a chapter tells to write."""
ENTRY_POINTS = ("tracedb.features", "tracedb.ingesters", "tracedb.operators")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_paths_and_modules_exist(page: Path) -> None:
    if page.name == "CHANGELOG.md":
        return  # tells of what was
    text = page.read_text(encoding="utf-8")
    bases = (ROOT, page.parent)
    paths = [path for path in PATH.findall(text) if not MADE_UP.search(path)]
    assert [path for path in paths if not any(list(base.glob(path.rstrip("/"))) for base in bases)] == []
    assert [name for name in MODULE.findall(text) if name not in ENTRY_POINTS and not is_there(name)] == []


def is_there(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    module, _, attribute = name.rpartition(".")
    try:
        return importlib.util.find_spec(name) is not None or hasattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError:  # of a name in a class or module that is no package
        return hasattr(importlib.import_module(module), attribute)


def test_the_picture_shows_every_room_in_its_layer() -> None:
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"][
        0
    ]
    rooms = [layer.split(" | ") for layer in layers["layers"] if layer != "__main__"]
    picture = (ROOT / "docs" / "architecture.svg").read_text(encoding="utf-8")
    boxes = {name: int(y) for y, name in re.findall(r'y="(\d+)"[^>]* font-weight="bold"[^>]*>(\w+)<', picture)}
    heights = [{boxes[name] for name in layer} for layer in rooms]
    assert all(len(height) == 1 for height in heights)
    order = [height.pop() for height in heights]
    assert order == sorted(order) and len(set(order)) == len(order)


def test_the_changelog_has_its_sections() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for section in ("Added", "Schema", "Views"):
        assert f"\n### {section}\n" in text
    assert f"## [{version()}]" in text


def version() -> str:
    found = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert found
    return found[1]


class TestShellSql:
    def test_its_queries_answer_in_python(self, sample: Path) -> None:
        with database.connect(sample) as connection:
            statements = connection.extract_statements(SHELL_SQL)
            assert len(statements) >= 4
            for statement in statements:
                assert connection.execute(statement.query).fetchall()

    def test_it_runs_in_the_shell(self, sample: Path) -> None:
        if not has_shell():
            pytest.skip("no duckdb shell is installed (pip install duckdb-cli)")
        said, code = console.run(f"duckdb -readonly '{sample}' < '{ROOT / 'examples' / 'shell.sql'}'", sample.parent)
        assert code == 0 and "Error" not in said
        assert "ncclDevKernel_AllGather" in said


class TestSampleRun:
    def test_it_is_small_and_whole(self, sample: Path) -> None:
        assert len(TRACES) == 8
        assert sum(path.stat().st_size for path in TRACES) < 500_000
        with database.connect(sample) as connection:
            rows = connection.execute(
                """SELECT labels['channels']::INTEGER, rank, status, world_size,
                       events_read - events_skipped = rows_written
                   FROM capture ORDER BY ALL"""
            ).fetchall()
            warnings = connection.execute("FROM ingest_issue WHERE severity = 'warning'").fetchall()
        assert rows == [(channels, rank, "complete", 4, True) for channels in (4, 16) for rank in range(4)]
        assert warnings == []

    def test_it_shows_a_straggler(self, sample: Path) -> None:
        """With 16 channels, rank 3 idles while the others wait for it in collectives."""
        with database.connect(sample) as connection:
            rows = connection.execute(
                """SELECT rank, idle_percent > 70, exposed_collective_percent > 70 FROM gpu_timeline
                   WHERE labels['channels'] = '16' ORDER BY rank"""
            ).fetchall()
        assert rows == [(0, False, True), (1, False, True), (2, False, True), (3, True, False)]

    @pytest.mark.parametrize("path", TRACES, ids=lambda path: "/".join(path.parts[-4:-1]))
    def test_it_holds_nothing_of_the_recording_machine(self, path: Path) -> None:
        text = gzip.decompress(path.read_bytes()).decode()
        trace = json.loads(text)
        assert trace["traceName"] == path.name.removesuffix(".gz")
        assert not re.search(r'"[^"]*/(tmp|opt|home|root|usr|mnt|data|workspace)/', text)
        assert not re.search(r'"(host_name|hostname|user|username|env\w*|command\w*)"\s*:', text, re.IGNORECASE)

    def test_cutting_it_again_changes_nothing(self) -> None:
        path = TRACES[0]
        text = gzip.decompress(path.read_bytes()).decode()
        assert cut_sample.cut(text, 3, path.name.removesuffix(".gz")) == text
        assert gzip.compress(text.encode(), 9, mtime=0) == path.read_bytes()
        assert cut_sample.cut(text, 9, "x") is None


def test_the_trace_maker_records(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    path = tmp_path / "rank0.json.gz"
    script = str(ROOT / "examples" / "make_trace.py")
    subprocess.run([sys.executable, script, str(path), "--width", "32"], check=True, capture_output=True)
    names = {event.get("name") for event in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]}
    assert {"forward", "backward", "optimizer", "ProfilerStep#1"} <= names


def test_the_site_lists_every_page() -> None:
    """Each page of ``docs/`` is in the navigation of ``mkdocs.yml``, and nothing else is."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r": ([\w-]+\.md)$", text, re.MULTILINE)
    assert sorted(listed) == sorted(path.name for path in (ROOT / "docs").glob("*.md"))


def test_workflows_and_hooks_run_what_there_is() -> None:
    """CI runs the repository's own script and target; hooks run files and programs that exist."""
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert re.findall(r"- run: (.+)", workflow) == ["bash .ci/run", "make test"]
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    entries = re.findall(r"entry: \.venv/bin/(\S+)(?: (\S+\.py))?", hooks)
    assert len(entries) == 5
    for program, script in entries:
        assert shutil.which(program) is not None
        assert not script or (ROOT / script).is_file()


def test_actions_of_others_are_pinned_to_a_commit() -> None:
    """A tag or branch can be moved by whoever owns it; those of GitHub itself are trusted."""
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    used: list[str] = []
    for path in workflows:
        jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
        used += [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    others = [action for action in used if not action.startswith("actions/")]
    assert {action.partition("@")[0] for action in others} == {"pypa/cibuildwheel", "pypa/gh-action-pypi-publish"}
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action) for action in others)
