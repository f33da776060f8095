"""``tracedb watch``: the command's own exit code, and a file of readings that ``tracedb ingest`` loads."""

from __future__ import annotations

import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support import conformance, fake_nvml
from support.loading import ask, ingest
from tracedb.conditions import watch as conditions_watch
from tracedb.conditions.file import ConditionsFile
from tracedb.conditions.nvml import reasons
from tracedb.conditions.reading import Gpu, Reading, visible
from tracedb_samples import ingester

ROWS = "SELECT device_id, sm_clock_mhz, memory_clock_mhz, power_w, temperature_c, throttle FROM device_condition"


def watch(
    folder: Path, *command: str, limit: int | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run ``tracedb watch -o w.csv -- COMMAND`` beside two GPUs. ``limit``: bytes that a file may have."""

    def limited() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    path = {"PYTHONPATH": str(fake_nvml.put(folder / "modules"))}
    return subprocess.run(
        [sys.executable, "-m", "tracedb", "watch", "-o", folder / "w.csv", "--hertz", "100", "--", *command],
        env={**os.environ, **path, **environment}, capture_output=True, text=True, timeout=600, preexec_fn=limited,
    )  # fmt: skip


def until(folder: Path, unit: str, size: int) -> str:
    """Return a shell command that waits until the file of readings has so many lines (``l``) or bytes (``c``)."""
    return f"until [ $(wc -{unit} < {shlex.quote(str(folder / 'w.csv'))}) -ge {size} ]; do sleep 0.02; done"


def test_readings_of_every_gpu_while_the_command_runs(tmp_path: Path) -> None:
    begun = time.time_ns()
    done = watch(tmp_path, "sh", "-c", f"echo out; echo err >&2; {until(tmp_path, 'l', 12)}; exit 7")
    assert (done.returncode, done.stdout) == (7, "out\n")
    assert done.stderr.startswith("err\n") and "next: tracedb ingest" in done.stderr
    (tables,) = conformance.check_rows(ingester, tmp_path / "w.csv")
    assert tables["capture"][0]["status"] == "complete"
    db = tmp_path / "t.duckdb"
    assert ingest(tmp_path / "w.csv", db=db).exit_code == 0
    assert ask(db, f"{ROWS} GROUP BY ALL ORDER BY ALL") == [
        (0, 1455.0, 3201.0, 689.5, 64.0, "sw_power_cap,sw_thermal_slowdown"),
        (1, 1456.0, 3201.0, 689.5, None, "none"),
    ]
    ((times, first, last),) = ask(
        db, "SELECT count(DISTINCT time_ns), min(time_ns), max(time_ns) FROM device_condition WHERE device_id = 0"
    )
    # In real time: the capture's clock begins with the Unix epoch.
    assert times >= 3 and begun <= first < last <= time.time_ns()
    assert ask(db, "SELECT source, clock_zero_unix_ns FROM capture") == [("conditions", 0)]
    assert ask(db, "SELECT device_id, vendor, name, uuid FROM device ORDER BY ALL") == [
        (0, "NVIDIA", "NVIDIA X", "GPU-aaaa-1"),
        (1, "NVIDIA", "NVIDIA X", "GPU-bbbb-2"),
    ]


def test_without_a_gpu_the_command_runs_all_the_same(tmp_path: Path) -> None:
    done = watch(tmp_path, "sh", "-c", "exit 5", CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 5
    assert "warning: no GPU was read: NVML finds no GPU that programs may use" in done.stderr
    db = tmp_path / "t.duckdb"
    assert ingest(tmp_path / "w.csv", db=db).exit_code == 0
    assert ask(db, ROWS) == []
    ((code, severity, detail),) = ask(db, "SELECT code, severity, detail FROM ingest_issue")
    assert (code, severity) == ("no_conditions", "note") and "NVML finds no GPU" in detail


def test_a_full_disk_ends_the_readings_but_not_the_command(tmp_path: Path) -> None:
    """Files may not grow beyond 1 KiB: room for the head and some readings."""
    done = watch(tmp_path, "sh", "-c", f"{until(tmp_path, 'c', 1 << 10)}; exit 7", limit=1 << 10)
    assert done.returncode == 7 and "Traceback" not in done.stderr
    (warning,) = [line for line in done.stderr.splitlines() if "warning:" in line]
    (tables,) = conformance.check_rows(ingester, tmp_path / "w.csv")
    written = len(tables["device_condition"])
    assert written > 2 and tables["capture"][0]["events_read"] - written <= 1  # the last line may be cut off
    assert warning.endswith(f"w.csv: cannot be written: File too large; it ends after {written} readings")


def test_a_signal_while_the_command_starts_reaches_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Signalled(subprocess.Popen[bytes]):
        def __init__(self, *words: Any, **options: Any) -> None:
            super().__init__(*words, **options)
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(subprocess, "Popen", Signalled)
    before = signal.getsignal(signal.SIGTERM)
    assert conditions_watch.watch(["sleep", "30"], tmp_path / "w.csv", 10).exit_code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is before


def test_signals_reach_the_command(tmp_path: Path) -> None:
    assert watch(tmp_path, "sh", "-c", "kill -9 $$").returncode == 128 + signal.SIGKILL
    started = subprocess.Popen(
        [sys.executable, "-m", "tracedb", "watch", "-o", tmp_path / "w.csv", "--",
         "sh", "-c", "trap 'exit 3' TERM; echo ready; while true; do sleep 0.05; done"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert started.stdout is not None and started.stdout.readline() == "ready\n"
    started.terminate()
    assert started.wait(300) == 3
    started.stdout.close()


@pytest.mark.parametrize(
    ("command", "words"),
    [(("/no/such/command",), "cannot be started: No such file"), ((), "Missing argument")],
)
def test_what_is_wrong_is_said(tmp_path: Path, command: tuple[str, ...], words: str) -> None:
    done = watch(tmp_path, *command)
    assert done.returncode == (1 if command else 2)
    assert words in done.stderr and "Traceback" not in done.stderr


def test_lines_of_a_run_that_was_killed(tmp_path: Path) -> None:
    """The last line is cut off, one has no number, one a field too few; all others are rows."""
    path = tmp_path / "w.csv"
    file = ConditionsFile(path, [Gpu(0, "NVIDIA", "X", "GPU-1")], None)
    for number in range(3):
        file.add(Reading(0, 10**18 + number, 1400.0, None, 700.0, None, "sw_power_cap"))
    file.close()
    path.write_text(path.read_text() + "0,many,1400,,700,,\n0,1000\n0,1000000000000000009,14")
    (tables,) = conformance.check_rows(ingester, path)
    assert tables["capture"][0]["status"] == "repaired"
    assert (tables["capture"][0]["events_read"], tables["capture"][0]["events_skipped"]) == (6, 3)
    assert [row["time_ns"] for row in tables["device_condition"]] == [10**18, 10**18 + 1, 10**18 + 2]
    assert {row["memory_clock_mhz"] for row in tables["device_condition"]} == {None}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# tracedb conditions {\n", "its first line is damaged"),
        ('# tracedb conditions {"version": 9}\na\n', "is of version 9"),
        ('# tracedb conditions {"version": 1}\ntime,power\n', "no column device_id and unix_ns"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "w.csv").write_text(text)
    done = ingest(tmp_path / "w.csv", db=tmp_path / "t.duckdb")
    assert done.exit_code == 1 and words in done.stderr


@pytest.mark.parametrize(
    ("said", "seen"),
    [(None, [0, 1, 2]), ("2,0", [2, 0]), ("GPU-bb", [1]), ("0,7,1", [0]), ("", []), ("GPU-b,GPU-a", [1, 0])],
)
def test_gpus_are_numbered_as_programs_number_them(said: str | None, seen: list[int]) -> None:
    assert visible({"GPU-aa": 0, "GPU-bb": 1, "MIG-c": 2}, said) == seen


@pytest.mark.parametrize(
    ("bits", "words"), [(0, "none"), (0x24, "sw_power_cap,sw_thermal_slowdown"), (0x1004, "sw_power_cap,0x1000")]
)
def test_a_throttle_reason_without_a_name_is_not_none(bits: int, words: str) -> None:
    assert reasons(bits) == words
