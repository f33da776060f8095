"""A tracedb that ships few views, for tests of how views are installed: creating all of them takes seconds."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from tracedb.report import registry
from tracedb.storage import views

ROOT = Path(__file__).resolve().parents[2]
READERS = ("sql/derive/*.sql", "src/tracedb/derive/*.py", "src/tracedb/report/*.py")
"""What reads views in an ingest and in every report."""


@contextmanager
def shipped(cache_home: Path) -> Iterator[None]:
    """Ship only ``top_kernels`` and the views that an ingest reads; ``cache_home``: folder for their template."""
    registry.every()  # kept for the whole process
    few = _few()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CACHE_HOME", str(cache_home))
        patched.setattr(views, "_shipped", lambda version: few)
        yield


@pytest.fixture
def only_few_views() -> Iterator[None]:
    """Ship few views to a test of what is loaded: opening and closing a file with all takes a third of its time."""
    with shipped(Path(os.environ["XDG_CACHE_HOME"], "few")):
        yield


@cache
def _few() -> tuple[views.View, ...]:
    every = {view.name: view for view in views.shipped()}
    texts = [path.read_text(encoding="utf-8") for pattern in READERS for path in ROOT.glob(pattern)]
    left = {"top_kernels"} | {name for text in texts for name in re.findall(r"\bv1\.(_\w+)", text)} & every.keys()
    found: set[str] = set()
    while left:
        name = left.pop()
        found.add(name)
        left |= every[name].needs - found
    return tuple(every[name] for name in sorted(found))
