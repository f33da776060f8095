"""Python decoding of the blocks that the C scanner cannot handle alone."""
