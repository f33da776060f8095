"""Integers that stand for what is not a number, so that columns of integers need no mask."""

from __future__ import annotations

NONE = -(1 << 63)
"""Stands for a missing value."""
BAD = NONE + 1
"""Stands for a recorded but unreadable value; ``Stage.put`` counts it."""
