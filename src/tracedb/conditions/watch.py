"""Run a command and write down the state of the GPUs while it runs."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from tracedb.conditions.file import ConditionsFile
from tracedb.conditions.reading import Gpu, Unavailable, open_reader
from tracedb.conditions.sampler import Sampler
from tracedb.errors import TracedbError

FORWARDED = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
"""Signals that a scheduler sends to the process it started, and that are meant for the command."""


class Watched:
    """What came of the command. ``missing``: why no GPU was read. ``fault``: why later readings were not written."""

    def __init__(self) -> None:
        self.exit_code = 0
        self.readings = 0
        self.missing: str | None = None
        self.fault: str | None = None


def watch(command: Sequence[str], path: Path, hertz: float) -> Watched:
    """Run a command to its end and return its exit code: 128 + N if signal N ended it, as a shell has it.

    Without a readable GPU the command runs all the same. Raises ``TracedbError`` if the file cannot be written or the
    command cannot be started.
    """
    found = Watched()
    gpus: list[Gpu] = []
    reader = None
    try:
        reader = open_reader()
        gpus = reader.gpus
    except Unavailable as error:
        found.missing = str(error)
    try:
        file = ConditionsFile(path, gpus, found.missing)
    except OSError as error:
        raise TracedbError(f"{path}: cannot be written: {error.strerror}; name another file with -o") from error

    with ExitStack() as stack:
        stack.callback(file.close)
        if reader is not None:
            stack.enter_context(Sampler(reader, file.add, hertz))
        found.exit_code = _run(command)
    found.readings = file.readings
    found.fault = None if file.fault is None else file.fault.strerror
    return found


def _run(command: Sequence[str]) -> int:
    """Run a command with this process's files and environment, and hand signals on to it."""
    # Control-C at a terminal reaches both; the command decides what becomes of it.
    before = {signal.SIGINT: signal.signal(signal.SIGINT, signal.SIG_IGN)}
    running: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def hand_on(number: int, _frame: FrameType | None) -> None:
        if running:
            running[0].send_signal(number)
        else:
            early.append(number)

    try:
        # Handlers come first: a signal while the command starts would end this process and leave the command running.
        for name in FORWARDED:
            if number := getattr(signal, name, None):
                before[number] = signal.signal(number, hand_on)
        with subprocess.Popen(list(command), restore_signals=True, preexec_fn=_default_interrupt) as process:
            running.append(process)
            for number in early:
                process.send_signal(number)
            code = process.wait()
    except OSError as error:
        raise TracedbError(f"{command[0]}: cannot be started: {error.strerror}") from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code


def _default_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
