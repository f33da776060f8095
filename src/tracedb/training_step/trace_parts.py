"""The parts of a recorded step, for comparison with the predicted ones.

Only the part of a collective that no computation hides counts: its transfer under its own name, the rest as waiting for
other ranks. Barriers belong to the recording and do not count.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tracedb.errors import NotCaptured
from tracedb.training_step import trace_operators
from tracedb.training_step.composition import (
    EXPERT_COPIES,
    GRADIENT_COPIES,
    GRADIENT_LAYOUT,
    PIPELINE,
    SHARD_COPIES,
    SHARD_COPIES_IN,
)
from tracedb.training_step.configuration import Step
from tracedb.training_step.trace_operators import Recorded

if TYPE_CHECKING:
    import duckdb

OTHER = "other"
WAITING = "collective_wait"
ROTATION = ("aten::mul", "aten::neg", "aten::cat", "aten::add", "aten::add_")
EXPOSED = """
WITH members AS (
    SELECT
        m.event_id, m.collective, m.message_elements, e.start_ns, e.start_ns + m.duration_ns AS end_ns,
        CASE WHEN m.ranks > 1 THEN m.latency_ns END AS latency_ns,
        e.group_name IS NULL
            OR count(DISTINCT m.message_elements) OVER (PARTITION BY e.group_name) = 1 AS is_of_one_size,
        max(e.start_ns + m.duration_ns) OVER (
            ORDER BY e.start_ns, e.event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reach_ns
    FROM v1._collective_member AS m
    INNER JOIN main.kernel_event AS e ON e.capture_id = m.capture_id AND e.event_id = m.event_id
    WHERE m.capture_id = $capture AND m.collective <> 'barrier'
),
-- Collectives of several streams run beside each other: a moment counts for the one that began first.
calls AS (
    SELECT
        m.event_id, m.collective, m.message_elements, m.latency_ns, m.is_of_one_size,
        greatest(m.start_ns, coalesce(m.reach_ns, m.start_ns)) AS start_ns,
        greatest(m.end_ns - greatest(m.start_ns, coalesce(m.reach_ns, m.start_ns)), 0) AS duration_ns
    FROM members AS m
),
kernels AS (
    SELECT
        e.start_ns,
        e.start_ns + e.duration_ns AS end_ns,
        max(e.start_ns + e.duration_ns) OVER (
            ORDER BY e.start_ns, e.event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reach_ns
    FROM main.kernel_event AS e
    WHERE
        e.capture_id = $capture AND e.kind = 'kernel' AND e.time_fault IS NULL
        AND e.event_id NOT IN (SELECT c.event_id FROM v1._collective_event AS c WHERE c.capture_id = $capture)
),
-- What each adds to the union: kernels of several streams hide a moment once.
computing AS (
    SELECT greatest(k.start_ns, coalesce(k.reach_ns, k.start_ns)) AS start_ns, k.end_ns
    FROM kernels AS k
    WHERE k.end_ns > coalesce(k.reach_ns, k.start_ns)
),
hidden AS (
    SELECT c.event_id, sum(least(c.start_ns + c.duration_ns, k.end_ns) - greatest(c.start_ns, k.start_ns)) AS hidden_ns
    FROM calls AS c
    INNER JOIN computing AS k ON k.start_ns < c.start_ns + c.duration_ns AND k.end_ns > c.start_ns
    GROUP BY c.event_id
),
exposed AS (
    SELECT
        c.collective, c.message_elements, c.latency_ns, c.is_of_one_size,
        greatest(c.duration_ns - coalesce(h.hidden_ns, 0), 0) AS exposed_ns
    FROM calls AS c
    LEFT JOIN hidden AS h ON h.event_id = c.event_id
)
SELECT
    x.collective, x.message_elements, x.is_of_one_size,
    sum(least(x.exposed_ns, coalesce(x.latency_ns, x.exposed_ns)))::BIGINT,
    sum(x.exposed_ns)::BIGINT
FROM exposed AS x
GROUP BY ALL
ORDER BY ALL
"""
SHARDING = ("aten::split_with_sizes_copy", "aten::_chunk_cat")
"""Operators that move weights and gradients between tensors and shards."""
EXPERTS = (
    *("aten::topk", "aten::_softmax", "aten::_softmax_backward_data", "aten::sort", "aten::argsort", "aten::bmm"),
    *("aten::index", "aten::index_add", "aten::index_add_", "aten::index_put_", "aten::floor_divide"),
    *("aten::scatter", "aten::scatter_", "aten::gelu", "aten::gelu_backward", "aten::div"),
)
"""Operators of experts alone, in a layer that has them."""
POINTWISE = (
    *("aten::mul", "aten::sum", "aten::fill_", "aten::zero_", "aten::copy_", "aten::add", "aten::add_"),
    *("aten::div_", "aten::remainder"),
)
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
    """Return part → GPU time per step in ns, for the capture of the step's trace.

    Raises ``NotCaptured`` if the database does not hold that trace, or the trace has no steps.
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
    for item in trace_operators.operators(connection, row[0], collectives=False):
        found[_part(step, item)] += item.total_ns / steps[0]
    for collective, elements, is_of_one_size, transfer, exposed in connection.execute(
        EXPOSED, {"capture": row[0]}
    ).fetchall():
        name = _collective(step, collective, elements if is_of_one_size else None)
        if name == PIPELINE:
            found[name] += exposed / steps[0]
        else:
            found[name] += transfer / steps[0]
            found[WAITING] += (exposed - transfer) / steps[0]
    return dict(found)


def _collective(step: Step, collective: str, elements: int | None) -> str:
    """Return the part that a collective belongs to: activations over split products, gradients over replicas.

    A gradient may have as many elements as an activation, but those of one group have several sizes; ``elements`` is
    None for a group of several.
    """
    if collective == "allreduce":
        activations = elements == step.batch * step.length * step.dim
        return "mp_allreduce" if step.mp > 1 and (activations or step.dp == 1) else "dp_allreduce"
    if step.fsdp and collective in ("allgather", "reduce_scatter"):
        return {"allgather": "fsdp_allgather", "reduce_scatter": "fsdp_reducescatter"}[collective]
    if step.ep > 1 and collective in ("alltoall", "sendrecv"):
        return "ep_alltoall"  # NCCL swaps by sends and receives
    return {"allgather": "dp_allgather", "reduce_scatter": "dp_allreduce", "sendrecv": PIPELINE}.get(collective, OTHER)


def _part(step: Step, item: Recorded) -> str:
    if step.fsdp and item.name == "aten::_foreach_copy_":
        return SHARD_COPIES_IN
    if step.fsdp and item.name in SHARDING:
        return SHARD_COPIES
    if item.name.startswith("aten::_foreach_") or item.name.startswith("aten::_fused_adam"):
        return "optimizer"
    if "moe" in step.layer and (found := _of_experts(step, item)):
        return found
    if item.name == "aten::sum" and item.is_backward and len(item.dims[0]) == 5:
        return "flash_atten_bwd"  # the gradients of heads that share a key or a value
    if _is_swiglu(step, item):
        return "swiglu_bwd" if item.is_backward else "swiglu_fwd"
    if item.name in ("aten::mm", "aten::addmm") and (found := _linear(step, item)):
        return found
    tokens = (step.batch, step.length, step.dim)
    if item.name in ("aten::add", "aten::add_") and item.dims[:2] == (tokens, tokens):
        return "res_add_bwd" if item.is_backward else "res_add_fwd"
    if item.name in ("aten::add_", "aten::mul") and item.is_backward and item.dims[:1] in _weights(step):
        return GRADIENT_COPIES
    if item.name == "aten::fill_" and item.is_backward:
        return "embedding_bwd" if item.dims[:1] == ((step.vocabulary, step.dim),) else "parallel_cross_entropy_128_bwd"
    if _is_rotation(step, item):
        return "RoPE_bwd" if item.is_backward else "RoPE_fwd"
    if item.name in ("aten::cat", "aten::copy_") and item.is_backward:
        return f"{GRADIENT_LAYOUT}_bwd"
    if item.name == "aten::fill_":
        return "parallel_cross_entropy_128_bwd"  # the gradient of the loss itself, computed before autograd starts
    return BY_NAME.get(item.name, OTHER)


def _is_swiglu(step: Step, item: Recorded) -> bool:
    """Whether an operator is SiLU, or a product of two tensors of the MLP's inner width."""
    if "swiglu" not in step.layer or item.name not in ("aten::silu", "aten::silu_backward", "aten::mul"):
        return False
    size = (step.batch, step.length, step.inner // step.mp)
    return item.name != "aten::mul" or item.dims[:2] == (size, size)


def _of_experts(step: Step, item: Recorded) -> str | None:
    """Return the part of an operator between the norm and the residual connection of a layer with experts."""
    tokens, dim, chosen = step.batch * step.length, step.dim, step.batch * step.length * step.top_k
    suffix = "bwd" if item.is_backward else "fwd"
    if item.name in EXPERTS or item.name.startswith("aten::_index_put"):
        return f"moe_{suffix}"
    first = item.dims[0] if item.dims else ()
    if item.name in ("aten::copy_", "aten::clone") and len(first) == 4 and first[-1] == dim and step.ep > 1:
        return EXPERT_COPIES
    if item.name in ("aten::mm", "aten::addmm") and step.experts in (n for size in item.dims for n in size):
        return f"moe_{suffix}"  # the router
    routed = first[:1] in ((chosen,), (2 * chosen,)) or step.experts in first[-1:] or first == (tokens, dim)
    return f"moe_{suffix}" if routed and item.name in POINTWISE else None


def _is_rotation(step: Step, item: Recorded) -> bool:
    """Whether an operator is a part of a rotary embedding: it works on heads, or on the halves of their width."""
    if "RoPE" not in step.layer or item.name not in ROTATION or not item.dims or len(item.dims[0]) != 4:
        return False
    head = step.dim // step.heads
    batch, first, second, width = item.dims[0]
    heads = {step.heads // step.mp, step.shared_heads // step.mp}
    return (
        batch == step.batch
        and step.length in (first, second)
        and bool({first, second} & heads)
        and width in (head, head // 2)
    )


def _widths(step: Step) -> dict[str, tuple[int, int]]:
    """Return linear layer → features in and out."""
    dim, mp = step.dim, step.mp
    projected = (step.heads + 2 * step.shared_heads) * dim // step.heads
    return {
        "linear1": (dim, projected // mp),
        "linear2": (dim // mp, dim),
        "linear3": (dim, step.inner // mp),
        "linear4": (step.inner // mp, dim),
        "linear_final": (dim, step.vocabulary // mp),
    }


def _weights(step: Step) -> set[tuple[tuple[int, ...], ...]]:
    """Return the shapes of weights, as the first input of an operator."""
    return {((out, into),) for into, out in _widths(step).values()} | {((step.dim,),)}


def _linear(step: Step, item: Recorded) -> str | None:
    """Return which linear layer a matrix product belongs to: its output, or a gradient of its input or weight."""
    (rows, depth), (_, columns) = item.dims[-2:]
    tokens = step.batch * step.length
    for name, (into, out) in _widths(step).items():
        if not item.is_backward and (rows, depth, columns) == (tokens, into, out):
            return f"{name}_fwd"
        if item.is_backward and (rows, depth, columns) in ((out, tokens, into), (tokens, out, into)):
            return f"{name}_bwd"
    return None
