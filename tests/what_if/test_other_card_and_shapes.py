"""``tracedb whatif --gpu`` and ``--shape``: the operators of a trace, priced for another card or other sizes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pytest

from support.command import run
from support.tiny import Tiny
from tracedb.errors import UsageError
from tracedb.regress import store
from tracedb.regress.model import Target, fit
from tracedb.what_if.resized import sizes

CARD = "NVIDIA A100-SXM4-80GB"
MEMORY, RATE = 2039, 312
"""Data sheet of the A100 of 80 GB, in GB/s and in TFLOP/s of bf16."""
PRODUCT, ADDED, OTHER, COPIED, REDUCED = 2_002_500, 102_500, 12_500, 50_000, 30_000
"""Kernels of the step, in ns, one after the other: an aten::mm of 4096³, an aten::add, one without an operator, a copy
from the host and an all-reduce."""
WHOLE = PRODUCT + ADDED + OTHER + COPIED + REDUCED
Card = Callable[..., Path]


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tiny = Tiny(tmp_path_factory.mktemp("card") / "run.duckdb")
    tiny.capture()
    types = '["c10::BFloat16","c10::BFloat16"]'
    tiny.add("op", capture_id=1, op_id=1, name="aten::mm", thread_id=1, start_ns=-30, duration_ns=10,
             input_dims="[[4096, 4096], [4096, 4096]]", input_types=types)  # fmt: skip
    tiny.add("op", capture_id=1, op_id=2, name="aten::add", thread_id=1, start_ns=-15, duration_ns=10,
             input_dims="[[4096, 8192], [4096, 8192]]", input_types=types)  # fmt: skip
    start = 0
    for name, duration, values in (
        ("gemm", PRODUCT, {"op_id": 1}),
        ("vectorized_elementwise_kernel", ADDED, {"op_id": 2}),
        ("vectorized_elementwise_kernel", OTHER, {}),
        ("Memcpy HtoD", COPIED, {"kind": "memcpy", "copy_kind": "HtoD"}),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", REDUCED, {}),
    ):
        tiny.kernel(name, start, duration, **values)
        start += duration
    path = tiny.save()
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE main.device SET name = ?", [CARD])
    return path


@pytest.fixture
def card(tmp_path: Path) -> Card:
    def written(memory: float = 1, rate: float = 1) -> Path:
        path = tmp_path / "card.json"
        path.write_text(json.dumps({"memory_gbps": MEMORY * memory, "tensor_tflops": {"bf16": RATE * rate}}))
        return path

    return written


def gained(step: Path, *options: str | Path) -> int:
    """Return by how many ns the step is shorter, the host's 30 ns before the first kernel included."""
    done = run("whatif", "--db", step, *options, "--format", "json")
    assert done.exit_code == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"][:1]
    return int(row["measured_ns"]) - int(row["predicted_ns"])


def test_a_card_with_the_same_rates(step: Path, card: Card) -> None:
    assert gained(step, "--gpu", card()) == 0


def test_twice_the_rates(step: Path, card: Card) -> None:
    """All but 2.5 µs of each kernel is twice as fast; links are as recorded."""
    kernels = (PRODUCT, ADDED, OTHER)
    assert gained(step, "--gpu", card(2, 2)) == pytest.approx(sum((time - 2_500) / 2 for time in kernels), abs=3)


def test_a_product_follows_the_rate_of_products(step: Path, card: Card) -> None:
    assert gained(step, "--gpu", card(1, 2)) == pytest.approx((PRODUCT - 2_500) / 2, rel=0.05)
    assert gained(step, "--gpu", card(2, 1)) == pytest.approx((ADDED + OTHER - 5_000) / 2, rel=0.5)


def test_a_named_card(step: Path) -> None:
    """An H100 has 3,352 GB/s and 989 TFLOP/s."""
    assert gained(step, "--gpu", "NVIDIA H100 80GB HBM3") == pytest.approx((PRODUCT - 2_500) * (1 - 312 / 989), rel=0.1)


def test_other_sizes(step: Path) -> None:
    """Eight times the multiplications, and four times the sum's elements in one direction."""
    assert gained(step, "--shape", "4096=8192") == -(7 * PRODUCT + 1 * ADDED)
    assert gained(step, "--shape", "8192=2048") == 3 * ADDED // 4


