"""Optional native parts of an installation: libraries built from an ingester's C sources, and driver wheels.

Only speed depends on them. ``TRACEDB_READER=python`` in the environment disables the C libraries.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

CHOICE = "TRACEDB_READER"
Function = tuple[str, Any, tuple[Any, ...]]
"""A function of a library: name, return type and argument types, as in ctypes."""


def library(path: Path, interface: tuple[str, int], functions: tuple[Function, ...]) -> ctypes.CDLL | None:
    """Load the library at a path; None if it is missing or does not fit, or if the environment asks for Python.

    ``interface``: the function that returns the library's interface version, and the expected version.
    """
    return None if os.environ.get(CHOICE) == "python" else _load(path, interface, functions)


def state(path: Path, is_used: bool, instead: str) -> str:
    """Say whether the library at a path is in use, and if not, why; ``instead``: the reader used without it."""
    if is_used:
        return "compiled"
    if os.environ.get(CHOICE) == "python":
        return f"{instead} ({CHOICE}=python)"
    if path.exists():
        return f"{instead} (the compiled one does not fit this machine or this tracedb; install tracedb again)"
    return f"{instead} (the compiled one was not built; install tracedb again with a C compiler)"


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
    except (OSError, AttributeError):  # built for another machine, or another library of this name
        return None
    return found
