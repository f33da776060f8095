"""Clocks among the sampled metrics of an nsys export become rows of ``device_condition``."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import nsys_loaded
from support.nsys_files import Nsys

pytestmark = pytest.mark.usefixtures("only_few_views")

TYPE = 0x0101_0000_0000_0000
SM, SYS, ACTIVE, DRAM = (0, "GPC Clock Frequency [MHz]"), (1, "SYS Clock Frequency [MHz]"), (
    2, "SMs Active [Throughput %]"), (3, "DRAM Frequency [MHz]")  # fmt: skip


def metrics(gpus: tuple[int, ...], *named: tuple[int, str]) -> Nsys:
    """An export of one step with metrics of these GPUs."""
    export = nsys_loaded.step()
    for gpu in gpus:
        for number, name in named:
            export.add("TARGET_INFO_GPU_METRICS", typeId=TYPE | gpu, metricId=number, metricName=name)
    return export


def sample(export: Nsys, time: int, metric: tuple[int, str], value: int, gpu: int = 0) -> None:
    export.add("GPU_METRICS", rawTimestamp=time, timestamp=time, typeId=TYPE | gpu, metricId=metric[0], value=value)


@pytest.mark.parametrize("kind", ["sqlite", "parquet"])
def test_clocks_are_rows_and_the_rest_is_left_aside(tmp_path: Path, kind: str) -> None:
    export = metrics((0,), SM, SYS, ACTIVE, DRAM)
    for time, hertz in ((-100, 1_710_000_000), (100, 1_455_000_000), (200, 2_500_000_000 - 2**32)):
        sample(export, time, SM, hertz)
        sample(export, time, SYS, 1_600_000_000)
        sample(export, time, ACTIVE, 50)
    sample(export, 100, DRAM, 3_201_000_000)
    path = export.sqlite(tmp_path / "r.sqlite") if kind == "sqlite" else export.parquet(tmp_path / "r_pqtdir")
    loaded = nsys_loaded.Loaded(path, db=tmp_path / "run.duckdb")
    # Values are Hz whatever the metric's name says; what was written as a negative number is above 2.1 GHz.
    assert loaded.rows("device_condition", "device_id", "time_ns", "sm_clock_mhz", "memory_clock_mhz", "power_w") == [
        (0, -100, 1710.0, None, None),
        (0, 100, 1455.0, 3201.0, None),
        (0, 200, 2500.0, None, None),
    ]
    assert loaded.issues["gpu_metrics"] == 6
    read, skipped, written = loaded.one("capture", "events_read", "events_skipped", "rows_written")
    # Two of the clocks share a row.
    assert read - skipped - written == 1


def test_gpus_are_those_of_the_process(tmp_path: Path) -> None:
    export = metrics((3, 4), SM)
    export.add("TARGET_INFO_GPU", vmId=1, id=3, name="X", cuDevice=0, uuid="a")
    export.add("TARGET_INFO_GPU", vmId=1, id=4, name="X", cuDevice=1, uuid="b")
    export.add("TARGET_INFO_CUDA_DEVICE", gpuId=4, cudaId=0, pid=4242, uuid="b")
    sample(export, 10, SM, 1_000_000_000, gpu=3)
    sample(export, 10, SM, 1_200_000_000, gpu=4)
    loaded = nsys_loaded.load(tmp_path, export)
    assert loaded.rows("device_condition", "device_id", "sm_clock_mhz") == [(0, 1200.0)]
    assert loaded.issues["gpu_metrics"] == 1
    read, skipped, written = loaded.one("capture", "events_read", "events_skipped", "rows_written")
    assert read == skipped + written


def test_metrics_without_clocks_are_left_aside(tmp_path: Path) -> None:
    export = metrics((0,), ACTIVE)
    sample(export, 10, ACTIVE, 50)
    loaded = nsys_loaded.load(tmp_path, export)
    assert loaded.rows("device_condition", "device_id") == []
    assert loaded.issues["gpu_metrics"] == 1
