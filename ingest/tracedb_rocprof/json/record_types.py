"""The parts of rocprofv3's JSON records that are kept; everything else is skipped.

A missing number is ``NONE``, the smallest 64-bit integer. If a file contains that integer, it does not decode as a
``Number``, and ``Mender`` replaces it by ``BAD``.
"""

from __future__ import annotations

from math import nan
from typing import Annotated

import msgspec

from tracedb_rocprof.missing import BAD, NONE

Number = Annotated[int, msgspec.Meta(ge=BAD)]


class Handle(msgspec.Struct):
    """A number wrapped in an object."""

    handle: Number = NONE


class Correlation(msgspec.Struct):
    """The id that joins calls to the work they caused."""

    internal: Number = NONE


class Size(msgspec.Struct):
    """A size along three axes."""

    x: Number = NONE
    y: Number = NONE
    z: Number = NONE


class Info(msgspec.Struct):
    """The dispatched kernel and its sizes."""

    agent_id: Handle = msgspec.field(default_factory=Handle)
    queue_id: Handle = msgspec.field(default_factory=Handle)
    kernel_id: Number = NONE
    dispatch_id: Number = NONE
    group_segment_size: Number = NONE
    private_segment_size: Number = NONE
    workgroup_size: Size = msgspec.field(default_factory=Size)
    grid_size: Size = msgspec.field(default_factory=Size)


class Dispatch(msgspec.Struct):
    """One kernel dispatch."""

    start_timestamp: Number = NONE
    end_timestamp: Number = NONE
    correlation_id: Correlation = msgspec.field(default_factory=Correlation)
    dispatch_info: Info = msgspec.field(default_factory=Info)
    stream_id: Handle | None = None
    graph_exec_id: Number | None = None
    graph_node_id: Number | None = None


class CounterValue(msgspec.Struct):
    """A counter's value for one part of the device."""

    counter_id: Handle = msgspec.field(default_factory=Handle)
    value: float = nan


class CountedDispatch(msgspec.Struct):
    """The counters of one dispatch."""

    dispatch_data: Dispatch = msgspec.field(default_factory=Dispatch)
    records: list[CounterValue] = msgspec.field(default_factory=list)


class Call(msgspec.Struct):
    """One API call or roctx range."""

    kind: Number = NONE
    operation: Number = NONE
    thread_id: Number = NONE
    correlation_id: Correlation = msgspec.field(default_factory=Correlation)
    start_timestamp: Number = NONE
    end_timestamp: Number = NONE


class Copy(msgspec.Struct):
    """One memory copy."""

    kind: Number = NONE
    operation: Number = NONE
    correlation_id: Correlation = msgspec.field(default_factory=Correlation)
    start_timestamp: Number = NONE
    end_timestamp: Number = NONE
    src_agent_id: Handle = msgspec.field(default_factory=Handle)
    dst_agent_id: Handle = msgspec.field(default_factory=Handle)
    stream_id: Handle | None = None
    bytes: Number | None = None


class Symbol(msgspec.Struct):
    """A kernel's symbol."""

    kernel_id: Number = NONE
    kernel_name: str = ""
    formatted_kernel_name: str = ""
    demangled_kernel_name: str = ""
    group_segment_size: Number = NONE
    arch_vgpr_count: Number = NONE
    accum_vgpr_count: Number = NONE
    sgpr_count: Number = NONE


class CounterDefinition(msgspec.Struct):
    """A counter's definition."""

    id: Handle = msgspec.field(default_factory=Handle)
    name: str = ""


class Bank(msgspec.Struct):
    """A bank of memory."""

    size_in_bytes: Number = NONE


class JsonAgent(msgspec.Struct):
    """A CPU or GPU."""

    id: Handle = msgspec.field(default_factory=Handle)
    type: Number = NONE
    node_id: Number = NONE
    logical_node_id: Number = NONE
    logical_node_type_id: Number | None = None
    name: str = ""
    product_name: str = ""
    vendor_name: str = ""
    cu_count: Number = NONE
    max_engine_clk_fcompute: Number = NONE
    mem_banks: list[Bank] = msgspec.field(default_factory=list)


class Node(msgspec.Struct):
    """The machine."""

    hostname: str | None = None


class Metadata(msgspec.Struct):
    """The parts of the header that are kept."""

    pid: Number | None = None
    node: Node = msgspec.field(default_factory=Node)


class Kind(msgspec.Struct):
    """The name of a kind of record, and of its operations."""

    kind: str = ""
    operations: list[str] = msgspec.field(default_factory=list)


class Message(msgspec.Struct):
    """The text of a roctx range, by its correlation id."""

    key: Number = NONE
    value: str = ""


class Strings(msgspec.Struct):
    """The texts of a process."""

    buffer_records: list[Kind] = msgspec.field(default_factory=list)
    marker_api: list[Message] = msgspec.field(default_factory=list)
