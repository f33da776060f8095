"""``v1.attention_split``: scores, softmax and values, with FLOPs from recorded shapes or from labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

QUERY = """SELECT part, instances, projected_avg_ns, kernel_avg_ns, matmul_avg_ns, shapes_from, flops, tflops,
    time_ratio, flops_ratio FROM {} WHERE rule = 'thread' ORDER BY part"""
B, H, S, D = 4, 12, 512, 64


def test_empty(ask: Ask) -> None:
    assert ask("FROM v1.attention_split") == []


def attention(insert: Insert, labels: dict[str, str] | None = None, shapes: bool = True) -> None:
    """Two rounds; the first is warm-up by its place."""
    insert("capture", "capture_id rank labels", (0, 3, labels or {}), source="nsys")
    names = ("computing attention scores", "computing_softmax", "final_matmul")
    insert("annotation", "annotation_id name start_ns",
           *((1 + 3 * turn + place, name, 100 * turn + 10 * place)
             for turn in range(2) for place, name in enumerate(names)),
           capture_id=0, style="push_pop", duration_ns=9, process_id=1, thread_id=1)  # fmt: skip
    insert("launch", "launch_id", (1,), capture_id=0, process_id=1, thread_id=1, name="x", start_ns=0, duration_ns=1)
    dims = (
        ("aten::bmm", f"[[{B * H}, {S}, {D}], [{B * H}, {D}, {S}]]"),
        ("aten::_softmax", f"[[{B}, {H}, {S}, {S}], [], []]"),
        ("aten::baddbmm", f"[[{S}], [{B * H}, {S}, {S}], [{B * H}, {S}, {D}]]"),
    )
    insert("op", "op_id name input_dims", *((place, *item) for place, item in enumerate(dims)),
           capture_id=0, start_ns=0, duration_ns=1)  # fmt: skip
    kernels = [("sgemm", 1000, 0), ("add", 1000, None), ("softmax_warp", 400, 1), ("sgemm", 1500, 2)]
    insert("kernel_event", "event_id name start_ns duration_ns op_id",
           *((turn * 4 + place, name, turn * 9000 + place * 1100, length * (1 if turn else 3), op if shapes else None)
             for turn in range(2) for place, (name, length, op) in enumerate(kernels)),
           capture_id=0, kind="kernel", launch_id=1)  # fmt: skip
    insert("annotation_kernel", "annotation_id event_id",
           *((1 + 3 * turn + max(place - 1, 0), turn * 4 + place) for turn in range(2) for place in range(4)),
           capture_id=0, rule="thread")  # fmt: skip


MATMUL, SOFTMAX = 2 * B * H * S * S * D, 5 * B * H * S * S


@pytest.mark.parametrize(
    ("labels", "shapes", "source"),
    [
        ({}, True, "operators"),
        ({"batch": "4", "heads": "12", "sequence": "512", "head_dim": "64"}, False, "labels"),
        ({"b": "4", "h": "12", "s": "512", "d": "64"}, False, "labels"),
        ({"b": "1", "h": "1", "s": "1", "d": "1"}, True, "operators"),
    ],
)
def test_flops(
    insert: Insert, ask: Ask, shuffled: Callable[[], None], labels: dict[str, str], shapes: bool, source: str
) -> None:
    attention(insert, labels, shapes)
    right = [
        ("scores", 1, 2100.0, 2000.0, 1000.0, source, MATMUL, pytest.approx(MATMUL / 2000 / 1000), 1.0, 1.0),
        ("softmax", 1, 400.0, 400.0, 0.0, source, SOFTMAX, pytest.approx(SOFTMAX / 400 / 1000), 0.2, 5 / 2 / D),
        ("value", 1, 1500.0, 1500.0, 1500.0, source, MATMUL, pytest.approx(MATMUL / 1500 / 1000), 0.75, 1.0),
    ]
    assert MATMUL == 1_610_612_736
    assert ask(QUERY.format("v1.attention_split")) == right
    shuffled()
    assert ask(QUERY.format("v1.attention_split")) == right


@pytest.mark.parametrize("labels", [{}, {"batch": "4", "heads": "many", "sequence": "512", "head_dim": "64"}])
def test_without_shapes_times_remain(insert: Insert, ask: Ask, labels: dict[str, str]) -> None:
    attention(insert, labels, shapes=False)
    columns = "part, kernel_avg_ns, flops, tflops, flops_ratio"
    assert ask(f"SELECT {columns} FROM v1.attention_split WHERE rule = 'thread' ORDER BY part") == [
        ("scores", 2000.0, None, None, None),
        ("softmax", 400.0, None, None, None),
        ("value", 1500.0, None, None, None),
    ]


def test_hooks(insert: Insert, report: Report) -> None:
    attention(insert)
    found = report("attention_split", '"rank", part, time_ratio', by={"rank": "{base}.rank"}, where={"e": "e.rank = 3"})
    assert [row for row in found if row[1] != "value"] == [(3, "scores", 1.0), (3, "softmax", 0.2)]
