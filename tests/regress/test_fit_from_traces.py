"""``fit --from traces``: models of operators of ordinary traces, from one or several databases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command import run
from support.tiny import NCCL, Tiny
from tracedb import regress
from tracedb.regress.recorded_calls import physical_shape

GPU = "NVIDIA X100"
H = "c10::Half"


def law(m: int, n: int, k: int) -> int:
    """Time of a product in ns: a launch, FLOPs, bytes."""
    return round(2_000 + 2 * m * n * k / 400e3 + 2 * (m * k + k * n + m * n) / 2e3)


SIZES = [(m, n, k) for m in (512, 1024, 2048) for n in (512, 1536, 3072) for k in (256, 1024)]


def database(path: Path, slower: tuple[float, ...], sizes: list[tuple[int, int, int]] = SIZES) -> Path:
    """Captures with three calls of each product, each capture slower by a factor, and one call beside a collective."""
    tiny = Tiny(path)
    for rank, factor in enumerate(slower):
        number = tiny.capture(rank)
        tiny.connection.execute("UPDATE main.device SET name = ?, sm_count = 100", [GPU])
        at = 0
        for op_id, (m, n, k) in enumerate(size for size in sizes for _ in range(3)):
            tiny.add("op", capture_id=number, op_id=op_id, name="aten::mm", start_ns=at, duration_ns=5,
                     input_dims=f"[[{m}, {k}], [{k}, {n}]]", input_types=json.dumps([H, H]))  # fmt: skip
            tiny.kernel("nvjet_hsh", at, round(law(m, n, k) * factor), op_id=op_id)
            at += 100_000_000
        m, n, k = sizes[0]
        tiny.add("op", capture_id=number, op_id=999, name="aten::mm", start_ns=at, duration_ns=5,
                 input_dims=f"[[{m}, {k}], [{k}, {n}]]", input_types=json.dumps([H, H]))  # fmt: skip
        tiny.kernel("nvjet_hsh", at, 50 * law(m, n, k), op_id=999)
        tiny.kernel(NCCL, at, 90 * law(m, n, k), stream_id=9)
    return tiny.save()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models of two files: three captures, of which one is twice as slow."""
    base = tmp_path_factory.mktemp("traces")
    first, second = database(base / "a.duckdb", (1.0, 2.0)), database(base / "b.duckdb", (1.02,))
    done = run("fit", "--from", "traces", "--db", first, "--db", second, "--models", base / "m", "--format", "json")
    assert done.exit_code == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["gpu"], row["operator"], row["pass"], row["dtype"]) == (GPU, "aten::mm", "fwd", "fp16")
    assert row["samples"] == len(SIZES)
    assert row["grouped_mean_percent"] < 10
    assert f"1 model and times at {len(SIZES)} recorded shapes written" in done.stderr
    return base / "m"


def test_times_at_recorded_shapes_are_medians_over_captures_alone(folder: Path) -> None:
    """One slow capture of three does not move the median, nor do calls beside a collective."""
    facts = regress.load(folder).facts
    assert facts["view"] == "v1.operator_calls"
    seen = {tuple(row[name] for name in "mnk"): row for row in facts["calls"]}
    assert set(seen) == set(SIZES)
    for size, row in seen.items():
        assert row["time_ns"] == pytest.approx(1.02 * law(*size), rel=1e-3)
        assert row["low_ns"] < row["time_ns"] / 1.03 < 1.03 * row["time_ns"] < row["high_ns"]
        assert (row["calls"], row["captures"]) == (9, 3)


def test_a_shape_between_the_recorded_ones(folder: Path) -> None:
    shape = {"batch": 1, "m": 1536, "n": 1024, "k": 512}
    predicted, low, high = regress.load(folder).predict(GPU, "aten::mm", "fwd", "fp16", shape)
    assert predicted == pytest.approx(1.02 * law(1536, 1024, 512), rel=0.1)
    assert low < predicted < high
    done = run("predict", "--models", folder, "--operator", "aten::mm", "--shape", "batch=1,m=1536,n=1024,k=512")
    assert done.exit_code == 0, done.stderr


def test_few_shapes_are_known_only_as_recorded(tmp_path: Path) -> None:
    path = database(tmp_path / "a.duckdb", (1.0,), SIZES[:3])
    done = run("fit", "--from", "traces", "--db", path, "--models", tmp_path / "m", "--format", "json")
    assert done.exit_code == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["samples"], row["grouped_mean_percent"]) == (3, None)
    assert "1 of 1 operators were recorded at too few distinct shapes" in done.stderr
    assert len(regress.load(tmp_path / "m").facts["calls"]) == 3


def test_what_cannot_be_fitted_is_one_line(tmp_path: Path) -> None:
    path = database(tmp_path / "a.duckdb", (1.0,), SIZES[:1])
    done = run("fit", "--db", path, "--models", tmp_path / "m")
    assert done.exit_code == 3
    assert "no sampled operators" in done.stderr
    done = run("fit", "--from", "traces", "--db", path, "--models", tmp_path / "m", "--operator", "aten::bmm")
    assert (done.exit_code, "there are: aten::mm" in done.stderr) == (2, True)
    empty = Tiny(tmp_path / "b.duckdb")
    empty.capture()
    done = run("fit", "--from", "traces", "--db", empty.save(), "--models", tmp_path / "m")
    assert done.exit_code == 3
    assert "record_shapes=True" in done.stderr


@pytest.mark.parametrize(
    ("dims", "moved", "product", "shape"),
    [
        ("[[4, 8], [8, 16]]", 100, (1, 4, 16, 8), {"batch": 1, "m": 4, "n": 16, "k": 8}),
        ("[[4, 8], []]", 96, (None, None, None, None), {"bytes": 96, "row": 8}),
        ("[[[4, 8], [3]], [5]]", None, (None, None, None, None), {"first": 32, "others": 8, "row": 8}),
        ("[[], []]", None, (None, None, None, None), None),
        ("[[0, 8]]", 0, (None, None, None, None), None),
        ("no list", None, (None, None, None, None), None),
    ],
)
def test_physical_sizes(
    dims: str, moved: int | None, product: tuple[int | None, ...], shape: dict[str, int] | None
) -> None:
    assert physical_shape(dims, moved, product) == shape  # type: ignore[arg-type]
