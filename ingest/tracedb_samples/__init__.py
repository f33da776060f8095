"""Operator and NCCL sampling files of estimate-train-time: CSV with a time for each shape."""

from tracedb_samples.source import SamplesIngester

ingester = SamplesIngester()

__all__ = ["SamplesIngester", "ingester"]
