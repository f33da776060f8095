"""``v1.module_time`` and ``v1.kernel_source``: whose GPU time it is, by Python frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

MAIN, BACKWARD = 1, 2
NODE = "autograd::engine::evaluate_function: "


@pytest.fixture
def rows(insert: Insert) -> None:
    """A linear layer inside a block: forward, loss, backward, the block again in backward, optimizer, a copy."""
    insert("capture", "capture_id rank", (1, 0), source="torch")
    frames = [
        # id, kind, name, parent, thread, start, duration, module path
        (1, "function", "train.py(5): main", None, MAIN, 0, 1000, None),
        (2, "module", "nn.Module: Block_0", 1, MAIN, 10, 80, "Block_0"),
        (
            3,
            "function",
            "net.py(7): forward",
            2,
            MAIN,
            10,
            79,
            "Block_0",
        ),  # starts with its caller, as clocks of µs have it
        (4, "module", "nn.Module: Linear_0", 3, MAIN, 20, 40, "Block_0.Linear_0"),
        (5, "function", "torch/nn/modules/linear.py(9): forward", 4, MAIN, 21, 30, "Block_0.Linear_0"),
        (6, "function", "<built-in function linear>", 5, MAIN, 22, 3, "Block_0.Linear_0"),
        (7, "function", "torch/optim/adam.py(2): step", 1, MAIN, 600, 50, None),
        (8, "module", "nn.Module: Block_0", None, BACKWARD, 405, 40, "Block_0"),
        (9, "function", "net.py(7): forward", 8, BACKWARD, 406, 30, "Block_0"),
    ]
    insert("frame", "frame_id kind name parent_id thread_id start_ns duration_ns module_path", *frames,
           capture_id=1, process_id=1)  # fmt: skip
    ops = [
        # id, name, parent, thread, start, duration, sequence, forward thread
        (10, "aten::arange", None, MAIN, 12, 2, 70, 0),  # makes no node, but records the number of the next
        (11, "aten::linear", None, MAIN, 23, 20, 70, 0),
        (12, "aten::t", 11, MAIN, 24, 2, 70, 0),
        (13, "aten::addmm", 11, MAIN, 30, 5, 71, 0),
        (14, "aten::relu", None, MAIN, 70, 5, 72, 0),
        (15, "aten::nll_loss", None, MAIN, 200, 5, 73, 0),
        (20, NODE + "NllLossBackward0", None, BACKWARD, 300, 20, 73, 1),
        (21, "aten::nll_loss_backward", 20, BACKWARD, 302, 5, None, None),
        (22, NODE + "ReluBackward0", None, BACKWARD, 330, 20, 72, 1),
        (23, "ReluBackward0", 22, BACKWARD, 331, 10, 72, 1),
        (24, "aten::threshold_backward", 23, BACKWARD, 332, 5, None, None),
        (25, NODE + "CheckpointBackward", None, BACKWARD, 400, 60, 99, 1),
        (26, "aten::relu", 25, BACKWARD, 410, 5, 90, 0),
        (27, NODE + "AddmmBackward0", None, BACKWARD, 470, 20, 71, 1),
        (28, "aten::mm", 27, BACKWARD, 472, 5, None, None),
        (30, "aten::_fused_adam_", None, MAIN, 610, 10, None, None),
    ]  # fmt: skip
    insert("op", "op_id name parent_op_id thread_id start_ns duration_ns sequence_number forward_thread_id", *ops,
           capture_id=1, process_id=1)  # fmt: skip
    insert("annotation", "annotation_id name start_ns duration_ns", (1, "Optimizer.step#Adam.step", 599, 52),
           capture_id=1, style="user", process_id=1, thread_id=MAIN)  # fmt: skip
    work = [(10, 1), (13, 100), (14, 10), (15, 4), (21, 3), (24, 20), (26, 11), (28, 200), (30, 50)]
    insert("kernel_event", "event_id op_id duration_ns", *((op, op, ns) for op, ns in work), (99, None, 7),
           capture_id=1, device_id=0, kind="kernel", name="k", start_ns=0)  # fmt: skip
    insert("kernel_event", "event_id op_id duration_ns", (100, 14, 1000),
           capture_id=1, device_id=0, kind="memcpy", name="Memcpy DtoD", start_ns=0)  # fmt: skip


def test_modules(rows: None, ask: Ask) -> None:
    """self_ns adds up to all kernel time; the same path forward, backward and again."""
    query = "SELECT path, depth, pass, calls, kernels, self_ns, total_ns FROM v1.module_time ORDER BY path, pass"
    assert ask(query) == [
        ("Block_0", 0, "backward", 2, 2, 20, 220),
        ("Block_0", 0, "forward", 2, 3, 11, 111),
        ("Block_0", 0, "recomputation", 2, 1, 11, 11),
        ("Block_0.Linear_0", 1, "backward", 1, 1, 200, 200),
        ("Block_0.Linear_0", 1, "forward", 1, 1, 100, 100),
        ("outside modules", 0, "optimizer", None, 1, 50, 50),
        ("outside modules", 0, "outside", None, 3, 14, 14),
    ]
    kernels = ask("SELECT sum(duration_ns) FROM main.kernel_event WHERE kind = 'kernel'")
    assert ask("SELECT sum(self_ns) FROM v1.module_time") == kernels
    assert ask("SELECT sum(share_percent) FROM v1.module_time WHERE depth = 0") == [(pytest.approx(100),)]


def test_names_that_fsdp_recorded(rows: None, insert: Insert, ask: Ask) -> None:
    """A range in the call of a module names it, unless the call has ended or two names claim one path."""
    insert("annotation", "annotation_id name start_ns", (2, "FSDP::pre_forward (layers.0)", 12),
           (3, "FSDP::pre_forward (layers.0.mlp)", 21), (4, "FSDP::post_forward (other)", 30),
           (5, "FSDP::pre_forward (nothing)", 500), (6, "FSDP::pre_forward (layers.0.lin)", 22),
           capture_id=1, style="user", process_id=1, thread_id=MAIN, duration_ns=1)  # fmt: skip
    assert ask("SELECT DISTINCT path, recorded_name FROM v1.module_time ORDER BY path") == [
        ("Block_0", "layers.0"),
        ("Block_0.Linear_0", None),
        ("outside modules", None),
    ]


def test_lines_of_the_user(rows: None, ask: Ask) -> None:
    query = (
        "SELECT source, stage, op_name, class, calls, total_ns, site_calls, site_ns FROM v1.kernel_source ORDER BY ALL"
    )
    forward, backward, main = "net.py(7): forward", "backward", "train.py(5): main"
    assert ask(query) == [
        (forward, backward, "aten::mm", "other", 1, 200, 2, 220),
        (forward, backward, "aten::threshold_backward", "other", 1, 20, 2, 220),
        (forward, "forward", "aten::addmm", "other", 1, 100, 4, 1111),
        (forward, "forward", "aten::arange", "other", 1, 1, 4, 1111),
        (forward, "forward", "aten::relu", "copy", 1, 1000, 4, 1111),
        (forward, "forward", "aten::relu", "other", 1, 10, 4, 1111),
        (forward, "recomputation", "aten::relu", "other", 1, 11, 1, 11),
        (main, backward, "aten::nll_loss_backward", "other", 1, 3, 1, 3),
        (main, "forward", "aten::_fused_adam_", "other", 1, 50, 2, 54),
        (main, "forward", "aten::nll_loss", "other", 1, 4, 2, 54),
        (None, "forward", None, "other", 1, 7, 1, 7),
    ]


def test_a_rule_says_whose_code_it_is(rows: None, insert: Insert, ask: Ask) -> None:
    insert("frame_rule", "priority pattern is_own", (1, "^net", False), (2, "^torch/nn", True))
    found = ask("SELECT DISTINCT source FROM v1.kernel_source WHERE op_name IN ('aten::mm', 'aten::relu') ORDER BY ALL")
    assert found == [("torch/nn/modules/linear.py(9): forward",), ("train.py(5): main",), (None,)]


def test_filters_and_groups(rows: None, report: Report) -> None:
    where = {"e": "e.event_id IN (13, 28)"}
    rank = {"rank": "{base}.rank"}
    assert report("module_time", '"rank", path, pass, total_ns', by=rank, where=where) == [
        (0, "Block_0", "backward", 200),
        (0, "Block_0", "forward", 100),
        (0, "Block_0.Linear_0", "backward", 200),
        (0, "Block_0.Linear_0", "forward", 100),
    ]
    assert report("kernel_source", '"rank", source, stage, site_share_percent', by=rank, where=where) == [
        (0, "net.py(7): forward", "backward", 100.0),
        (0, "net.py(7): forward", "forward", 100.0),
    ]
