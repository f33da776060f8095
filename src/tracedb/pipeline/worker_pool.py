"""Load several captures at once: worker processes read in parallel and take turns writing to the database.

A worker is a Python process that runs ``main`` of ``worker_process``. The parent sends tasks and permission to write;
the worker sends progress, asks for its turn, announces what it is about to commit, and reports outcomes. Each worker
writes its own captures, so no rows pass between processes.
"""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from tracedb.errors import DatabaseBusy, EmptyDatabase, TracedbError
from tracedb.pipeline.batch_load import busy_reason, together
from tracedb.pipeline.task import Outcome, Request, Task
from tracedb.pipeline.worker_messages import Setup, built, send, text
from tracedb.storage import lake_manifest
from tracedb.storage.connection import open_read_only
from tracedb.storage.lock_wait import PATIENCE

QUIET_START = (
    "__file__ = 'tracedb'; import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); from {} import main; main()"
)
"""Runs a module's ``main``; Ctrl-C during its import ends it without a traceback.

Without ``__file__``, DuckDB takes a program for a notebook or prompt and draws a progress bar on standard output for
queries longer than two seconds.
"""

INTERRUPTED = (130, -signal.SIGINT)
"""Exit codes of a worker ended by Ctrl-C."""
SILENT_SECONDS = 300.0
"""After which a worker that sends nothing is named: it may be stopped, or wait for a file system that hangs."""
STOP_SECONDS = 10.0
"""How long workers may take to end after Ctrl-C before they are killed; what they had committed stays."""
KILLED_SECONDS = 2.0
"""How long to wait for a killed worker: in a system call that hangs, not even a kill ends it."""


def load_by_workers(
    tasks: Sequence[Task],
    request: Request,
    known: dict[int, set[str]],
    jobs: int,
    progress: Callable[[int], None],
    report: Callable[[Outcome], None],
) -> None:
    """Load every task with ``jobs`` processes and call ``report`` with each outcome as it comes.

    A worker that dies costs only the file it was reading, which the outcome names; captures it had committed are
    reported as loaded. Once another process has held the database for too long, no further capture is started.
    """
    groups = together(tasks, jobs)
    _Pool(groups, request, known, progress, report).run(min(jobs, len(groups)))


