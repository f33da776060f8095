"""The account of a recording: what was met and what gave no row. Nothing is lost without a line here."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa


@dataclass
class Issue:
    """One line of ``ingest_issue``: how many events of the recording, and how many of them gave no row."""

    severity: str
    count: int = 0
    skipped: int = 0
    detail: str = ""


@dataclass
class Account:
    """Issues by code; the sum of ``skipped`` is the number of events that gave no row."""

    issues: dict[str, Issue] = field(default_factory=dict)
    is_repaired: bool = False

    def left_aside(self, code: str, count: int, detail: str) -> None:
        """Count events that by design give no row."""
        self._add("note", code, count, count, detail)

    def lost(self, code: str, count: int, detail: str) -> None:
        """Count events that give no row because the file is at fault."""
        self.is_repaired = self.is_repaired or count > 0
        self._add("warning", code, count, count, detail)

    def mended(self, code: str, count: int, detail: str) -> None:
        """Count events that are there without something that could not be read."""
        self.is_repaired = self.is_repaired or count > 0
        self._add("warning", code, count, 0, detail)

    def warned(self, code: str, count: int, detail: str) -> None:
        """Warn of something that no event is lost by."""
        self._add("warning", code, count, 0, detail)

    def noted(self, code: str, count: int, detail: str) -> None:
        """Note something that no event is lost by."""
        self._add("note", code, count, 0, detail)

    def _add(self, severity: str, code: str, count: int, skipped: int, detail: str) -> None:
        if not count:
            return
        issue = self.issues.setdefault(code, Issue(severity, detail=detail))
        issue.count += count
        issue.skipped += skipped
        if detail not in issue.detail:
            issue.detail += f"; {detail}"

    @property
    def skipped(self) -> int:
        """Events that gave no row."""
        return sum(issue.skipped for issue in self.issues.values())

    @property
    def lost_events(self) -> int:
        """Events that gave no row though they may have been kernels: unreadable ones, and those of unknown kinds."""
        return sum(issue.skipped for issue in self.issues.values() if issue.severity == "warning")

    def table(self) -> pa.Table:
        """Return the lines as rows of ``ingest_issue``."""
        issues = list(self.issues.items())
        return pa.table(
            {
                "code": pa.array([code for code, _ in issues], pa.string()),
                "severity": pa.array([issue.severity for _, issue in issues], pa.string()),
                "count": pa.array([issue.count for _, issue in issues], pa.int64()),
                "skipped": pa.array([issue.skipped for _, issue in issues], pa.int64()),
                "detail": pa.array([issue.detail for _, issue in issues], pa.string()),
            }
        )
