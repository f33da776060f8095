"""torch.profiler (Kineto) traces: Chrome JSON, plain, gzip or zstd."""

from tracedb_torch.source import TorchIngester

ingester = TorchIngester()

__all__ = ["TorchIngester", "ingester"]
