"""Recordings of four ranks with one planted cause each, loaded from trace files: every view names what was planted."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from support import pipelines
from support.command import report, run
from support.loading import ingest
from support.pipelines import Pipeline
from support.traces import HEADER, Event, annotation, call, document, kernel, op

RANKS = range(4)
STEPS = (3, 4)
COMPUTE, COMMUNICATION = 7, 20
ALL = "[0, 1, 2, 3]"
SHARES = (25, 25, 40, 10)
"""Tokens of the experts of each rank, in percent."""
Rows = list[dict[str, Any]]


class Rank:
    """The trace of one rank, in µs. Its host launches an operator every 10 µs, ahead of the GPU."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.events: list[Event] = []
        self._number = 0
        self._host = 0.0

    def begin(self, time: float) -> None:
        """Begin a step, whose first kernel starts at that time."""
        self._host = time - 60

    def run(
        self, name: str, start: float, end: float, operator: str = "aten::mm", stream: int = COMPUTE, **args: Any
    ) -> None:
        """Add an operator, its launch and its kernel."""
        self._number += 1
        at = self._host
        self._host += 10
        self.events += [
            op(at, 8, operator, self._number),
            call(at + 2, 4, 1_000 + self._number, external=self._number),
            kernel(start, end - start, name, correlation=1_000 + self._number, stream=stream,
                   args={"External id": self._number, **args}),
        ]  # fmt: skip

    def collective(
        self, what: str, start: float, end: float, elements: int, group: str, ranks: str, **more: Any
    ) -> None:
        """Add a kernel of NCCL with what PyTorch records of it."""
        told = {
            "Collective name": what, "dtype": "BFloat16", "In msg nelems": elements, "Out msg nelems": elements,
            "Group size": len(json.loads(ranks)), "Process Group Name": group, "Process Group Ranks": ranks, **more,
        }  # fmt: skip
        self.run("ncclDevKernel_" + what, start, end, "record_param_comms", COMMUNICATION, **told)

    def step(self, number: int, start: float, end: float) -> None:
        """Mark a step."""
        self.events.append(annotation(start, end - start, f"ProfilerStep#{number}"))

    def write(self, folder: Path) -> None:
        """Write the trace file."""
        header = {**HEADER, "distributedInfo": {"backend": "nccl", "rank": self.rank, "world_size": len(RANKS)}}
        (folder / f"rank{self.rank}.json").write_bytes(document(self.events, header=header))


def pipeline(folder: Path) -> None:
    """Stage 2 takes twice as long; kernels of sends and receives are bare."""
    times = [200 if stage == 2 else 100 for stage in RANKS]
    pipeline = Pipeline(times, [2 * time for time in times], 8, transfer=5, steps=2, optimizer=100).run()
    for stage in RANKS:
        (folder / f"rank{stage}.json").write_text(pipelines.document(pipeline, stage))


def experts_layer(ranks: Sequence[Rank], time: float) -> float:
    width, there = 64, str(list(SHARES))
    last = max(SHARES)
    for rank in ranks:
        share = SHARES[rank.rank]
        back = str([share] * 4)
        rank.run("flash_fwd_kernel", time, time + 100, "aten::_flash_attention_forward")
        sent = {"In split size": there, "Out split size": back, "Out msg nelems": 4 * share * width}
        rank.collective("all_to_allv", time + 101, time + 121, 100 * width, "7", ALL, **sent)
        done = time + 123 + 10 * share
        rank.run("cutlass_grouped_gemm", time + 123, done)
        sent = {"In split size": back, "Out split size": there, "Out msg nelems": 100 * width}
        rank.collective("all_to_allv", done + 1, time + 124 + 10 * last + 20, 4 * share * width, "7", ALL, **sent)
    return time + 124 + 10 * last + 22


def experts(folder: Path) -> None:
    """Rank 2 gets 40 % of the tokens, and its experts take as much longer."""
    ranks = [Rank(rank) for rank in RANKS]
    time = 1_000.0
    for step in STEPS:
        begin = time
        for rank in ranks:
            rank.begin(time)
        for _ in range(6):
            time = experts_layer(ranks, time)
        for rank in ranks:
            rank.step(step, begin - 100, time - 30)
        time += 200
    for rank in ranks:
        rank.write(folder)


def groups_layers(pair: Sequence[Rank], name: str, time: float) -> float:
    members = str([rank.rank for rank in pair])
    for _ in range(8):
        ends = [time + (300 if rank.rank == 3 else 100) for rank in pair]
        last = max(ends) + 11
        for rank, end in zip(pair, ends, strict=True):
            rank.run("nvjet_gemm", time, end)
            rank.collective("allreduce", end + 1, last, 4_096, name, members)
        time = last + 2
    return time


