"""A small training step on an H100, for tests."""

from __future__ import annotations

from typing import Any

from tracedb.training_step.configuration import Step

GPU = "NVIDIA H100 80GB HBM3"
SMALL: dict[str, Any] = {
    "config": 7, "layers": 4, "dim": 2048, "heads": 16, "seq": 1024, "batch": 4, "vocab": 50_304,
    "dtype": "bf16", "gpu": GPU,
}  # fmt: skip


def step(**change: Any) -> Step:
    """Return a small step."""
    given = {
        "name": "s",
        "gpu": GPU,
        "dtype": "bf16",
        "layers": 4,
        "dim": 2048,
        "heads": 16,
        "length": 1024,
        "batch": 4,
    }
    return Step(**{**given, **change})
