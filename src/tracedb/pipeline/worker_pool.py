"""Loading several captures at once: worker processes read in parallel and take turns at the database.

A worker is a Python that runs ``main`` of this module. Both sides exchange lines of JSON: the parent sends tasks and
permission to write, the worker sends progress, asks for its turn, and reports outcomes. Rows never pass between
processes: each worker writes its own captures.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tracedb.errors import TracedbError
from tracedb.ingester import Begun, Capture
from tracedb.pipeline.batch import load, together
from tracedb.pipeline.task import Loaded, Outcome, Request, Task
from tracedb.storage import error_lines
from tracedb.storage.lock_wait import PATIENCE, Patience

QUIET_START = (
    "__file__ = 'tracedb'; import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); from {} import main; main()"
)
"""Runs a module's ``main``; Ctrl-C while it is still importing ends it without a traceback.

A program without ``__file__`` is a notebook or a prompt to DuckDB, which then draws a progress bar on standard output
beside a query of more than two seconds.
"""

INTERRUPTED = (130, -signal.SIGINT)
"""Exit codes of a worker that Ctrl-C ended."""


def load_all(
    tasks: Sequence[Task],
    request: Request,
    known: dict[int, set[str]],
    jobs: int,
    progress: Callable[[int], None],
    report: Callable[[Outcome], None],
    begun: Begun | None = None,
) -> None:
    """Load every task with ``jobs`` processes and call ``report`` with each outcome as it comes.

    ``begun``: what reads the largest capture already, in this process; it is loaded first. A
    worker that dies costs the file that it was reading, named in the outcome. Once another process has held the
    database for too long, nothing more is begun.
    """
    groups = together(tasks, max(jobs, 1))
    if jobs <= 1 or len(tasks) <= 1:
        largest = max(tasks, key=lambda task: task.size_bytes)
        busy: str | None = None
        for group in groups:
            if busy is None:
                outcomes = load(group, request, known, progress, begun=begun if group[0] is largest else None)
            else:
                outcomes = [_failed(task, busy) for task in group]
            busy = busy or _busy(outcomes)
            for outcome in outcomes:
                report(outcome)
        return
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
        self._groups = list(groups)  # the longest first, so that none comes last
        self._patience = PATIENCE.get()
        self._setup = json.dumps(
            {
                "request": _to_json(request),
                "known": {k: sorted(v) for k, v in known.items()},
                "wait": self._patience.seconds,
            }
        )
        self._progress = progress
        self._report = report
        self._database = threading.Lock()
        self._state = threading.Lock()
        self._processes: list[subprocess.Popen[str]] = []
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
                    thread.join(0.2)  # a join without limit would not see Ctrl-C
        except BaseException:
            with self._state:
                self._is_stopped = True
                for process in self._processes:
                    process.send_signal(signal.SIGINT)
            for process in self._processes:
                process.wait()
            raise
        if self._failure:
            raise self._failure
        for task in (task for group in self._groups for task in group):  # not begun any more
            self._report(_failed(task, self._busy or "no worker process was left to read it; try --jobs 1"))

    def _next(self) -> list[Task] | None:
        with self._state:
            return self._groups.pop(0) if self._groups and not self._busy and not self._is_stopped else None

    def _serve(self) -> None:
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
                outcomes = [_failed(task, reason) for task in group]
            with self._state:
                self._busy = self._busy or _busy(outcomes)
                for outcome in outcomes:
                    self._report(outcome)
        if process is not None and process.stdin is not None and process.poll() is None:
            process.stdin.close()
            process.wait()

    def _start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", QUIET_START.format("tracedb.pipeline.worker_pool")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with self._state:
            self._processes.append(process)
            if self._is_stopped:
                process.send_signal(signal.SIGINT)
        _send(process.stdin, self._setup)
        return process

    def _load(self, process: subprocess.Popen[str], group: list[Task]) -> list[Outcome]:
        """Have tasks done; hold the database for the worker while it writes. A dead worker's are tried singly."""
        holds = False
        try:
            _send(process.stdin, json.dumps([_task_to_json(task) for task in group]))
            assert process.stdout is not None
            for line in process.stdout:
                message = json.loads(line)
                if "progress" in message:
                    self._progress(message["progress"])
                elif "turn" in message:
                    self._database.acquire()
                    holds = True
                    _send(process.stdin, "{}")
                elif "left" in message:
                    self._database.release()
                    holds = False
                elif "waiting" in message:
                    self._patience.say(message["waiting"])
                else:
                    return [_outcome_from_json(outcome) for outcome in message["outcomes"]]
        except (BrokenPipeError, json.JSONDecodeError):  # it died, maybe within a line
            pass
        finally:
            if holds:
                self._database.release()
        code = process.wait()
        if code in INTERRUPTED:  # maybe before this process has noticed it: nothing more is to be begun
            raise KeyboardInterrupt
        if len(group) > 1:
            with self._state:
                self._groups += [[task] for task in group]
            return []
        return [
            _failed(group[0], f"the worker process reading it died (exit status {code}; out of memory?); try --jobs 1")
        ]


