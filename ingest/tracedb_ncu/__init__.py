"""CSV output of Nsight Compute (``ncu --csv``): hardware counters of single kernels."""

from tracedb_ncu.source import NcuIngester

ingester = NcuIngester()

__all__ = ["NcuIngester", "ingester"]
