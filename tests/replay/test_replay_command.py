"""``tracedb replay`` on the processor: a small model recorded by the example runners, replayed, and reported."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from support.command import report, run
from support.tiny import Tiny

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
# ruff: noqa: E402
import profile_inference
import profile_training
from tracedb.pipeline import run as pipeline

SMALL = ("--layers", "1", "--hidden", "32", "--heads", "2", "--vocabulary", "64", "--batch", "2", "--warmup", "1")
QUICK = ("--measure-seconds", "0", "--device", "cpu")


def recorded_by(monkeypatch: pytest.MonkeyPatch, runner: Any, *options: str) -> None:
    monkeypatch.setattr(sys, "argv", [str(runner.__file__), *SMALL, *QUICK, *options])
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    runner.main()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training run: two steps recorded, three measured without the profiler."""
    path = tmp_path_factory.mktemp("replay")
    with pytest.MonkeyPatch.context() as patch:
        recorded_by(
            patch, profile_training, "--length", "8", "--steps", "2", "--optimizer", "fused", "-o", str(path / "train")
        )
    outcomes = pipeline.ingest(path / "train", db=path / "train.duckdb")
    assert [outcome.error for outcome in outcomes] == [None, None]  # the trace, and the measured times
    return path


@pytest.fixture(scope="module")
def replayed(folder: Path) -> dict[str, Any]:
    """The answer of a replay of its steps, which are also in the database then."""
    done = run(
        "-q", "replay", "--db", folder / "train.duckdb", "--device", "cpu", "--threads", "1", "--samples", "3",
        "--range", "train_step", "--format", "json",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def rows_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = answer["rows"]
    return rows


class TestReplay:
    """Real operators, timed for real."""

    def test_nearly_all_of_the_time_is_replayed(self, replayed: dict[str, Any]) -> None:
        rows = rows_of(replayed)
        assert {row["device"] for row in rows} == {"cpu"}
        share = sum(row["share_percent"] for row in rows if row["status"] == "replayed")
        assert share > 50  # 99.99 on a quiet machine; a busy one may stop the host within a node of autograd
        assert sum(row["share_percent"] for row in rows) == pytest.approx(100)
        assert {row["status"] for row in rows} <= {"replayed", "custom"}
        left = {row["name"] for row in rows if row["status"] == "custom"}
        assert all(name.endswith("Backward0") for name in left)  # nodes of autograd, whose operators are replayed
        names = {row["name"] for row in rows}
        assert {"aten::linear", "aten::gelu", "aten::gelu_backward", "aten::mm", "aten::embedding"} <= names

    def test_times_are_of_this_machine(self, replayed: dict[str, Any]) -> None:
        timed = [row for row in rows_of(replayed) if row["status"] == "replayed"]
        assert all(row["samples"] == 3 and row["timing"] == "wall" for row in timed)
        assert all(0 < row["replayed_median_ns"] < 1e9 for row in timed)
        assert all(
            row["ratio"] == pytest.approx(row["replayed_median_ns"] / row["recorded_median_ns"]) for row in timed
        )
        for name in ("joules", "same_kernels", "replayed_kernel_median_ns"):  # nothing is made up
            assert {row[name] for row in rows_of(replayed)} == {None}

    def test_passes_and_rules(self, replayed: dict[str, Any], folder: Path) -> None:
        passes = report(folder / "train.duckdb", "replay-passes")
        assert [(row["pass"], row["rule"]) for row in passes] == [
            (number, rule) for number in (1, 2) for rule in ("naive_sum", "kernel_sum", "union_gaps", "sequence")
        ]
        with (folder / "train" / "passes.csv").open() as file:
            measured = sorted(float(row["duration_s"]) for row in csv.DictReader(file))
        for row in passes:
            assert row["wall_source"] == "measured"
            assert row["wall_ns"] == pytest.approx(measured[len(measured) // 2] * 1e9, abs=1)
            assert row["recorded_wall_ns"] >= row["union_ns"] > 0
            assert row["error_percent"] == pytest.approx(100 * (row["predicted_ns"] / row["wall_ns"] - 1), abs=1e-4)
            assert row["predicted_joules"] is None
        by_rule = {row["rule"]: row["predicted_ns"] for row in passes if row["pass"] == 1}
        assert by_rule["union_gaps"] > by_rule["kernel_sum"] >= by_rule["naive_sum"] > 0

    def test_the_report_is_what_the_command_printed(self, replayed: dict[str, Any], folder: Path) -> None:
        assert report(folder / "train.duckdb", "replay") == rows_of(replayed)

    def test_comparison_for_programs(self, replayed: dict[str, Any]) -> None:
        comparison = replayed["comparison"]
        assert comparison["run"]["mode"] == "compare"
        assert comparison["run"]["passes"] == 2
        assert len(comparison["passes"]) == 8
        tiers = {tier["tier"]: tier["signatures"] for tier in comparison["tiers"]}
        assert sum(tiers.values()) == len(rows_of(replayed))
        assert len(comparison["top"]) == 20
        shares = [item["share_percent"] for item in comparison["top"]]
        assert shares == sorted(shares, reverse=True)


class TestModes:
    """Isolated operators, or the pass as a whole; a later replay counts, earlier ones are kept."""

    @pytest.fixture
    def db(self, folder: Path, tmp_path: Path) -> Path:
        path = tmp_path / "train.duckdb"
        path.write_bytes((folder / "train.duckdb").read_bytes())
        return path

    def replay(self, db: Path, *options: str) -> Any:
        return run("replay", "--db", db, "--device", "cpu", "--threads", "1", "--samples", "1", *options)

    def test_isolated(self, db: Path) -> None:
        assert self.replay(db, "--mode", "isolated", "--operator", "aten::gelu*").exit_code == 0
        rows = report(db, "replay")
        assert {row["wall_source"] for row in report(db, "replay-passes")} == {"trace"}  # steps have no measured times
        assert {row["name"] for row in rows} == {"aten::gelu", "aten::gelu_backward"}
        assert all(row["replayed_median_ns"] > 0 for row in rows)
        rules = {row["rule"] for row in report(db, "replay-passes")}
        assert rules == {"naive_sum", "kernel_sum", "union_gaps"}

    def test_full(self, db: Path, folder: Path) -> None:
        options = ("--mode", "full", "--range", "forward", "--measured", "2.5ms")
        assert self.replay(db, *options).exit_code == 0
        assert {row["wall_ns"] for row in report(db, "replay-passes")} == {2_500_000}
        assert {row["replayed_median_ns"] for row in report(db, "replay")} == {None}
        (first, second) = report(db, "replay-passes")
        assert (first["rule"], first["name"], second["pass"]) == ("sequence", "forward", 2)
        assert first["predicted_ns"] > 0

    def test_cold_cache_and_rested_clock(self, db: Path) -> None:
        options = (
            "--mode",
            "isolated",
            "--cache",
            "cold",
            "--clock",
            "rested",
            "--operator",
            "aten::gelu*,!*_backward",
        )
        done = self.replay(db, *options)
        assert done.exit_code == 0, done.stderr
        rows = [(row["name"], row["cache"], row["clock"]) for row in report(db, "replay")]
        assert rows == [("aten::gelu", "cold", "rested")]

    def test_a_removed_capture_takes_its_replays_with_it(self, db: Path) -> None:
        assert self.replay(db, "--mode", "isolated", "--operator", "aten::gelu").exit_code == 0
        assert run("remove", "trace_rank0", "--db", db).exit_code == 0
        done = run("sql", "--db", db, "SELECT count(*) FROM main.replay, main.replay_run, main.replay_pass")
        assert "0" in done.stdout
        assert run("report", "replay", "--db", db).exit_code == 3


class TestRefusals:
    """Known errors are one line each."""

    def faults(self, folder: Path, *options: str) -> tuple[int, str]:
        done = run("-q", "replay", "--db", folder / "train.duckdb", "--device", "cpu", *options)
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
        return done.exit_code, done.stderr

    @pytest.mark.parametrize(
        ("options", "code", "words"),
        [
            (("--step", "77"), 2, "--step 77"),
            (("--range", "nothing*"), 2, "--range 'nothing*'"),
            (("--capture", "9"), 2, "no capture has this number"),
            (("--measured", "soon"), 2, "--measured soon: expected a duration such as 12.5ms"),
            (("--energy", "1"), 1, "only NVIDIA GPUs have one"),
        ],
    )
    def test_named(self, folder: Path, options: tuple[str, ...], code: int, words: str) -> None:
        pytest.importorskip("pynvml", reason="NVML's bindings are not installed") if "--energy" in options else None
        found, said = self.faults(folder, *options)
        assert (found, words in said) == (code, True), said

    def test_step_and_range(self, folder: Path) -> None:
        assert self.faults(folder, "--step", "1", "--range", "forward")[0] == 2

    def test_no_replay_yet(self, sample: Path) -> None:
        done = run("report", "replay", "--db", sample)
        assert done.exit_code == 3
        assert "tracedb replay" in done.stderr

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("range,joules\nx,1\n", "has no column duration_ns or duration_s"),
            ("range,duration_s\nother,1\n", "no row has a range that matches 'train_step'"),
            ("range,duration_s\ntrain_step,soon\n", "'soon' is not a number"),
            ("range,duration_s\ntrain_step,-1\n", "'-1' is no duration or energy"),
        ],
    )
    def test_measured_files(self, folder: Path, tmp_path: Path, text: str, words: str) -> None:
        path = tmp_path / "passes.csv"
        path.write_text(text, encoding="utf-8")
        code, said = self.faults(folder, "--range", "train_step", "--measured", str(path))
        assert (code, words in said) == (1, True), said


def test_inference_is_recorded_with_its_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for model in ("bloom", "llama"):
        options = ("--model", model, "--prompt", "6", "--tokens", "2", "--repeats", "2", "-o", str(tmp_path / model))
        recorded_by(monkeypatch, profile_inference, *options)
        database = tmp_path / f"{model}.duckdb"
        assert {outcome.error for outcome in pipeline.ingest(tmp_path / model, db=database)} == {None}
        instances = {row["name"]: row["instances"] for row in report(database, "range-time")}
        assert (instances["prefill"], instances["decode"]) == (2, 4)
        assert (
            (tmp_path / model / "passes.csv")
            .read_text(encoding="utf-8")
            .startswith("range,duration_s,joules\nprefill,")
        )


def test_sweep_options_are_those_of_one_setting() -> None:
    own = profile_training._without_sweep(
        ["--sweep", "--channels", "4,16", "--threads=256", "--layers", "3", "-o", "out", "--parallel", "fsdp"]
    )
    assert own == ["--layers", "3", "--parallel", "fsdp"]


def test_a_gpu_s_operators_on_the_cpu_are_said(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "gpu.duckdb")
    number = tiny.capture()
    tiny.add("op", capture_id=number, op_id=1, name="aten::relu", start_ns=0, duration_ns=5_000,
             input_dims="[[8]]", input_types='["float"]', input_strides="[[1]]")  # fmt: skip
    tiny.kernel("relu_kernel", 1_000, 1_000, op_id=1)
    done = run("replay", "--db", tiny.save(), "--device", "cpu", "--threads", "1", "--samples", "1")
    assert done.exit_code == 0, done.stderr
    assert "recorded on a GPU and are replayed on the CPU" in done.stderr
