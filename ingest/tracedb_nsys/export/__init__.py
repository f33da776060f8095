"""Readers for the forms of an nsys export: SQLite, Parquet, and reports via `nsys export`."""
