"""Pictures: each draws the rows of a view, filtered as ``tracedb report`` filters them. Needs the extra ``plot``."""
