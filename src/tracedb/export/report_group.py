"""The reports of one capture, or of all together, in a folder of reports."""

from __future__ import annotations

from dataclasses import dataclass, field

from tracedb.report.filters import Filters


@dataclass
class Group:
    """A folder inside the folder of reports: its name, the captures it is about, the files and the missing answers."""

    folder: str
    about: str
    filters: Filters
    files: dict[str, str] = field(default_factory=dict)
    """Report → name of its file."""
    reasons: dict[str, list[str]] = field(default_factory=dict)
    """Why there is no answer → reports."""
