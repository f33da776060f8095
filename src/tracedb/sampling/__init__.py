"""Operators run over a sweep of shapes, each timed by the profiler and kept in the database."""
