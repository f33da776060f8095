"""Tests of opening databases: each command opens its own."""

from __future__ import annotations

import pytest

from support import held_databases


@pytest.fixture(autouse=True)
def nothing_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every command open its database anew."""
    held_databases.close()
    monkeypatch.setattr(held_databases, "MOST", 0)
