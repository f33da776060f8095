"""Rules of linking that hold however it is done, in SQL or in numpy."""

from __future__ import annotations

import re
from typing import NamedTuple

from tracedb.ingester import name_patterns
from tracedb.ingester.issues import Account
from tracedb_torch.header import Header

MICROSECOND_SLACK_NS = 2000  # whole microseconds: start and end are each cut down by up to one
COPY_KIND = "(?i)([hdp])to([hdp])"
BY_WORK_ITEMS = "hipExtModuleLaunchKernel"
"""The call that takes the global size in work-items; every other takes the number of workgroups."""
MOST_THREADS = 1024  # in a workgroup
LONG_NAME = 4096
"""Bytes of a name that DuckDB takes into no dictionary.

A row group that holds one has all its names written out, which takes ten times as long to group by: kernels of such
names come last, in row groups of their own.
"""


def is_launch(call: str) -> bool:
    """Tell by the name of a call whether it gives the GPU work."""
    return name_patterns.has_any(call, name_patterns.LAUNCHES)


def is_collective(kernel: str) -> bool:
    """Tell by the name of a kernel whether it is a collective."""
    return name_patterns.has_any(kernel, name_patterns.COLLECTIVES)


def is_long(kernel: str) -> bool:
    """Tell whether a row group that holds such a name has no dictionary."""
    return len(kernel.encode()) >= LONG_NAME


def copy_kind(copy: str) -> str:
    """Return the direction of a copy as its name spells it; nothing where it does not."""
    found = re.search(COPY_KIND, copy)
    return found[0] if found else ""


class Rules(NamedTuple):
    """What links depend on beside the rows."""

    is_whole_microseconds: bool
    is_amd: bool

    @property
    def slack_ns(self) -> int:
        """By how much the end of an operator may have been cut."""
        return MICROSECOND_SLACK_NS if self.is_whole_microseconds else 0


def rules_of(header: Header, has_fractions: bool) -> Rules:
    """Return the rules for a trace."""
    return Rules(not has_fractions and header.base_ns is None, header.is_amd)


class Seen(NamedTuple):
    """What was seen of a process's GPU rows."""

    rows: int
    first_ns: int | None
    devices: list[int]


def note_ids(account: Account, same: int) -> None:
    """Note that External id is none in so many GPU rows."""
    account.noted(
        "external_id_is_correlation", same, "External id is the correlation id; operators found by time on the thread"
    )


def note_grids(account: Account, sized: int) -> None:
    """Note that sizes of so many GPU rows were swapped."""
    account.noted("grid_swapped", sized, "grid held the workgroup size, block the global size; put right")
