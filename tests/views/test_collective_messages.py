"""Which collective an event is, and of how many bytes: names, types, messages, operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from views.collective_rows import Insert, calls, captures

Ask = Callable[[str], list[tuple[Any, ...]]]

ELEMENT_BYTES = {
    1: ("Float8_e4m3fn", "Float8_e5m2fnuz", "f8e4m3", "Byte", "Char", "Bool", "int8", "UInt8", "Float4_e2m1fn_x2"),
    2: ("Half", "c10::BFloat16", "BFloat16", "Short", "UInt16", "ncclFloat16"),
    4: ("Float", "float", "Int", "UInt32", "ComplexHalf", "f32"),
    8: ("Double", "Long", "Int64", "ComplexFloat"),
    16: ("ComplexDouble",),
    None: ("Unheard", None),
}


def test_element_sizes(insert: Insert, ask: Ask) -> None:
    kinds = [(dtype, size) for size, dtypes in ELEMENT_BYTES.items() for dtype in dtypes]
    insert("capture", "capture_id", (0,), source="torch")
    insert("kernel_event", "event_id dtype", *[(number, dtype) for number, (dtype, _) in enumerate(kinds)],
           capture_id=0, kind="kernel", name="nccl", collective="allreduce", start_ns=0, duration_ns=9,
           message_in_elements=10)  # fmt: skip
    found: dict[int, int | None] = dict(ask("SELECT event_id, message_bytes FROM v1._collective_event"))
    assert [found[number] for number in range(len(kinds))] == [size and 10 * size for _, size in kinds]


NAMES = [
    ("allreduce", "allreduce", 1.5), ("allreduce_coalesced", "allreduce", 1.5), ("_allgather_base", "allgather", 0.75),
    ("all_gather_into_tensor_coalesced", "allgather", 0.75), ("_reduce_scatter_base", "reduce_scatter", 0.75),
    ("reduce_scatter_tensor_coalesced", "reduce_scatter", 0.75), ("all_to_all", "alltoall", 0.75),
    ("alltoall_base", "alltoall", 0.75), ("broadcast", "broadcast", 1.0), ("_broadcast_oop", "broadcast", 1.0),
    ("reduce", "reduce", 1.0), ("gather", "gather", 0.75), ("scatter", "scatter", 0.75), ("barrier", "barrier", None),
    ("unheard", "other", None),
]  # fmt: skip


def test_names_and_factors_of_nccl_tests(insert: Insert, ask: Ask) -> None:
    captures(insert, [0, 1, 2, 3])
    for number, (recorded, _, _) in enumerate(NAMES):
        calls(insert, *[(rank, number, number, 100, recorded, 25) for rank in range(4)], name="kernel")
    found = ask(
        "SELECT recorded_as, collective, ranks, bus_gbps / algorithm_gbps FROM v1.collectives ORDER BY start_ns"
    )
    assert found == [(recorded, collective, 4, factor) for recorded, collective, factor in NAMES]


def test_messages_are_whole(insert: Insert, ask: Ask) -> None:
    captures(insert, [0])
    insert("kernel_event", "event_id collective message_in_elements message_out_elements bytes",
           (1, "_allgather_base", 5, 20, None), (2, "_allgather_base", 5, None, None),
           (3, "_reduce_scatter_base", 20, 5, None), (4, "_reduce_scatter_base", None, 5, None),
           (5, "allreduce", 20, 20, None), (6, "allreduce", None, None, 77), (7, "_allgather_base", None, None, 77),
           capture_id=0, kind="kernel", name="nccl", duration_ns=1, start_ns=1, dtype="Half", group_size=4,
           group_name="g")  # fmt: skip
    found = ask(
        """SELECT e.event_id, x.message_bytes FROM v1._collective_member AS e
           INNER JOIN v1.collectives AS x ON x.collective_id = e.collective_id ORDER BY ALL"""
    )
    assert found == [(1, 40), (2, 40), (3, 40), (4, 40), (5, 40), (6, 77), (7, 308)]


def test_generic_kernels_have_the_collective_of_their_operator(insert: Insert, ask: Ask) -> None:
    captures(insert, [0])
    insert("op", "op_id name parent_op_id", (1, "c10d::alltoall_base_", None), (2, "record_param_comms", 1),
           (3, "nccl:all_reduce", None), capture_id=0, start_ns=0, duration_ns=1)  # fmt: skip
    insert("kernel_event", "event_id name op_id", (1, "ncclDevKernel_Generic_2(x)", 3),
           (2, "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(x)", 2), (3, "ncclDevKernel_Generic(x)", None),
           (4, "ncclDevKernel_AllGather_RING_LL(x)", 3), capture_id=0, kind="kernel", duration_ns=1,
           start_ns=0)  # fmt: skip
    found = ask("SELECT name, collective FROM v1._collective_event ORDER BY event_id")
    assert [collective for _, collective in found] == ["allreduce", "alltoall", "other", "allgather"]
