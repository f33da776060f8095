"""Nesting of time intervals."""
