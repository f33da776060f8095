"""The account of a file: what was met, what was left aside, what was mended. Nothing is lost without a line here."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

FIELD_UNREADABLE = "impossible values; the rows are kept without them"
MOST_PARTS = 8  # parts of an issue that are named


@dataclass
class Issue:
    """One line of ``ingest_issue``: how many events, how many of them gave no row, and what happened."""

    severity: str
    count: int = 0
    skipped: int = 0
    detail: str = ""
    parts: dict[str, int] = field(default_factory=dict)
    """The count by category or field, where those differ: so the text does not depend on which was met first."""

    @property
    def text(self) -> str:
        """The detail, with the parts."""
        if not self.parts:
            return self.detail
        named = [f"{count} {part}" for part, count in sorted(self.parts.items(), key=lambda item: (-item[1], item[0]))]
        more = [f"{len(named) - MOST_PARTS} more kinds"] if len(named) > MOST_PARTS else []
        return f"{self.detail}: {', '.join(named[:MOST_PARTS] + more)}"


@dataclass
class Account:
    """Issues by code; the sum of ``skipped`` is the number of events that gave no row."""

    issues: dict[str, Issue] = field(default_factory=dict)
    events_read: int = 0
    is_cut: bool = False
    is_repaired: bool = False

    def left_aside(self, code: str, count: int, detail: str) -> None:
        """Count events that by design give no row."""
        self._add("note", code, count, count, detail)

    def not_read(self, code: str, count: int, detail: str) -> None:
        """Count events that give no row because tracedb does not read them, though they may matter to the user."""
        self._add("warning", code, count, count, detail)

    def lost(self, code: str, count: int, detail: str, part: str = "") -> None:
        """Count events that give no row because the file is at fault."""
        self.is_repaired = self.is_repaired or count > 0
        self._add("warning", code, count, count, detail, part)

    def mended(self, code: str, count: int, detail: str, part: str = "") -> None:
        """Count events that give a row, though not exactly what the file says."""
        self.is_repaired = self.is_repaired or count > 0
        self._add("warning", code, count, 0, detail, part)

    def unreadable(self, name: str, count: int = 1) -> None:
        """Count values of a field that rows are kept without."""
        self.mended("field_unreadable", count, FIELD_UNREADABLE, name)

    def noted(self, code: str, count: int, detail: str) -> None:
        """Note something that no event is lost by."""
        self._add("note", code, count, 0, detail)

    def warned(self, code: str, count: int, detail: str, part: str = "") -> None:
        """Note a fault of the file as a whole."""
        self._add("warning", code, count, 0, detail, part)

    def merge(self, other: Account) -> None:
        """Add the account of a part of the file; ``events_read`` is the caller's business."""
        self.is_cut = self.is_cut or other.is_cut
        self.is_repaired = self.is_repaired or other.is_repaired
        for code, issue in other.issues.items():
            mine = self.issues.setdefault(code, Issue(issue.severity, detail=issue.detail))
            mine.count += issue.count
            mine.skipped += issue.skipped
            for part, count in issue.parts.items():
                mine.parts[part] = mine.parts.get(part, 0) + count

    def _add(self, severity: str, code: str, count: int, skipped: int, detail: str, part: str = "") -> None:
        if not count:
            return
        issue = self.issues.setdefault(code, Issue(severity, detail=detail))
        issue.count += count
        issue.skipped += skipped
        if part:
            issue.parts[part] = issue.parts.get(part, 0) + count

    @property
    def skipped(self) -> int:
        """Events that gave no row."""
        return sum(issue.skipped for issue in self.issues.values())

    def lost_among(self, categories: Container[str]) -> int:
        """Return how many events of some categories, or of none that could be read, the file's faults cost."""
        unknown = self.issues.get("event_unreadable")
        parts = [part for issue in self.issues.values() if issue.skipped for part in issue.parts.items()]
        return sum(count for part, count in parts if part in categories) + (unknown.skipped if unknown else 0)
