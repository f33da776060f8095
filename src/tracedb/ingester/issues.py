"""The account of a capture: what was found in its files, and which events gave no row. Nothing is lost silently.

Each line becomes a row of ``ingest_issue``. A reader calls the method for what happened to the events:

| method | severity | events gave no row | status ``repaired`` |
|---|---|---|---|
| ``left_aside`` | note | yes | no |
| ``not_read`` | warning | yes | no |
| ``lost`` | warning | yes | yes |
| ``mended``, ``unreadable`` | warning | no | yes |
| ``warned`` | warning | no | no |
| ``noted`` | note | no | no |
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

FIELD_UNREADABLE = "impossible values; the rows are kept without them"
MOST_PARTS = 8  # parts of an issue that are listed


@dataclass
class Issue:
    """One line: how many events, how many of them gave no row, and what happened."""

    severity: str
    count: int = 0
    skipped: int = 0
    details: dict[str, str] = field(default_factory=dict)
    """What happened, and where first (empty if that does not matter)."""
    parts: dict[str, int] = field(default_factory=dict)
    """The count by category or field, if these differ; keeps the text independent of which came first."""

    @property
    def detail(self) -> str:
        """What happened, without the parts."""
        return "; ".join(f"{what}, first at {place}" if place else what for what, place in self.details.items())

    @property
    def text(self) -> str:
        """The detail, with the parts: the largest first, at most ``MOST_PARTS``."""
        if not self.parts:
            return self.detail
        named = [f"{count} {part}" for part, count in sorted(self.parts.items(), key=lambda item: (-item[1], item[0]))]
        more = [f"{len(named) - MOST_PARTS} more kinds"] if len(named) > MOST_PARTS else []
        return f"{self.detail}: {', '.join(named[:MOST_PARTS] + more)}"

    def add(self, other: Issue) -> None:
        """Add counts, details and parts of another line of the same code."""
        self.count += other.count
        self.skipped += other.skipped
        for what, place in other.details.items():
            self.details.setdefault(what, place)
        for part, count in other.parts.items():
            self.parts[part] = self.parts.get(part, 0) + count


@dataclass
class Account:
    """Issues by code; the sum of ``skipped`` is the number of events that gave no row.

    ``detail`` says what happened; ``part`` names the category or field concerned; ``place`` says where, and only the
    first one is kept. Nothing is added for a ``count`` of 0.
    """

    issues: dict[str, Issue] = field(default_factory=dict)
    events_read: int = 0
    is_cut: bool = False
    is_repaired: bool = False

    def left_aside(self, code: str, count: int, detail: str) -> None:
        """Count events that by design give no row."""
        self._add("note", code, count, count, detail)

    def not_read(self, code: str, count: int, detail: str) -> None:
        """Count events that tracedb does not read, though they may matter to the user."""
        self._add("warning", code, count, count, detail)

    def lost(self, code: str, count: int, detail: str, part: str = "", place: str = "") -> None:
        """Count events that give no row because the file is faulty."""
        self.is_repaired = self.is_repaired or count > 0
        self._add("warning", code, count, count, detail, part, place)

    def mended(self, code: str, count: int, detail: str, part: str = "", place: str = "") -> None:
        """Count events that give a row, but with missing or changed values."""
        self.is_repaired = self.is_repaired or count > 0
        self._add("warning", code, count, 0, detail, part, place)

    def unreadable(self, name: str, count: int = 1) -> None:
        """Count unreadable values of a field; the rows are kept without them."""
        self.mended("field_unreadable", count, FIELD_UNREADABLE, name)

    def warned(self, code: str, count: int, detail: str, part: str = "") -> None:
        """Warn of a possible problem that loses no event."""
        self._add("warning", code, count, 0, detail, part)

    def noted(self, code: str, count: int, detail: str) -> None:
        """Note a fact that loses no event."""
        self._add("note", code, count, 0, detail)

    def merge(self, other: Account) -> None:
        """Add the account of a part of the file; the caller adds ``events_read``."""
        self.is_cut = self.is_cut or other.is_cut
        self.is_repaired = self.is_repaired or other.is_repaired
        for code, issue in other.issues.items():
            self.issues.setdefault(code, Issue(issue.severity)).add(issue)

    def clear(self) -> None:
        """Reset: the file is read again."""
        self.issues.clear()
        self.events_read = 0
        self.is_cut = self.is_repaired = False

    def _add(
        self, severity: str, code: str, count: int, skipped: int, detail: str, part: str = "", place: str = ""
    ) -> None:
        if not count:
            return
        issue = self.issues.setdefault(code, Issue(severity))
        issue.count += count
        issue.skipped += skipped
        issue.details.setdefault(detail, place)
        if part:
            issue.parts[part] = issue.parts.get(part, 0) + count

    @property
    def skipped(self) -> int:
        """Events that gave no row."""
        return sum(issue.skipped for issue in self.issues.values())

    @property
    def lost_events(self) -> int:
        """Events without a row that may have been GPU work: unreadable ones, and those of unknown kinds."""
        return sum(issue.skipped for issue in self.issues.values() if issue.severity == "warning")

    def lost_among(self, categories: Container[str]) -> int:
        """Return how many events of some categories, or of unreadable ones, were lost to faults of the file."""
        unknown = self.issues.get("event_unreadable")
        parts = [part for issue in self.issues.values() if issue.skipped for part in issue.parts.items()]
        return sum(count for part, count in parts if part in categories) + (unknown.skipped if unknown else 0)
