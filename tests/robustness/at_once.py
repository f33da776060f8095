"""Commands that run at the same moment, each in a process of its own, some of which are killed."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS)]

from robustness.kills import Found, Point, run  # noqa: E402

PAUSE = 0.005
MOST_SECONDS = 300.0
"""After which a command that has not ended hangs."""
KILLED_SHARE = 0.6


@dataclass(frozen=True)
class Job:
    """A command; times are in seconds after the first began."""

    words: tuple[str, ...]
    begins: float
    dies: float | None
    """When it is killed, unless it has ended."""
    point: Point | None = None
    """A call at which it kills itself."""
    nth: int = 1
    """Which of these calls."""


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    job: Job
    code: int | None
    """None if it was killed."""
    told: str
    said: str

    @property
    def is_raw(self) -> bool:
        """Whether it showed what only programmers read."""
        return any(words in self.said for words in ("Traceback", "Exception ignored", "INTERNAL Error"))


def planned(
    dice: random.Random, commands: Sequence[tuple[str, ...]], span: float, points: Sequence[Point] = ()
) -> list[Job]:
    """Spread commands over a span of time in seconds, and have most of them killed.

    That is within the span after their begin or, every other one if there are ``points``, at one of these.
    """
    jobs = []
    for words in commands:
        begins = dice.random() * span
        if dice.random() >= KILLED_SHARE:
            jobs.append(Job(words, begins, None))
        elif points and dice.random() < 0.5:
            point = dice.choice(points)
            jobs.append(Job(words, begins, None, point, dice.randint(1, point.most)))
        else:
            jobs.append(Job(words, begins, begins + dice.random() * span))
    return jobs


def at_once(jobs: Sequence[Job], folder: Path) -> list[Ended]:
    """Run all, and return how they ended. What they print is kept in the folder meanwhile."""
    began = time.monotonic()
    running = {_started(job, began, folder / str(place)): place for place, job in enumerate(jobs)}
    codes: dict[int, int | None] = {}
    while running:
        now = time.monotonic() - began
        for pid, place in list(running.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            dies = jobs[place].dies
            if ended:
                codes[place] = None if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)
                del running[pid]
            elif (dies is not None and now >= dies) or now >= MOST_SECONDS:
                os.kill(pid, signal.SIGKILL)
        time.sleep(PAUSE)
    found = []
    for place, job in enumerate(jobs):
        told, said = (folder / f"{place}.{name}" for name in ("told", "said"))
        found.append(Ended(job, codes[place], *(_read(path) for path in (told, said))))
        if codes[place] is None and job.dies is None and job.point is None:
            found[-1] = Ended(job, -signal.SIGKILL, found[-1].told, f"hangs: {found[-1].said}")
    return found


def _read(path: Path) -> str:
    said = path.read_text() if path.exists() else ""
    path.unlink(missing_ok=True)
    return said


def _started(job: Job, began: float, files: Path) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 99
    try:
        time.sleep(max(began + job.begins - time.monotonic(), 0))
        if job.point is not None:
            job.point.arm(job.nth)
        said: Found = run(*job.words, told=files.with_suffix(".told"), said=files.with_suffix(".said"))
        code = int(said["code"] or 0)
    except BaseException:  # noqa: BLE001 - this process must not go on as the one that started it
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)
