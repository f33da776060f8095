"""Parts in machine code that an installation may lack: libraries built of an ingester's C sources, a driver's wheel.

Nothing depends on them but speed. ``TRACEDB_READER=python`` in the environment asks for the readers without the former.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

CHOICE = "TRACEDB_READER"
Function = tuple[str, Any, tuple[Any, ...]]
"""A function of a library: its name, what it returns, what it takes, as ctypes has them."""


def library(path: Path, interface: tuple[str, int], functions: tuple[Function, ...]) -> ctypes.CDLL | None:
    """Return the library of a path; None where there is none that fits, or the environment asks for Python.

    ``interface``: the function that says which interface the library was built with, and which is expected.
    """
    return None if os.environ.get(CHOICE) == "python" else _load(path, interface, functions)


def state(path: Path, is_used: bool, instead: str) -> str:
    """Say in words whether the library of a path is in use, and why not; ``instead``: what reads without it."""
    if is_used:
        return "compiled"
    if os.environ.get(CHOICE) == "python":
        return f"{instead} ({CHOICE}=python)"
    if path.exists():
        return f"{instead} (the compiled one does not fit this machine or this tracedb; install tracedb again)"
    return f"{instead} (the compiled one was not built; install tracedb again where there is a C compiler)"


@cache
def _load(path: Path, interface: tuple[str, int], functions: tuple[Function, ...]) -> ctypes.CDLL | None:
    if not path.exists():
        return None
    try:
        found = ctypes.CDLL(str(path))
        if getattr(found, interface[0])() != interface[1]:
            return None
        for name, result, arguments in functions:
            function = getattr(found, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError):  # built for another machine, or something else of this name
        return None
    return found
