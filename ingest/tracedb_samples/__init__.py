"""Times and readings without a trace: sampling files of estimate-train-time, measured times, tracedb watch."""

from tracedb_samples.source import SamplesIngester

ingester = SamplesIngester()

__all__ = ["SamplesIngester", "ingester"]
