"""Third-party ingesters: competing claims, broken ones, ones that violate the rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.fakes import Fake, register
from support.loading import ingest, trace
from tracedb import ingester
from tracedb.ingester import Rows
from tracedb.storage import schema


class TestIngesters:
    def test_two_claims_of_a_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        register(monkeypatch, ("rival", Fake("rival", ".json")))
        path = trace(tmp_path / "x.json")
        done = ingest(path, db=tmp_path / "db", new=True)
        assert (done.exit_code, (tmp_path / "db").exists()) == (1, False)
        assert done.stderr.splitlines() == [
            f"tracedb: error: {path}: both torch and rival recognise it; choose with --ingester NAME",
            "tracedb: 0 captures loaded, 0 known before, 1 failed; read 0.0 MB",
            "tracedb: error: 1 of 1 file could not be loaded",
        ]
        assert ingest(path, db=tmp_path / "db", flags=["--ingester", "torch"]).exit_code == 0

    def test_unknown_and_broken_ones(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
        register(monkeypatch, ("broken", ImportError("no module")), ("nothing", object()))
        path = trace(tmp_path / "x.json")
        assert [registered.name for registered, _ in ingester.load()] == [item.name for item in ingester.registered()][
            :-2
        ]
        assert "warning: ingester broken of fakes cannot be loaded: no module" in capsys.readouterr().err
        for name in ("missing", "broken", "nothing"):
            done = ingest(path, db=tmp_path / "db", flags=["--ingester", name])
            assert (done.exit_code, name in done.stderr) == (2, True)

    @pytest.mark.parametrize(
        ("rows", "words"),
        [
            ([], "gave no rows"),
            ([Rows("launch", schema.arrow("launch").empty_table())], "gave rows but no capture row"),
            ([Rows("capture", schema.arrow("capture").empty_table())], "gave 0 capture rows for one part"),
            ([Rows("meta", schema.arrow("launch").empty_table())], "not a table that ingesters fill"),
        ],
    )
    def test_one_that_breaks_the_rules(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[Rows], words: str
    ) -> None:
        register(monkeypatch, ("fake", Fake("fake", ".fake", rows)))
        path = tmp_path / "x.fake"
        path.write_text("x")
        done = ingest(path, db=tmp_path / "db", new=True)
        assert done.exit_code == 1
        assert words in done.stderr
        assert not (tmp_path / "db").exists()
