"""Several processes and GPUs in one nsys export."""

from __future__ import annotations

from pathlib import Path

from support.nsys_files import OTHER_PID, PID, Nsys, process, thread
from support.nsys_loaded import load, step


class TestProcesses:
    def test_each_is_a_capture_with_ids_of_its_own(self, tmp_path: Path) -> None:
        made = Nsys()
        for pid, name in ((PID, "a"), (OTHER_PID, "b")):
            made.correlations = 0
            made.range(0, 100, f"range {name}", tid=pid, pid=pid)
            made.launch(10, 1000, 1010, name, tid=pid, pid=pid)
        found = load(tmp_path, made)
        assert found.rows("capture", "pid", "part", "status") == [(PID, 0, "complete"), (OTHER_PID, 1, "complete")]
        joined = "kernel_event AS k JOIN main.capture AS c USING (capture_id) JOIN main.launch AS l"
        joined += " USING (capture_id, launch_id)"
        assert found.rows(joined, "c.pid", "k.name", "l.process_id") == [(PID, "a", PID), (OTHER_PID, "b", OTHER_PID)]
        assert found.held() == [("range a", 1000), ("range b", 1000)]
        assert found.issues["several_processes"] == 2

    def test_one_number_on_two_machines(self, tmp_path: Path) -> None:
        made = Nsys()
        for vm, name in ((1, "a"), (2, "b")):
            called = made.call(0, 10, correlation=7)
            made.tables["RUNTIME"][-1]["globalTid"] = thread(vm=vm)
            made.kernel(100, 110, name, correlation=called, globalPid=process(vm=vm))
        found = load(tmp_path, made)
        assert found.rows("kernel_event", "name", "launch_id IS NOT NULL") == [("a", True), ("b", True)]
        assert found.rows("capture", "pid") == [PID, PID]

    def test_one_without_gpu_work_says_so(self, tmp_path: Path) -> None:
        made = step()
        made.range(0, 10, "loader", tid=OTHER_PID, pid=OTHER_PID)
        found = load(tmp_path, made)
        assert found.rows("capture", "pid", "status") == [(PID, "complete"), (OTHER_PID, "no_gpu_activity")]

    def test_ranks_of_mpi(self, tmp_path: Path) -> None:
        made = Nsys()
        for rank, pid in enumerate((PID, OTHER_PID)):
            made.add("MPI_RANKS", globalPid=process(pid), rank=rank)
            made.launch(10, 1000, 1010, tid=pid, pid=pid)
        assert load(tmp_path, made).rows("capture", "pid", "rank") == [(PID, 0), (OTHER_PID, 1)]

    def test_without_the_column_correlation_tells(self, tmp_path: Path) -> None:
        made = Nsys()
        for pid, correlation in ((PID, 1), (OTHER_PID, 2), (PID, 3), (OTHER_PID, 3)):
            made.call(correlation, correlation + 1, correlation=correlation, tid=pid, pid=pid)
        for correlation in (1, 2, 3):
            made.kernel(100, 110, f"k{correlation}", correlation=correlation, globalPid=None)
        found = load(tmp_path, made)
        joined = "kernel_event JOIN main.capture USING (capture_id)"
        assert found.rows(joined, "name", "pid", "launch_id IS NOT NULL") == [
            ("k1", PID, True),
            ("k2", OTHER_PID, True),
            ("k3", PID, False),
        ]
        assert found.issues["process_guessed"] == 3


class TestDevices:
    def gpus(self, *names: str) -> Nsys:
        """GPUs whose id and CUDA number run against each other."""
        made = Nsys()
        made.tables["TARGET_INFO_GPU"].clear()
        for number, name in enumerate(names):
            made.add("TARGET_INFO_GPU", vmId=1 << 48, id=number, name=name, cuDevice=len(names) - 1 - number)
        return made

    def test_a_number_is_that_of_the_process(self, tmp_path: Path) -> None:
        made = self.gpus("A100", "T4")
        made.add("TARGET_INFO_CUDA_DEVICE", gpuId=1, cudaId=0, pid=PID)
        made.add("TARGET_INFO_CUDA_DEVICE", gpuId=0, cudaId=0, pid=OTHER_PID)
        made.kernel(0, 10)
        made.kernel(0, 10, pid=OTHER_PID)
        joined = "device JOIN main.capture USING (capture_id)"
        assert load(tmp_path, made).rows(joined, "pid", "device_id", "name", "is_used") == [
            (PID, 0, "T4", True),
            (OTHER_PID, 0, "A100", True),
        ]

    def test_before_2025_the_cuda_number_tells_not_the_id(self, tmp_path: Path) -> None:
        made = self.gpus("A100", "T4")
        made.kernel(0, 10, device=0)
        assert load(tmp_path, made).rows("device", "device_id", "name", "is_used") == [
            (0, "T4", True),
            (1, "A100", False),
        ]

    def test_unknown_gpus_do_no_harm(self, tmp_path: Path) -> None:
        made = Nsys()
        del made.tables["TARGET_INFO_GPU"]
        made.kernel(0, 10, device=3)
        assert load(tmp_path, made).rows("device", "device_id", "vendor", "name") == [(3, "NVIDIA", None)]
