"""Files with the same bytes, of one call and of earlier ones."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from support.loading import ask, broken, ingest, trace
from support.traces import document, launched
from tracedb.pipeline import duplicates
from tracedb.pipeline import run as pipeline


class TestCopies:
    """Files with the same bytes: the first by path is loaded, and labels that only others have are reported."""

    @pytest.mark.parametrize("jobs", [1, 2])
    @pytest.mark.parametrize("size", [3, 60])
    def test_of_one_call(self, tmp_path: Path, jobs: int, size: int) -> None:
        paths = [tmp_path / "in" / f"{name}thread" / "x.json" for name in (128, 256, 512)]
        trace(paths[1], size)
        trace(tmp_path / "in" / "z.json", size + 1)
        for path in (paths[0], paths[2]):
            path.parent.mkdir()
            shutil.copy(paths[1], path)
        done = ingest(tmp_path / "in", db=tmp_path / "db", jobs=jobs, flags=["--label", "run=a"])
        assert done.exit_code == 0
        rows = ask(tmp_path / "db", "SELECT path, labels FROM capture ORDER BY capture_id")
        assert rows[0] == (str(paths[0]), {"run": "a", "threads": "128"})
        assert [Path(path).name for path, _ in rows] == ["x.json", "z.json"]
        assert [row["status"] for row in json.loads(done.stdout)["rows"]] == ["complete", "known", "known", "complete"]
        notes = ask(tmp_path / "db", "SELECT severity, detail FROM ingest_issue WHERE code = 'duplicate_recording'")
        assert sorted(notes) == [("note", f"{path} has the same bytes and was left aside") for path in paths[1:]]
        for path, threads in ((paths[1], 256), (paths[2], 512)):
            said = (
                f"tracedb: warning: {path}: its bytes are loaded as capture 1 ({paths[0]}), without threads={threads}"
            )
            assert said in done.stderr.splitlines()
        assert "2 captures loaded, 2 known before, 0 failed" in done.stderr
        aside = f"tracedb: left aside: 2 files whose capture was loaded from another file ({paths[0]}: {paths[1]}"
        assert [line.startswith(aside) for line in done.stderr.splitlines()].count(True) == 1

    def test_of_an_earlier_call(self, tmp_path: Path) -> None:
        path = trace(tmp_path / "x.json")
        ingest(path, db=tmp_path / "db", flags=["--label", "run=a"])
        assert "warning" not in ingest(path, db=tmp_path / "db").stderr
        again = ingest(path, db=tmp_path / "db", flags=["--label", "run=b", "--label", "note=x"])
        said = f"tracedb: {path}: its bytes are loaded as capture 1, which now has run=b, note=x"
        assert said in again.stderr.splitlines()
        assert again.exit_code == 0

    def test_of_a_file_that_cannot_be_loaded(self, tmp_path: Path) -> None:
        first = broken(tmp_path / "a.json")
        shutil.copy(first, tmp_path / "b.json")
        outcomes = pipeline.ingest(tmp_path, db=tmp_path / "db")
        assert outcomes[1].error == f"has the same bytes as {first}, which could not be loaded"
        assert [outcome.is_known for outcome in outcomes] == [False, False]

    def test_files_that_differ_in_the_middle_are_all_loaded(self, tmp_path: Path) -> None:
        whole = document(launched(80))
        assert len(whole) > 2 * duplicates.END_BYTES
        at = whole.index(b'"ts":', len(whole) // 2) + 5
        for digit in (b"1", b"2"):
            (tmp_path / f"{digit.decode()}.json").write_bytes(whole[:at] + digit + whole[at + 1 :])
        assert [len(outcome.loaded) for outcome in pipeline.ingest(tmp_path, db=tmp_path / "db")] == [1, 1]
