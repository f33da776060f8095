"""A small subset of the kills of ``kills.py``, at points where something was lost before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.loading import empty_database

AT = ("before clocks are aligned", "views being installed", "captures committed")


def kills(*options: str) -> str:
    empty_database()  # makes the template, which is copied there
    command = [sys.executable, str(Path(__file__).with_name("kills.py")), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_nothing_is_lost_by_a_kill() -> None:
    found = kills(*(word for name in AT for word in ("--at", name)))
    assert f"{len(AT)} kills, 0 faulty" in found
    assert "| before clocks are aligned | 4 captures, owing | 1 | 1 |" in found


def test_nothing_is_lost_by_the_kill_of_a_worker_or_of_its_parent() -> None:
    found = kills("--jobs", "2", "--at", "captures committed")
    assert "| worker, when a worker is at: captures committed | 12 captures | 1 | 1 |" in found
    assert "2 kills, 0 faulty" in found


def test_a_killed_merge_leaves_no_target_or_a_whole_one() -> None:
    found = kills(
        "--merge", "--at", "rows being copied", "--at", "before the target appears", "--at", "before the account"
    )
    assert "3 kills, 0 faulty" in found
    assert "| before the target appears | no target | 1 | 1 |" in found
    assert "| before the account | whole target | 1 | 1 |" in found
