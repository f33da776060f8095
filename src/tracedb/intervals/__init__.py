"""Nesting of intervals of time."""
