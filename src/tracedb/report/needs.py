"""The requirements of reports."""

from __future__ import annotations

from enum import StrEnum


class Needs(StrEnum):
    """What must have been captured for a report to have an answer; ``no_answer`` says why it is missing."""

    GPU = "gpu"
    """GPU activity of any kind."""
    KERNELS = "kernels"
    COPIES = "copies"
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
    OVERLAP = "overlap"
    """GEMMs that overlap collectives."""
    RANGES = "ranges"
    STEPS = "steps"
    """Steps with GPU work."""
    FLOPS = "flops"
    """Operators with their shapes, and the GPU work that they launched."""
    STEP_FLOPS = "step_flops"
    """Steps that hold such operators."""
    ATTENTION = "attention"
    """Ranges named after the parts of attention."""
    GAPS = "gaps"
    """Idle time between GPU events of a device."""
    MEMORY = "memory"
    """Allocations and releases of GPU memory."""
    COUNTERS = "counters"
    """Hardware counters."""
    SAMPLES = "samples"
    """Sampled operators."""