def test_models_come_first(step: Path, tmp_path: Path) -> None:
    """A model of a product whose time is proportional to m: half of it takes half as long, whatever the FLOPs say."""
    shapes = [{"batch": 1, "m": 2**power, "n": n, "k": n} for power in range(7, 14) for n in (1024, 4096)]
    times = np.array([100.0 * shape["m"] for shape in shapes])
    model = fit(Target(CARD, "aten::mm", "fwd", "bf16"), shapes, times, 108, "gaussian")
    store.save(tmp_path / "models", [model], {})
    by_model = gained(step, "--shape", "4096=2048", "--models", tmp_path / "models")
    assert by_model - ADDED // 2 == pytest.approx(PRODUCT / 2, rel=0.1)
    by_flops = gained(step, "--shape", "4096=2048")
    assert by_flops - ADDED // 2 == pytest.approx(7 * PRODUCT / 8, abs=2)


def test_what_the_times_rest_on_is_said(step: Path, card: Card) -> None:
    done = run("whatif", "--db", step, "--gpu", card(2, 2))
    assert "96 % by FLOPs and bytes" in done.stderr
    assert "4 % kept as recorded" in done.stderr


@pytest.mark.parametrize(
    ("options", "exit_code", "said"),
    [
        (("--gpu", "Voodoo2"), 1, "no data sheet is known of that name"),
        (("--gpu", "missing.json"), 1, "cannot be read"),
        (("--shape", "77=88"), 3, "has a tensor with a size of 77"),
        (("--shape", "4096"), 2, "is not OLD=NEW"),
        (("--shape", "0=1"), 2, "is not OLD=NEW"),
        (("--models", "somewhere"), 2, "--gpu or --shape"),
    ],
)
def test_faults(step: Path, options: tuple[str, ...], exit_code: int, said: str) -> None:
    done = run("whatif", "--db", step, *options)
    assert (done.exit_code, done.stdout) == (exit_code, "")
    assert said in done.stderr


def test_products_of_unknown_shape_are_kept(tmp_path: Path, card: Card) -> None:
    """As in recordings without operators: only the other kernel is faster."""
    tiny = Tiny(tmp_path / "run.duckdb")
    tiny.capture()
    tiny.kernel("nvjet_gemm", 0, 100_000)
    tiny.kernel("vectorized_elementwise_kernel", 100_000, 52_500)
    path = tiny.save()
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE main.device SET name = ?", [CARD])
    assert gained(path, "--gpu", card(2, 2)) == 25_000
    assert run("whatif", "--db", path, "--shape", "4=8").exit_code == 3


def test_a_card_without_data_sheet(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "run.duckdb")
    tiny.capture()
    tiny.kernel("gemm", 0, 100)
    done = run("whatif", "--db", tiny.save(), "--gpu", "H200")
    assert done.exit_code == 3
    assert "recorded on an unknown GPU" in done.stderr


def test_two_new_sizes_for_one() -> None:
    with pytest.raises(UsageError, match="two new ones"):
        sizes(["4=8", "4=16"])


class TestStored:
    def test_several_scenarios_in_one_table(self, step: Path, card: Card) -> None:
        """Rows of two calls, ranked together; the same scenario again replaces its row."""
        for options in (("--gpu", str(card(2, 2))), ("--scale", "class=matmul:0.5"), ("--scale", "class=matmul:0.5")):
            done = run("whatif", "--db", step, *options, "--store")
            assert done.exit_code == 0, done.stderr
        assert "1 row stored" in done.stderr
        with duckdb.connect(str(step), read_only=True) as connection:
            rows = connection.execute(
                "SELECT place, scenario, span, measured_ns - predicted_ns FROM v1.whatif ORDER BY place"
            ).fetchall()
            assert connection.execute("SELECT count(*) FROM whatif").fetchall() == [(2,)]
        assert [row[0] for row in rows] == [1, 2]
        assert [row[2] for row in rows] == ["whole capture"] * 2
        assert rows[1][1] == "--scale class=matmul:0.5" and rows[1][3] == PRODUCT // 2
        done = run("report", "whatif", "--db", step)
        assert done.exit_code == 0, done.stderr
        assert "worth most: --gpu" in done.stderr

    def test_nothing_stored(self, tmp_path: Path) -> None:
        tiny = Tiny(tmp_path / "run.duckdb")
        tiny.capture()
        tiny.kernel("gemm", 0, 100)
        done = run("report", "whatif", "--db", tiny.save())
        assert done.exit_code == 3
        assert "tracedb whatif --store" in done.stderr
