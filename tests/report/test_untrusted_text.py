"""Names, labels and options that hold SQL or markup are values, in every report and form."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import calls, run
from support.tiny import Tiny

HOSTILE = "x' OR 1=1 --"


@pytest.fixture(scope="module")
def hostile_db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tiny = Tiny(tmp_path_factory.mktemp("db") / "trace.duckdb")
    for label in (HOSTILE, "plain"):
        tiny.capture(0, {"threads": label})
        event = tiny.kernel("<script>alert(1)</script>" if label == "plain" else "=1+1", 0, 100)
        tiny.range(1, HOSTILE if label == "plain" else "b", 0, 100, (event,))
    return tiny.save()


class TestUntrustedText:
    @pytest.fixture
    def db(self, hostile_db: Path) -> Path:
        return hostile_db

    def test_label_values_are_values(self, db: Path) -> None:
        assert calls(db, "--where", f"threads={HOSTILE}") == {"=1+1": 1}
        assert run("report", "top-kernels", "--db", db, "--where", "threads=' OR true --").exit_code == 3

    def test_globs_are_values(self, db: Path) -> None:
        assert calls(db, "--range", "x' OR*") == {"<script>alert(1)</script>": 1}
        assert run("report", "top-kernels", "--db", db, "--range", "' OR true OR '").exit_code == 3

    def test_sources_are_values(self, db: Path) -> None:
        assert run("report", "top-kernels", "--db", db, "--source", "' OR true --").exit_code == 3

    def test_label_keys_are_checked(self, db: Path) -> None:
        for option in ("--where=x' OR 1=1 --=1", "--by=x' OR 1=1 --"):
            assert run("report", "top-kernels", "--db", db, option).exit_code == 2

    def test_names_are_harmless_in_every_form(self, db: Path, tmp_path: Path) -> None:
        assert "'=1+1" in run("-q", "report", "top-kernels", "--db", db, "--format", "csv").stdout
        assert "`<script>" in run("-q", "report", "top-kernels", "--db", db, "--format", "markdown").stdout
        page = run("-q", "report", "top-kernels", "--db", db, "--format", "html").stdout
        assert "<script>alert" not in page and "&lt;script&gt;alert" in page
