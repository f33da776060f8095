"""ROCm's profilers: CSV sets, JSON and rocpd databases of rocprofv3, and the output of rocprof v1 and RPD."""

from tracedb_rocprof.source import RocprofIngester

ingester = RocprofIngester()

__all__ = ["RocprofIngester", "ingester"]
