"""``tracedb whatif``: recordings whose times under a change are known."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

from support import rows
from support.command import run
from support.loading import empty_connection
from support.tiny import Tiny
from tracedb.errors import NotCaptured, UsageError
from tracedb.what_if import answer
from tracedb.what_if import scenario as scenarios
from tracedb.what_if.scenario import Scenario

Insert = Callable[..., None]
Predict = Callable[..., dict[str, tuple[int, int, str, int]]]
EVENT = "event_id name start_ns duration_ns stream_id launch_id"
CALL = "launch_id correlation_id name thread_id start_ns duration_ns"
US = 1_000


def _in_us(value: object) -> object:
    return value / US if isinstance(value, int) else value


@pytest.fixture(scope="module")
def made() -> Iterator[duckdb.DuckDBPyConnection]:
    with empty_connection() as connection:
        yield connection


@pytest.fixture
def db(made: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    made.execute("BEGIN")
    yield made
    made.execute("ROLLBACK")


@pytest.fixture
def insert(db: duckdb.DuckDBPyConnection) -> Insert:
    return partial(rows.insert, db)


@pytest.fixture
def predict(db: duckdb.DuckDBPyConnection) -> Predict:
    def predicted(*asked: Scenario, step: int | None = None) -> dict[str, tuple[int, int, str, int]]:
        db.execute("CREATE OR REPLACE TEMP TABLE selected_capture AS SELECT capture_id FROM main.capture")
        found = answer.answer(db, asked, step)
        names = [column.name for column in found.columns]
        wanted = [names.index(name) for name in ("measured_ns", "predicted_ns", "bound_by", "limit_ns")]
        return {str(row[names.index("scenario")]): tuple(_in_us(row[place]) for place in wanted) for row in found.rows}  # type: ignore[misc]

    return predicted


@pytest.fixture
def loop(insert: Insert) -> None:
    """A step: a loader of 1,000 µs, two launches, a synchronization; kernels of 400 and 600 µs, 5 µs apart."""
    insert("capture", "capture_id source rank", (1, "torch", 0))
    mine = partial(insert, capture_id=1)
    mine("annotation", "annotation_id name style thread_id start_ns duration_ns depth parent_id",
         (1, "ProfilerStep#3", "user", 5, 0, 2_100 * US, 0, None), (2, "loader", "user", 5, 0, 1_000 * US, 1, 1),
         is_open=False)  # fmt: skip
    mine("launch", CALL, (1, 1, "cudaLaunchKernel", 5, 1_000 * US, 10 * US),
         (2, 2, "cudaLaunchKernel", 5, 1_020 * US, 10 * US),
         (3, 3, "cudaDeviceSynchronize", 5, 1_040 * US, 1_000 * US))  # fmt: skip
    mine("kernel_event", EVENT, (1, "sgemm", 1_015 * US, 400 * US, 7, 1),
         (2, "elementwise_kernel", 1_420 * US, 600 * US, 7, 2),
         kind="kernel", device_id=0)  # fmt: skip


@pytest.mark.usefixtures("loop")
class TestOneRank:
    def test_no_change(self, predict: Predict) -> None:
        assert predict(scenarios.scaled("class=matmul:1")) == {"--scale class=matmul:1": (2_100, 2_100, "host", 2_100)}

    def test_faster_kernels(self, predict: Predict) -> None:
        """Kernel 1 of 200 instead of 400; at most, of none."""
        found = predict(scenarios.scaled("name=sgemm:0.5"), scenarios.scaled("name=*kernel:0.5"))
        assert found == {
            "--scale name=sgemm:0.5": (2_100, 1_900, "host", 1_715),
            "--scale 'name=*kernel:0.5'": (2_100, 1_800, "host", 1_500),
        }

    def test_removed_range(self, predict: Predict) -> None:
        assert predict(scenarios.removed("range=load*")) == {"--remove 'range=load*'": (2_100, 1_100, "kernel", 1_100)}

    def test_scaled_range(self, predict: Predict) -> None:
        assert predict(scenarios.scaled("range=loader:0.25"))["--scale range=loader:0.25"][1] == 1_350

    def test_host_of_no_time(self, predict: Predict) -> None:
        """The kernels and the time from launch to kernel remain, and what the call needs to return."""
        (found,) = predict(scenarios.scaled("class=host:0.5")).values()
        assert found[0] == 2_100
        assert found[3] < found[1] < 2_100 - 500

    def test_no_waiting(self, predict: Predict) -> None:
        """The host is done at once, and the step ends with its last kernel."""
        (found,) = predict(scenarios.without_waiting()).values()
        assert found[:2] == (2_100, 2_100 - 1_000 + 1_000 - 80)

    def test_launch_delay(self, predict: Predict) -> None:
        assert predict(scenarios.launched_after(0))["--launch-delay 0"][1] == 2_095

    def test_together_comes_first(self, predict: Predict) -> None:
        parts = [scenarios.removed("range=loader"), scenarios.scaled("name=sgemm:0")]
        found = predict(*parts, scenarios.combined(parts))
        assert list(found) == [
            "--remove range=loader --scale name=sgemm:0",
            "--remove range=loader",
            "--scale name=sgemm:0",
        ]
        assert [row[1] for row in found.values()] == [715, 1_100, 1_715]

    def test_usual_changes(self, predict: Predict) -> None:
        found = predict()
        assert found["no change"][:2] == (2_100, 2_100)
        assert next(iter(found)) == "--remove range=loader"
        assert {"--scale class=host:0.5", "--scale class=matmul:0.5", "--launch-delay 0", "--no-sync"} < set(found)

    def test_a_range_that_is_the_step_is_no_usual_change(self, insert: Insert, predict: Predict) -> None:
        """``train`` has 1,050 of 2,100 µs of the host, but launches all kernels; ``half`` launches one of them."""
        insert("annotation", "annotation_id name style thread_id start_ns duration_ns depth parent_id",
               (3, "train", "user", 5, 1_000 * US, 1_050 * US, 1, 1),
               (4, "half", "user", 5, 1_000 * US, 15 * US, 2, 3), capture_id=1, is_open=False)  # fmt: skip
        found = predict()
        assert "--remove range=train" not in found
        assert {"--remove range=half", "--remove range=loader"} < set(found)
        assert "--remove range=train" in predict(scenarios.removed("range=train"))

    def test_step(self, predict: Predict) -> None:
        assert predict(scenarios.scaled("class=matmul:1"), step=3)
        with pytest.raises(NotCaptured, match="no step 4"):
            predict(step=4)

    @pytest.mark.parametrize("text", ["class=attention:0.5", "name=nothing:1", "range=nothing:1", "op=nothing:0"])
    def test_nothing_matches(self, predict: Predict, text: str) -> None:
        with pytest.raises(NotCaptured):
            predict(scenarios.scaled(text))


@pytest.mark.parametrize("text", ["", "class=a", "class=a:", "class=a:x", "stream=7:1", "class=a:-1", "class=a:nan"])
def test_scale_that_is_none(text: str) -> None:
    with pytest.raises(UsageError, match="--scale"):
        scenarios.scaled(text)


@pytest.mark.parametrize("text", ["", "0", "x", "-1", "infx"])
def test_bandwidth_that_is_none(text: str) -> None:
    with pytest.raises(UsageError, match="--bandwidth"):
        scenarios.faster_network(text)


@pytest.mark.parametrize("text", ["", "range", "range=", "stream=7"])
def test_remove_that_is_none(text: str) -> None:
    with pytest.raises(UsageError, match="--remove"):
        scenarios.removed(text)


def test_no_gpu_work(insert: Insert, predict: Predict) -> None:
    insert("capture", "capture_id source", (1, "torch"))
    with pytest.raises(NotCaptured, match="no GPU activity"):
        predict()


def test_no_time(insert: Insert, predict: Predict) -> None:
    """A gain in percent of no time is not 0."""
    insert("capture", "capture_id source", (1, "torch"))
    insert("kernel_event", EVENT, (1, "sgemm", 100, 0, 7, None), capture_id=1, kind="kernel", device_id=0)
    with pytest.raises(NotCaptured, match="capture 1 take no time"):
        predict()


def test_all_times_impossible(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "trace.duckdb")
    tiny.capture()
    tiny.kernel("sgemm", 0, 400, time_fault="too_long")
    done = run("whatif", "--db", tiny.save())
    assert done.exit_code == 3
    assert "the times of all 1 GPU events cannot be true" in done.stderr


class TestTable:
    @staticmethod
    def made(path: Path) -> Path:
        """Two configurations, each of a matrix product and a copy after it."""
        tiny = Tiny(path / "trace.duckdb")
        for threads in ("256", "512"):
            tiny.capture(labels={"channels": "16", "threads": threads})
            tiny.kernel("sgemm", 0, 960_000)
            tiny.kernel("elementwise_kernel", 960_000, 40_000)
        return tiny.save()

    def test_several_configurations_are_told_apart(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "78")
        done = run("whatif", "--db", self.made(tmp_path), "--launch-delay", "0")
        assert done.exit_code == 0, done.stderr
        assert "256" in done.stdout and "512" in done.stdout
        assert "columns did not fit; --format csv shows all" in done.stderr

    def test_a_removal_of_everything_is_no_conclusion(self, tmp_path: Path) -> None:
        db = self.made(tmp_path)
        for options in (("--remove", "name=sgemm"), ("--remove", "name=elementwise*")):
            done = run("whatif", "--db", db, *options, "--store", "--where", "threads=256")
            assert done.exit_code == 0, done.stderr
        done = run("report", "whatif", "--db", db)
        assert "worth most: --remove 'name=elementwise*' (4.0 %" in done.stderr


@pytest.fixture
def ranks(insert: Insert) -> None:
    """Three ranks; rank 2 launches its all-reduce 900 µs late. The transfer takes 100 µs, once all are there."""
    for rank, late in enumerate((0, 0, 900)):
        capture = rank + 1
        insert("capture", "capture_id source rank", (capture, "torch", rank), world_size=3)
        insert("launch", CALL, (1, 1, "cudaLaunchKernel", 5, late * US, 10 * US), (2, 2,
               "cudaStreamSynchronize", 5, (late + 20) * US, (1_010 - late) * US), capture_id=capture)  # fmt: skip
        insert("kernel_event", EVENT, (1, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", (late + 20) * US,
               (1_000 - late) * US, 7, 1), capture_id=capture, kind="kernel", device_id=0,
               collective="allreduce", group_name="0", group_size=3)  # fmt: skip
        if late:
            insert("op", "op_id name thread_id start_ns duration_ns", (1, "slow", 5, 0, 900 * US), capture_id=capture)


@pytest.mark.usefixtures("ranks")
class TestRanks:
    def test_no_change(self, predict: Predict) -> None:
        assert predict(scenarios.scaled("class=collective:1"))["--scale class=collective:1"][:2] == (1_030, 1_030)

    def test_bandwidth(self, predict: Predict) -> None:
        assert predict(scenarios.faster_network("2x")) == {"--bandwidth 2x": (1_030, 980, "host", 930)}

    def test_late_rank(self, predict: Predict) -> None:
        """Without its slow operator rank 2 launches at once, and nobody waits."""
        assert predict(scenarios.removed("op=slow"))["--remove op=slow"][1] == 130

    def test_equal_ranks(self, predict: Predict) -> None:
        assert predict(scenarios.equal_ranks())["--ranks-equal"][1] == 130


def test_command(sample: Path) -> None:
    """On the sample run: no change is exact, and the span of a step is that of its critical path."""
    done = run("whatif", "--db", sample, "--scale", "class=matmul:1", "--format", "json")
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["report"] == "whatif"
    assert found["rows"]
    with duckdb.connect(str(sample), read_only=True) as connection:
        longest = dict(
            connection.execute(
                """SELECT min(s.set_id), max(p.span) FROM (
                       SELECT capture_id, max(start_ns + duration_ns) - min(start_ns) AS span
                       FROM critical_path GROUP BY capture_id) AS p
                   INNER JOIN v1._capture_set AS s USING (capture_id) GROUP BY s.set_id"""
            ).fetchall()
        )
    for row in found["rows"]:
        assert row["measured_ns"] == row["predicted_ns"] == longest[row["capture_id"]]


def test_doubts_about_the_recording_are_said(tmp_path: Path) -> None:
    """A trace that was cut short, with clocks that lie apart, warns here as in the report of its critical path."""
    tiny = Tiny(tmp_path / "trace.duckdb")
    capture = tiny.capture(status="truncated")
    tiny.kernel("sgemm", 0, 400)
    tiny.add("ingest_issue", capture_id=capture, code="clocks_apart", severity="warning",
             detail="GPU events start 9 s before their calls")  # fmt: skip
    done = run("whatif", "--db", tiny.save(), "--format", "json")
    assert done.exit_code == 0, done.stderr
    said = json.loads(done.stdout)["warnings"]
    for words in ("1 capture cut short", "9 s before their calls"):
        (text,) = [text for text in said if words in text]
        assert f"tracedb: warning: {text}\n" in done.stderr


def test_a_scenario_that_only_one_recording_has(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "trace.duckdb")
    for threads, name in (("256", "sgemm"), ("1024", "other")):
        tiny.capture(labels={"threads": threads})
        tiny.kernel(name, 0, 400)
    done = run("whatif", "--db", tiny.save(), "--scale", "name=sgemm:0.5")
    assert done.exit_code == 0
    said = "--scale name=sgemm:0.5 left out for 1 recording: no GPU work of capture 2 has name 'sgemm'"
    assert f"tracedb: warning: {said}\n" in done.stderr
