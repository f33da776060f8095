"""Run the operators of a capture again, and compare their time with what was recorded."""
