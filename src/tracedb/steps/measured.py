"""The parts of a recorded step, for comparison with the predicted ones."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tracedb.errors import NotCaptured
from tracedb.steps import recorded
from tracedb.steps.composition import GRADIENT_LAYOUT
from tracedb.steps.configuration import Step
from tracedb.steps.recorded import Recorded

if TYPE_CHECKING:
    import duckdb

OTHER = "other"
BY_NAME = {
    "aten::native_layer_norm": "layernorm_fwd",
    "aten::native_layer_norm_backward": "layernorm_bwd",
    "aten::_fused_rms_norm": "RMSlayernorm_fwd",
    "aten::_fused_rms_norm_backward": "RMSlayernorm_bwd",
    "aten::_flash_attention_forward": "flash_atten_fwd",
    "aten::_flash_attention_backward": "flash_atten_bwd",
    "aten::gelu": "gelu_fwd",
    "aten::gelu_backward": "gelu_bwd",
    "aten::gather": "embedding_fwd",
    "aten::index_select": "embedding_fwd",
    "aten::embedding": "embedding_fwd",
    "aten::embedding_dense_backward": "embedding_bwd",
    "aten::arange": "embedding_bwd",
    "aten::_log_softmax": "parallel_cross_entropy_128_fwd",
    "aten::nll_loss_forward": "parallel_cross_entropy_128_fwd",
    "aten::nll_loss_backward": "parallel_cross_entropy_128_bwd",
    "aten::_log_softmax_backward_data": "parallel_cross_entropy_128_bwd",
}


def parts(connection: duckdb.DuckDBPyConnection, step: Step) -> dict[str, float]:
    """Return part → GPU time a step in ns, of the capture of the step's trace.

    Raises ``NotCaptured`` where the database does not hold that trace, or the trace no steps.
    """
    row = connection.execute(
        "SELECT capture_id FROM main.capture WHERE path = $name OR path LIKE '%/' || $name ORDER BY 1 LIMIT 1",
        {"name": step.trace},
    ).fetchone()
    if row is None:
        raise NotCaptured(f"step {step.name}: the database does not hold its trace {step.trace}; ingest it first")
    steps = connection.execute("SELECT count(*) FROM v1._step AS s WHERE s.capture_id = ?", [row[0]]).fetchone()
    if not steps or not steps[0]:
        raise NotCaptured(f"step {step.name}: its trace {step.trace} has no steps (ProfilerStep#N)")
    found: defaultdict[str, float] = defaultdict(float)
    for item in recorded.operators(connection, row[0]):
        found[_part(step, item)] += item.total_ns / steps[0]
    return dict(found)


def _part(step: Step, item: Recorded) -> str:
    if item.name.startswith("aten::_foreach_"):
        return "optimizer"
    if item.name in ("aten::mm", "aten::addmm") and (found := _linear(step, item)):
        return found
    tokens = (step.batch, step.length, step.dim)
    if item.name in ("aten::add", "aten::add_") and item.dims[:2] == (tokens, tokens):
        return "res_add_bwd" if item.is_backward else "res_add_fwd"
    if item.name == "aten::fill_" and item.is_backward:
        return "embedding_bwd" if item.dims[:1] == ((step.vocabulary, step.dim),) else "parallel_cross_entropy_128_bwd"
    if item.name in ("aten::cat", "aten::copy_") and item.is_backward:
        return f"{GRADIENT_LAYOUT}_bwd"
    if item.name == "aten::fill_":
        return "parallel_cross_entropy_128_bwd"  # the gradient of the loss itself, made before autograd starts
    return BY_NAME.get(item.name, OTHER)


def _linear(step: Step, item: Recorded) -> str | None:
    """Return which linear layer a matrix product belongs to: its output, or a gradient of its input or weight."""
    (rows, depth), (_, columns) = item.dims[-2:]
    tokens, dim, mp = step.batch * step.length, step.dim, step.mp
    widths = {
        "linear1": (dim, 3 * dim // mp),
        "linear2": (dim // mp, dim),
        "linear3": (dim, 4 * dim // mp),
        "linear4": (4 * dim // mp, dim),
        "linear_final": (dim, step.vocabulary // mp),
    }
    for name, (into, out) in widths.items():
        if not item.is_backward and (rows, depth, columns) == (tokens, into, out):
            return f"{name}_fwd"
        if item.is_backward and (rows, depth, columns) in ((out, tokens, into), (tokens, out, into)):
            return f"{name}_bwd"
    return None
