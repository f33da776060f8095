"""The chapter "Add a view and its report" of docs/development.md, followed word for word in a copy of the checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("src", "ingest", "sql", "schemas", "docs", "examples", "README.md", "pyproject.toml")
OF_TESTS = ("conftest.py", "sql_lint.py", "support", "views/conftest.py")
CHAPTER = (
    (ROOT / "docs" / "development.md")
    .read_text(encoding="utf-8")
    .partition("## Add a view and its report\n")[2]
    .partition("\n## ")[0]
)
FILES: dict[str, str] = dict(re.findall(r"^`([\w/.]+)`:\n\n```\w+\n(.*?)^```$", CHAPTER, re.MULTILINE | re.DOTALL))
COMMANDS = "".join(re.findall(r"^```sh\n(.*?)^```$", CHAPTER, re.MULTILINE | re.DOTALL)).splitlines()


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The copy with the chapter's files, and what each of its commands printed there."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in (*COPIED, *(f"tests/{name}" for name in OF_TESTS)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name)  # with the bytecode, which seven commands would compile
        else:
            shutil.copy(ROOT / name, folder / name)
    for name, text in FILES.items():
        assert not (ROOT / name).exists()
        (folder / name).write_text(text, encoding="utf-8")
    environment = {
        **os.environ,
        "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")),  # its views are not those of other tests
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "PYTHONPATH": os.pathsep.join(str(folder / name) for name in ("src", "ingest")),  # before what is installed
    }
    printed = {}
    for line in COMMANDS:
        done = subprocess.run(
            ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        printed[line] = done.stdout
    return folder, printed


def test_it_tells_two_files_a_test_and_what_to_run() -> None:
    assert [Path(name).suffix for name in FILES] == [".sql", ".toml", ".py"]
    assert len(COMMANDS) == 7


def test_the_view_is_linted_and_tested(said: tuple[Path, dict[str, str]]) -> None:
    _, printed = said
    views = len(list((ROOT / "sql").glob("v*/*/*.sql")))
    assert printed["python tests/sql_lint.py"] == f"{views + 1} views, no fault\n"
    assert "1 passed" in printed["python -m pytest -q tests/views/test_stream_time.py"]


def test_the_view_is_documented(said: tuple[Path, dict[str, str]]) -> None:
    folder, _ = said
    assert "| `stream-time` | Time of kernels by stream. |" in (folder / "README.md").read_text(encoding="utf-8")
    page = (folder / "docs" / "views.md").read_text(encoding="utf-8")
    assert "## `v1.stream_time`" in page and "| `total_ns` | BIGINT | ns | Sum of durations. |" in page


def test_the_view_is_installed_listed_and_printed(said: tuple[Path, dict[str, str]]) -> None:
    _, printed = said
    shown = printed["tracedb views show stream-time --db run.duckdb"]
    assert (
        "Time of kernels by stream. Grain: capture" in shown
        and FILES["sql/v1/kernels/stream_time.sql"].rstrip() in shown
    )
    listed = printed["tracedb report --list"]
    assert "stream-time" in listed and listed.index("top-kernels") < listed.index("stream-time")
    lines = printed["tracedb report stream-time --db run.duckdb --by rank --top 2"].splitlines()
    header = next(line for line in lines if "stream" in line)
    assert header.split()[:3] == ["rank", "stream", "calls"]
    assert sum(line.lstrip()[:1].isdigit() for line in lines) == 8  # four ranks, two streams each
