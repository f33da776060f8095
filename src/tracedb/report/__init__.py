"""A report: one view, filtered, grouped, ordered."""
