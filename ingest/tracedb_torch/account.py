"""The account of a file: what was met, what was left aside, what was mended. Nothing is lost without a line here."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Issue:
    """One line of ``ingest_issue``: how many events, how many of them gave no row, and where it was first met."""

    severity: str
    count: int = 0
    skipped: int = 0
    detail: str = ""


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

    def lost(self, code: str, count: int, detail: str) -> None:
        """Count events that give no row because the file is at fault."""
        self.is_repaired = True
        self._add("warning", code, count, count, detail)

    def mended(self, code: str, count: int, detail: str) -> None:
        """Count events that give a row, though not exactly what the file says."""
        self.is_repaired = True
        self._add("warning", code, count, 0, detail)

    def noted(self, code: str, count: int, detail: str) -> None:
        """Note something that no event is lost by."""
        self._add("note", code, count, 0, detail)

    def warned(self, code: str, count: int, detail: str) -> None:
        """Note a fault of the file as a whole."""
        self._add("warning", code, count, 0, detail)

    def merge(self, other: Account) -> None:
        """Add the account of a part of the file; ``events_read`` is the caller's business."""
        self.is_cut = self.is_cut or other.is_cut
        self.is_repaired = self.is_repaired or other.is_repaired
        for code, issue in other.issues.items():
            mine = self.issues.setdefault(code, Issue(issue.severity, detail=issue.detail))
            mine.count += issue.count
            mine.skipped += issue.skipped

    def _add(self, severity: str, code: str, count: int, skipped: int, detail: str) -> None:
        if not count:
            return
        issue = self.issues.setdefault(code, Issue(severity, detail=detail))
        issue.count += count
        issue.skipped += skipped

    @property
    def skipped(self) -> int:
        """Events that gave no row."""
        return sum(issue.skipped for issue in self.issues.values())
