"""Fixtures of the tests of nsys exports."""

from __future__ import annotations

from support.few_views import only_few_views

__all__ = ["only_few_views"]
