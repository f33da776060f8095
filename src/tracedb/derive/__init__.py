"""Facts derived once, when a capture is loaded."""
