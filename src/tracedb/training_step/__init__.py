"""The time of a training step, composed of operator times."""
