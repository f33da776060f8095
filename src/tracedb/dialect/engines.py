"""The engines for whose SQL views are rewritten (``tracedb sql-dialect``): nothing heavy is imported here."""

from __future__ import annotations

ENGINES = ("spark", "clickhouse", "trino")
"""Each has a module ``tracedb.dialect.ENGINE`` with ``rewritten``, and a section in ``sql/ENGINES.toml``."""
