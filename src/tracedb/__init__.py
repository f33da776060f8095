"""GPU traces of every profiler in one DuckDB file, with versioned SQL views."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracedb.ingester import Capture as Capture
    from tracedb.ingester import Ingester as Ingester
    from tracedb.ingester import Options as Options
    from tracedb.ingester import Rows as Rows
    from tracedb.pipeline.run import ingest as ingest
    from tracedb.regress.from_python import fit as fit
    from tracedb.regress.from_python import predict as predict
    from tracedb.report.relation import report as report
    from tracedb.storage.connection import connect as connect
    from tracedb.training_step.from_python import predict_step as predict_step

    __version__: str

__all__ = [
    *("Capture", "Ingester", "Options", "Rows", "__version__"),
    *("connect", "fit", "ingest", "predict", "predict_step", "report"),
]

_HOMES = {
    "connect": "tracedb.storage.connection",
    "ingest": "tracedb.pipeline.run",
    "fit": "tracedb.regress.from_python",
    "predict": "tracedb.regress.from_python",
    "predict_step": "tracedb.training_step.from_python",
    "Capture": "tracedb.ingester",
    "Ingester": "tracedb.ingester",
    "Options": "tracedb.ingester",
    "Rows": "tracedb.ingester",
}


def __dir__() -> list[str]:
    """Return the public names, including those not imported yet, and none that serve this module alone."""
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that ``import tracedb`` costs nothing."""
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = version("tracedb-gpu")
        except PackageNotFoundError:
            found = "0+unknown"
        return globals().setdefault(name, found)  # reading the distribution's metadata takes some 5 ms
    if name == "report":  # a callable module: importing it must not replace the function
        from importlib import import_module

        return import_module("tracedb.report")
    if name not in _HOMES:
        raise AttributeError(f"module 'tracedb' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
