"""Nsight Systems captures: SQLite and Parquet exports of every era, and reports through `nsys export`."""

from tracedb_nsys.source import NsysIngester

ingester = NsysIngester()

__all__ = ["NsysIngester", "ingester"]
