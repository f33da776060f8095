"""rocpd databases."""
