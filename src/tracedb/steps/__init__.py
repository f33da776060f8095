"""A whole training step from the times of its operators."""