def groups(folder: Path) -> None:
    """Rank 3 computes three times as long: its partner of the tensor group waits in every layer."""
    ranks = [Rank(rank) for rank in RANKS]
    time = 1_000.0
    for step in STEPS:
        ends = []
        for rank in ranks:
            rank.begin(time)
        for pair, name in ((ranks[:2], "tensor0"), (ranks[2:], "tensor1")):
            ends.append(groups_layers(pair, name, time))
        last = max(ends) + 50
        for rank in ranks:
            members = [rank.rank % 2, rank.rank % 2 + 2]
            rank.collective("allreduce", ends[rank.rank // 2] + 1, last, 1 << 20, f"data{rank.rank % 2}",
                            str(members))  # fmt: skip
            rank.step(step, time - 100, last - 30)
        time = last + 200
    for rank in ranks:
        rank.write(folder)


def fsdp(folder: Path) -> None:
    """A compiled step whose all-gathers are not prefetched: every layer waits for its weights."""
    for number in RANKS:
        rank = Rank(number)
        time = 1_000.0
        for step in STEPS:
            begin = time
            rank.begin(time)
            for layer in range(6):
                rank.collective("_allgather_base", time, time + 150, 1 << 22, "0", ALL)
                rank.run(f"triton_poi_fused_mul_silu_{layer}", time + 152, time + 232,
                         "## Call CompiledFxGraph fabc ##")  # fmt: skip
                time += 234
            rank.collective("_reduce_scatter_base", time, time + 60, 1 << 22, "0", ALL)
            rank.step(step, begin - 100, time + 30)
            time += 300
        rank.write(folder)


def decoding(folder: Path) -> None:
    """Each token is one graph replay of twenty kernels; the host takes 2 ms to choose the next token."""
    for number in RANKS:
        rank = Rank(number)
        time = 1_000.0
        for token in range(10):
            correlation = 5_000 + token
            rank.events.append(call(time, 20, correlation, "cudaGraphLaunch"))
            for node in range(20):
                told = {"graph node id": 100 + node}
                name, at = f"decode_gemm_{node % 4}", time + 25 + 10 * node
                rank.events.append(kernel(at, 9, name, correlation=correlation, args=told))
            done = time + 25 + 200
            rank.events.append(call(time + 22, done - time - 20, correlation + 500, "cudaStreamSynchronize"))
            rank.events.append(annotation(done + 5, 2_000, "sample token"))
            rank.step(token, time - 5, done + 2_010)
            time = done + 2_020
        rank.write(folder)


WRITERS: dict[str, Callable[[Path], None]] = {
    "pipeline": pipeline,
    "experts": experts,
    "groups": groups,
    "fsdp": fsdp,
    "decoding": decoding,
}


class Planted:
    """A database with a configuration for each cause; each report is run once."""

    def __init__(self, db: Path) -> None:
        self.db = db
        self._reports: dict[tuple[str, ...], Rows] = {}

    def rows(self, config: str, *options: str) -> Rows:
        """Return the rows of a report that are about a configuration."""
        if options not in self._reports:
            self._reports[options] = report(self.db, *options, "--top", "0")
        return [row for row in self._reports[options] if row["labels"]["config"] == config]

    def reasons(self, config: str) -> Rows:
        """Return the reasons of a configuration, the largest first."""
        return [row for row in self.rows(config, "why") if row["place"] is not None]

    def share_across_ranks(self, config: str) -> dict[int, float]:
        """Return each rank's part of the critical path across ranks, in percent."""
        rows = self.rows(config, "critical-path", "--across-ranks")
        whole = sum(row["duration_ns"] for row in rows)
        return {rank: 100 * sum(row["duration_ns"] for row in rows if row["rank"] == rank) / whole for rank in RANKS}

    def sums_are_spans(self, config: str) -> bool:
        """Whether the segments of every path on one rank follow each other without holes."""
        paths: dict[tuple[int, int], Rows] = {}
        for row in self.rows(config, "critical-path"):
            paths.setdefault((row["capture_id"], row["step"]), []).append(row)
        return bool(paths) and all(
            one["start_ns"] + one["duration_ns"] == following["start_ns"]
            for path in paths.values()
            for one, following in pairwise(path)
        )


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    folder = tmp_path_factory.mktemp("planted")
    for config, write in WRITERS.items():
        traces = folder / "traces" / f"config={config}"
        traces.mkdir(parents=True)
        write(traces)
    db = folder / "run.duckdb"
    assert ingest(folder / "traces", db=db).exit_code == 0
    return Planted(db)


class TestPipeline:
    """Stage 2 takes twice as long; kernels of sends and receives are bare."""

    def test_the_bottleneck(self, planted: Planted) -> None:
        rows = planted.rows("pipeline", "pipeline-bubble")
        assert {(row["step"], row["stage"]) for row in rows if row["is_bottleneck"]} == {(step, 2) for step in STEPS}
        assert all(row["micro_batches"] == 8 for row in rows)
        bubble = {(row["step"], row["stage"]): row["bubble_percent"] for row in rows}
        assert all(bubble[step, 2] < min(bubble[step, stage] for stage in (0, 1, 3)) for step in STEPS)

    def test_the_reason(self, planted: Planted) -> None:
        (found,) = [row for row in planted.reasons("pipeline") if row["reason"] == "pipeline_bubble"]
        assert found["place"] == 1
        assert found["detail"].startswith("rank 2 waits least")

    def test_the_critical_path(self, planted: Planted) -> None:
        assert planted.sums_are_spans("pipeline")
        share = planted.share_across_ranks("pipeline")
        assert max(share, key=lambda rank: share[rank]) == 2
        assert share[2] > 70


class TestExperts:
    """Rank 2 gets 40 % of the tokens, and its experts take as much longer."""

    def test_the_hot_rank(self, planted: Planted) -> None:
        rows = planted.rows("experts", "expert-load")
        assert {row["hot_rank"] for row in rows} == {2}
        assert {round(max(row["imbalance"], row["out_imbalance"]), 6) for row in rows} == {1.6}
        assert {row["in_percent"] for row in rows if row["rank"] == 2} == {40, 25}
        caused = {rank: sum(row["wait_caused_ns"] for row in rows if row["rank"] == rank) for rank in RANKS}
        assert caused == {0: 0, 1: 0, 2: 12 * 1_000 * 10 * (15 + 15 + 30), 3: 0}

    def test_the_reason(self, planted: Planted) -> None:
        found = {row["reason"]: row for row in planted.reasons("experts")}
        assert found["expert_imbalance"]["place"] == 1
        assert found["expert_imbalance"]["detail"].startswith("rank 2 waits least")

    def test_the_critical_path(self, planted: Planted) -> None:
        assert planted.sums_are_spans("experts")
        assert planted.share_across_ranks("experts")[2] > 80


class TestTensorAndDataGroups:
    """Rank 3 computes three times as long: its partner of the tensor group waits in every layer."""

    def test_calls_are_matched_within_their_groups(self, planted: Planted) -> None:
        rows = planted.rows("groups", "collectives")
        assert {(row["group_name"], row["ranks"]) for row in rows} == {
            (name, 2) for name in ("tensor0", "tensor1", "data0", "data1")
        }
        assert sum(row["group_name"] == "tensor1" for row in rows) == 16
        waiting = [row["wait_ns"] for row in rows if row["group_name"] == "tensor1"]
        assert all({int(rank): time for rank, time in wait.items()} == {2: 200_000, 3: 0} for wait in waiting)

    def test_the_straggler(self, planted: Planted) -> None:
        assert {row["straggler_rank"] for row in planted.rows("groups", "stragglers")} == {3}
        (found,) = [row for row in planted.reasons("groups") if row["reason"] == "straggler"]
        assert found["place"] == 1 and found["worst_rank"] == 3

    def test_the_critical_path(self, planted: Planted) -> None:
        assert planted.share_across_ranks("groups")[3] > 80
        waits = [row for row in planted.rows("groups", "critical-path", "--rank", "2") if row["bound_by"] == "wait"]
        assert {row["waits_for_rank"] for row in waits} == {3}


class TestCompiledFsdp:
    """A compiled step whose all-gathers are not prefetched: every layer waits for its weights."""

    def test_exposed(self, planted: Planted) -> None:
        rows = planted.rows("fsdp", "collective-overlap")
        assert {row["rank"] for row in rows} == set(RANKS)
        exposed = 2 * (6 * 150 + 60) * 1_000
        assert {(row["exposed_collective_ns"], row["overlap_percent"]) for row in rows} == {(exposed, 0)}

    def test_the_reason(self, planted: Planted) -> None:
        first = planted.reasons("fsdp")[0]
        assert first["reason"] == "exposed_collective"

    def test_the_critical_path(self, planted: Planted) -> None:
        assert planted.sums_are_spans("fsdp")
        rows = [row for row in planted.rows("fsdp", "critical-path") if row["rank"] == 1]
        gathered = [row for row in rows if row["bound_by"] == "collective"]
        assert sum(row["duration_ns"] for row in gathered) == 2 * (6 * 150 + 60) * 1_000


class TestDecodingByGraphs:
    """Each token is one graph replay of twenty kernels; the host takes 2 ms to choose the next token."""

    def test_the_reason(self, planted: Planted) -> None:
        first = planted.reasons("decoding")[0]
        assert first["reason"] == "host_between"
        assert first["share_percent"] > 80

    def test_what_removing_it_gives(self, planted: Planted) -> None:
        done = run(
            "whatif",
            "--db",
            planted.db,
            "--where",
            "config=decoding",
            "--rank",
            "0",
            "--remove",
            "range=sample token",
            "--format",
            "json",
        )
        assert done.exit_code == 0, done.stderr
        (row,) = json.loads(done.stdout)["rows"]
        assert row["measured_ns"] - row["predicted_ns"] == pytest.approx(10 * 2_000_000, rel=0.02)

    def test_the_critical_path(self, planted: Planted) -> None:
        assert planted.sums_are_spans("decoding")
        rows = [row for row in planted.rows("decoding", "critical-path") if row["rank"] == 2]
        host = sum(row["duration_ns"] for row in rows if row["bound_by"] == "host")
        assert host > 0.8 * sum(row["duration_ns"] for row in rows)

    def test_who_launched_the_kernels_is_not_known(self, planted: Planted) -> None:
        """The capture of the graph was not recorded: the view says so instead of guessing."""
        rows = planted.rows("decoding", "graph-attribution", "--rank", "0")
        assert len(rows) == 200
        assert {row["match_rule"] for row in rows} == {"none"}
