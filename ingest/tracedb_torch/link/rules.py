"""Linking rules shared by the SQL and the numpy linker."""

from __future__ import annotations

import re
from typing import NamedTuple

from tracedb.ingester import name_patterns
from tracedb.ingester.issues import Account
from tracedb_torch.header import Header

MICROSECOND_SLACK_NS = 2000  # with whole microseconds, start and end are each truncated by up to one
COPY_KIND = "(?i)([hdp])to([hdp])"
BY_WORK_ITEMS = "hipExtModuleLaunchKernel"
"""The one call that takes the global size in work-items; all others take the number of workgroups."""
MOST_THREADS = 1024  # in a workgroup
LONG_NAME = 4096
"""Name length in bytes above which DuckDB uses no dictionary.

A row group with such a name stores all names in full, which makes grouping by name ten times slower. Kernels with such
names therefore come last, in row groups of their own.
"""


def is_launch(call: str) -> bool:
    """Whether an API call launches GPU work, by its name."""
    return name_patterns.has_any(call, name_patterns.LAUNCHES)


def is_collective(kernel: str) -> bool:
    """Whether a kernel is a collective, by its name."""
    return name_patterns.has_any(kernel, name_patterns.COLLECTIVES)


def is_long(kernel: str) -> bool:
    """Whether a row group that holds this name has no dictionary."""
    return len(kernel.encode()) >= LONG_NAME


def copy_kind(copy: str) -> str:
    """Return the direction of a copy as spelled in its name; empty if it names none."""
    found = re.search(COPY_KIND, copy)
    return found[0] if found else ""


class Rules(NamedTuple):
    """What links depend on besides the rows."""

    is_whole_microseconds: bool
    is_amd: bool

    @property
    def slack_ns(self) -> int:
        """The most by which an operator's end may have been truncated."""
        return MICROSECOND_SLACK_NS if self.is_whole_microseconds else 0


def rules_of(header: Header, has_fractions: bool) -> Rules:
    """Return the rules for a trace."""
    return Rules(not has_fractions and header.base_ns is None, header.is_amd)


class Seen(NamedTuple):
    """Statistics of a process's GPU rows."""

    rows: int
    first_ns: int | None
    devices: list[int]


def note_ids(account: Account, same: int) -> None:
    """Note that External id is invalid in ``same`` GPU rows."""
    account.noted(
        "external_id_is_correlation", same, "External id is the correlation id; operators were found by time and thread"
    )


def note_grids(account: Account, sized: int) -> None:
    """Note that sizes of ``sized`` GPU rows were swapped."""
    account.noted("grid_swapped", sized, "grid held the workgroup size and block the global size; corrected")
