"""Damaged traces: what can be read of them."""
