"""Which tool wrote a Chrome JSON file, which device a row is on, and what is reported about unread GPU work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.command import run
from support.loading import ask, ingest
from support.readings import Reading, read
from support.traces import HEADER, Event, annotation, bare_list, call, document, kernel, launched, op, write
from tracedb_torch import ingester
from tracedb_torch.decode.event_types import CATEGORIES
from tracedb_torch.trace_kinds import OWN_CATEGORIES, Claim, claim_of

SPAN: Event = {"ph": "X", "pid": 1, "tid": 1, "ts": 10, "dur": 5, "name": "load"}
NAME: Event = {"ph": "M", "pid": 1, "name": "process_name"}
ASCEND = [{**NAME, "args": {"name": "Ascend Hardware"}}, {**SPAN, "cat": "cpu_op"}, {**SPAN, "name": "MatMulV2"}]
XLA = [{**NAME, "args": {"name": "/device:GPU:0"}}, {**SPAN, "args": {"hlo_module": "jit_f", "hlo_op": "dot.1"}}]
BROWSER = [{**SPAN, "cat": "blink,devtools.timeline"}, {**NAME, "args": {"name": "CrRendererMain"}}]
NODE = [{**SPAN, "cat": "node,node.bootstrap"}]
OTHERS = {
    "ascend": (ASCEND, "a trace of an Ascend NPU, whose rows are not read"),
    "xla": (XLA, "a trace of JAX, XLA or TensorFlow, which tracedb does not read; record the run with nsys"),
    "browser": (BROWSER, "a trace of a browser or of Node.js"),
    "node": (NODE, "a trace of a browser or of Node.js"),
    "categories": (
        [{**SPAN, "cat": "mine"}],
        "but not of torch.profiler: none of its categories (mine) is kernel or cpu_op",
    ),
    "bare": ([SPAN, {**SPAN, "ts": 20}], "but not of torch.profiler: its events have no category"),
    "empty": ([], "but not of torch.profiler"),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("ending", ["json", "json.gz"])
def test_traces_of_others_are_named_in_one_line(tmp_path: Path, name: str, ending: str) -> None:
    events, words = OTHERS[name]
    path = write(tmp_path / f"x.{ending}", events, "compact", header={"displayTimeUnit": "ns"})
    done = ingest(path, db=tmp_path / "db", new=True)
    first, *_, last = [line for line in done.stderr.splitlines() if line.startswith("tracedb: error")]
    assert (done.exit_code, first.startswith(f"tracedb: error: {path}: a ")) == (1, True)
    assert words in first
    assert last == "tracedb: error: 1 of 1 file could not be loaded"


def test_the_others_of_a_call_are_loaded(tmp_path: Path) -> None:
    write(tmp_path / "in" / "host.trace.json", XLA, header={})
    write(tmp_path / "in" / "rank0.json", launched(2))
    assert ingest(tmp_path / "in", db=tmp_path / "db").exit_code == 1
    assert ask(tmp_path / "db", "SELECT count(*) FROM kernel_event") == [(2,)]


def test_damaged_json_of_rocprofv3_is_not_claimed(tmp_path: Path) -> None:
    """Its first key says whose it is, whatever stands in it; the one that reads it tells of the damage."""
    path = tmp_path / "17_results.json"
    path.write_text('{"rocprofiler-sdk-tool": [{"agents": [{"size": 1, {"traceEvents": [ }}]}]}')
    assert claim_of(path)[0] is Claim.OF_ROCPROF
    write(tmp_path / "rank0.json", launched(2))
    done = ingest(tmp_path, db=tmp_path / "db")
    first, *_, last = [line for line in done.stderr.splitlines() if line.startswith("tracedb: error")]
    assert first.startswith(f"tracedb: error: {path}: damaged, not valid JSON: }} at byte 68, where ] is expected")
    assert (done.exit_code, last[:53]) == (1, "tracedb: error: 1 of 2 files could not be loaded; the")
    assert ask(tmp_path / "db", "SELECT count(*) FROM kernel_event") == [(2,)]


@pytest.mark.parametrize("spoilt", [{"dur": -5}, {"ts": "abc"}, {"ts": 1e300}])
def test_kernels_that_were_skipped_are_not_said_to_be_missing(tmp_path: Path, spoilt: Event) -> None:
    reading = read(write(tmp_path / "rank0.json", [op(0, 5), {**kernel(10, 5), **spoilt}]))
    details = {row["code"]: row["detail"] for row in reading.tables["ingest_issue"]}
    assert details["no_gpu_activity"] == "events skipped as unreadable: 1; kernels may be among them"


def test_a_long_one_is_told_by_reading_it(tmp_path: Path) -> None:
    content = document([SPAN] * 30_000, "compact", header={})
    path = write(tmp_path / "x.json", content)
    assert claim_of(path)[0] is Claim.UNKNOWN
    assert "a Chrome trace, but not of torch.profiler" in ingest(path, db=tmp_path / "db", new=True).stderr
    late = document([*[SPAN] * 30_000, kernel(5)], "compact", header={})
    assert len(read(write(tmp_path / "y.json", late)).kernels()) == 1


def test_json_of_rocprof_is_left_to_its_reader(tmp_path: Path) -> None:
    args = {"BeginNs": "1000123", "EndNs": "1033456", "dev-id": "0"}
    path = write(tmp_path / "results.json", [NAME, {**SPAN, "args": args}], header={})
    assert claim_of(path)[0] is Claim.OF_ROCPROF
    assert list(ingester.find([path])) == []


@pytest.mark.parametrize("event", [kernel(1), op(1, 2), call(1, 2, 3), annotation(1, 2, "a"), kernel(1, cat="Memcpy")])
def test_a_known_category_is_enough(tmp_path: Path, event: Event) -> None:
    for number, content in enumerate((bare_list([event]), document([NAME, event], "compact", header={}))):
        read(write(tmp_path / f"{number}.json", content))


def test_every_category_that_is_read_is_known() -> None:
    assert CATEGORIES.keys() - {"async"} <= OWN_CATEGORIES


UNREAD = [
    {**kernel(40, 30, "fc_kernel"), "cat": "mtia_ccp_events"},
    kernel(50, 30, "insight", cat="glow_kernel"),
    kernel(60, 30, "other", cat="privateuse1_kernel"),
]


class TestUnreadDevices:
    def test_they_are_told_of_and_nobody_is_asked_to_record_again(self, tmp_path: Path) -> None:
        path = write(tmp_path / "x.json", [call(1, 2, 4, "runtime", cat="mtia_runtime"), *UNREAD])
        done = ingest(path, db=tmp_path / "db", flags=["--strict"])
        assert done.exit_code == 1
        for event in UNREAD:
            assert f"device_events_not_read:{event['cat']} (1)" in done.stderr
        asked = run("report", "top-kernels", "--db", tmp_path / "db")
        assert (asked.exit_code, asked.stdout) == (3, "")
        assert "3 device events of a category that tracedb does not read (glow_kernel, mtia_ccp_events" in asked.stderr
        for said in (done.stderr, asked.stderr):
            assert "record again" not in said
            assert "captured" not in said.replace("captures", "")

    def test_beside_kernels_every_answer_says_so(self, tmp_path: Path) -> None:
        path = write(tmp_path / "x.json", [*launched(2), *UNREAD])
        assert ingest(path, db=tmp_path / "db").exit_code == 0
        asked = run("report", "top-kernels", "--db", tmp_path / "db")
        assert (asked.exit_code, "in the traces, but in no answer" in asked.stderr) == (0, True)

    def test_categories_without_a_device(self, tmp_path: Path) -> None:
        found = read(
            write(tmp_path / "x.json", [*launched(1), {**SPAN, "cat": "mine"}, {**SPAN, "ph": "M", "cat": "x"}])
        )
        assert found.faults == {"category_not_stored:mine": 1}
        assert (found.issues["metadata_events"], found.status) == (1, "complete")


BARE = {"schemaVersion": 1}


def devices(folder: Path, events: list[Event], header: dict[str, Any]) -> list[tuple[Any, ...]]:
    found: Reading = read(write(folder / "x.json", events, header=header))
    return [(row["vendor"], row["arch"]) for row in found.tables["device"]]


class TestVendors:
    @pytest.mark.parametrize(
        ("name", "vendor"),
        [
            ("Intel(R) Data Center GPU Max 1550", "Intel"),
            ("MTIA v2", "Meta"),
            ("AMD Instinct MI300X", "AMD"),
            ("NVIDIA H100 80GB HBM3", "NVIDIA"),
            ("Tesla V100-SXM2-16GB", "NVIDIA"),
            ("Some Accelerator", None),
            ("", None),
        ],
    )
    def test_by_the_name_of_the_device(self, tmp_path: Path, name: str, vendor: str | None) -> None:
        header = {**BARE, "deviceProperties": [{"id": 0, "name": name}]}
        assert devices(tmp_path, [kernel(1)], header) == [(vendor, None)]

    @pytest.mark.parametrize(
        ("key", "vendor"), [("cupti_version", "NVIDIA"), ("roctracer_version", "AMD"), ("with_stack", None)]
    )
    def test_by_the_library(self, tmp_path: Path, key: str, vendor: str | None) -> None:
        assert devices(tmp_path, [kernel(1)], {**BARE, key: 1}) == [(vendor, None)]

    @pytest.mark.parametrize(
        ("name", "vendor"),
        [
            ("cudaLaunchKernel", "NVIDIA"),
            ("cuLaunchKernelEx", "NVIDIA"),
            ("hipExtModuleLaunchKernel", "AMD"),
            ("urEnqueueKernelLaunch", "Intel"),
            ("zeCommandListAppendLaunchKernel", "Intel"),
            ("runtime", None),
        ],
    )
    def test_by_the_calls(self, tmp_path: Path, name: str, vendor: str | None) -> None:
        assert devices(tmp_path, [call(1, 1, 7, name), kernel(2, correlation=7)], BARE) == [(vendor, None)]

    def test_by_what_only_cupti_records(self, tmp_path: Path) -> None:
        assert devices(tmp_path, [kernel(1, registers_per_thread=32)], BARE) == [("NVIDIA", None)]

    def test_architecture(self, tmp_path: Path) -> None:
        assert devices(tmp_path, [kernel(1)], HEADER) == [("NVIDIA", "sm_90")]


class TestEncodings:
    EVENTS = (kernel(100, 10, "kärnel_\N{GREEK SMALL LETTER ALPHA}"), *launched(300))

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
    @pytest.mark.parametrize("ending", ["json", "json.gz"])
    def test_they_are_read(self, tmp_path: Path, encoding: str, ending: str) -> None:
        text = document(self.EVENTS).decode()
        marked = "\ufeff" + text if encoding.endswith("e") else text
        found = read(write(tmp_path / f"x.{ending}", marked.encode(encoding)), cores=2)
        expected = read(write(tmp_path / "utf-8.json", document(self.EVENTS)))
        assert found.tables == expected.tables

    @pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
    def test_without_a_mark(self, tmp_path: Path, encoding: str) -> None:
        found = read(write(tmp_path / "x.json", document(self.EVENTS).decode().encode(encoding)))
        assert len(found.kernels()) == 301

    def test_other_texts_are_named(self, tmp_path: Path) -> None:
        (tmp_path / "notes.txt").write_bytes("\ufeffnothing".encode("utf-16-le"))
        done = ingest(tmp_path / "notes.txt", db=tmp_path / "db", new=True)
        assert (done.exit_code, "notes.txt (text in UTF-16; convert it with iconv" in done.stderr) == (1, True)
