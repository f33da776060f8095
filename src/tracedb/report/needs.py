"""The requirements of reports."""

from __future__ import annotations

from enum import StrEnum


class Needs(StrEnum):
    """What must have been captured for a report to have an answer; ``no_answer`` says why it is missing."""

    GPU = "gpu"
    """GPU activity of any kind."""
    PATHS = "paths"
    """Critical paths, which are found at load."""
    KERNELS = "kernels"
    COPIES = "copies"
    COPY_SIZES = "copy_sizes"
    """Copies or memsets with the number of bytes."""
    CALLS = "calls"
    """API calls; their times need no GPU activity."""
    LAUNCHES = "launches"
    """Kernels with the calls that launched them."""
    GEMMS = "gemms"
    SPREADS = "spreads"
    """GEMMs called twice or more by captures that differ in a label or the rank."""
    COLLECTIVES = "collectives"
    MATCHES = "matches"
    """Collectives matched over two ranks or more."""
    MESSAGES = "messages"
    """Sends matched with their receives."""
    ALL_TO_ALLS = "all_to_alls"
    PIPELINES = "pipelines"
    """Ranks that pass messages on as the stages of a pipeline do."""
    OVERLAP = "overlap"
    """GEMMs that overlap collectives."""
    RANGES = "ranges"
    STEPS = "steps"
    """Steps with GPU work."""
    FLOPS = "flops"
    """Operators with their shapes, and the GPU work that they launched."""
    SHAPES = "shapes"
    """Operators with their shapes, and the GPU work that they launched, with or without a formula."""
    PREDICTIONS = "predictions"
    """Operators with a predicted time."""
    STEP_FLOPS = "step_flops"
    """Steps that hold such operators."""
    ATTENTION = "attention"
    """Ranges named after the parts of attention."""
    GRAPHS = "graphs"
    """GPU events that CUDA or HIP graphs replayed."""
    GAPS = "gaps"
    """Idle time between GPU events of a device."""
    MODULES = "modules"
    """Calls of nn.Modules around launching operators."""
    STACKS = "stacks"
    """Python frames around launching operators."""
    MEMORY = "memory"
    """Allocations and releases of GPU memory."""
    COUNTERS = "counters"
    """Hardware counters."""
    SCENARIOS = "scenarios"
    """Changes that `tracedb whatif --store` timed."""
    REPLAY = "replay"
    """Operators that `tracedb replay` ran again."""
    SAMPLES = "samples"
    """Sampled operators."""
    MEASURES = "measures"
    """Times measured outside of traces, and ranges of their names."""


TABLES: dict[Needs, str] = {
    Needs.PATHS: "critical_segment",
    Needs.CALLS: "launch",
    Needs.LAUNCHES: "launch",
    Needs.RANGES: "annotation",
    Needs.STEPS: "annotation",
    Needs.FLOPS: "op",
    Needs.SHAPES: "op",
    Needs.PREDICTIONS: "expected_time",
    Needs.STEP_FLOPS: "annotation",
    Needs.MODULES: "frame",
    Needs.STACKS: "frame",
    Needs.MEMORY: "memory_event",
    Needs.COUNTERS: "counter",
    Needs.SCENARIOS: "whatif",
    Needs.REPLAY: "replay",
    Needs.MEASURES: "measure",
}
"""Tables without whose rows a report has no answer. An empty one is found at once, whereas the view may take minutes to
read millions of kernels before it comes to the same answer."""


def _distinct(table: str, column: str, words: str) -> str:
    """Return the query of the distinct texts of a column that name an all-to-all; ``words`` is what is read of a text.

    The condition hangs on an aggregate: DuckDB would judge the text of each of millions of rows otherwise.
    """
    return f"""SELECT t.{column} FROM main.{table} AS t GROUP BY t.{column}
        HAVING CASE WHEN count(*) > 0
            THEN {{version}}._collective_spelt(replace(replace(lower({words}), '_', ''), ' ', '')) END = 'alltoall'"""


_MESSAGES = """SELECT m.collective FROM main.collective_call AS m GROUP BY m.collective
        HAVING CASE WHEN count(*) > 0 THEN lower(m.collective) END IN ('send', 'isend', 'recv', 'irecv')
    UNION ALL SELECT o.name FROM main.op AS o WHERE o.name IN ('c10d::send', 'c10d::recv_')"""
NAMES: dict[Needs, str] = {
    Needs.ALL_TO_ALLS: " UNION ALL ".join(
        [
            _distinct("kernel_event", "collective", "t.collective"),
            _distinct("kernel_event", "name", "regexp_extract(t.name, '^(?:void )?([^(<]*)', 1)"),
            _distinct("op", "name", "t.name"),
        ]
    ),
    Needs.MESSAGES: _MESSAGES,
    Needs.PIPELINES: _MESSAGES,
}
"""Queries of names without which a report has no answer; ``{version}`` is that of the views.

Views read millions of kernels before they come to the same answer.
"""
