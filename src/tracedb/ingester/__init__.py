"""The interface of a trace source, and the registry of installed sources."""

from tracedb.ingester.protocol import (
    Begun,
    Capture,
    Described,
    Eager,
    Ingester,
    Options,
    ReadAgain,
    Rows,
    Thorough,
    Weighed,
)
from tracedb.ingester.registry import Registered, descriptions, load, registered

__all__ = [
    "Begun",
    "Capture",
    "Described",
    "Eager",
    "Ingester",
    "Options",
    "ReadAgain",
    "Registered",
    "Rows",
    "Thorough",
    "Weighed",
    "descriptions",
    "load",
    "registered",
]
