"""The torch ingester passes the suite of every ingester, on recorded traces."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from support import conformance, recordings
from tracedb_torch import ingester

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "tests" / "data" / "torch"
SAMPLES = [*sorted(DATA.glob("*.json.gz")), *sorted((ROOT / "examples" / "run").rglob("*.json.gz"))[:1]]
RECORDED = sorted((recordings.DATA / "torch").rglob("*.json.gz"))
ONE_OF_EACH = [path for path in RECORDED if path.parent.name != "dlrm8" or path.name.startswith("worker0")]
SMALL = 40 << 10  # bytes of a packed trace up to which it is read several times

TABLES = {
    **dict.fromkeys(("kernel", "Kernel"), "kernel"),
    **dict.fromkeys(("gpu_memcpy", "Memcpy"), "memcpy"),
    **dict.fromkeys(("gpu_memset", "Memset"), "memset"),
    **dict.fromkeys(("cuda_runtime", "cuda_driver", "Runtime"), "launch"),
    **dict.fromkeys(("cpu_op", "Operator"), "op"),
    **dict.fromkeys(("user_annotation", "gpu_user_annotation"), "annotation"),
}


def loaded(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return header and events, by Python's own JSON reader."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        content = json.load(file)
    return ({}, content) if isinstance(content, list) else (content, content["traceEvents"])


def count(path: Path) -> dict[str, int]:
    _, events = loaded(path)
    tables = Counter(
        "annotation"
        if event["cat"] == "Operator" and event["name"].startswith("ProfilerStep#")
        else TABLES[event["cat"]]
        for event in events
        if event.get("ph") == "X" and event.get("cat") in TABLES
    )
    return {"events": len(events), **{table: tables[table] for table in set(TABLES.values())}}


def shuffled(path: Path, folder: Path) -> Path:
    header, events = loaded(path)
    random.Random(7).shuffle(events)
    target = folder / path.name
    with gzip.open(target, "wt", encoding="utf-8", compresslevel=1) as file:
        json.dump({**header, "traceEvents": events} if header else events, file)
    return target


def test_files_of_nobody(tmp_path: Path) -> None:
    conformance.check_foreign(ingester, tmp_path)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
class TestSamples:
    def test_rows(self, path: Path) -> None:
        conformance.check_rows(ingester, path)

    def test_same_twice(self, path: Path) -> None:
        conformance.check_same_twice(ingester, path)

    def test_shuffled(self, path: Path, tmp_path: Path) -> None:
        conformance.check_shuffled(ingester, path, shuffled(path, tmp_path))

    def test_cut(self, path: Path, tmp_path: Path) -> None:
        conformance.check_cut(ingester, path, tmp_path)

    def test_nothing_is_lost(self, path: Path) -> None:
        conformance.check_counts(ingester, path, count)

    @pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
    def test_memory(self, path: Path, tmp_path: Path) -> None:
        conformance.check_memory("tracedb_torch", path, 400, tmp_path)


@pytest.mark.shared
class TestRecorded:
    @pytest.mark.parametrize(
        "path", [path for path in ONE_OF_EACH if path.stat().st_size < 1 << 20], ids=lambda path: path.name
    )
    def test_nothing_is_lost(self, path: Path) -> None:
        conformance.check_counts(ingester, path, count)

    @pytest.mark.parametrize(
        "path", [path for path in ONE_OF_EACH if path.stat().st_size < SMALL], ids=lambda path: path.name
    )
    def test_rows_however_they_stand(self, path: Path, tmp_path: Path) -> None:
        conformance.check_rows(ingester, path)
        conformance.check_shuffled(ingester, path, shuffled(path, tmp_path))

    def test_memory_of_the_longest(self, tmp_path: Path) -> None:
        longest = max(RECORDED, key=lambda path: path.stat().st_size)
        conformance.check_memory("tracedb_torch", longest, 400, tmp_path)
