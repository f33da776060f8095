"""Labels from the path, from the user and from a regular expression."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

from support.command import run
from support.loading import ask, ingest, trace
from tracedb.pipeline import labels


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
        ("run/dp0.rank[3].step10.json", {"iteration": "10", "dp": "0"}),
        (
            "dp1_pp0_tp0_dcp0_ep2_rank2.172.pt.trace.json.gz",
            {"dp": "1", "pp": "0", "tp": "0", "dcp": "0", "ep": "2"},
        ),
        ("1712345.67-TP-3.trace.json.gz", {"tp": "3"}),
        ("171-TP-0-DP-1-PP-0-EP-0-DECODE.trace.json.gz", {"tp": "0", "dp": "1", "pp": "0", "ep": "0"}),
        ("tp_rank_01.json", {"tp": "1"}),
        ("llama-tp8-pp2/x.json", {"tp": "8", "pp": "2"}),
        ("ep3/cp1/sp500/http2-chip3.json", {}),
        ("exp[llama2-70b-run1]-rank[3].18.pt.trace.json", {}),
        ("host_1234.1700000000.pt.trace.json", {}),
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
            assert ("\ufffd/\ufffd" if form in ("table", "markdown", "html") else "run=\ufffd") in done.stdout
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

    def test_a_dry_run_tells_what_the_load_gives(self, tmp_path: Path) -> None:
        for name in ("a_rank1", "b_7"):
            trace(tmp_path / "in" / f"{name}.json", ord(name[0]))
        flags = ["--label", "note=x", "--labels-from", r"/(?P<kind>b)_(?P<rank>\d+)\.json$", "--format", "json"]
        plan = json.loads(run("ingest", tmp_path / "in", "--dry-run", *flags).stdout)["rows"]
        assert [(row["rank"], row["labels"]) for row in plan] == [(1, {"note": "x"}), (7, {"kind": "b", "note": "x"})]
        assert ingest(tmp_path / "in", db=tmp_path / "db", flags=flags[:-2]).exit_code == 0
        rows = ask(tmp_path / "db", "SELECT rank, labels FROM capture ORDER BY path")
        assert rows == [(row["rank"], row["labels"]) for row in plan]

    @pytest.mark.parametrize(("word", "name"), [("profile", "rank"), ("run", "run"), ("part", "part")])
    def test_names_that_count_give_no_rank_but_a_hint_that_works(self, tmp_path: Path, word: str, name: str) -> None:
        for number in range(3):
            trace(tmp_path / "in" / f"{word}_{number}.json", number)
        done = ingest(tmp_path / "in", db=tmp_path / "db")
        assert ask(tmp_path / "db", "SELECT DISTINCT rank, labels FROM capture") == [(None, {})]
        (hint,) = (line for line in done.stderr.splitlines() if "--labels-from" in line)
        flags = shlex.split(hint[hint.index("--labels-from") :])
        ingest(tmp_path / "in", db=tmp_path / "again", flags=flags)
        value = "rank::VARCHAR" if name == "rank" else f"labels['{name}']"
        assert ask(tmp_path / "again", f"SELECT {value} FROM capture ORDER BY path") == [("0",), ("1",), ("2",)]

    @pytest.mark.parametrize("names", [["profile_0", "profile_2"], ["profile_1", "profile_2"], ["x_3_0", "x_4_1"]])
    def test_names_that_do_not_count_from_0_give_no_hint(self, tmp_path: Path, names: list[str]) -> None:
        for number, name in enumerate(names):
            trace(tmp_path / "in" / f"{name}.json", number)
        assert "--labels-from" not in ingest(tmp_path / "in", db=tmp_path / "db").stderr

    @pytest.mark.parametrize(
        ("path", "rank"),
        [
            ("dp1_pp0_tp0_dcp0_ep2_rank2.172.pt.trace.json.gz", 2),
            ("exp[llama2-70b-run1]-rank[3].18.pt.trace.json", 3),
            ("trace-rank-5.json", 5),
            ("global_rank_2.json", 2),
            ("tp_rank-2_rank-6.json", 6),
            ("rank3_tp_rank1.json", 3),
            ("node_rank0/rank4.json", 4),
            ("tp_rank_1.json", None),
            ("mp_rank_00.json", None),
            ("data_parallel_rank3.json", None),
            ("local_rank3.json", None),
            ("lora_rank16/t.json", None),
            ("low-rank-8.json", None),
            ("1712345.67-TP-3.trace.json.gz", None),
            ("step_0.json", None),
            ("run_0/part_0.json", None),
            ("worker0.pt.trace.json", None),
            ("host_1234.1700000000.pt.trace.json", None),
        ],
    )
    def test_rank_of_a_path(self, path: str, rank: int | None) -> None:
        assert labels.rank_from_path(Path("/data") / path) == rank

    @pytest.mark.parametrize(
        ("names", "sets"),
        [
            (["dp0_tp0_rank0", "dp0_tp1_rank1", "dp1_tp0_rank2"], 1),
            (["tp1/rank0", "tp2/rank0", "tp2/rank1"], 2),
            (["a=1,tp0_rank0", "a=1,tp1_rank1", "a=2,tp0_rank0", "a=2,tp1_rank1"], 2),
        ],
    )
    def test_places_of_ranks_are_one_configuration_and_sizes_are_not(
        self, tmp_path: Path, names: list[str], sets: int
    ) -> None:
        for number, name in enumerate(names):
            trace(tmp_path / "in" / f"{name}.json", number)
        ingest(tmp_path / "in", db=tmp_path / "db")
        assert ask(tmp_path / "db", "SELECT count(DISTINCT set_id) FROM v1._capture_set") == [(sets,)]

    @pytest.mark.parametrize(
        ("flags", "said"),
        [
            (["--label", "x"], "a label is KEY=VALUE, not 'x'"),
            (["--label", "=x"], "a label is KEY=VALUE, not '=x'"),
            (["--label", "x="], "a label is KEY=VALUE, not 'x='"),
            (["--labels-from", "("], "--labels-from"),
            (["--labels-from", "x"], "--labels-from"),
        ],
    )
    def test_faulty_ones_are_usage_errors(self, tmp_path: Path, flags: list[str], said: str) -> None:
        done = ingest(trace(tmp_path / "x.json"), db=tmp_path / "db", flags=flags, new=True)
        assert (done.exit_code, (tmp_path / "db").exists()) == (2, False)
        assert done.stderr.startswith(f"tracedb: error: {said}")
