"""Labels that the path, the user and a regular expression give."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from command import run
from ingest.loading import ask, ingest, trace
from tracedb import labels


class TestLabels:
    PATHS: tuple[tuple[str, dict[str, str]], ...] = (
        (
            "sweep_20261127_base/256thread/nccl_28channels/x.json",
            {"sweep": "sweep_20261127_base", "threads": "256", "channels": "28"},
        ),
        ("sweep/512threads/28channels/x.json", {"sweep": "sweep", "threads": "512", "channels": "28"}),
        ("Sweep-a/threads=64/channels=8/x.json", {"sweep": "Sweep-a", "threads": "64", "channels": "8"}),
        ("thread_256/nccl_channels_8/x.json", {"threads": "256", "channels": "8"}),
        ("256_threads/8-channels/x.json", {"threads": "256", "channels": "8"}),
        ("rccl_4channels/x.json", {"channels": "4"}),
        ("nccl_28ch/x.json", {"channels": "28"}),
        ("nthreads=4/nchannels=2/x.json", {"threads": "4", "channels": "2"}),
        ("lr=0.1,bs=32/x.json", {"lr": "0.1", "bs": "32"}),
        ("model=gpt__rank=3/x.json", {"model": "gpt"}),
        ("threads=1/threads=2/x.json", {"threads": "2"}),
        ("a=b.json.gz", {"a": "b"}),
        ("run/dp0.rank[3].step10.json", {"iteration": "10"}),
        ("iteration_7/rank1_trace.json.gz", {"iteration": "7"}),
        ("sweeper/threadripper/channel/x.json", {}),
        ("=x/y=/x.json", {}),
        ("plain/x.pt.trace.json", {}),
    )

    def test_bytes_of_a_path_that_are_no_text(self, tmp_path: Path) -> None:
        folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/run=\xfe/\xff_rank3"))
        try:
            folder.mkdir(parents=True)
        except OSError:
            pytest.skip("the file system takes no such name")
        trace(folder / "x.json")
        for number, form in enumerate(("table", "json", "csv", "markdown", "html", "plan")):
            db = tmp_path / f"{number}.duckdb"
            options = ["--dry-run"] if form == "plan" else ["--format", form, "--label", os.fsdecode(b"b=\xfd")]
            done = run("ingest", folder, "--db", db, *options)
            assert done.exit_code == 0
            assert "run=\ufffd" in done.stdout
            if form != "plan":
                ((path, rank, found),) = ask(db, "SELECT path, rank, labels FROM capture")
                assert path.endswith("/run=\ufffd/\ufffd_rank3/x.json")
                assert (rank, found) == (3, {"b": "\ufffd", "run": "\ufffd"})
        refused = run("ingest", folder, "--db", os.fsdecode(os.fsencode(tmp_path) + b"/\xfe.duckdb"))
        assert refused.exit_code == 2
        assert "UTF-8" in refused.stderr

    @pytest.mark.parametrize(("path", "expected"), PATHS, ids=[path for path, _ in PATHS])
    def test_of_a_path(self, path: str, expected: dict[str, str]) -> None:
        assert labels.from_path(Path("/data") / path) == expected

    def test_given_ones_win(self, tmp_path: Path) -> None:
        path = trace(tmp_path / "256thread" / "x.json")
        flags = ["--label", "threads=7", "--label", "note=a=b", "--label", "channel=9"]
        assert ingest(path, db=tmp_path / "db", flags=flags).exit_code == 0
        assert ask(tmp_path / "db", "SELECT labels FROM capture") == [
            ({"channels": "9", "note": "a=b", "threads": "7"},)
        ]

    def test_by_a_regex(self, tmp_path: Path) -> None:
        for name in ("exp7_r3", "exp8_rx"):
            trace(tmp_path / "in" / name / "x.json", ord(name[3]))
        flags = ["--labels-from", r"exp(?P<experiment>\d+)_r(?P<rank>\w+)"]
        assert ingest(tmp_path / "in", db=tmp_path / "db", flags=flags).exit_code == 0
        rows = ask(tmp_path / "db", "SELECT labels, rank FROM capture ORDER BY path")
        assert rows == [({"experiment": "7"}, 3), ({"experiment": "8"}, None)]

    @pytest.mark.parametrize(
        "flags",
        [["--label", "x"], ["--label", "=x"], ["--label", "x="], ["--labels-from", "("], ["--labels-from", "x"]],
    )
    def test_faulty_ones_are_usage_errors(self, tmp_path: Path, flags: list[str]) -> None:
        done = ingest(trace(tmp_path / "x.json"), db=tmp_path / "db", flags=flags, new=True)
        assert (done.exit_code, (tmp_path / "db").exists()) == (2, False)
        assert done.stderr.startswith(f"tracedb: error: {flags[0]}")
