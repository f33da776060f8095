"""Blocks scanned by the compiled library."""
