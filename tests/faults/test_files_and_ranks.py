"""Faults of files, ranks and metadata, and how ``tracedb ingest`` reports them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from support.command import run
from support.loading import ask, ingest
from support.readings import read
from support.traces import HEADER, Raw, annotation, call, document, frame, kernel, launched, window_end, write

KERNELS = "SELECT count(*) FROM kernel_event WHERE kind = 'kernel'"


BACKSLASH = Raw(r'"torch\cuda\__init__.py(219): f"')


class TestExitCodes:
    FAULTS = (
        ("event_repaired", {"events": [kernel(1), frame(2, 1, BACKSLASH), kernel(3)]}),
        ("event_unreadable", {"events": [kernel(1), b'{"ph": "X", oops}', kernel(3)]}),
        ("header_unreadable", {"events": [kernel(1), kernel(3)], "after": b'"INFO": ["a "b" c"]'}),
        ("duration_negative", {"events": [kernel(1), kernel(2, -1), kernel(3)]}),
    )

    @pytest.mark.parametrize(("code", "trace"), FAULTS, ids=[code for code, _ in FAULTS])
    def test_a_fault_is_a_warning_and_under_strict_an_error(
        self, tmp_path: Path, code: str, trace: dict[str, Any]
    ) -> None:
        path = write(tmp_path / "x.json", trace.pop("events"), **trace)
        done = ingest(path, db=tmp_path / "1.duckdb")
        assert (done.exit_code, done.stderr.count(f"warning: {path}: {code} (1)")) == (0, 1)
        strict = ingest(path, db=tmp_path / "2.duckdb", flags=["--strict"])
        assert strict.exit_code == 1
        assert strict.stderr.splitlines()[-1].startswith(
            "tracedb: error: --strict: events were skipped or repaired in 1 file"
        )
        for db in ("1.duckdb", "2.duckdb"):
            assert ask(tmp_path / db, KERNELS) == [(2,)]
            assert ask(tmp_path / db, "SELECT status FROM capture") == [("repaired",)]
            assert ask(tmp_path / db, f"SELECT severity, count FROM ingest_issue WHERE code = '{code}'") == [
                ("warning", 1)
            ]

    def test_strict_is_content_with_a_sound_file(self, tmp_path: Path) -> None:
        content = document([*launched(2), window_end()]).replace(b"]}", b",\n]}")
        assert ingest(write(tmp_path / "x.json", content), db=tmp_path / "db", flags=["--strict"]).exit_code == 0

    def test_a_cut_file_is_a_warning_and_under_strict_an_error(self, tmp_path: Path) -> None:
        content = document(launched(3))
        path = write(tmp_path / "x.json", content[: len(content) - 200])
        done = ingest(path, db=tmp_path / "db")
        assert (done.exit_code, ask(tmp_path / "db", "SELECT status FROM capture")) == (0, [("truncated",)])
        assert f"warning: {path}: file_cut" in done.stderr
        assert ingest(path, db=tmp_path / "db2", flags=["--strict"]).exit_code == 1

    def test_a_refused_file_is_one_error_and_leaves_no_database(self, tmp_path: Path) -> None:
        one, two = document(launched(3)), document(launched(4))
        path = write(tmp_path / "x.json", one + two)
        done = ingest(path, db=tmp_path / "db", new=True)
        assert done.exit_code == 1
        first, *_, last = [line for line in done.stderr.splitlines() if line.startswith("tracedb: error")]
        assert first.startswith(f"tracedb: error: {path}: a second traceEvents array follows the first: two traces")
        assert last.startswith("tracedb: error: 1 of 1 file could not be loaded")
        assert not (tmp_path / "db").exists()

    def test_a_trace_without_kernels_is_reported_and_never_shown_as_zeros(self, tmp_path: Path) -> None:
        path = write(tmp_path / "x.json", [call(1, 5, 9, "cudaGraphLaunch"), call(8, 5, 10, "cudaGraphLaunch")])
        done = ingest(path, db=tmp_path / "db")
        assert done.exit_code == 0
        assert (
            "no kernels were loaded (2 graph launches but no kernels; record again with graph nodes traced)"
            in done.stderr
        )
        asked = run("report", "top-kernels", "--db", tmp_path / "db")
        assert (asked.exit_code, asked.stdout) == (3, "")


class TestRanks:
    NAMES = (
        ("rank0/trace.json", 0),
        ("run/rank3/host_123.1699.pt.trace.json", 3),
        ("dp0_tp3.rank[4].step10.json", 4),
        ("rank-5.json.gz", 5),
        ("rank_12.json", 12),
        ("RANK7.json", 7),
        ("trace_rank8_step3.json.gz", 8),
        ("iteration_10/rank9_trace.json.gz", 9),
        ("rank=10/x.json", 10),
        ("rank2/rank11.json", 11),
        ("x.rank13of16.json", 13),
        ("global_rank14_local_rank1.json", 14),
        ("rank-xxx.json.gz", None),
        ("frank3.json", None),
        ("local_rank1/x.json", None),
        ("node_rank1/x.json", None),
        ("host.4242.pt.trace.json", None),
        ("3.json", None),
    )

    def test_the_rank_comes_from_the_name_or_folder(self, tmp_path: Path) -> None:
        for place, (name, _) in enumerate(self.NAMES):
            write(tmp_path / "in" / name, [kernel(place)], header={"schemaVersion": 1})
        done = ingest(tmp_path / "in", db=tmp_path / "db")
        assert done.exit_code == 0
        found = {
            path.removeprefix(f"{tmp_path}/in/"): rank
            for path, rank in ask(tmp_path / "db", "SELECT path, rank FROM capture")
        }
        assert found == dict(self.NAMES)

    def test_each_step_of_a_rank_is_its_own_capture(self, tmp_path: Path) -> None:
        for step in (10, 20):
            write(tmp_path / "in" / f"dp0_tp3.rank[3].step{step}.json", [kernel(step)])
        ingest(tmp_path / "in", db=tmp_path / "db")
        query = "SELECT rank, labels['iteration'] FROM capture ORDER BY capture_id"
        assert ask(tmp_path / "db", query) == [(3, "10"), (3, "20")]

    def test_the_rank_in_the_trace_goes_before_the_path(self, tmp_path: Path) -> None:
        header = {**HEADER, "distributedInfo": {"rank": 2, "world_size": 8}}
        ingest(write(tmp_path / "rank7.json", [kernel(1)], header=header), db=tmp_path / "db")
        assert ask(tmp_path / "db", "SELECT rank, world_size FROM capture") == [(2, 8)]
        issue = "SELECT code, detail FROM ingest_issue WHERE code = 'rank_conflict'"
        assert ask(tmp_path / "db", issue) == [
            ("rank_conflict", "the trace says rank 2, the path 7; the trace's is kept")
        ]

    def test_a_file_of_several_processes_takes_no_rank_from_its_name(self, tmp_path: Path) -> None:
        events = [*launched(3, pid=1, device=0), *launched(3, pid=2, device=1)]
        ingest(write(tmp_path / "rank0.json", events), db=tmp_path / "db")
        assert ask(tmp_path / "db", "SELECT pid, rank, part FROM capture ORDER BY pid") == [(1, None, 0), (2, None, 1)]

    @pytest.mark.parametrize(
        ("info", "rank"),
        [
            ({"rank": 5}, 5),
            ({"rank": "5"}, 5),
            ({"rank": -1}, None),
            ({"rank": None}, None),
            ({"rank": 2**40}, None),
            ({"rank": 1.5}, None),
            ({}, None),
            ([], None),
            ("x", None),
            (None, None),
        ],
    )
    def test_distributed_info_of_any_shape(self, tmp_path: Path, info: Any, rank: int | None) -> None:
        around = {"schemaVersion": 1, "distributedInfo": info}
        found = read(write(tmp_path / "x.json", [kernel(1)], header={"schemaVersion": 1}, after=around))
        assert (found.capture["rank"], found.status) == (rank, "complete")


class TestMetadata:
    def test_a_trace_without_steps_keeps_all_its_kernels(self, tmp_path: Path) -> None:
        ingest(write(tmp_path / "x.json", [annotation(0, 99, "forward"), *launched(3)]), db=tmp_path / "db")
        assert ask(tmp_path / "db", "SELECT name, step FROM v1.kernels ORDER BY name") == [
            ("k0", None),
            ("k1", None),
            ("k2", None),
        ]

    def test_kernels_get_the_number_of_their_profiler_step(self, tmp_path: Path) -> None:
        steps = [annotation(100 * i, 90, f"ProfilerStep#{i + 5}") for i in range(3)]
        ingest(write(tmp_path / "x.json", [*steps, *launched(3)]), db=tmp_path / "db")
        assert ask(tmp_path / "db", "SELECT name, step FROM v1.kernels ORDER BY name") == [
            ("k0", 5),
            ("k1", 6),
            ("k2", 7),
        ]

    def test_empty_device_properties_and_nested_process_groups_are_read(self, tmp_path: Path) -> None:
        groups = [
            {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": 2, "ranks": [0, 1]}
        ]
        info = {
            "backend": "nccl",
            "rank": 1,
            "world_size": 2,
            "pg_count": 1,
            "pg_config": groups,
            "nccl_version": "2.27.5",
        }
        header = {"schemaVersion": 1, "deviceProperties": [], "distributedInfo": info}
        found = read(write(tmp_path / "x.json", [kernel(1)], header=header))
        assert (found.capture["rank"], found.capture["world_size"], found.status) == (1, 2, "complete")
        assert json.loads(found.capture["metadata"])["pg_config"] == groups
        assert found.tables["device"] == [
            {"device_id": 0, "is_used": True, "part": 0}
            | dict.fromkeys(("vendor", "name", "sm_count", "max_clock_mhz", "memory_bytes", "uuid", "arch"))
        ]

    @pytest.mark.parametrize(
        "devices",
        [None, {}, "x", [None], [5], [{"id": "0"}], [{"id": 0, "name": 5, "numSms": "x", "totalGlobalMem": 1.5}]],
    )
    def test_device_properties_of_any_shape(self, tmp_path: Path, devices: Any) -> None:
        found = read(write(tmp_path / "x.json", [kernel(1)], header={"schemaVersion": 1, "deviceProperties": devices}))
        assert [row["device_id"] for row in found.tables["device"]] == [0]
        assert found.status == "complete"

    def test_environment_user_and_command_line_are_not_stored(self, tmp_path: Path) -> None:
        secret = "s3cr3t"
        header = {**HEADER, "metadata": {"HOME": secret}, "username": secret, "cmdline": secret, "traceName": secret}
        found = read(write(tmp_path / "x.json", [kernel(1)], header=header, after={"env": [secret], "tw_job": secret}))
        assert secret not in str(found.tables)

    def test_invalid_text_in_the_header_is_replaced(self, tmp_path: Path) -> None:
        header = {
            **HEADER,
            "host_name": Raw(r'"h\ud800\u0001"'),
            "cupti_version": Raw(r'"\udfff"'),
            "trace_id": Raw(r'"\ud800"'),
        }
        found = read(write(tmp_path / "x.json", [kernel(1)], header=header))
        assert found.capture["host"] == "h\ufffd"
        assert "CUPTI \ufffd" in found.capture["tool_version"]


class TestRecognition:
    OTHERS: ClassVar = {
        "hparams.json": b'{"lr": 0.1, "steps": [1, 2]}',
        "results.json": b'[{"loss": 1.5}, {"loss": 1.2}]',
        "events.json": b'{"events": [{"ph": "X"}]}',
        "log.txt": b"traceEvents: none",
        "empty.json": b"",
        "broken.json": b"{",
        "text.gz": b"\x1f\x8bgarbage",
        "numbers.bin": bytes(range(256)),
        "manifest.json": b'{"schemaVersion": 2, "mediaType": "x", "layers": [{"size": 1}]}',
        "notebook.ipynb": b'{"cells": [], "nbformat": 4}',
        "data.json.zst": b"\x28\xb5\x2f\xfdgarbage",
    }

    def test_traces_are_recognised_by_content_and_not_by_name(self, tmp_path: Path) -> None:
        folder = tmp_path / "in"
        names = [
            "fit-training_step_and_backward.1625863814669.pt.trace.json",
            "trace",
            "x.pftrace",
            "a b.JSON",
            "läufe/ß.json",
        ]
        for place, name in enumerate(names):
            write(folder / name, [kernel(place)])
        for name, content in self.OTHERS.items():
            (folder / name).write_bytes(content)
        done = ingest(folder, db=tmp_path / "db", flags=["-v"])
        assert done.exit_code == 0
        assert {
            Path(path).relative_to(folder).as_posix() for (path,) in ask(tmp_path / "db", "SELECT path FROM capture")
        } == set(names)
        for name, content in self.OTHERS.items():
            reason = "no ingester recognises its content" if content else "0 bytes"
            assert f"left aside: {folder / name} ({reason}" in done.stderr

    def test_a_folder_without_traces_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "hparams.json").write_bytes(b"{}")
        for paths in ([tmp_path / "in"], [tmp_path / "in" / "hparams.json"]):
            done = ingest(*paths, db=tmp_path / "db", new=True)
            assert done.exit_code == 1
            assert "no file that an ingester recognises" in done.stderr
        assert ingest(tmp_path / "none", db=tmp_path / "db", new=True).exit_code == 2
        assert not (tmp_path / "db").exists()


class TestManySmallFiles:
    def test_files_loaded_before_are_skipped(self, tmp_path: Path) -> None:
        for rank in range(12):
            write(tmp_path / "in" / f"rank{rank}.json.gz", [kernel(rank), kernel(rank + 5)])
        done = ingest(tmp_path / "in", db=tmp_path / "db")
        assert done.exit_code == 0
        assert "12 captures loaded, 0 known before, 0 failed" in done.stderr
        again = ingest(tmp_path / "in", db=tmp_path / "db")
        assert again.exit_code == 0
        assert "0 captures loaded, 12 known before, 0 failed" in again.stderr
        assert ask(tmp_path / "db", "SELECT count(*), count(DISTINCT rank) FROM capture") == [(12, 12)]
