"""Types of trace events: per category the fields that tracedb reads; all other fields are skipped.

Fields are in the order in which the profiler writes them, since the decoder looks for the next key after the previous
match.
"""

from __future__ import annotations

from copy import copy
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple, Union

import msgspec
from msgspec import Raw

NOTHING = Raw(b"")  # a raw field that is absent
NOT_SOUND = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)  # raised for text that is not a valid event


class GpuArgs(
    msgspec.Struct,
    gc=False,
    rename={
        "external_id": "External id",
        "registers": "registers per thread",
        "shared": "shared memory",
        "occupancy": "est. achieved occupancy %",
        "collective": "Collective name",
        "message_in": "In msg nelems",
        "message_out": "Out msg nelems",
        "in_splits": "In split size",
        "out_splits": "Out split size",
        "group_size": "Group size",
        "group_name": "Process Group Name",
        "group_ranks": "Process Group Ranks",
        "source_rank": "Src Rank",
        "destination_rank": "Dst Rank",
        "peer": "Rank",
        "sequence": "Seq",
        "external_id_2021": "external id",
        "graph_id": "graph id",
        "graph_node_id": "graph node id",
    },
):
    """Arguments of kernels, copies and memsets. Raw ones are JSON text, decoded only where needed."""

    external_id: int | None = None
    device: int | None = None
    context: int | None = None
    stream: int | None = None
    correlation: int | None = None
    external_id_2021: int | None = None
    registers: int | None = None
    shared: int | None = None
    grid: tuple[int, int, int] | str | None = None
    block: tuple[int, int, int] | str | None = None
    occupancy: float | None = None
    bytes: int | None = None
    graph_id: int | None = None
    graph_node_id: int | None = None
    collective: Raw = NOTHING
    message_in: Raw = NOTHING
    message_out: Raw = NOTHING
    in_splits: Raw = NOTHING
    out_splits: Raw = NOTHING
    group_size: Raw = NOTHING
    dtype: Raw = NOTHING
    group_name: Raw = NOTHING
    group_ranks: Raw = NOTHING
    source_rank: Raw = NOTHING
    destination_rank: Raw = NOTHING
    peer: Raw = NOTHING
    sequence: Raw = NOTHING


class LaunchArgs(
    msgspec.Struct,
    gc=False,
    rename={"external_id": "External id", "external_id_2021": "external id", "graph_node_id": "graph node id"},
):
    """Arguments of runtime and driver calls."""

    external_id: int | None = None
    correlation: int | None = None
    external_id_2021: int | None = None
    kernel: Raw = NOTHING
    graph_node_id: int | None = None


class OpArgs(
    msgspec.Struct,
    gc=False,
    rename={
        "external_id": "External id",
        "sequence_number": "Sequence number",
        "forward_thread": "Fwd thread id",
        "concrete_inputs": "Concrete Inputs",
        "input_types": "Input type",
        "input_strides": "Input Strides",
        "input_dims": "Input Dims",
        "input_dims_2020": "Input dims",
        "collective": "Collective name",
        "message_in": "In msg nelems",
        "message_out": "Out msg nelems",
        "in_splits": "In split size",
        "out_splits": "Out split size",
        "group_size": "Group size",
        "group_name": "Process Group Name",
        "group_ranks": "Process Group Ranks",
        "source_rank": "Src Rank",
        "destination_rank": "Dst Rank",
        "peer": "Rank",
        "sequence": "Seq",
    },
):
    """Arguments of framework operators and user annotations."""

    external_id: int | None = None
    sequence_number: int | None = None
    forward_thread: int | None = None
    concrete_inputs: Raw = NOTHING
    input_types: Raw = NOTHING
    input_strides: Raw = NOTHING
    input_dims: Raw = NOTHING
    input_dims_2020: Raw = NOTHING
    collective: Raw = NOTHING
    message_in: Raw = NOTHING
    message_out: Raw = NOTHING
    in_splits: Raw = NOTHING
    out_splits: Raw = NOTHING
    group_size: Raw = NOTHING
    dtype: Raw = NOTHING
    group_name: Raw = NOTHING
    group_ranks: Raw = NOTHING
    source_rank: Raw = NOTHING
    destination_rank: Raw = NOTHING
    peer: Raw = NOTHING
    sequence: Raw = NOTHING


class MemoryArgs(
    msgspec.Struct,
    gc=False,
    rename={
        "reserved": "Total Reserved",
        "allocated": "Total Allocated",
        "bytes": "Bytes",
        "device": "Device Id",
        "device_type": "Device Type",
        "address": "Addr",
    },
):
    """Arguments of allocator events."""

    reserved: int | None = None
    allocated: int | None = None
    bytes: int | None = None
    device: int | None = None
    device_type: int | None = None
    address: int | None = None


class PythonArgs(msgspec.Struct, gc=False, rename={"parent": "Python parent id", "id": "Python id"}):
    """Arguments of Python frames."""

    parent: int | None = None
    id: int | None = None


class SyncArgs(
    msgspec.Struct,
    gc=False,
    rename={
        "waited_stream": "wait_on_stream",
        "record_correlation": "wait_on_cuda_event_record_corr_id",
        "cuda_event": "wait_on_cuda_event_id",
    },
):
    """Arguments of synchronizations: of the host with the device, or of one stream with another."""

    waited_stream: int | None = None
    record_correlation: int | None = None
    cuda_event: int | None = None
    stream: int | None = None
    correlation: int | None = None
    device: int | None = None
    context: int | None = None


class NoArgs(msgspec.Struct, gc=False):
    """Arguments that are not read."""


