"""Words in names by which the load tells events apart; each is declared here and nowhere else.

A fact goes by a name only where the recording does not say it otherwise: which of several calls launched GPU work,
which kernel the message of an operator belongs to, whether a call launches a graph. What a kernel is, its class, is a
judgement: ``sql/v1/classify`` makes it from the name, and a better rule there needs no second ingest.
"""

from __future__ import annotations

from collections.abc import Sequence

LAUNCHES = ("launch", "memcpy", "memset", "memfill")
"""In the names of calls that give the GPU work, in any case."""
COLLECTIVES = ("nccl", "rccl", "msccl")
"""In the names of kernels that belong to a library of collectives, in any case."""
GRAPH_LAUNCH = "GraphLaunch"
"""In the names of calls that launch a CUDA or HIP graph, in this case."""


def has_any(name: str, words: Sequence[str]) -> bool:
    """Whether a name holds any of the words, in any case."""
    small = name.lower()  # names are long, and a pattern takes a hundred times as long for one
    return any(word in small for word in words)


def pattern(words: Sequence[str]) -> str:
    """Return the regular expression for names that hold any of the words, in any case."""
    return "(?i)" + "|".join(words)
