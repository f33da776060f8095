"""Where the recordings are: all of them beside the repository, or the slice of them that is part of it."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
SLICE = ROOT / "tests" / "data" / "recorded"
IS_WHOLE = (SHARED / "data").is_dir()
HOME = SHARED if IS_WHOLE else SLICE
"""With folders ``data`` and ``reference``."""
DATA = HOME / "data"
REFERENCE = HOME / "reference"
SWEEP = DATA / "sweeps" / "sweep_20261127_base" if IS_WHOLE else ROOT / "examples" / "run" / "sweep_sample"
"""Configurations of four ranks each; the sample run is one step of two of them."""
