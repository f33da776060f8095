"""What is replayed: passes, the operator that owns a launch, calls of a pass; on rows put in by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import duckdb
import pytest

from support import rows
from support.loading import empty_connection
from support.recordings import ROOT
from tracedb.errors import NotCaptured, UsageError
from tracedb.pipeline import run as pipeline
from tracedb.replay import recorded_passes
from tracedb.replay.recorded_passes import Selection
from tracedb.storage.connection import open_read_only

Insert = Callable[..., None]


@pytest.fixture(scope="module")
def installed() -> Iterator[duckdb.DuckDBPyConnection]:
    with empty_connection() as connection:
        yield connection


@pytest.fixture
def db(installed: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    installed.execute("BEGIN")
    yield installed
    installed.execute("ROLLBACK")


@pytest.fixture
def insert(db: duckdb.DuckDBPyConnection) -> Insert:
    made = partial(rows.insert, db)
    made("capture", "capture_id source", (1, "torch"))
    return made


def signatures(db: duckdb.DuckDBPyConnection, columns: str, **chosen: Any) -> list[tuple[Any, ...]]:
    recorded_passes.prepare(db, Selection(1, **chosen))
    return db.execute(f"SELECT {columns} FROM temp.replay_signature ORDER BY signature_id").fetchall()


def operator(insert: Insert, number: int, name: str, start: int, duration: int, parent: int | None = None) -> None:
    insert(
        "op", "op_id name start_ns duration_ns parent_op_id", (number, name, start, duration, parent),
        capture_id=1, thread_id=1, input_dims="[[4]]", input_types='["float"]', input_strides="[[1]]",
        concrete_inputs='[""]',
    )  # fmt: skip


def kernel(insert: Insert, number: int, name: str, start: int, duration: int, op: int | None, **other: Any) -> None:
    insert(
        "kernel_event", "event_id name start_ns duration_ns op_id", (number, name, start, duration, op),
        **{"capture_id": 1, "kind": "kernel", "device_id": 0, "stream_id": 7, **other},
    )  # fmt: skip


class TestOwner:
    """The outermost operator that launches something itself, so that nothing counts twice."""

    def test_wrapper_around_the_launching_operator_is_none(self, db: Any, insert: Insert) -> None:
        operator(insert, 1, "aten::linear", 0, 10)
        operator(insert, 2, "aten::addmm", 1, 8, parent=1)
        kernel(insert, 1, "gemm", 20, 5, 2)
        assert signatures(db, "name, calls, recorded_total_ns, hint") == [("aten::addmm", 1, 5, "operator")]

    def test_inner_launches_belong_to_the_operator_that_also_launches(self, db: Any, insert: Insert) -> None:
        operator(insert, 1, "EmbeddingBackward0", 0, 20)
        operator(insert, 2, "aten::embedding_dense_backward", 1, 18, parent=1)
        operator(insert, 3, "aten::zeros", 2, 5, parent=2)
        operator(insert, 4, "aten::fill_", 3, 2, parent=3)
        kernel(insert, 1, "fill", 20, 5, 4, grid_x=2, grid_y=1, grid_z=1, block_x=64, block_y=1, block_z=1)
        kernel(insert, 2, "backward", 25, 7, 2)
        ((name, total, kernels),) = signatures(db, "name, recorded_total_ns, kernels")
        assert (name, total) == ("aten::embedding_dense_backward", 12)
        assert json.loads(kernels) == [["backward", None, None], ["fill", "[2, 1, 1]", "[64, 1, 1]"]]

    def test_operator_inside_a_custom_one_stays_its_own(self, db: Any, insert: Insert) -> None:
        operator(insert, 1, "FlashAttnFunc", 0, 20)
        operator(insert, 2, "aten::mul", 2, 5, parent=1)
        kernel(insert, 1, "custom", 20, 9, 1)
        kernel(insert, 2, "mul", 30, 4, 2)
        assert signatures(db, "name, recorded_total_ns") == [("FlashAttnFunc", 9), ("aten::mul", 4)]

    def test_what_cannot_be_replayed_says_why(self, db: Any, insert: Insert) -> None:
        operator(insert, 1, "c10d::allreduce_", 0, 20)
        kernel(insert, 1, "ncclDevKernel_AllReduce_Sum_f32", 20, 50, 1)
        kernel(insert, 2, "in_graph", 80, 40, None, graph_node_id=5)
        kernel(insert, 3, "lonely", 130, 30, None)
        kernel(insert, 4, "Memcpy HtoD (Pageable -> Device)", 170, 20, None, kind="memcpy", bytes=64, copy_kind="HtoD")
        insert("op", "op_id name start_ns duration_ns", (2, "aten::add", 30, 5), capture_id=1, thread_id=1)
        kernel(insert, 5, "add", 200, 10, 2)
        assert signatures(db, "hint, bytes, copy_kind, share_percent") == [
            ("collective", None, None, pytest.approx(100 * 50 / 150)),
            ("graph_only", None, None, pytest.approx(100 * 40 / 150)),
            ("no_operator", None, None, 20.0),
            ("memcpy", 64, "HtoD", pytest.approx(100 * 20 / 150)),
            ("no_shapes", None, None, pytest.approx(100 * 10 / 150)),
        ]

    def test_direction_of_a_copy_belongs_to_the_signature(self, db: Any, insert: Insert) -> None:
        for number, direction in enumerate(("HtoD", "DtoD", "HtoD"), start=1):
            operator(insert, number, "aten::copy_", 10 * number, 5)
            kernel(insert, number, "Memcpy", 100 * number, number, number, kind="memcpy", copy_kind=direction)
        assert signatures(db, "copy_kind, calls, recorded_median_ns") == [("HtoD", 2, 2.0), ("DtoD", 1, 2.0)]

    def test_circle_of_parents_ends(self, db: Any, insert: Insert) -> None:
        operator(insert, 1, "aten::add", 0, 10, parent=2)
        operator(insert, 2, "aten::mul", 0, 10, parent=1)
        kernel(insert, 1, "add", 20, 5, 1)
        assert len(signatures(db, "name")) == 1


class TestPasses:
    """Steps, ranges of a name, or the whole capture."""

    @pytest.fixture
    def steps(self, insert: Insert) -> Insert:
        """Two steps of two kernels that overlap, each launched inside; and one kernel in no step."""
        for step in (0, 1):
            start = 1000 * step
            insert(
                "annotation", "annotation_id name style start_ns duration_ns",
                (step, f"ProfilerStep#{step + 5}", "user", start, 100), capture_id=1, thread_id=1, depth=0,
            )  # fmt: skip
            for place in (0, 1):
                number = 2 * step + place
                operator(insert, number, "aten::add", start + 10 * place, 5)
                insert(
                    "launch", "launch_id name start_ns duration_ns",
                    (number, "cudaLaunchKernel", start + 12 * place, 3), capture_id=1, thread_id=1,
                )  # fmt: skip
                kernel(insert, number, "add", start + 50 + 20 * place, 30, number, launch_id=number)
                insert("annotation_kernel", "capture_id annotation_id event_id rule", (1, step, number, "process"))
        kernel(insert, 9, "before", -50, 10, None)
        return insert

    def measures(self, db: Any, **chosen: Any) -> list[tuple[Any, ...]]:
        recorded_passes.prepare(db, Selection(1, **chosen))
        columns = "pass, name, step, events, kernel_sum_ns, union_ns, span_ns, idle_ns, launch_gap_ns, wall_ns"
        return list(db.execute(f"SELECT {columns} FROM temp.replay_measure ORDER BY pass").fetchall())

    def test_steps(self, db: Any, steps: Insert) -> None:
        assert self.measures(db) == [
            (1, "step 5", 5, 2, 60, 50, 50, 0, 0, 100),
            (2, "step 6", 6, 2, 60, 50, 50, 0, 0, 100),
        ]
        assert signatures(db, "name, calls, calls_per_pass, recorded_median_ns, recorded_mad_ns") == [
            ("aten::add", 4, 2.0, 30.0, 0.0)
        ]
        assert signatures(db, "calls, calls_per_pass", step=6) == [(2, 2.0)]

    def test_a_range_is_a_pass(self, db: Any, steps: Insert) -> None:
        names = [row[:3] for row in self.measures(db, range_glob="ProfilerStep#6")]
        assert names == [(1, "ProfilerStep#6", None)]

    def test_the_whole_capture(self, db: Any, insert: Insert) -> None:
        operator(insert, 1, "aten::add", 0, 5)
        insert("launch", "launch_id name start_ns duration_ns", (1, "cudaLaunchKernel", 25, 5), capture_id=1)
        kernel(insert, 1, "add", 0, 10, 1)
        kernel(insert, 2, "add", 40, 20, 1, launch_id=1)
        assert self.measures(db) == [(1, "capture", None, 2, 30, 30, 60, 30, 20, 60)]

    def test_a_pass_that_does_not_exist(self, db: Any, steps: Insert) -> None:
        with pytest.raises(UsageError, match="--step 7"):
            signatures(db, "name", step=7)
        with pytest.raises(UsageError, match="--range 'epoch'"):
            signatures(db, "name", range_glob="epoch")

    def test_nothing_to_replay(self, db: Any, insert: Insert) -> None:
        with pytest.raises(NotCaptured, match="record_shapes"):
            signatures(db, "name")

    def test_operators_of_the_cpu_where_there_is_no_gpu(self, db: Any, insert: Insert) -> None:
        operator(insert, 1, "autograd::engine::evaluate_function: MmBackward0", 0, 50)
        operator(insert, 2, "aten::mm", 5, 30, parent=1)
        operator(insert, 3, "aten::resolve_conj", 6, 2, parent=2)
        operator(insert, 4, "CustomFunction", 60, 20)
        assert signatures(db, "name, recorded_total_ns, kernels") == [
            ("aten::mm", 30, None),
            ("CustomFunction", 20, None),
        ]


@pytest.mark.parametrize("text", ["[" * 100_000, "{", "7", '"x"', "[1", None])
def test_texts_that_are_no_list_are_none(text: str | None) -> None:
    assert recorded_passes._list(text) == []


def test_counts_of_many_passes_are_not_those_of_one(db: Any, insert: Insert) -> None:
    """System B multiplied the counts of 25 forward passes by the time of a kernel, and compared with one pass.

    The prediction was 25 times what one pass takes; calls per pass set it right.
    """
    for step in range(25):
        insert(
            "annotation", "annotation_id name style start_ns duration_ns",
            (step, f"ProfilerStep#{step}", "user", 1000 * step, 900), capture_id=1, thread_id=1, depth=0,
        )  # fmt: skip
        for place in range(2):
            number = 2 * step + place
            operator(insert, number, "aten::native_layer_norm", 1000 * step + 10 * place, 5)
            kernel(insert, number, "layer_norm", 1000 * step + 100 + 100 * place, 100, number)
            insert("annotation_kernel", "capture_id annotation_id event_id rule", (1, step, number, "process"))
    ((calls, per_pass, median_ns),) = signatures(db, "calls, calls_per_pass, recorded_median_ns")
    ((pass_ns,),) = db.execute("SELECT DISTINCT kernel_sum_ns FROM temp.replay_measure").fetchall()
    assert (calls, per_pass, pass_ns) == (50, 2.0, 200)
    assert calls * median_ns == 25 * pass_ns
    assert per_pass * median_ns == pass_ns


@pytest.fixture(scope="module")
def training_step(tmp_path_factory: pytest.TempPathFactory) -> recorded_passes.Recorded:
    """A training step recorded on an H200: bf16, cuDNN attention, fused AdamW."""
    database = tmp_path_factory.mktemp("replay") / "step.duckdb"
    trace = ROOT / "tests/data/recorded/data/replay/h200_train_step.json.gz"
    assert [outcome.error for outcome in pipeline.ingest(trace, db=database)] == [None]
    with open_read_only(database) as connection:
        return recorded_passes.load(connection, Selection(1))


class TestRecordedStep:
    """Every operator of a real step is understood, without a GPU."""

    def test_all_time_has_an_operator(self, training_step: recorded_passes.Recorded) -> None:
        assert training_step.is_gpu
        assert len(training_step.signatures) == 56
        assert {signature.hint for signature in training_step.signatures} == {"operator"}
        assert sum(signature.share_percent for signature in training_step.signatures) == pytest.approx(100)
        assert len(training_step.sequence) == 856
        assert len(training_step.parameters) == 75

    def test_every_operator_can_be_called(self, training_step: recorded_passes.Recorded) -> None:
        pytest.importorskip("torch", reason="PyTorch is not installed")
        from tracedb.replay import variants

        around = variants.context(training_step)
        forms = {signature.name: variants.of(signature, around)[0] for signature in training_step.signatures}
        adam = forms["aten::_fused_adamw_"]
        assert len(adam.inputs["self"]) == len(adam.inputs["state_steps"]) == 75
        assert {spec.dtype for spec in adam.inputs["self"]} == {"bfloat16"}
        assert forms["aten::embedding_dense_backward"].inputs["indices"].bound == 16384
        assert forms["aten::nll_loss_forward"].inputs["target"].bound == 16384
        assert forms["aten::_cudnn_attention_backward"].overload.name == ""
