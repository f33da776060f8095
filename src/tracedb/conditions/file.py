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
    """Writes readings. Raises OSError if the file cannot be begun; what goes wrong later is in ``fault``."""

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
        self.readings = 0
        """Readings that were written."""
        self.fault: OSError | None = None
        """Why a reading could not be written, such as a full disk; none are written after it."""

    def add(self, reading: Reading) -> None:
        """Write one reading."""
        if self.fault is not None:
            return
        values = ("" if value is None else str(value).replace(",", "|") for value in astuple(reading))
        try:
            self._file.write(",".join(values) + "\n")
            self._file.flush()
        except OSError as error:
            self.fault = error
        else:
            self.readings += 1

    def close(self) -> None:
        """Close the file."""
        try:
            self._file.close()
        except OSError as error:
            self.fault = error
