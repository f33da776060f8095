"""Splitting of a trace into blocks of events."""