class _Pool:
    """The parent's side."""

    def __init__(
        self,
        groups: Sequence[list[Task]],
        request: Request,
        known: dict[int, set[str]],
        progress: Callable[[int], None],
        report: Callable[[Outcome], None],
    ) -> None:
        self._groups = list(groups)  # the longest first, so that none is started last
        self._request = request
        self._patience = PATIENCE.get()
        self._setup = text(Setup(request, known, self._patience.seconds))
        self._progress = progress
        self._report = report
        self._database = threading.Lock()
        self._state = threading.Lock()
        self._processes: list[subprocess.Popen[str]] = []
        self._heard: dict[subprocess.Popen[str], tuple[float, list[Task]]] = {}
        """When each worker that has something to do sent a message last, and what it does."""
        self._busy: str | None = None
        self._failure: BaseException | None = None
        self._is_stopped = False

    def run(self, jobs: int) -> None:
        threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(jobs)]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.2)  # a join without timeout would block Ctrl-C
                    self._name_silent()
        except BaseException:
            self._stop()
            raise
        if self._failure:
            raise self._failure
        for task in (task for group in self._groups for task in group):  # not started
            self._report(task.failed(self._busy or "no worker process was left to read it; try --jobs 1"))

    def _name_silent(self) -> None:
        """Name each worker that has sent nothing for long, once until it sends something."""
        now = time.monotonic()
        for process, (heard, group) in list(self._heard.items()):
            if now - heard >= SILENT_SECONDS:
                self._heard[process] = (math.inf, group)
                others = f" or one of {len(group) - 1} other files" if len(group) > 1 else ""
                self._patience.say(
                    f"{group[0].path}: process {process.pid}, which loads it{others}, has reported nothing for "
                    f"{SILENT_SECONDS:g} s; if it hangs, kill it, and the ingest goes on with other files"
                )

    def _stop(self) -> None:
        """Interrupt all workers, and kill those that do not end in time, or at once after a second Ctrl-C."""
        with self._state:
            self._is_stopped = True
            for process in self._processes:
                process.send_signal(signal.SIGINT)
        ends = time.monotonic() + STOP_SECONDS
        try:
            for process in self._processes:
                process.wait(max(ends - time.monotonic(), 0))
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            for process in (process for process in self._processes if process.poll() is None):
                process.kill()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(KILLED_SECONDS)

    def _next(self) -> list[Task] | None:
        with self._state:
            return self._groups.pop(0) if self._groups and not self._busy and not self._is_stopped else None

    def _serve(self) -> None:
        PATIENCE.set(self._patience)  # a new thread has the default
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - raised again where the threads are waited for
            with self._state:
                self._failure = error
                self._is_stopped = True

    def _work(self) -> None:
        process: subprocess.Popen[str] | None = None
        while (group := self._next()) is not None:
            try:
                if process is None or process.poll() is not None:
                    process = self._start()
                outcomes = self._load(process, group)
            except OSError as error:
                reason = f"no worker process could be started to read it ({error}); try --jobs 1"
                outcomes = [task.failed(reason) for task in group]
            with self._state:
                self._busy = self._busy or busy_reason(outcomes)
                for outcome in outcomes:
                    self._report(outcome)
        if process is not None and process.stdin is not None and process.poll() is None:
            process.stdin.close()
            process.wait()

    def _start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", QUIET_START.format("tracedb.pipeline.worker_process")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with self._state:
            self._processes.append(process)
            if self._is_stopped:
                process.send_signal(signal.SIGINT)
        with suppress(BrokenPipeError):  # it died already, which is noticed when it is sent its first tasks
            send(process.stdin, self._setup)
        return process

    def _load(self, process: subprocess.Popen[str], group: list[Task]) -> list[Outcome]:
        """Have the worker do tasks; hold the database for it while it writes."""
        announced: dict[int, Outcome] = {}
        holds = False
        try:
            send(process.stdin, text(group))
            assert process.stdout is not None
            self._heard[process] = (time.monotonic(), group)
            for line in process.stdout:
                message = json.loads(line)
                self._heard[process] = (math.inf, group)  # what follows may take this process long
                if "progress" in message:
                    self._progress(message["progress"])
                elif "turn" in message:
                    self._database.acquire()
                    holds = True
                    send(process.stdin, "{}")
                elif "left" in message:
                    self._database.release()
                    holds = False
                elif "commits" in message:
                    announced[message["number"]] = built(message["commits"], Outcome)
                elif "waiting" in message:
                    self._patience.say(message["waiting"])
                else:
                    return built(message["outcomes"], list[Outcome])
                self._heard[process] = (time.monotonic(), group)
        except (BrokenPipeError, json.JSONDecodeError):  # it died, perhaps in the middle of a line
            pass
        finally:
            self._heard.pop(process, None)
            if holds:
                self._database.release()
        code = process.wait()
        with suppress(BrokenPipeError):  # unsent data would be flushed again at garbage collection
            assert process.stdin is not None
            process.stdin.close()
        if code in INTERRUPTED or self._is_stopped:  # the former perhaps before this process has noticed
            raise KeyboardInterrupt
        return self._left_by_dead(group, announced, code)

    def _left_by_dead(self, group: list[Task], announced: dict[int, Outcome], code: int) -> list[Outcome]:
        """Return the outcomes of a dead worker's tasks; if it had several, those not loaded are retried one by one."""
        settled = self._committed(announced, code)
        others = [task for task in group if task.number not in settled]
        if len(group) > 1:
            with self._state:
                self._groups += [[task] for task in others]
            others = []
        reason = f"the worker process reading it died (exit status {code}; out of memory?); try --jobs 1"
        return [*settled.values(), *(task.failed(reason) for task in others)]

    def _committed(self, announced: dict[int, Outcome], code: int) -> dict[int, Outcome]:
        """Return the outcomes that a dead worker announced and that are in the database or lake, by task number.

        If it cannot be opened to check that, all of them fail with the reason.
        """
        try:
            held = self._held() if announced else set()
        except EmptyDatabase:
            return {}
        except TracedbError as error:
            reason = f"the worker process loading it died (exit status {code}); it may be loaded all the same: {error}"
            is_busy = isinstance(error, DatabaseBusy)
            return {
                number: Outcome(outcome.path, outcome.size_bytes, error=reason, is_busy=is_busy)
                for number, outcome in announced.items()
            }
        return {
            number: outcome
            for number, outcome in announced.items()
            if all((item.capture_id, outcome.sha256) in held for item in outcome.loaded)
        }

    def _held(self) -> set[tuple[int, str | None]]:
        """Return number and digest of each capture in the database or lake, without those that were to be repaired."""
        if self._request.lake is not None:
            repaired = {item.sha256 for item in self._request.repaired}
            held = lake_manifest.read(lake_manifest.opened(self._request.lake)).held()
            return {(item.capture_id, item.sha256) for item in held if item.sha256 not in repaired}
        if not self._request.database.exists():
            return set()
        with self._database, open_read_only(self._request.database) as connection:
            return set(connection.execute("SELECT capture_id, sha256 FROM main.capture").fetchall())
