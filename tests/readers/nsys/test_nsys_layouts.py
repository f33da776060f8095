"""Exports of unknown releases: renamed tables, missing columns, unknown versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import run
from support.nsys_files import PID, Nsys
from support.nsys_loaded import Loaded, change, load, step

pytestmark = pytest.mark.usefixtures("only_few_views")

PREFIX = "CUPTI_ACTIVITY_KIND_"


def renamed(folder: Path, table: str, name: str) -> Path:
    return change(step().sqlite(folder / "a.sqlite"), f"ALTER TABLE {PREFIX}{table} RENAME TO {PREFIX}{name}")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """The export with the names that are usual."""
    return load(tmp_path_factory.mktemp("plain"), step())


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ("KERNEL", "CONCURRENT_KERNEL"),
        ("KERNEL", "KERNEL_V3"),
        ("KERNEL", "KERNEL2"),
        ("MEMCPY", "MEMCPY_V2"),
        ("MEMCPY", "MEMCPY2"),
        ("MEMSET", "MEMSET_V4"),
        ("RUNTIME", "RUNTIME_V2"),
        ("RUNTIME", "DRIVER_V2"),
        ("RUNTIME", "RUNTIME_API"),
    ],
)
def test_a_table_of_another_name(plain: Loaded, tmp_path: Path, table: str, name: str) -> None:
    found = Loaded(renamed(tmp_path, table, name), db=tmp_path / "a.duckdb")
    for rows in ("kernel_event", "launch", "annotation", "annotation_kernel"):
        assert found.rows(rows, "*") == plain.rows(rows, "*")
    columns = ("status", "events_read", "events_skipped", "rows_written")
    assert found.one("capture", *columns) == plain.one("capture", *columns)
    assert f"{PREFIX}{name}" in found.one("ingest_issue WHERE code = 'table_renamed'", "detail")


def test_two_tables_of_kernels(tmp_path: Path) -> None:
    path = step().sqlite(tmp_path / "a.sqlite")
    other = f"{PREFIX}KERNEL_V3"
    change(
        path,
        f"CREATE TABLE {other} AS SELECT * FROM {PREFIX}KERNEL",
        f'UPDATE {other} SET start = start + 5000, "end" = "end" + 5000, correlationId = 0',
    )
    found = Loaded(path, db=tmp_path / "a.duckdb")
    columns = ("count(*)", "count(DISTINCT event_id)", "count(launch_id)")
    assert found.rows("kernel_event WHERE kind = 'kernel'", *columns) == [(4, 4, 2)]


@pytest.mark.parametrize("name", ["KERNEL", "KERNEL_V9"])
def test_kernels_that_cannot_be_read_are_refused(tmp_path: Path, name: str) -> None:
    path = renamed(tmp_path, "KERNEL", "KERNEL_V9")
    change(
        path,
        f'ALTER TABLE {PREFIX}KERNEL_V9 RENAME COLUMN "end" TO finish',
        *([f"ALTER TABLE {PREFIX}KERNEL_V9 RENAME TO {PREFIX}{name}"] if name != "KERNEL_V9" else []),
    )
    error = Loaded(path, db=tmp_path / "a.duckdb").error
    assert f"{PREFIX}{name}: 2 kernels cannot be read without end" in error
    assert "start, finish, deviceId" in error


def test_a_column_that_is_gone_is_told(tmp_path: Path) -> None:
    path = step().sqlite(tmp_path / "a.sqlite")
    change(path, *(f"ALTER TABLE {PREFIX}KERNEL DROP COLUMN {name}" for name in ("deviceId", "demangledName")))
    change(path, *(f"ALTER TABLE {PREFIX}KERNEL DROP COLUMN {name}" for name in ("shortName", "mangledName")))
    found = Loaded(path, db=tmp_path / "a.duckdb")
    assert found.one("capture", "status") == "repaired"
    issue = found.one("ingest_issue WHERE code = 'columns_missing'", "severity", "count", "skipped", "detail")
    assert issue[:3] == ("warning", 2, 0)
    assert f"{PREFIX}KERNEL has no deviceId, demangledName or mangledName or shortName" in issue[3]
    assert found.rows("kernel_event WHERE kind = 'kernel'", "name", "device_id") == [("(no name)", None)] * 2


class TestWorkOfAnUnknownKind:
    NAME = f"{PREFIX}TENSOR_MOVE"

    def export(self, folder: Path, with_kernels: bool) -> Path:
        made = step()
        if not with_kernels:
            del made.tables["KERNEL"], made.tables["MEMCPY"], made.tables["MEMSET"]
        return change(
            made.sqlite(folder / "a.sqlite"),
            f"CREATE TABLE {self.NAME} (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER)",
            f"INSERT INTO {self.NAME} VALUES (10, 20, 0, 7), (30, 40, 0, 7), (50, 60, 0, 7)",
        )

    def test_it_is_counted_as_lost(self, tmp_path: Path) -> None:
        found = Loaded(self.export(tmp_path, True), db=tmp_path / "a.duckdb")
        issue = found.one("ingest_issue WHERE skipped = 3 AND severity = 'warning'", "code", "count", "detail")
        assert issue[:2] == (f"device_events_not_read:{self.NAME}", 3)
        assert found.one("capture", "status") == "repaired"

    def test_nobody_is_told_to_record_again(self, tmp_path: Path) -> None:
        done = run("ingest", self.export(tmp_path, False), "--db", tmp_path / "a.duckdb", "--strict")
        assert done.exit_code == 1
        asked = run("report", "top-kernels", "--db", tmp_path / "a.duckdb")
        assert asked.exit_code == 3
        for said in (done.stderr, asked.stderr):
            assert self.NAME in said and "3" in said
            assert "record again" not in said

    def test_waits_and_page_faults_are_none(self, tmp_path: Path) -> None:
        path = change(
            step().sqlite(tmp_path / "a.sqlite"),
            "CREATE TABLE CUDA_UM_GPU_PAGE_FAULT_EVENTS (start INTEGER, end INTEGER, deviceId INTEGER)",
            "INSERT INTO CUDA_UM_GPU_PAGE_FAULT_EVENTS VALUES (1, 2, 0)",
        )
        found = Loaded(path, db=tmp_path / "a.duckdb")
        assert found.one("capture", "status") == "complete"
        assert found.rows("ingest_issue WHERE severity = 'warning'", "code") == []


class TestVersions:
    def loaded(self, folder: Path, schema: object) -> Loaded:
        made = step("2021")
        made.add("META_DATA_EXPORT", name="EXPORT_PRODUCT_VERSION", value="2031.1.0.7")
        made.add("META_DATA_EXPORT", name="EXPORT_SCHEMA_VERSION", value=schema)
        return load(folder, made)

    @pytest.mark.parametrize("schema", ["3.26.0", "4.0.0", "2.8.9", "1.0", "new", ""])
    def test_an_unknown_one_is_told_with_those_that_are_known(self, tmp_path: Path, schema: str) -> None:
        found = self.loaded(tmp_path, schema)
        severity, detail = found.one("ingest_issue WHERE code = 'schema_unknown'", "severity", "detail")
        assert severity == "warning" and f"version {schema}, tracedb knows 2.9 to 3.25" in detail
        columns = ("tool_version", "status", "metadata ->> 'schema'", "metadata ->> 'known_schemas'")
        assert found.one("capture", *columns) == ("nsys 2031.1.0.7", "complete", schema, "2.9 to 3.25")

    @pytest.mark.parametrize("schema", ["2.9.1", "3.0.0", "3.25.99", None])
    def test_a_known_one_and_none_are_not(self, tmp_path: Path, schema: str | None) -> None:
        assert "schema_unknown" not in self.loaded(tmp_path, schema).issues


class TestGpus:
    """Four GPUs of one make, of which processes see some, each as its number 0."""

    def export(self) -> Nsys:
        made = Nsys()
        made.tables["TARGET_INFO_GPU"].clear()
        for number in range(4):
            made.add("TARGET_INFO_GPU", vmId=1 << 48, id=number, name="H100", uuid=f"GPU-{number}", smCount=132,
                     totalMemory=80 << 30, cuDevice=number)  # fmt: skip
        for pid in (PID, PID + 1):
            made.kernel(0, 10, pid=pid)
        return made

    def rows(self, folder: Path, made: Nsys) -> list[object]:
        joined = "device JOIN main.capture USING (capture_id)"
        return load(folder, made).rows(f"{joined} WHERE is_used", "pid", "device_id", "name", "uuid", "sm_count")

    def test_each_process_has_its_own(self, tmp_path: Path) -> None:
        made = self.export()
        for pid, gpu in ((PID, 2), (PID + 1, 3)):
            made.add("TARGET_INFO_CUDA_DEVICE", gpuId=gpu, cudaId=0, pid=pid)
        assert self.rows(tmp_path, made) == [(PID, 0, "H100", "GPU-2", 132), (PID + 1, 0, "H100", "GPU-3", 132)]

    def test_a_process_that_is_not_listed_gets_what_all_have_in_common(self, tmp_path: Path) -> None:
        made = self.export()
        made.add("TARGET_INFO_CUDA_DEVICE", gpuId=2, cudaId=0, pid=PID)
        assert self.rows(tmp_path, made) == [(PID, 0, "H100", "GPU-2", 132), (PID + 1, 0, "H100", None, 132)]

    def test_without_the_table_a_shared_number_is_no_gpu(self, tmp_path: Path) -> None:
        made = self.export()
        made.kernel(0, 10, device=1)
        assert self.rows(tmp_path, made) == [
            (PID, 0, "H100", None, 132),
            (PID, 1, "H100", "GPU-1", 132),
            (PID + 1, 0, "H100", None, 132),
        ]

    def test_slices_of_one_gpu(self, tmp_path: Path) -> None:
        made = self.export()
        for pid, piece in ((PID, "a"), (PID + 1, "b")):
            made.add("TARGET_INFO_CUDA_DEVICE", gpuId=1, cudaId=0, pid=pid, uuid=f"MIG-{piece}", numMultiprocessors=16)
        assert self.rows(tmp_path, made) == [(PID, 0, "H100", "MIG-a", 16), (PID + 1, 0, "H100", "MIG-b", 16)]

    def test_a_gpu_that_is_named_by_its_uuid_alone(self, tmp_path: Path) -> None:
        made = self.export()
        for pid, gpu in ((PID, 2), (PID + 1, 3)):
            made.add("TARGET_INFO_CUDA_DEVICE", gpuId=None, cudaId=0, pid=pid, uuid=f"GPU-{gpu}")
        assert self.rows(tmp_path, made) == [(PID, 0, "H100", "GPU-2", 132), (PID + 1, 0, "H100", "GPU-3", 132)]

    def test_a_number_that_no_device_has(self, tmp_path: Path) -> None:
        made = self.export()
        made.tables["TARGET_INFO_GPU"][3]["cuDevice"] = 1 << 48
        assert [row[1] for row in self.rows(tmp_path, made)] == [0, 0]  # type: ignore[index]
