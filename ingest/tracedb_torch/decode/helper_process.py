"""A second process that decodes blocks, since Python decodes in one thread at a time.

The helper runs ``main`` of this module; frames on its standard streams are a length and a pickle. Column data
travels as Arrow IPC bytes, never as objects.
"""

from __future__ import annotations

import gc
import pickle
import queue
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from types import TracebackType
from typing import IO, Any

import pyarrow as pa

from tracedb.errors import ReadError
from tracedb.ingester import Options
from tracedb_torch.decode.block_decoder import BlockReader, Decoded

DEPTH = 8  # blocks on their way to the helper: enough that it never waits for this process to find the time
# Ctrl-C reaches this process too, and ends it without a word: it holds nothing that must be put in order.
START = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "from tracedb_torch.decode.helper_process import main; main()"
)
PIPE_BYTES = 1 << 20
FIRST_TEXT = 1 << 30  # the helper numbers its texts from here
LENGTH = struct.Struct("<Q")


class Helper:
    """The other process, seen from here."""

    def __init__(self, options: Options) -> None:
        flags = [name for name in ("python_stacks", "memory_events") if getattr(options, name)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for pipe in (self._process.stdin, self._process.stdout):
            _widen(pipe)
        self._results: dict[int, Decoded | ReadError | None] = {}
        self._arrived = threading.Condition()
        self._order: list[int] = []  # numbers of the blocks on their way, oldest first
        self._is_gone = False
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="tracedb-helper-out", daemon=True)
        self._listener = threading.Thread(target=self._listen, name="tracedb-helper-in", daemon=True)

    def __enter__(self) -> Helper:
        self._writer.start()
        self._listener.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._outbox.put(None)
        if kind is not None:
            self._process.kill()
        self._writer.join()
        self._process.wait()
        self._listener.join()

    def has_room(self) -> bool:
        """Whether the helper can take another block without one waiting long."""
        with self._arrived:
            return len(self._order) < DEPTH and not self._is_gone

    def send(self, number: int, text: bytes) -> None:
        """Hand block ``number`` over."""
        with self._arrived:
            self._order.append(number)
        self._outbox.put(text)

    def is_ready(self, number: int) -> bool:
        """Whether the result of block ``number`` is here."""
        with self._arrived:
            return number in self._results

    def result(self, number: int) -> Decoded | None:
        """Wait for the result of a block. Raises ``ReadError`` as reading it here would, or if the helper died."""
        with self._arrived:
            self._arrived.wait_for(lambda: number in self._results or self._is_gone)
            if number not in self._results:
                raise ReadError("the decoding process died (out of memory?); try again with more memory or --jobs 1")
            found = self._results.pop(number)
        if isinstance(found, ReadError):
            raise found
        return found

    def _write(self) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            while (text := self._outbox.get()) is not None:
                stdin.write(LENGTH.pack(len(text)))
                stdin.write(text)
                stdin.flush()
            stdin.close()
        except BrokenPipeError:
            pass  # the listener sees that the helper is gone

    def _listen(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        while (frame := _frame(stdout)) is not None:
            found = _unpacked(pickle.loads(frame))
            with self._arrived:
                self._results[self._order.pop(0)] = found
                self._arrived.notify_all()
        with self._arrived:
            self._is_gone = True
            self._arrived.notify_all()


def _widen(pipe: IO[bytes] | None) -> None:
    """Let a pipe hold a whole answer, where the system can: a writer then need not wait for a busy reader."""
    if pipe is None or sys.platform != "linux":
        return
    import fcntl

    with suppress(OSError):  # above the limit that the system's owner set
        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def _frame(stream: IO[bytes]) -> bytes | None:
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    frame = stream.read(length)
    return frame if len(frame) == length else None


def _packed(found: Decoded | None) -> Any:
    if found is None:
        return None
    tables = []
    for table, batch in found.batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        tables.append((table, sink.getvalue().to_pybytes()))
    return found.events, tables, found.account, found.has_fractions, found.processes, found.edges


def _unpacked(frame: Any) -> Decoded | ReadError | None:
    if frame is None or isinstance(frame, ReadError):
        return frame
    events, tables, account, has_fractions, processes, edges = frame
    batches = [(table, pa.ipc.open_stream(data).read_next_batch()) for table, data in tables]
    return Decoded(events, batches, account, has_fractions, processes, edges)


def main() -> None:
    """Decode blocks from standard input until it ends."""
    gc.disable()
    reader = BlockReader(
        Options(python_stacks="python_stacks" in sys.argv, memory_events="memory_events" in sys.argv), FIRST_TEXT
    )
    out = sys.stdout.buffer
    while (text := _frame(sys.stdin.buffer)) is not None:
        try:
            answer: Any = _packed(reader.read(text))
        except ReadError as error:
            answer = error
        frame = pickle.dumps(answer, protocol=pickle.HIGHEST_PROTOCOL)
        out.write(LENGTH.pack(len(frame)))
        out.write(frame)
        out.flush()
