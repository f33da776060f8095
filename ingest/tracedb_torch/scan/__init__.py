"""The compiled scanner of blocks."""
