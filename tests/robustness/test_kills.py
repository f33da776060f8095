"""A small share of the kills that ``kills.py`` explores, at points where something was lost before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

AT = ("before clocks are aligned", "views being installed", "captures committed")


def test_nothing_is_lost_by_a_kill() -> None:
    options = [word for name in AT for word in ("--at", name)]
    command = [sys.executable, str(Path(__file__).with_name("kills.py")), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(AT)} kills, 0 faulty" in done.stdout
    assert "| before clocks are aligned | 4 captures, owing | 1 | 1 |" in done.stdout
