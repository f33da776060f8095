"""Collectives on the CPU: two ranks through the command, every collective in a world of one."""

from __future__ import annotations

import gzip
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from support.command import run

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
# ruff: noqa: E402
import torch.distributed as dist

from tracedb.sampling.collective_worker import work
from tracedb.sampling.collectives import COLLECTIVES, Order

pytestmark = pytest.mark.skipif(not dist.is_gloo_available(), reason="this PyTorch has no gloo")


def configuration(folder: Path, **change: object) -> Path:
    """Write the configuration of an all-reduce over two sizes."""
    content = {
        "kernel_name": "allreduce",
        "columns_name": ["elements", "dur(us)"],
        "starts": [255], "steps": [2], "ends": [257], "operators": ["add"],
        "wait": 0, "warmup": 1, "active": 3,
        **change,
    }  # fmt: skip
    path = folder / "collective.yml"
    path.write_text(json.dumps(content))
    return path


def ask(database: Path, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query."""
    with duckdb.connect(str(database), read_only=True) as connection:
        return connection.execute(query).fetchall()


def test_two_ranks_meet_and_all_are_recorded(tmp_path: Path) -> None:
    database, config = (
        tmp_path / "c.duckdb",
        configuration(tmp_path, kernel_name="reducescatter", ends=[256], steps=[1]),
    )
    options = ["--backend", "gloo", "--precision", "fp32", "--format", "json"]
    done = run("-q", "sample-collectives", config, "--db", database, *options)
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["device"], row["sampled"], row["invalid"], row["captures"]) == ("cpu x2", 1, 1, 2)
    assert ask(
        database,
        """SELECT c.rank, c.world_size, a.name, count(*) FROM main.annotation AS a
        INNER JOIN main.capture AS c ON c.capture_id = a.capture_id
        WHERE a.name LIKE 'comm|%' GROUP BY ALL ORDER BY ALL""",
    ) == [(rank, 2, "comm|reducescatter|elements=256|nodes=1|gpus_per_node=2", 3) for rank in (0, 1)]
    assert ask(database, "SELECT count(DISTINCT labels['run']) FROM main.capture") == [(1,)]
    assert ask(database, "SELECT status, detail FROM main.sample_status ORDER BY ALL") == [
        ("invalid", "255 elements cannot be divided evenly among 2 ranks"),
        ("sampled", None),
    ]
    again = run("-q", "sample-collectives", config, "--db", database, *options)
    (row,) = json.loads(again.stdout)["rows"]
    assert (row["sampled"], row["known"], row["captures"]) == (0, 2, 0)


def test_two_nodes_meet(tmp_path: Path) -> None:
    """Two commands at once, with a rank each: they name the run alike, so that their databases can be merged."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    config = configuration(tmp_path, kernel_name="alltoall", starts=[256], ends=[256], steps=[1])
    options = ["--nodes", "2", "--rendezvous", f"127.0.0.1:{port}", "--ranks", "1", "--backend", "gloo"]
    databases = [tmp_path / f"node_{number}.duckdb" for number in (0, 1)]
    nodes = [
        subprocess.Popen(
            [sys.executable, "-m", "tracedb", "-q", "sample-collectives", config, "--db", database, *options],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        for database in databases
    ]  # fmt: skip
    for node in nodes:
        said = node.communicate(timeout=300)[1]
        assert node.returncode == 0, said
    both = tmp_path / "both.duckdb"
    assert run("-q", "merge", *databases, "-o", both).exit_code == 0
    query = "SELECT collective, shape::VARCHAR, ranks, n FROM v1.collective_samples"
    assert ask(both, query) == [("alltoall", "{elements=256, nodes=2, gpus_per_node=1}", 2, 3)]


@pytest.mark.parametrize(
    ("collective", "dtype"), [("allreduce", "fp32"), ("allreduce", "fp16"), *((name, "bf16") for name in COLLECTIVES)]
)
def test_every_collective_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collective: str, dtype: str) -> None:
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}.items():
        monkeypatch.setenv(name, value)
    work(Order("gloo", dtype, collective, [8, 16], 1, 2, str(tmp_path), "x"))
    events = json.loads(gzip.decompress((tmp_path / "rank0.json.gz").read_bytes()))["traceEvents"]
    found = sorted(event["name"] for event in events if event["name"].startswith("comm|"))
    assert found == [f"comm|{collective}|elements={size}|nodes=1|gpus_per_node=1" for size in (16, 16, 8, 8)]


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (
            {"kernel_name": "gossip"},
            [],
            "expected kernel_name to be one of allreduce, allgather, reducescatter, alltoall, broadcast, gather, "
            "scatter, p2p",
        ),
        (
            {"columns_name": ["b", "l"], "starts": [1, 1], "steps": [1, 1], "ends": [1, 1], "operators": ["add"] * 2},
            [],
            "found allreduce over b, l",
        ),
        ({}, ["--backend", "gloo", "--ranks", "1"], "a collective needs at least 2 ranks"),
        ({}, ["--nodes", "2"], "--nodes N needs --rendezvous HOST:PORT"),
        ({}, ["--backend", "nccl", "--ranks", "64"], "nccl needs a GPU for each of 64 ranks"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, change: dict[str, object], options: list[str], words: str) -> None:
    done = run("sample-collectives", configuration(tmp_path, **change), "--db", tmp_path / "c.duckdb", *options)
    assert (words in done.stderr, done.exit_code) == (True, 2 if {"1", "2"} & set(options) else 1)
