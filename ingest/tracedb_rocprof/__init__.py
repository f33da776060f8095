"""ROCm's profilers: CSV sets, JSON and rocpd databases of rocprofv3, and what rocprof v1 and RPD left."""

from tracedb_rocprof.source import RocprofIngester

ingester = RocprofIngester()

__all__ = ["RocprofIngester", "ingester"]
