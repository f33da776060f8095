"""The engines that run reports (``tracedb report --engine``), for the command's options: nothing heavy is imported."""

from __future__ import annotations

ENGINES = {"spark": "pyspark", "ray": "ray"}
"""Engine → the package that it needs. The module ``tracedb.ENGINE`` has ``gather``, which runs a plan's tasks."""
