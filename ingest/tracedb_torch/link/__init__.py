"""GPU events linked with calls and operators."""
