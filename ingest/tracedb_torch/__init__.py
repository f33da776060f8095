"""torch.profiler (Kineto) traces: Chrome JSON, plain, gzip or zstd."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracedb_torch.source import TorchIngester as TorchIngester

    ingester: TorchIngester

__all__ = ["TorchIngester", "ingester"]


def __getattr__(name: str) -> object:
    """Import the ingester when it is asked for: the decoding process imports this package without needing it."""
    if name not in __all__:
        raise AttributeError(f"module 'tracedb_torch' has no attribute {name!r}")
    from tracedb_torch.source import TorchIngester

    return TorchIngester if name == "TorchIngester" else TorchIngester()
