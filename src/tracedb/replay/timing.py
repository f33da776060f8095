"""Times of a call on a GPU, taken so that the rate of launches bounds nothing.

Warm cache: many calls in a CUDA graph between two events. Cold cache: a buffer of twice the cache's size is read before
each call, and each call lies between events of its own; the GPU is held up until all of a sample is in its queue. The
buffer is read, not written, so that nothing is left to be written back during the call; what the call itself leaves
behind is written back after its second event.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch

Call = Callable[[], Any]
GRAPH_NS = 400_000
"""Least length of a graph: launching one takes some 10 µs of the CPU, which must be covered."""
MOST_CALLS = 200
COLD_CALLS = 10
"""Calls of a sample with cold cache."""
HELD_CYCLES = 2_000_000
"""Cycles for which the GPU is held up, about a millisecond: time to put a sample into its queue."""
WALL_NS = 2_000_000
"""Least length of a sample on the CPU."""
MOST_WALL_CALLS = 1_000
MOST_COLD_WALL_CALLS = 5
HOST_CACHE_BYTES = 64 << 20
"""Taken for the size of the CPU's last cache."""
REPEATS = 2


class Watch(Protocol):
    """Times one operator."""

    method: str

    def sample(self) -> float:
        """Return the time of a call in ns, over as many calls as one sample takes."""
        ...

    def enqueue(self) -> int:
        """Start some calls without waiting for them, and return how many."""
        ...


def cache_reader(device: torch.device) -> Call:
    """Return a function that fills the device's cache with other data, by reading twice its size."""
    import torch

    size = HOST_CACHE_BYTES
    if device.type == "cuda":
        size = int(getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0)) or HOST_CACHE_BYTES
    buffer = torch.ones(2 * size // 4, dtype=torch.float32, device=device)
    return lambda: torch.sum(buffer)


def watch(call: Call, device: torch.device, reader: Call | None) -> Watch:
    """Return a watch for a call that has run before; ``reader`` fills the cache with other data before each call."""
    if device.type != "cuda":
        return WallWatch(call, reader)
    if reader is not None:
        return ColdWatch(call, device, reader)
    try:
        return GraphWatch(call, device)
    except RuntimeError:  # it waits for the GPU, which cannot be captured
        import torch

        torch.cuda.synchronize(device)
        return EventWatch(call, device)


class WallWatch:
    """The clock of the CPU around calls that have ended when they return."""

    method = "wall"

    def __init__(self, call: Call, reader: Call | None) -> None:
        self._call = call
        self._reader = reader
        most = MOST_WALL_CALLS if reader is None else MOST_COLD_WALL_CALLS
        self._calls = max(1, min(most, int(WALL_NS / max(self._timed(), 1.0))))

    def sample(self) -> float:
        """Return the mean time of a call in ns."""
        if self._reader is not None:
            return sum(self._timed() for _ in range(self._calls)) / self._calls
        begin = time.perf_counter_ns()
        for _ in range(self._calls):
            self._call()
        return (time.perf_counter_ns() - begin) / self._calls

    def _timed(self) -> float:
        if self._reader is not None:
            self._reader()
        begin = time.perf_counter_ns()
        self._call()
        return float(time.perf_counter_ns() - begin)

    def enqueue(self) -> int:
        """Run the calls of a sample."""
        for _ in range(self._calls):
            self._call()
        return self._calls


class GraphWatch:
    """CUDA events around a graph of many calls."""

    method = "graph"

    def __init__(self, call: Call, device: torch.device) -> None:
        import torch

        self._torch = torch
        self._kept = call  # the graph holds the addresses of its tensors, not the tensors
        estimate = _event_ns(call, device)
        self._calls = max(1, min(MOST_CALLS, -int(-GRAPH_NS // max(estimate, 1_000.0))))
        self._graph: Any = torch.cuda.CUDAGraph()
        torch.cuda.synchronize(device)
        with torch.cuda.graph(self._graph):
            for _ in range(self._calls):
                call()
        self._graph.replay()
        torch.cuda.synchronize(device)

    def sample(self) -> float:
        """Return the mean time of a call in ns; the GPU is kept busy while the events are put into its queue."""
        begin, end = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
        self._graph.replay()
        begin.record()
        for _ in range(REPEATS):
            self._graph.replay()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) * 1e6 / (REPEATS * self._calls)

    def enqueue(self) -> int:
        """Launch the graph."""
        self._graph.replay()
        return self._calls


class ColdWatch:
    """CUDA events around single calls, each after the cache was filled with other data."""

    method = "events"

    def __init__(self, call: Call, device: torch.device, reader: Call) -> None:
        self._call = call
        self._reader = reader
        self._device = device
        self._loop: Watch | None = None
        self._empty = min(self._between(lambda: None) for _ in range(3))

    def sample(self) -> float:
        """Return the mean time of a call in ns, less that between two events with nothing in between."""
        return max(self._between(self._call) - self._empty, 0.0)

    def _between(self, call: Call) -> float:
        import torch

        events = [tuple(torch.cuda.Event(enable_timing=True) for _ in range(2)) for _ in range(COLD_CALLS)]
        torch.cuda.synchronize(self._device)
        torch.cuda._sleep(HELD_CYCLES)
        for begin, end in events:
            self._reader()
            begin.record()
            call()
            end.record()
        torch.cuda.synchronize(self._device)
        return sum(float(begin.elapsed_time(end)) for begin, end in events) * 1e6 / COLD_CALLS

    def enqueue(self) -> int:
        """Launch calls without cold caches, in a graph if they can be captured: the GPU must not wait for launches."""
        if self._loop is None:
            try:
                self._loop = GraphWatch(self._call, self._device)
            except RuntimeError:
                self._loop = EventWatch(self._call, self._device)
        return self._loop.enqueue()


class EventWatch:
    """CUDA events around single calls that wait for the GPU: the time of the launch is in them."""

    method = "waits"

    def __init__(self, call: Call, device: torch.device) -> None:
        self._call = call
        self._device = device

    def sample(self) -> float:
        """Return the time of a call in ns."""
        return _event_ns(self._call, self._device, tries=1)

    def enqueue(self) -> int:
        """Run a call."""
        self._call()
        return 1


def _event_ns(call: Call, device: torch.device, tries: int = 3) -> float:
    """Return the shortest time of a call between two events."""
    import torch

    best = float("inf")
    for _ in range(tries):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize(device)
        begin.record()
        call()
        end.record()
        end.synchronize()
        best = min(best, float(begin.elapsed_time(end)) * 1e6)
    return best
