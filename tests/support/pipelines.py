"""Traces of pipeline-parallel training as torch.profiler records them, from a simulation of the GPUs.

Every rank has a compute stream and a stream of NCCL, or without batches one for each other rank. They run in the order
in which the host launches. A kernel of
sends and receives starts when the computation before it is done, and ends when each of its messages has moved: a
message begins to move when both ranks run its kernel. Computation waits for the receives before it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from support.traces import HEADER, Event, annotation, call, kernel, op

SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
COMPUTE, NCCL = 7, 20


class Message(NamedTuple):
    """A tensor on its way between two stages: activations of a micro-batch, or their gradients."""

    source: int
    destination: int
    what: str
    micro_batch: int
    chunk: int = 0
    """Chunk of layers that takes the tensor in: a rank has several in an interleaved schedule."""


@dataclass
class Item:
    """Something that a rank launches: a computation of some duration, or one kernel for some messages."""

    name: str
    duration: int = 0
    messages: Sequence[Message] = ()
    is_batch: bool = True
    is_one_way: bool = False
    start: int | None = None
    end: int | None = None


@dataclass
class Pipeline:
    """A pipeline of stages. Times are in µs; ``forward`` and ``backward`` are per micro-batch and chunk, by stage.

    Schedules are ``1f1b``, ``gpipe`` and ``interleaved`` (1F1B over ``chunks`` of layers on each rank, as in Megatron).
    """

    forward: Sequence[int]
    backward: Sequence[int]
    micro_batches: int
    schedule: str = "1f1b"
    chunks: int = 1
    transfer: int = 0
    elements: int = 1024
    is_batched: bool = True
    optimizer: int = 0
    steps: int = 1
    first_step: int = 3
    gap: int = 1000
    group: Sequence[int] = ()
    """Global ranks of the stages."""
    waits: bool = False
    """Whether the calls are written by which computation waits for receives."""
    items: list[list[tuple[int, Item]]] = field(default_factory=list)
    """By stage: step and item, in the order of launches."""

    @property
    def stages(self) -> int:
        """Number of stages."""
        return len(self.forward)

    def run(self) -> Pipeline:
        """Simulate all steps."""
        self.group = self.group or range(self.stages)
        self.items = [[] for _ in range(self.stages)]
        begin = self.gap
        for step in range(self.steps):
            write = _interleaved if self.schedule == "interleaved" else _program
            programs = [write(self, stage) for stage in range(self.stages)]
            _simulate(programs, begin, self.transfer)
            for stage, program in enumerate(programs):
                self.items[stage] += [(self.first_step + step, item) for item in program]
            begin = max(item.end or 0 for program in programs for item in program) + self.gap
        return self

    def events(self, stage: int, shift: int = 0) -> list[Event]:
        """Return the trace events of a stage, whose clock is ahead by ``shift`` µs."""
        return _Writer(self, stage, shift).events()

    def header(self, stage: int) -> dict[str, Any]:
        """Return the header of the trace of a stage."""
        rank = self.group[stage]
        return {**HEADER, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": max(self.group) + 1}}


def _program(of: Pipeline, stage: int) -> list[Item]:
    last, count = of.stages - 1, of.micro_batches
    items: list[Item] = []

    def exchange(*messages: Message | None) -> None:
        # One by one, both ranks of a pair must go in the same order, else both wait for ever.
        found = sorted((message for message in messages if message is not None), key=lambda message: message.what)
        for batch in [found] if of.is_batched else [[message] for message in found]:
            if batch:
                items.append(Item(SEND_RECV, messages=batch, is_batch=of.is_batched))

    def moved(what: str, batch: int, is_in: bool) -> Message | None:
        """The message of a micro-batch into or out of this stage; None at the ends of the pipeline."""
        forth = what == "activation"
        other = stage - 1 if forth == is_in else stage + 1
        if not 0 <= other <= last:
            return None
        return Message(other, stage, what, batch) if is_in else Message(stage, other, what, batch)

    def compute(what: str, duration: int) -> None:
        items.append(Item(f"{what}_gemm", duration))

    warm = count if of.schedule == "gpipe" else min(last - stage, count)
    for batch in range(warm):
        exchange(moved("activation", batch, True))
        compute("forward", of.forward[stage])
        exchange(moved("activation", batch, False))
    if warm < count:
        exchange(moved("activation", warm, True))
    for batch in range(count - warm):
        compute("forward", of.forward[stage])
        exchange(moved("activation", warm + batch, False), moved("gradient", batch, True))
        compute("backward", of.backward[stage])
        following = moved("activation", warm + batch + 1, True) if warm + batch + 1 < count else None
        exchange(moved("gradient", batch, False), following)
    for batch in range(count - warm, count):
        exchange(moved("gradient", batch, True))
        compute("backward", of.backward[stage])
        exchange(moved("gradient", batch, False))
    if of.optimizer:
        compute("adam", of.optimizer)
    return items


def _interleaved(of: Pipeline, stage: int) -> list[Item]:
    """Return what a rank launches; the number of micro-batches is a multiple of that of stages."""
    stages, chunks = of.stages, of.chunks
    total = of.micro_batches * chunks
    warm = min(2 * (stages - stage - 1) + (chunks - 1) * stages, total)
    items: list[Item] = []

    def move(what: str, batch: int, chunk: int, is_in: bool) -> None:
        """Receive what a chunk takes in, or send what it gives out; not at the ends of the model."""
        along = 1 if what == "activation" else -1
        source, destination = (stage - along, stage) if is_in else (stage, stage + along)
        into = chunk if is_in else chunk + along * (destination in (-1, stages))
        first = into - along * (source in (-1, stages)) if is_in else chunk
        if 0 <= into < chunks and 0 <= first < chunks:
            message = Message(source % stages, destination % stages, what, batch, into)
            items.append(Item(SEND_RECV, messages=[message], is_batch=False, is_one_way=True))

    def compute(number: int, is_forward: bool) -> None:
        batch = number // (stages * chunks) * stages + number % stages
        chunk = number % (stages * chunks) // stages
        chunk = chunk if is_forward else chunks - 1 - chunk
        what = "activation" if is_forward else "gradient"
        move(what, batch, chunk, True)
        items.append(Item(f"{what}_gemm", (of.forward if is_forward else of.backward)[stage]))
        move(what, batch, chunk, False)

    for number in range(total + warm):
        if number < total:
            compute(number, True)
        if number >= warm:
            compute(number - warm, False)
    return items


def _simulate(programs: Sequence[Sequence[Item]], begin: int, transfer: int) -> None:
    """Give every item its start and end."""
    kernels = {
        (message, message.source == stage): item
        for stage, program in enumerate(programs)
        for item in program
        for message in item.messages
    }
    moved = True
    while moved:
        moved = False
        for stage, program in enumerate(programs):
            free: dict[int, int] = {}
            ready = received = begin
            held: set[int] = set()
            for item in program:
                stream = _stream(item, stage)
                if stream in held:
                    continue
                if item.start is None:
                    item.start = max(free.get(stream, begin), ready) if item.messages else max(ready, received)
                    moved = True
                if item.end is None and not item.messages:
                    item.end = item.start + item.duration
                if item.end is None:
                    others = [kernels[message, message.source != stage].start for message in item.messages]
                    if None in others:
                        if item.is_one_way and item.messages[0].source == stage:
                            held.add(stream)  # the rank computes on while it sends
                            continue
                        break
                    item.end = max([item.start, *(other for other in others if other is not None)]) + transfer
                    moved = True
                if item.messages:
                    free[stream] = item.end
                    if any(message.destination == stage for message in item.messages):
                        received = max(received, item.end)
                else:
                    ready = item.end


def _stream(item: Item, stage: int) -> int:
    """The stream of an item: that of NCCL for batches, one of its own for each other rank without them.

    Chunks of layers have one for each direction too, so that ranks need not send and receive in the same order.
    """
    if not item.messages or item.is_batch:
        return NCCL if item.messages else COMPUTE
    (message,) = item.messages
    other = message.destination if message.source == stage else message.source
    return NCCL + 1 + other + (100 * (message.source == stage) if item.is_one_way else 0)


class _Writer:
    """Writes the events of a stage: the host launches everything of a step at its begin, one call per µs."""

    def __init__(self, of: Pipeline, stage: int, shift: int) -> None:
        self._of = of
        self._stage = stage
        self._shift = shift
        self._external = 0
        self._made: list[Event] = []

    def events(self) -> list[Event]:
        steps = sorted({step for step, _ in self._of.items[self._stage]})
        for step in steps:
            items = [item for of_step, item in self._of.items[self._stage] if of_step == step]
            begin = min(item.start or 0 for item in items) - 500
            host = float(begin)
            for item in items:
                host = self._launch(item, host + 0.2)
            self._made.append(annotation(self._at(begin - 1), host + 2 - begin, f"ProfilerStep#{step}"))
        return self._made

    def _at(self, time: float) -> float:
        return round(time + self._shift, 3)

    def _launch(self, item: Item, host: float) -> float:
        self._external += 1
        correlation = 1000 + self._external
        assert item.start is not None and item.end is not None
        when = (self._at(item.start), item.end - item.start)
        if not item.messages:
            self._made += [
                op(self._at(host), 0.5, "aten::mm", self._external),
                call(self._at(host + 0.1), 0.2, correlation, external=self._external),
                kernel(*when, item.name, correlation=correlation, stream=COMPUTE, External_id=self._external),
            ]
            return host + 0.6
        for message in item.messages:
            is_send = message.source == self._stage
            told = self._told(message, is_send)
            self._made.append(op(self._at(host), 0.5, "c10d::send" if is_send else "c10d::recv_", self._external))
            self._external += 1
            self._made.append(op(self._at(host + 0.1), 0.3, "record_param_comms", self._external, args=told))
            if not item.is_batch:
                self._made += [
                    call(self._at(host + 0.2), 0.1, correlation, "cuLaunchKernelEx", external=self._external),
                    kernel(*when, item.name, correlation=correlation, stream=_stream(item, self._stage),
                           args={"External id": self._external, **told}),
                ]  # fmt: skip
            self._external += 1
            host += 0.6
        if item.is_batch:
            self._made += [
                annotation(self._at(host), 0.5, "nccl:coalesced"),
                call(self._at(host + 0.1), 0.2, correlation, "cuLaunchKernelEx", external=self._external),
                kernel(
                    *when,
                    item.name,
                    correlation=correlation,
                    stream=_stream(item, self._stage),
                    External_id=self._external,
                ),
            ]
            self._external += 1
            host += 0.6
        if self._of.waits and any(message.destination == self._stage for message in item.messages):
            self._made.append(call(self._at(host - 0.2), 0.1, 1_000_000 + correlation, "cudaStreamWaitEvent"))
        return host

    def _told(self, message: Message, is_send: bool) -> Mapping[str, Any]:
        other = message.destination if is_send else message.source
        ranks = list(self._of.group)
        shown = ", ".join(map(str, ranks[:30])) + (", ..." if len(ranks) > 30 else "")
        return {
            "Collective name": "send" if is_send else "recv",
            "dtype": "BFloat16",
            "In msg nelems": self._of.elements,
            "Out msg nelems": self._of.elements,
            "Group size": len(ranks),
            "In split size": "[]",
            "Out split size": "[]",
            "Process Group Name": "3",
            "Process Group Description": "pipeline",
            "Process Group Ranks": f"[{shown}]",
            "Rank": other,
            "Dst Rank" if is_send else "Src Rank": ranks[other],
        }


def document(pipeline: Pipeline, stage: int, shift: int = 0) -> str:
    """Return the trace file of a stage."""
    return json.dumps({**pipeline.header(stage), "traceEvents": pipeline.events(stage, shift)})
