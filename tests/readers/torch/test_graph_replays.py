"""Graph replays of torch traces: the kernel that a captured launch names, and the operators of recorded replays."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from support import recordings
from support.both_readers import assert_same
from support.loading import ask, ingest
from support.readings import read
from support.traces import Event, Raw, call, document, kernel, launched, op, write

TORCH = recordings.DATA / "torch"
ATTRIBUTED = """SELECT event_id, match_rule, op_name, input_dims, duration_ns FROM v1.graph_attribution
                ORDER BY start_ns, event_id"""


def captured(at: int, number: int, name: Any) -> list[Event]:
    """An operator with a launch that names its kernel and has no GPU work."""
    launch = call(at + 5, 2, 2000 + number, "hipModuleLaunchKernel", external=number)
    launch["args"]["kernel"] = name
    return [op(at, 20, f"op{number}", number), launch]


class TestCapturedLaunches:
    NAMES = ("k1", 'quoted "k2"', None, 5, Raw('"k\\u0033"'), "k1")

    def events(self) -> list[Event]:
        events = [
            *launched(1),
            *(event for i, name in enumerate(self.NAMES) for event in captured(1000 + 100 * i, 10 + i, name)),
        ]
        events[1]["args"]["kernel"] = "k0"  # its kernel was recorded, so the name is known
        return events

    def test_their_kernel(self, tmp_path: Path) -> None:
        found = read(write(tmp_path / "t.json", self.events()))
        assert found.rows("launch", "kernel_name") == [None, "k1", 'quoted "k2"', None, None, "k3", "k1"]

    def test_both_readers_agree(self) -> None:
        assert_same(document(self.events()))
        assert_same(document(self.events(), "indented"), 700)


def test_a_single_capture_with_its_own_replay(tmp_path: Path) -> None:
    """Linked although no second capture brings the facts across captures with it."""
    events = [event for i, name in enumerate("ab") for event in captured(1000 + 100 * i, 10 + i, name)]
    events += [
        call(2000, 5, 77, "hipGraphLaunch"),
        *(kernel(2100 + 10 * i, 5, name, correlation=77) for i, name in enumerate("ab")),
    ]
    db = tmp_path / "trace.duckdb"
    assert ingest(write(tmp_path / "t.json", events), db=db).exit_code == 0
    assert [row[1:3] for row in ask(db, ATTRIBUTED)] == [("aligned", "op10"), ("aligned", "op11")]
    assert ask(db, "SELECT count(*) FROM meta.owed") == [(0,)]


def events_of(path: Path) -> list[Event]:
    return sorted(json.loads(gzip.decompress(path.read_bytes()))["traceEvents"], key=lambda event: event["ts"])


@pytest.mark.shared
class TestRecorded:
    def test_vllm_decode_on_rocm(self, tmp_path: Path) -> None:
        """Every kernel of the replay is named by a captured launch, in order, whose External id is an operator."""
        paths = [TORCH / "public" / f"tracelens_vllm_decode_{name}.json.gz" for name in ("capture", "hipgraph")]
        if not paths[0].exists():
            pytest.skip("public traces are not shipped")
        capture, replay = map(events_of, paths)
        ran = {event["args"].get("correlation") for event in capture if event.get("cat") == "kernel"}
        calls = [e for e in capture if "kernel" in e.get("args", {}) and e["args"]["correlation"] not in ran]
        ops = {e["args"]["External id"]: e["name"] for e in capture if e.get("cat") == "cpu_op"}
        (launch,) = (e["args"]["correlation"] for e in replay if e["name"] == "hipGraphLaunch")
        kernels = [e for e in replay if e.get("cat") == "kernel" and e["args"]["correlation"] == launch]
        assert [e["args"]["kernel"] for e in calls] == [e["name"] for e in kernels]
        assert len(kernels) == 421
        db = tmp_path / "trace.duckdb"
        assert ingest(*paths, db=db).exit_code == 0
        rows = ask(db, ATTRIBUTED)
        assert {row[1] for row in rows} == {"aligned"}
        assert [row[2] for row in rows] == [ops[e["args"]["External id"]] for e in calls]
        assert sum(row[4] for row in rows) == 10_388_482

    def test_cuda_with_eager_passes(self, tmp_path: Path) -> None:
        """A capture on CUDA names no kernels; the eager passes have the same 92 in the same order."""
        folder = TORCH / "h100_graph_pair"
        if not folder.exists():
            pytest.skip("the traces of graph and eager passes are absent")
        eager, replay = events_of(folder / "eager.json.gz"), events_of(folder / "replay.json.gz")
        ops = {e["args"]["External id"]: e for e in eager if e.get("cat") == "cpu_op"}
        passed = [e for e in eager if e.get("cat") == "kernel"]
        assert len(passed) == 184
        wanted = [ops[e["args"]["External id"]] for e in passed[:92]]
        kernels = [e["name"] for e in replay if e.get("cat") == "kernel"]
        assert kernels == [e["name"] for e in passed[:92]] * 5
        without_eager = tmp_path / "order.duckdb"
        assert ingest(folder / "capture.json.gz", folder / "replay.json.gz", db=without_eager).exit_code == 0
        db = tmp_path / "trace.duckdb"
        assert ingest(folder, db=db).exit_code == 0
        rows = ask(db, ATTRIBUTED)
        assert ask(without_eager, ATTRIBUTED) == rows
        assert Counter(row[1] for row in rows) == {"aligned": 460}
        assert ask(db, "SELECT count(DISTINCT module_path) > 6 FROM v1.graph_attribution") == [(True,)]
        assert [(row[2], json.loads(row[3])) for row in rows] == [
            (op["name"], op["args"]["Input Dims"]) for op in wanted
        ] * 5
