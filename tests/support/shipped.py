"""What ``pyproject.toml`` declares as shipped."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
INGESTERS: dict[str, str] = PROJECT["entry-points"]["tracedb.ingesters"]
PACKAGES = ["tracedb", *sorted({target.partition(":")[0] for target in INGESTERS.values()})]


def folder(package: str) -> Path:
    """Return where a package lies in the checkout."""
    return ROOT / ("src" if package == "tracedb" else "ingest") / package
