"""Locate the shipped ``sql/`` and ``schemas/``: inside a wheel, or next to ``src/`` in a checkout."""

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path


@cache  # a file of it is read two hundred times in each command
def folder(name: str) -> Traversable:
    """Return the folder ``name`` (``sql`` or ``schemas``) of this installation."""
    packaged = files("tracedb") / name
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / name


@cache  # used for every file that is loaded
def text(*parts: str) -> str:
    """Return the text of a shipped file, such as ``text("sql", "v1", "kernels.sql")``."""
    return folder(parts[0]).joinpath(*parts[1:]).read_text(encoding="utf-8")
