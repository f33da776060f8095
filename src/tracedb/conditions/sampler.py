"""Read the GPUs in the background while something runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType

from tracedb.conditions.reading import Gpu, Reader, Reading, Unavailable, open_reader

HERTZ = 20.0
"""Readings a second. A driver renews its numbers some ten to fifty times a second."""


class Sampler:
    """Reads every GPU ``hertz`` times a second in a thread, and hands each reading to ``take``."""

    def __init__(self, reader: Reader, take: Callable[[Reading], None], hertz: float = HERTZ) -> None:
        self._reader = reader
        self._take = take
        self._interval = 1 / hertz
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="tracedb-conditions", daemon=True)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _loop(self) -> None:
        due = time.monotonic()
        while True:
            for gpu in self._reader.gpus:
                self._take(self._reader.read(gpu))
            # Late readings are left out, not caught up.
            due = max(due + self._interval, time.monotonic())
            if self._ended.wait(due - time.monotonic()):
                return


class Recent:
    """Keeps the readings of one GPU in memory while a sweep runs; none where no GPU can be read."""

    def __init__(self, uuid: str | None) -> None:
        self._readings: list[Reading] = []
        self._sampler: Sampler | None = None
        self.missing: str | None = None
        """Why nothing is read."""
        self.reader: Reader | None = None
        self.gpu: Gpu | None = None
        """The GPU, and what reads it."""
        try:
            reader = open_reader()
        except Unavailable as error:
            self.missing = str(error)
            return
        mine = [gpu for gpu in reader.gpus if uuid is not None and _plain(gpu.uuid) == _plain(uuid)]
        if not mine:
            self.missing = "the library that reads GPUs does not list this one"
            return
        reader.gpus = mine
        self.reader, self.gpu = reader, mine[0]
        self._sampler = Sampler(reader, self._readings.append)

    def __enter__(self) -> Recent:
        if self._sampler is not None:
            self._sampler.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sampler is not None:
            self._sampler.__exit__(kind, error, trace)

    def between(self, begin_unix_ns: int, end_unix_ns: int) -> list[Reading]:
        """Return the readings of a span of time, and forget these and all before."""
        count = len(self._readings)  # the thread appends meanwhile
        taken, self._readings[:count] = self._readings[:count], []
        return [reading for reading in taken if begin_unix_ns <= reading.unix_ns <= end_unix_ns]


def _plain(uuid: str | None) -> str:
    return (uuid or "").lower().removeprefix("gpu-").replace("-", "")
