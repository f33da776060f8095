"""The folder for spilled data: removed after a run, and after a killed run by the next one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.loading import ask, ingest, trace
from tracedb.storage import spill_folder

pytestmark = pytest.mark.skipif(not spill_folder.BOOT.exists(), reason="the system does not tell when it was started")

HOLDS = """
import sys, time
from pathlib import Path
from tracedb.storage.spill_folder import spill_folder
with spill_folder(Path(sys.argv[1])) as folder:
    (Path(folder) / "block").write_bytes(b"x" * 1000)
    print(folder, flush=True)
    time.sleep(600)
"""


def holder(database: Path) -> tuple[subprocess.Popen[str], Path]:
    """Start a process that holds a folder."""
    process = subprocess.Popen([sys.executable, "-c", HOLDS, str(database)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def left(folder: Path) -> list[Path]:
    return sorted(folder.glob(".tracedb-*"))


def test_a_killed_run_s_folder_goes_with_the_next_and_a_living_one_s_stays(tmp_path: Path) -> None:
    (dead, gone), (alive, held) = holder(tmp_path / "db"), holder(tmp_path / "db")
    try:
        os.kill(dead.pid, signal.SIGKILL)
        dead.wait()
        assert left(tmp_path) == sorted([gone, held])
        assert ingest(trace(tmp_path / "in" / "rank0.json", 4), db=tmp_path / "db").exit_code == 0
        assert left(tmp_path) == [held]
        assert (held / "block").stat().st_size == 1000
        assert ask(tmp_path / "db", "SELECT count(*) FROM kernel_event") == [(4,)]
    finally:
        alive.kill()
        alive.wait()


def test_what_is_not_of_this_machine_or_no_folder_stays(tmp_path: Path) -> None:
    others = [tmp_path / ".tracedb-00000000-abc", tmp_path / "elsewhere"]
    for other in others:
        other.mkdir()
    link = tmp_path / f"{spill_folder._prefix()}link"
    link.symlink_to(others[1])
    (tmp_path / f"{spill_folder._prefix()}file").write_text("x")
    with spill_folder.spill_folder(tmp_path / "db") as made:
        assert Path(made).parent == tmp_path
    assert others[0].is_dir()
    assert others[1].is_dir()
    assert link.is_symlink()
    assert (tmp_path / f"{spill_folder._prefix()}file").exists()
    assert not Path(made).exists()


def test_a_folder_that_was_taken_away_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = spill_folder._locked
    taken: list[Path] = []

    def late(folder: Path, waits: bool) -> int | None:
        if waits and not taken:
            taken.append(folder)
            folder.rmdir()
            return None
        return locked(folder, waits)

    monkeypatch.setattr(spill_folder, "_locked", late)
    with spill_folder.spill_folder(tmp_path / "db") as made:
        assert Path(made).is_dir()
        assert Path(made) not in taken
    assert not left(tmp_path)


@pytest.mark.parametrize("fault", [KeyboardInterrupt, OSError])
def test_gone_whatever_ends_the_run(tmp_path: Path, fault: type[BaseException]) -> None:
    with pytest.raises(fault), spill_folder.spill_folder(tmp_path / "db"):
        raise fault
    assert not left(tmp_path)