def _busy(outcomes: Sequence[Outcome]) -> str | None:
    """Return what is said of a database that another process holds, if that is why one was not loaded."""
    return next((outcome.error for outcome in outcomes if outcome.is_busy), None)


def _failed(task: Task, reason: str) -> Outcome:
    return Outcome(task.path, task.size_bytes, error=reason)


def _send(stream: IO[str] | None, line: str) -> None:
    assert stream is not None
    stream.write(line + "\n")
    stream.flush()


def _to_json(request: Request) -> dict[str, Any]:
    fields = dataclasses.asdict(request)
    return {**fields, "database": str(request.database), "paths": [str(path) for path in request.paths]}


def _request_from_json(fields: dict[str, Any]) -> Request:
    paths = tuple(Path(path) for path in fields["paths"])
    return Request(**{**fields, "database": Path(fields["database"]), "paths": paths})


def _task_to_json(task: Task) -> dict[str, Any]:
    return {
        "files": [str(path) for path in task.capture.files],
        "duplicates": [str(path) for path in task.capture.duplicates],
        "rank": task.capture.rank,
        "source": task.source,
        "size": task.size_bytes,
        "number": task.number,
        "total": task.total,
        "changed": task.changed_ns,
        "told": None if task.told is None else str(task.told),
        "copies": [str(path) for path in task.copies],
    }


def _task_from_json(fields: dict[str, Any]) -> Task:
    files = tuple(Path(path) for path in fields["files"])
    duplicates = tuple(Path(path) for path in fields["duplicates"])
    task = Task(
        Capture(files, fields["rank"], duplicates),
        *(fields[name] for name in ("source", "size", "number", "total", "changed")),
    )
    told = None if fields["told"] is None else Path(fields["told"])
    return dataclasses.replace(task, told=told, copies=tuple(Path(path) for path in fields["copies"]))


def _outcome_to_json(outcome: Outcome) -> dict[str, Any]:
    return {**dataclasses.asdict(outcome), "path": str(outcome.path)}


def _outcome_from_json(fields: dict[str, Any]) -> Outcome:
    loaded = [
        Loaded(**{**item, "issues": [(i[0], i[1], i[2], i[3]) for i in item["issues"]]}) for item in fields["loaded"]
    ]
    return Outcome(**{**fields, "path": Path(fields["path"]), "loaded": loaded})


def main() -> None:
    """The worker's side: load the tasks that come in on standard input."""

    def stop(number: int, frame: object) -> None:
        # Ctrl-C reaches a worker twice, from the terminal and from its parent; the second would only disturb its end.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        error_lines.STOPPED.set()
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, stop)
    try:
        _serve_parent()
    except BrokenPipeError:
        sys.exit(130)
    except TracedbError as error:
        sys.exit(f"tracedb: error: {error}")
    except BaseException:  # what a query that was cut off leaves behind may fail in many ways on its way out
        if not error_lines.STOPPED.is_set():
            raise
        os._exit(130)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _own_stdout() -> IO[str]:
    """Return the pipe to the parent. What anything else prints, in Python or below it, goes to standard error."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding=sys.stdout.encoding)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdout = sys.stderr
    return out


def _serve_parent() -> None:
    out = _own_stdout()

    def say(message: dict[str, Any]) -> None:
        _send(out, json.dumps(message))

    @contextmanager
    def turn() -> Iterator[None]:
        say({"turn": True})
        if not sys.stdin.readline():
            raise BrokenPipeError("the parent has ended; its other workers may write")
        try:
            yield
        finally:
            say({"left": True})

    begin = sys.stdin.readline()
    if not begin:  # interrupted before there was anything to do
        return
    setup = json.loads(begin)
    request = _request_from_json(setup["request"])
    known = {int(size): set(digests) for size, digests in setup["known"].items()}
    PATIENCE.set(Patience(setup["wait"], lambda text: say({"waiting": text})))
    while line := sys.stdin.readline():
        group = [_task_from_json(fields) for fields in json.loads(line)]
        try:
            outcomes = load(group, request, known, lambda done: say({"progress": done}), turn)
        except Exception as error:  # the parent goes on with other files
            if isinstance(error, BrokenPipeError) or error_lines.is_interrupt(error):
                raise
            outcomes = [_failed(task, error_lines.one_line(error, task.source)) for task in group]
        say({"outcomes": [_outcome_to_json(outcome) for outcome in outcomes]})
