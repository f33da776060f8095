"""Every number of the reference answers for recorded torch traces, from one database through reports and views."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from support import recordings, timeline_parts
from support.command import report

NAMES = ("h100_single", "public", "sweeps") if recordings.IS_WHOLE else ("h100_single",)
FOLDERS = ("torch", "sweeps") if recordings.IS_WHOLE else ("torch",)

pytestmark = pytest.mark.shared

ANSWERS: list[dict[str, Any]] = [
    answer for name in NAMES for answer in json.loads((recordings.REFERENCE / "torch" / f"{name}.json").read_text())
]
WITH_GPU = [answer for answer in ANSWERS if "kernel_sum_ns" in answer]

# In these eras the oracle's input_dims come from ids that are no operators'.
OLD_ERAS = ("kineto_resnet50_2020", "kineto_resnet50_2021", "hta_event_sync", "hta_trace_diff", "dlrm8")

IS_COLLECTIVE = "class = 'collective'"


def of(answers: list[dict[str, Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("answer", answers, ids=lambda answer: str(answer["file"]))


@pytest.fixture(scope="session")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reference") / "all.duckdb"
    command = [sys.executable, "-m", "tracedb", "-q", "ingest", *(recordings.DATA / folder for folder in FOLDERS)]
    command += ["--db", path, "--labels-from", r"/data/(?P<file>(?P<folder>torch|sweeps)/.+)$", "--jobs", "2"]
    done = subprocess.run([str(item) for item in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture(scope="session")
def connection(db: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(str(db), read_only=True, config={"threads": 2}) as opened:
        yield opened


@pytest.fixture(scope="session")
def captures(connection: duckdb.DuckDBPyConnection) -> dict[str, dict[str, Any]]:
    """Capture rows by file."""
    rows = dicts(connection, "SELECT labels['file'] AS file, * FROM capture")
    found = {row["file"]: row for row in rows}
    assert len(found) == len(rows), "a file gave several captures"
    return found


def dicts(connection: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    rows = connection.execute(query).fetchall()
    names = [column[0] for column in connection.description or ()]
    return [dict(zip(names, row, strict=True)) for row in rows]


def by_file(connection: duckdb.DuckDBPyConnection, query: str) -> dict[str, Any]:
    """Answer a query with one row a capture."""
    rows = dicts(
        connection,
        f"SELECT c.labels['file'] AS file, q.* FROM capture AS c JOIN ({query}) AS q USING (capture_id)",
    )
    assert len({row["file"] for row in rows}) == len(rows)
    return {row["file"]: row for row in rows}


@of(ANSWERS)
def test_account(answer: dict[str, Any], captures: dict[str, dict[str, Any]]) -> None:
    row = captures[answer["file"]]
    assert row["events_read"] == answer["events"] == row["rows_written"] + row["events_skipped"]
    assert row["rank"] == answer.get("rank")
    assert row["status"] == ("complete" if answer["kernels"] else "no_gpu_activity")


@pytest.fixture(scope="session")
def kinds(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    return by_file(
        connection,
        """SELECT capture_id, count(*) FILTER (kind = 'kernel') AS kernels,
            count(*) FILTER (kind = 'memcpy') AS memcpys,
            count(*) FILTER (kind = 'memset') AS memsets,
            sum(duration_ns) FILTER (kind = 'kernel')::BIGINT AS kernel_sum_ns,
            coalesce(sum(duration_ns) FILTER (kind = 'memcpy'), 0)::BIGINT AS memcpy_sum_ns
        FROM kernel_event GROUP BY capture_id""",
    )


@of(ANSWERS)
def test_counts_and_sums(answer: dict[str, Any], kinds: dict[str, Any]) -> None:
    names = [name for name in ("kernels", "memcpys", "memsets", "kernel_sum_ns", "memcpy_sum_ns") if name in answer]
    row = kinds.get(answer["file"], dict.fromkeys(names, 0))
    assert {name: row[name] for name in names} == {name: answer[name] for name in names}


@pytest.fixture(scope="session")
def times(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """What v1.gpu_timeline and v1.collective_overlap say of each capture; each of these has one device."""
    return by_file(
        connection,
        f"""SELECT t.capture_id, t.total_ns AS span_ns, t.busy_ns, t.idle_ns, o.compute_ns, o.collective_ns AS comm_ns,
            o.overlapped_ns, o.exposed_collective_ns AS exposed_comm_ns,
            (SELECT count(*) FROM v1.kernels AS k WHERE k.capture_id = t.capture_id AND k.{IS_COLLECTIVE}) AS comm_calls
        FROM v1.gpu_timeline AS t
        JOIN v1.collective_overlap AS o USING (capture_id, device_id)""",
    )


@of(WITH_GPU)
def test_busy_compute_and_collective_time(answer: dict[str, Any], times: dict[str, Any]) -> None:
    names = ("span_ns", "busy_ns", "idle_ns", "compute_ns", "comm_ns", "overlapped_ns", "exposed_comm_ns", "comm_calls")
    row = times[answer["file"]]
    assert {name: row[name] for name in names} == {name: answer[name] for name in names}


def test_parts_sum_to_the_total(connection: duckdb.DuckDBPyConnection) -> None:
    timeline_parts.check(connection, least=1)


@pytest.fixture(scope="session")
def top(db: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Report top-kernels, by file and name."""
    rows = report(db, "top-kernels", "--by", "file", "--top", "0")
    return {(row["file"], row["name"]): row for row in rows}


