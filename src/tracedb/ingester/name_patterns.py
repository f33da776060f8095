"""Words in names by which ingest tells events apart; each is declared only here.

A name is used only where the recording has nothing better: which of several calls launched GPU work, which kernel an
operator's message belongs to, whether a call launches a graph. The class of a kernel is a judgement:
``sql/v1/classify`` derives it from the name, and a better rule there needs no second ingest.
"""

from __future__ import annotations

from collections.abc import Sequence

LAUNCHES = ("launch", "memcpy", "memset", "memfill")
"""In the names of calls that launch GPU work, ignoring case."""
COLLECTIVES = ("nccl", "rccl", "msccl")
"""In the names of kernels of collective libraries, ignoring case."""
GRAPH_LAUNCH = "GraphLaunch"
"""In the names of calls that launch a CUDA or HIP graph, case-sensitive."""

KERNEL_LAUNCH = "Launch(Cooperative)?Kernel"
"""Regular expression for the names of calls that launch a kernel, case-sensitive."""


def has_any(name: str, words: Sequence[str]) -> bool:
    """Whether a name contains any of the words, ignoring case."""
    small = name.lower()  # names are long, and a case-insensitive regex takes a hundred times as long
    return any(word in small for word in words)


def pattern(words: Sequence[str]) -> str:
    """Return the regular expression for names that contain any of the words, ignoring case."""
    return "(?i)" + "|".join(words)