class OtherArgs(msgspec.Struct, gc=False):
    """Arguments of a category that is not read: only those that identify device work."""

    device: Raw = NOTHING
    stream: Raw = NOTHING


GPU, LAUNCH, OP, USER, PROJECTION = "gpu", "launch", "op", "user", "projection"
PYTHON, MEMORY, SYNC, COUNTED, LEFT = "python", "memory", "sync", "counted", "left"

CATEGORIES: dict[str, str] = {
    **dict.fromkeys(("kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset"), GPU),
    **dict.fromkeys(
        (
            "cuda_runtime",
            "cuda_driver",
            "Runtime",
            "xpu_runtime",
            "xpu_driver",
            "mtia_runtime",
            "privateuse1_runtime",
            "privateuse1_driver",
        ),
        LAUNCH,
    ),
    **dict.fromkeys(("cpu_op", "Operator"), OP),
    "user_annotation": USER,
    "gpu_user_annotation": PROJECTION,
    **dict.fromkeys(("python_function", "Python"), PYTHON),
    "cpu_instant_event": MEMORY,
    "cuda_sync": SYNC,
    "cuda_profiler_range": COUNTED,
    **dict.fromkeys(("ac2g", "fwdbwd", "async", "async_cpu_to_gpu", "async_gpu", "Trace", "overhead"), LEFT),
    **dict.fromkeys(("xpu_sync", "cuda_event", "external_correlation"), LEFT),
}
"""How each category of events is handled. Others are not read, and counted by name."""

ARGS: dict[str, type[msgspec.Struct]] = {
    GPU: GpuArgs,
    LAUNCH: LaunchArgs,
    OP: OpArgs,
    USER: OpArgs,
    PROJECTION: OpArgs,
    PYTHON: PythonArgs,
    MEMORY: MemoryArgs,
    SYNC: SyncArgs,
}


class Shape(NamedTuple):
    """One category: its struct and how its events are handled."""

    category: str
    kind: str


@cache
def _first(exact: bool) -> Decoders:
    return Decoders(exact)


def decoders(exact: bool) -> Decoders:
    """Return decoders for a file; they are cached, since making the first takes as long as reading a small file."""
    return _first(exact).fresh()


class Decoders:
    """Decoders of blocks and of single events; they grow with the categories met in the file.

    With ``exact``, times are decimals, for files whose ``ts`` does not fit a double to the nanosecond.
    """

    def __init__(self, exact: bool) -> None:
        self._time: Any = Decimal | None if exact else float | str | None
        self.shapes: dict[type, Shape] = {}
        self._by_category: dict[str, type] = {}
        for category in CATEGORIES:
            self._add(category)
        self._bare = self._struct("Bare", NoArgs, None)
        self.shapes[self._bare] = Shape("", LEFT)
        self._build()

    def fresh(self) -> Decoders:
        """Return separate decoders for another file that know the same categories."""
        other = copy(self)
        other.shapes, other._by_category = dict(self.shapes), dict(self._by_category)
        return other

    def _struct(self, name: str, args: Any, tag: str | None) -> type:
        text = str | None
        fields: list[Any] = [
            ("ph", text, None),
            ("name", text, None),
            ("pid", int | str | None, None),
            ("tid", int | str | None, None),
            ("ts", self._time, None),
            ("dur", self._time, None),
            ("args", args | None, None),
        ]
        if tag is None:
            fields[-1] = ("args", Raw, NOTHING)
            return msgspec.defstruct(name, fields, gc=False)
        if CATEGORIES.get(tag) == LEFT:
            fields = [("ph", text, None)]
        return msgspec.defstruct(name, fields, gc=False, tag_field="cat", tag=tag)

    def _add(self, category: str) -> None:
        kind = CATEGORIES.get(category, LEFT)
        args: Any = ARGS.get(kind, NoArgs) if category in CATEGORIES else OtherArgs
        if kind == COUNTED:
            args = dict[str, Raw]  # a hardware counter each
        struct = self._struct(f"Event_{len(self.shapes)}", args, category)
        self.shapes[struct] = Shape(category or "(empty)", kind)
        self._by_category[category] = struct

    def _build(self) -> None:
        union: Any = Union[tuple(self._by_category.values())]  # noqa: UP007 - built at run time
        self._block = msgspec.json.Decoder(list[union])
        self._event = msgspec.json.Decoder(union)
        self._bare_event: msgspec.json.Decoder[Any] = msgspec.json.Decoder(self._bare)

    def learn(self, error: msgspec.ValidationError) -> bool:
        """Add the unknown category that ``error`` reports; False if it reports something else."""
        text = str(error)
        if not (text.startswith("Invalid value '") and text.endswith(".cat`")):
            return False
        category = text[len("Invalid value '") : text.rindex("' - at `")]
        if category in self._by_category or len(self._by_category) > 500:
            return False
        self._add(category)
        self._build()
        return True

    def block(self, text: bytes) -> list[Any]:
        """Decode ``[event, …]``. Raises ``NOT_SOUND`` unless every event is valid."""
        while True:
            try:
                return self._block.decode(text)
            except msgspec.ValidationError as error:
                if not self.learn(error):
                    raise

    def event(self, text: bytes) -> Any:
        """Decode one event, with or without a category. Raises ``NOT_SOUND``."""
        while True:
            try:
                return self._event.decode(text)
            except msgspec.ValidationError as error:
                if "missing required field `cat`" in str(error):
                    return self._bare_event.decode(text)
                if not self.learn(error):
                    raise
