"""The file of ``tracedb watch``: a line about the run, a header, then a line for each reading, as CSV.

It is written as the readings come, so that a file of a run that was killed holds everything up to then.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, astuple, fields
from pathlib import Path
from typing import IO

from tracedb.conditions.reading import Gpu, Reading

MARK = "# tracedb conditions "
"""Start of the first line; the rest is JSON."""
VERSION = 1
COLUMNS = tuple(field.name for field in fields(Reading))


class ConditionsFile:
    """Writes readings. Raises OSError if the file cannot be written."""

    def __init__(self, path: Path, gpus: Sequence[Gpu], missing: str | None) -> None:
        """``missing``: why there will be no readings."""
        self._file: IO[str] = path.open("w", encoding="utf-8", newline="\n")
        about = {
            "version": VERSION,
            "host": platform.node() or None,
            "gpus": [asdict(gpu) for gpu in gpus],
            "missing": missing,
        }
        self._file.write(f"{MARK}{json.dumps(about)}\n{','.join(COLUMNS)}\n")
        self._file.flush()

    def add(self, reading: Reading) -> None:
        """Write one reading."""
        values = ("" if value is None else str(value).replace(",", "|") for value in astuple(reading))
        self._file.write(",".join(values) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
