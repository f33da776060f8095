"""``tracedb sample --beside``: operators while a collective runs, and what ``tracedb fit`` learns from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command import run
from support.loading import ask
from support.tiny import Tiny
from tracedb.regress import beside, dataset
from tracedb.sampling import sweep_status
from tracedb.sampling.recording import Outcome
from tracedb.sampling.sweep_status import Series
from tracedb.storage.connection import open_read_only


def configuration(folder: Path, name: str, columns: list[str], shape: list[int]) -> Path:
    """Write the configuration of one shape of an operator."""
    config = folder / f"{name}.yml"
    config.write_text(json.dumps({
        "kernel_name": name, "columns_name": columns, "shapes": shape, "run": "get_one",
        "wait": 0, "warmup": 0, "active": 1,
    }))  # fmt: skip
    return config


def test_two_ranks_sample_operators_of_all_kinds_beside_an_all_reduce(tmp_path: Path) -> None:
    """Attention, a norm, an optimizer and a sum; a shape that an operator does not allow is told from those that ran.

    The sum ran out of memory earlier, so it is run again only if that is asked for.
    """
    res_add = configuration(tmp_path, "res_add", ["b", "l", "dim"], [1, 2, 8])
    configs = [
        configuration(tmp_path, "flash_atten", ["b", "h", "l", "dim"], [1, 2, 8, 16]),
        configuration(tmp_path, "layernorm", ["b", "l", "dim"], [1, 2, 8]),
        configuration(tmp_path, "middleStage_optimizer", ["mp", "dim", "encoders"], [1, 8, 1]),
        configuration(tmp_path, "linear1", ["mp", "b", "l", "dim"], [3, 1, 2, 8]),
        res_add,
    ]
    db = tmp_path / "s.duckdb"
    series = Series("res_add", "fp32", "cpu", "beside_allreduce")
    sweep_status.write(db, series, [Outcome({"b": 1, "l": 2, "dim": 8}, "out_of_memory")], None)

    def sampled(*given: str | Path) -> list[tuple[str, int, int, int]]:
        """Return operator, shapes that ran, shapes that are not allowed, and captures."""
        done = run("-q", "sample", *given, "--db", db, "--device", "cpu", "--precision", "fp32", "--beside",
                   "allreduce", "--format", "json", "--keep-traces", tmp_path / "kept")  # fmt: skip
        assert done.exit_code == 0, done.output
        rows = json.loads(done.stdout)["rows"]
        return [(row["operator"], row["sampled"], row["invalid"], row["captures"]) for row in rows]

    assert sampled(res_add) == [("res_add", 0, 0, 0)]
    assert sampled(*configs, "--retry-failed") == [
        ("flash_atten", 1, 0, 2),
        ("layernorm", 1, 0, 2),
        ("middleStage_optimizer", 1, 0, 2),
        ("linear1", 0, 1, 0),
        ("res_add", 1, 0, 2),
    ]
    assert sampled(res_add, "--retry-failed") == [("res_add", 0, 0, 0)]
    of_sum = "labels['sampled'] = 'res_add'"
    kept = sorted((tmp_path / "kept").glob("res_add_fp32_beside_allreduce_*/rank*.json.gz"))
    found = ask(db, f"SELECT path FROM capture WHERE {of_sum} ORDER BY rank")
    assert found == [(str(path),) for path in kept] and len(kept) == 2
    assert ask(
        db, "SELECT regime, status, device FROM sample_status WHERE operator = 'res_add' ORDER BY sampled_at"
    ) == [
        ("beside_allreduce", "out_of_memory", "cpu"),
        ("beside_allreduce", "sampled", "cpu"),
    ]
    assert ask(db, "SELECT DISTINCT rank, labels['beside'], labels['sampled'] FROM capture ORDER BY ALL") == [
        (rank, "allreduce", operator)
        for rank in (0, 1)
        for operator in ("flash_atten", "layernorm", "middleStage_optimizer", "res_add")
    ]
    assert ask(db, "SELECT DISTINCT operator, pass FROM operator_samples ORDER BY ALL") == [
        ("flash_atten", "bwd"), ("flash_atten", "fwd"), ("layernorm", "bwd"), ("layernorm", "fwd"),
        ("middleStage_optimizer", "step"), ("res_add", "bwd"), ("res_add", "fwd"),
    ]  # fmt: skip


def test_products_are_compared_with_the_steady_ones_and_not_fitted(tmp_path: Path) -> None:
    """Five products take 1.5 times as long beside it, one 3 times, GELU 1.2 times; rested samples do not count."""
    tiny = Tiny(tmp_path / "t.duckdb")
    for labels, factor in (({"regime": "steady"}, 1.0), ({"beside": "allreduce"}, 1.5), ({"regime": "rested"}, 0.5)):
        capture = tiny.capture(labels=labels)
        tiny.add("device", capture_id=capture, device_id=1, name="GPU X")
        number = 0
        for operator in ("linear1", "gelu"):
            for width in range(1, 7):
                number += 1
                slower = 1.0
                if "beside" in labels:
                    slower = 0.8 if operator == "gelu" else 2.0 if width == 6 else 1.0
                start = 1_000_000 * number
                tiny.add("annotation", capture_id=capture, annotation_id=number, name=f"bwd|{operator}|dim={width}",
                         style="user", start_ns=start, duration_ns=500_000, thread_id=1, process_id=1)  # fmt: skip
                event = tiny.kernel("k", start, int(1000 * factor * slower), device_id=1)
                tiny.add("annotation_kernel", capture_id=capture, annotation_id=number, event_id=event, rule="process")
    with open_read_only(tiny.save()) as connection:
        (row,) = beside.measured([connection])
        assert row.pop("operators") == [
            {"operator": "gelu", "pass": "bwd", "slowdown": pytest.approx(1.2), "samples": 6},
            {"operator": "linear1", "pass": "bwd", "slowdown": pytest.approx(1.5), "samples": 6},
        ]
        assert row == {"gpu": "GPU X", "collective": "allreduce", "slowdown": pytest.approx(1.5), "samples": 6}
        tables = {table.target.operator: table for table in dataset.tables(connection)}
    assert tables["linear1"].times == [1000.0] * 6
    assert tables["linear1"].conditions.regime == "steady"
    assert beside.of({"beside": [row]}, "gpu-x", "allreduce") == row
    assert beside.of({}, "GPU X", "allreduce") is None


def test_a_pass_that_outlasts_the_collectives(tmp_path: Path) -> None:
    """Passes of 1,000 ns take 1,250 with an all-reduce of 500 ns beside them: in these, half of the work is done."""
    tiny = Tiny(tmp_path / "t.duckdb")
    for labels, duration in (({"regime": "steady"}, 1000), ({"beside": "allreduce"}, 1250)):
        capture = tiny.capture(labels=labels)
        tiny.add("device", capture_id=capture, device_id=1, name="GPU X")
        for width in range(1, 6):
            start = 1_000_000 * width
            tiny.add("annotation", capture_id=capture, annotation_id=width, name=f"bwd|linear1|dim={width}",
                     style="user", start_ns=start, duration_ns=500_000, thread_id=1, process_id=1)  # fmt: skip
            event = tiny.kernel("k", start, duration, device_id=1)
            tiny.add("annotation_kernel", capture_id=capture, annotation_id=width, event_id=event, rule="process")
            if "beside" in labels:
                tiny.add("kernel_event", capture_id=capture, event_id=1000 + width, kind="kernel", device_id=1,
                         name="ncclDevKernel_AllReduce", start_ns=start - 100, duration_ns=600,
                         collective="allreduce")  # fmt: skip
    with open_read_only(tiny.save()) as connection:
        (row,) = beside.measured([connection])
    assert (row["slowdown"], row["samples"]) == (pytest.approx(2.0), 5)
