"""Blocks decoded in Python: what the library leaves."""
