"""Link GPU events to API calls and operators."""
