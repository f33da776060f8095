"""The worker's side of loading several captures at once: a process that loads the tasks its parent sends."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from tracedb.errors import TracedbError
from tracedb.pipeline import lake_load
from tracedb.pipeline.batch_load import load
from tracedb.pipeline.task import Outcome, Task
from tracedb.pipeline.worker_messages import Setup, built, send, text
from tracedb.storage import error_lines
from tracedb.storage.lock_wait import PATIENCE, Patience


def main() -> None:
    """Load the tasks received on standard input."""

    def stop(number: int, frame: object) -> None:
        # Ctrl-C reaches a worker twice, from the terminal and from its parent; the second must not disturb its exit.
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
    except BaseException:  # an interrupted query may fail in many ways while it is being cleaned up
        if not error_lines.STOPPED.is_set():
            raise
        os._exit(130)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _own_stdout() -> IO[str]:
    """Return the pipe to the parent. Everything else printed, by Python or native code, goes to standard error."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding=sys.stdout.encoding)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdout = sys.stderr
    return out


def _serve_parent() -> None:
    out = _own_stdout()

    def say(message: dict[str, object]) -> None:
        send(out, text(message))

    @contextmanager
    def turn() -> Iterator[None]:
        say({"turn": True})
        if not sys.stdin.readline():
            raise BrokenPipeError("the parent has ended; its other workers may write")
        try:
            yield
        finally:
            say({"left": True})

    def progress(done: int) -> None:
        say({"progress": done})

    def announce(task: Task, outcome: Outcome) -> None:
        say({"commits": outcome, "number": task.number})

    begin = sys.stdin.readline()
    if not begin:  # interrupted before the first message
        return
    setup = built(json.loads(begin), Setup)
    PATIENCE.set(Patience(setup.wait_seconds, lambda said: say({"waiting": said})))
    while line := sys.stdin.readline():
        group = built(json.loads(line), list[Task])
        try:
            if setup.request.lake is not None:
                outcomes = lake_load.load(group, setup.request, setup.known, progress, announce=announce)
            else:
                outcomes = load(group, setup.request, setup.known, progress, turn, announce=announce)
        except Exception as error:  # the parent continues with other files
            if isinstance(error, BrokenPipeError) or error_lines.is_interrupt(error):
                raise
            outcomes = [task.failed(error_lines.one_line(error, task.source)) for task in group]
        say({"outcomes": outcomes})
