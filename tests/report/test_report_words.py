"""Messages beside an answer, or instead of one: reasons, rules, warnings."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from support.command import run
from support.tiny import ADD, GEMM, Tiny, two_ranks
from tracedb.derive import clipped_event
from tracedb.report import registry


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_ranks(tmp_path_factory.mktemp("db") / "trace.duckdb")


class TestNoAnswer:
    """Exit code 3, and why, in words."""

    def reason(self, db: Path, name: str, *options: str) -> str:
        done = run("report", name, "--db", db, *options)
        assert (done.exit_code, done.stdout) == (3, "")
        assert done.stderr.count("\n") == 1
        return done.stderr.removeprefix("tracedb: error: ").strip()

    def test_no_captures(self, tmp_path: Path) -> None:
        db = Tiny(tmp_path / "a.duckdb").save()
        assert "holds no captures" in self.reason(db, "top-kernels")
        names = [item.name for item in registry.every()]
        done = run("report", *names, "--db", db)  # one opening of the database for all
        assert (done.exit_code, done.stdout) == (3, "")
        lines = [line.removeprefix("tracedb: ") for line in done.stderr.splitlines()]
        assert [line.split(": ")[1] for line in lines if "holds no captures" in line and "no answer: " in line] == names

    def test_only_the_cpu(self, tmp_path: Path) -> None:
        tiny = Tiny(tmp_path / "a.duckdb")
        tiny.capture(0, status="no_gpu_activity")
        tiny.add("op", capture_id=1, op_id=1, name="aten::mm", start_ns=0, duration_ns=1)
        db = tiny.save()
        assert self.reason(db, "top-kernels") == (
            "no GPU activity was captured: 1 capture of the CPU only (1 operator); record again with the GPU traced"
        )
        assert self.reason(db, "gpu-timeline") == self.reason(db, "matmul-fraction") == self.reason(db, "gemm-variance")

    def test_ranges_of_the_cpu_are_an_answer(self, tmp_path: Path) -> None:
        tiny = Tiny(tmp_path / "a.duckdb")
        tiny.capture(0, status="no_gpu_activity")
        tiny.range(1, "load", 0, 100)
        done = run("report", "nvtx-ranges", "--db", tiny.save(), "--format", "json")
        (row,) = json.loads(done.stdout)["rows"]
        assert (row["name"], row["range_total_ns"], row["projected_total_ns"], row["gpu_ops"]) == (
            "load",
            100,
            None,
            None,
        )
        assert "1 of 1 capture without GPU activity" in done.stderr

    def test_graph_launches_without_kernels(self, tmp_path: Path) -> None:
        tiny = Tiny(tmp_path / "a.duckdb")
        tiny.capture(0, status="no_gpu_activity")
        tiny.add("launch", capture_id=1, launch_id=1, name="cudaGraphLaunch_v10000", start_ns=0, duration_ns=1)
        assert "1 graph launch present but no kernels; record again with graph nodes traced" in self.reason(
            tiny.save(), "top-kernels"
        )

    def test_graph_replays_as_a_whole(self, tmp_path: Path) -> None:
        tiny = Tiny(tmp_path / "a.duckdb")
        tiny.capture(0)
        tiny.kernel("graph", 0, 1_000, kind="graph")
        db = tiny.save()
        assert "1 graph replay recorded only as a whole" in self.reason(db, "top-kernels")
        done = run("report", "gpu-timeline", "--db", db)
        assert done.exit_code == 0
        assert "1 graph replay (0.0 ms) recorded only as a whole; their kernels are hidden" in done.stderr

    def test_no_gemms_no_collectives_no_ranges(self, tmp_path: Path) -> None:
        tiny = Tiny(tmp_path / "a.duckdb")
        tiny.capture(0)
        tiny.kernel(ADD, 0, 1_000)
        db = tiny.save()
        assert "no GEMMs were captured" in self.reason(db, "gemm-variance")
        assert "no collectives were captured" in self.reason(db, "collective-overlap")
        assert "no ranges" in self.reason(db, "nvtx-ranges")
        assert "no ranges" in self.reason(db, "nvtx-kernels")
        assert "no ranges" in self.reason(db, "top-kernels", "--by", "range")
        assert "no steps are marked" in self.reason(db, "top-kernels", "--skip-warmup", "1")
        assert "no copies or memsets were captured, only 1 kernel" in self.reason(db, "cuda_gpu_mem_time_sum")
        assert "no API calls (CUDA or HIP runtime and driver) were captured" in self.reason(db, "cuda_api_sum")
        assert "nothing is known of the launch of 1 kernel" in self.reason(db, "launch-latency")
        assert "no gaps: on no device is idle time between its 1 GPU event" in self.reason(db, "gpu-gaps")

    def test_copies_alone(self, tmp_path: Path) -> None:
        tiny = Tiny(tmp_path / "a.duckdb")
        tiny.capture(0)
        tiny.kernel("Memcpy HtoD", 0, 10, kind="memcpy")
        tiny.range(1, "forward", 0, 100, (1,))
        db = tiny.save()
        assert self.reason(db, "cuda_gpu_kern_sum") == "no kernels were captured, only 1 copy or memset"
        assert run("report", "cuda_gpu_mem_time_sum", "--db", db).exit_code == 0

    def test_filters_that_match_nothing(self, db: Path) -> None:
        assert self.reason(db, "top-kernels", "--rank", "9") == "no capture has rank 9; there are: 0\N{EN DASH}1"
        assert (
            self.reason(db, "top-kernels", "--where", "threads=7") == "no capture has threads=7; there are: 256, 1024"
        )
        assert "no capture has source nsys; there are: torch" in self.reason(db, "top-kernels", "--source", "nsys")
        assert "no GPU activity on device 3; there are: 0" in self.reason(db, "top-kernels", "--device", "3")
        assert "no range matches 'x*'" in self.reason(db, "top-kernels", "--range", "x*")
        assert "no capture has more than 2 steps" in self.reason(db, "top-kernels", "--skip-warmup", "2")
        assert "no capture matches all of --rank 0, --where threads=1024" in self.reason(
            db, "top-kernels", "--rank", "0", "--where", "threads=1024"
        )

    def test_label_keys_that_are_not_there_are_usage(self, db: Path) -> None:
        done = run("report", "top-kernels", "--db", db, "--where", "nothing=1")
        assert done.exit_code == 2
        assert "no capture has a label 'nothing'; label keys here: channels, sweep, threads" in done.stderr
        assert run("report", "top-kernels", "--db", db, "--by", "nothing").exit_code == 2

    def test_what_a_report_has_not_is_usage(self, db: Path) -> None:
        done = run("report", "nvtx-ranges", "--db", db, "--by", "vendor")
        assert done.exit_code in (0, 2)


@pytest.fixture(scope="module")
def rocm_db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tiny = Tiny(tmp_path_factory.mktemp("db") / "trace.duckdb")
    tiny.capture(0, source="rocprofv3")
    event = tiny.kernel(GEMM, 0, 100)
    tiny.range(1, "step", 0, 100, (event,), rules=("time",))
    return tiny.save()


class TestRules:
    @pytest.fixture
    def db(self, rocm_db: Path) -> Path:
        return rocm_db

    def test_time_where_no_launches_were_recorded(self, db: Path) -> None:
        done = run("report", "nvtx-kernels", "--db", db, "--format", "json")
        assert json.loads(done.stdout)["filters"] == {"rule": "time"}
        assert "ranges hold a kernel by rule time" in done.stderr

    def test_a_rule_that_changes_nothing_says_so(self, db: Path) -> None:
        assert "--rule has no effect here" in run("report", "top-kernels", "--db", db, "--rule", "time").stderr

    def test_a_rule_without_members_says_so(self, db: Path) -> None:
        done = run("report", "nvtx-kernels", "--db", db, "--rule", "thread")
        assert done.exit_code == 3
        assert "by rule thread" in done.stderr


class TestWarnings:
    def warnings(self, tiny: Tiny, *options: str) -> list[str]:
        done = run("report", "top-kernels", "--db", tiny.save(), "--format", "json", *options)
        said: list[str] = json.loads(done.stdout)["warnings"]
        assert [f"tracedb: warning: {text}" for text in said] == [
            line for line in done.stderr.splitlines() if "warning" in line
        ]
        return said

    @pytest.fixture
    def tiny(self, tmp_path: Path) -> Tiny:
        return Tiny(tmp_path / "a.duckdb")

    def test_nothing_to_say(self, tiny: Tiny) -> None:
        for rank in (0, 1):
            tiny.capture(rank, {"threads": "256"})
            tiny.kernel(GEMM, 0, 100)
        assert self.warnings(tiny, "--by", "rank") == []

    def test_views_of_another_version(self, tiny: Tiny) -> None:
        tiny.capture(0)
        tiny.kernel(GEMM, 0, 100)
        db = tiny.save()
        with duckdb.connect(str(db)) as connection:
            connection.execute("UPDATE meta.view_version SET sha256 = 'x' WHERE name = 'top_kernels'")
        done = run("report", "top-kernels", "--db", db)
        assert done.exit_code == 0
        assert "not the views of this tracedb: 1 in this file (v1.top_kernels" in done.stderr
        with duckdb.connect(str(db)) as connection:
            connection.execute("DROP VIEW v1.matmul_fraction")
        done = run("report", "matmul-fraction", "--db", db)
        assert done.exit_code == 1
        assert "its views are of another tracedb" in done.stderr

    def test_damaged_captures(self, tiny: Tiny) -> None:
        tiny.capture(0, status="truncated", path="/a/b/rank0/trace.json")
        tiny.kernel(GEMM, 0, 100)
        assert self.warnings(tiny) == ["1 capture cut short: what follows is missing (rank0/trace.json)"]

    def test_graph_replays(self, tiny: Tiny) -> None:
        tiny.capture(0)
        tiny.kernel(GEMM, 0, 100)
        tiny.kernel("graph", 200, 2_500_000, kind="graph")
        assert self.warnings(tiny) == ["1 graph replay (2.5 ms) recorded only as a whole; their kernels are hidden"]

    def test_own_class_rules(self, tiny: Tiny) -> None:
        tiny.capture(0)
        tiny.kernel(GEMM, 0, 100)
        tiny.add("kernel_rule", priority=1, pattern="nvjet", **{"class": "other"})
        assert self.warnings(tiny) == ["rules in kernel_rule changed the class of 1 kernel name"]

    def test_several_profilers_of_one_rank(self, tiny: Tiny) -> None:
        for source in ("torch", "nsys"):
            tiny.capture(0, source=source)
            tiny.kernel(GEMM, 0, 100)
        expected = "captures of one rank by several profilers are pooled (nsys, torch); choose one with --source"
        assert self.warnings(tiny) == [expected]

    def test_one_profiler_chosen(self, tiny: Tiny) -> None:
        for source in ("torch", "nsys"):
            tiny.capture(0, source=source)
            tiny.kernel(GEMM, 0, 100)
        assert self.warnings(tiny, "--source", "nsys") == []

    def test_pooled_configurations(self, tiny: Tiny) -> None:
        for threads in ("256", "512"):
            tiny.capture(0, {"threads": threads, "sweep": "a"})
            tiny.kernel(GEMM, 0, 100)
        assert self.warnings(tiny) == ["2 configurations pooled, differing in threads; --by threads keeps them apart"]

    def test_kept_apart(self, tiny: Tiny) -> None:
        for threads in ("256", "512"):
            tiny.capture(0, {"threads": threads})
            tiny.kernel(GEMM, 0, 100)
        assert self.warnings(tiny, "--by", "threads") == []

    def test_the_same_rank_and_labels_twice(self, tiny: Tiny) -> None:
        for name in ("a", "b"):
            tiny.capture(0, path=f"/x/{name}.json")
            tiny.kernel(GEMM, 0, 100)
        assert self.warnings(tiny) == [
            "2 captures with the same source, rank and labels pooled (x/a.json, x/b.json); --by capture keeps them "
            "apart, and --capture chooses one"
        ]

    def test_recordings_are_named_so_that_they_differ(self, tiny: Tiny) -> None:
        for cycle in (0, 1):
            tiny.capture(0, path=f"/x/cycle{cycle}/rank0/7_kernel_trace.csv")
            tiny.kernel(GEMM, 0, 100)
        (said,) = self.warnings(tiny)
        assert "(cycle0/rank0/7_kernel_trace.csv, cycle1/rank0/7_kernel_trace.csv)" in said

    def test_rocm_durations_that_run_on(self, tiny: Tiny) -> None:
        tiny.capture(0, source="rocprofv3")
        tiny.connection.execute("UPDATE main.device SET vendor = 'AMD'")
        tiny.kernel(GEMM, 0, 1_000, queue_id=1)
        tiny.kernel(GEMM, 500, 1_000, queue_id=1)
        clipped_event.clip(tiny.connection, 1)
        (said,) = self.warnings(tiny)
        assert said.startswith("ROCm durations run into the next kernel of their queue: 25.0 % of the recorded sum")

    def test_captures_without_gpu_activity_beside_others(self, tiny: Tiny) -> None:
        tiny.capture(0)
        tiny.kernel(GEMM, 0, 100)
        tiny.capture(1, status="no_gpu_activity")
        assert self.warnings(tiny) == ["1 of 2 captures without GPU activity"]


def test_why_says_what_its_shares_are_of(sample: Path) -> None:
    for options, whole in (
        ((), "the step"),
        (("--class", "matmul"), "the chosen work (--class matmul) and the idle time that ends with it"),
        (("--range", "ProfilerStep*"), "the chosen work (--range ProfilerStep*) and the idle time that ends with it"),
    ):
        done = run("report", "why", "--db", sample, "--where", "threads=256", "--where", "channels=4", *options)
        assert f" % of {whole}: " in done.stderr, done.stderr


def test_attention_without_shapes_says_how_to_give_them(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "t.duckdb")
    tiny.capture()
    for number in range(4):
        event = tiny.kernel(GEMM, 1_000 * number, 900 if number == 3 else 100)
        tiny.range(number + 1, "computing_softmax", 1_000 * number, 1_000 * number + 950, (event,))
    done = run("report", "attention-split", "--db", tiny.save(), "--format", "json")
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["instances"], row["projected_median_ns"]) == (3, 100)
    assert "1 of 1 rows have no FLOPs, because the shapes were not recorded: ingest with --label batch=N" in done.stderr


def test_a_table_of_nsys_says_which_columns_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = Tiny(tmp_path / "t.duckdb")
    tiny.capture()
    tiny.range(1, "forward", 0, 1_000, (tiny.kernel(GEMM, 0, 100),))
    db = tiny.save()
    said = "of nsys stats did not fit; --wide shows all"
    monkeypatch.setenv("COLUMNS", "50")
    assert said in run("report", "nvtx-sum", "--db", db).stderr
    monkeypatch.setenv("COLUMNS", "200")
    assert said not in run("report", "nvtx-sum", "--db", db).stderr


def test_sql_shows_whole_texts_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db = Tiny(tmp_path / "t.duckdb").save()
    monkeypatch.setenv("COLUMNS", "60")
    query = "SELECT repeat('word ', 30) || 'end' AS said"
    assert "end" not in run("sql", query, "--db", db).stdout
    assert "end" in run("sql", query, "--db", db, "--wide").stdout


def test_rows_of_tracelens_are_together_for_each_capture(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "t.duckdb")
    for _ in range(2):
        tiny.capture()
        tiny.kernel(GEMM, 0, 100)
    found = json.loads(run("report", "tracelens-gpu-timeline", "--db", tiny.save(), "--format", "json").stdout)
    numbers = [row["capture_id"] for row in found["rows"]]
    assert numbers == sorted(numbers) and set(numbers) == {1, 2}
