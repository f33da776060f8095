"""Operator and NCCL sampling files of estimate-train-time: CSV with one or more times per shape."""

from tracedb_samples.source import SamplesIngester

ingester = SamplesIngester()

__all__ = ["SamplesIngester", "ingester"]