@of(WITH_GPU)
def test_top_kernels(answer: dict[str, Any], top: dict[tuple[str, str], dict[str, Any]]) -> None:
    columns = {"n": "calls", "total_ns": "total_ns", "median_ns": "median_ns", "min_ns": "min_ns", "max_ns": "max_ns"}
    for expected in answer["top"]:
        row = top[answer["file"], expected["name"]]
        assert {name: row[column] for name, column in columns.items()} == {name: expected[name] for name in columns}
        assert row["avg_ns"] == pytest.approx(expected["mean_ns"], abs=0.00051)
        assert row["stddev_ns"] == pytest.approx(expected["stddev_ns"], abs=0.00051)
    largest = max(row["total_ns"] for (file, _), row in top.items() if file == answer["file"])
    assert answer["top"][0]["total_ns"] == largest


@pytest.fixture(scope="session")
def ranges(db: Path) -> dict[tuple[str, str], dict[str, int]]:
    """Reports nvtx-ranges and nvtx-kernels of rule thread, by file and range."""
    found: dict[tuple[str, str], dict[str, int]] = {}
    for row in report(db, "nvtx-ranges", "--by", "file", "--top", "0", "--rule", "thread"):
        name = row["file"], row["name"]
        assert name not in found
        counted = {"instances": row["instances"], "range_total_ns": row["range_total_ns"]}
        found[name] = {**counted, "kernels": 0, "kernel_ns": 0}
    of_torch = ("--where", "folder=torch")  # of the sweeps the answers count ranges only
    for row in report(db, "nvtx-kernels", "--by", "file", "--top", "0", "--rule", "thread", *of_torch):
        if row["range"] is not None:
            found[row["file"], row["range"]]["kernels"] += row["calls"]
            found[row["file"], row["range"]]["kernel_ns"] += row["total_ns"]
    return found


@of(WITH_GPU)
def test_ranges(answer: dict[str, Any], ranges: dict[tuple[str, str], dict[str, int]]) -> None:
    names = dict(answer["ranges"])
    count = names.pop("count", None)
    mine = {name for file, name in ranges if file == answer["file"]}
    if count is not None:
        assert len(mine) == count
    assert {name: ranges[answer["file"], name] for name in names} == names


@pytest.fixture(scope="session")
def gemms(connection: duckdb.DuckDBPyConnection) -> dict[tuple[str, str, str], dict[str, Any]]:
    """View gemm_variance, by file, kernel name and input shapes."""
    rows = dicts(connection, "SELECT *, labels['file'] AS file FROM v1.gemm_variance")
    found = {(row["file"], row["name"], row["input_dims"] or "null"): row for row in rows}
    assert len(found) == len(rows)
    return found


@of([answer for answer in WITH_GPU if not any(era in answer["file"] for era in OLD_ERAS)])
def test_gemm_variance(answer: dict[str, Any], gemms: dict[tuple[str, str, str], dict[str, Any]]) -> None:
    columns = {"n": "calls", "min_ns": "min_ns", "max_ns": "max_ns", "spread_ns": "spread_ns", "median_ns": "p50_ns"}
    columns["overlapped_calls"] = "overlapped_calls"
    for expected in answer["gemm_variance"]:
        dims = expected["input_dims"]
        row = gemms[answer["file"], expected["name"], dims if isinstance(dims, str) else json.dumps(dims)]
        assert {name: row[column] for name, column in columns.items()} == {name: expected[name] for name in columns}
        assert row["mean_ns"] * row["calls"] == pytest.approx(expected["total_ns"], rel=1e-12)
        assert row["mean_ns"] == pytest.approx(expected["mean_ns"], abs=0.00051)
        assert row["stddev_ns"] == pytest.approx(expected["stddev_ns"], abs=0.00051)


@of([answer for answer in WITH_GPU if any(era in answer["file"] for era in OLD_ERAS)])
def test_gemms_of_old_eras_by_name(answer: dict[str, Any], gemms: dict[tuple[str, str, str], dict[str, Any]]) -> None:
    """The shapes of the reference are wrong there; calls and time of a name are not."""
    for name in {expected["name"] for expected in answer["gemm_variance"]}:
        groups = [row for (file, kernel, _), row in gemms.items() if (file, kernel) == (answer["file"], name)]
        expected = [item for item in answer["gemm_variance"] if item["name"] == name]
        assert sum(row["calls"] for row in groups) >= sum(item["n"] for item in expected)
        assert min(row["min_ns"] for row in groups) <= min(item["min_ns"] for item in expected)
        assert max(row["max_ns"] for row in groups) >= max(item["max_ns"] for item in expected)
