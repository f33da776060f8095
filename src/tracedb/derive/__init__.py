"""Facts worked out once, when a capture is loaded."""
