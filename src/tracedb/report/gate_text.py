"""The text of a gate, as ``--fail-on`` of ``compare`` and ``expected`` takes it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tracedb.errors import UsageError

_TEXT = re.compile(r"(\w+)(?:\[(.+)\])?(?:\.(\w+))?\s*>\s*([0-9.]+)\s*(%?)", re.DOTALL)


@dataclass(frozen=True)
class GateText:
    """The parts of ``SUBJECT[NAME].METRIC>LIMIT%``; all but the subject and the limit may be absent."""

    subject: str
    name: str | None
    metric: str | None
    limit: float
    is_percent: bool
    limit_text: str
    """The limit as written, with its unit."""


def parse(text: str) -> GateText | None:
    """Return the parts of a gate; None if it has another form. Raises ``UsageError`` if the limit is no number."""
    match = _TEXT.fullmatch(text.strip())
    if match is None:
        return None
    try:
        return GateText(match[1], match[2], match[3], float(match[4]), bool(match[5]), match[4] + match[5])
    except ValueError as error:
        raise UsageError(f"--fail-on {text!r}: {match[4]} is no number") from error
