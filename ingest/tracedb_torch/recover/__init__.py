"""Recovery of the readable part of damaged traces."""
