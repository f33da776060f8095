"""The account of a capture: what was found in its files, and what gave no row. Nothing is lost without a line here.

Each line becomes a row of ``ingest_issue``. A reader calls the method that says what became of the events:

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
MOST_PARTS = 8  # parts of an issue that are named


@dataclass
class Issue:
    """One line: how many events, how many of them gave no row, and what happened."""

    severity: str
    count: int = 0
    skipped: int = 0
    details: dict[str, str] = field(default_factory=dict)
    """What happened, and where it did for the first time (empty where that does not matter)."""
    parts: dict[str, int] = field(default_factory=dict)
    """The count by category or field, where those differ; the text then does not depend on which came first."""

    @property
    def detail(self) -> str:
        """What happened, in words, without the parts."""
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

    Of a method's arguments ``detail`` says what happened; ``part`` names the category or field that was concerned, and
    ``place`` says where, of which only the first one is kept. Nothing is added for a ``count`` of 0.
    """

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

    def lost(self, code: str, count: int, detail: str, part: str = "", place: str = "") -> None:
        """Count events that give no row because the file is at fault."""
        self.is_repaired = self.is_repaired or count > 0
        self._add("warning", code, count, count, detail, part, place)

    def mended(self, code: str, count: int, detail: str, part: str = "", place: str = "") -> None:
        """Count events that give a row, though without or with other values than the file should have for them."""
        self.is_repaired = self.is_repaired or count > 0
        self._add("warning", code, count, 0, detail, part, place)

    def unreadable(self, name: str, count: int = 1) -> None:
        """Count values of a field that rows are kept without."""
        self.mended("field_unreadable", count, FIELD_UNREADABLE, name)

    def warned(self, code: str, count: int, detail: str, part: str = "") -> None:
        """Warn of something that may be wrong, by which no event is lost."""
        self._add("warning", code, count, 0, detail, part)

    def noted(self, code: str, count: int, detail: str) -> None:
        """Note something by which no event is lost."""
        self._add("note", code, count, 0, detail)

    def merge(self, other: Account) -> None:
        """Add the account of a part of the file; ``events_read`` is the caller's to add."""
        self.is_cut = self.is_cut or other.is_cut
        self.is_repaired = self.is_repaired or other.is_repaired
        for code, issue in other.issues.items():
            self.issues.setdefault(code, Issue(issue.severity)).add(issue)

    def clear(self) -> None:
        """Forget everything: the file is read again."""
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
        """Events that gave no row though they may have been GPU work: unreadable ones, and those of unknown kinds."""
        return sum(issue.skipped for issue in self.issues.values() if issue.severity == "warning")

    def lost_among(self, categories: Container[str]) -> int:
        """Return how many events of some categories, or of none that could be read, the file's faults cost."""
        unknown = self.issues.get("event_unreadable")
        parts = [part for issue in self.issues.values() if issue.skipped for part in issue.parts.items()]
        return sum(count for part, count in parts if part in categories) + (unknown.skipped if unknown else 0)
