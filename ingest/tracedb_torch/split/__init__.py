"""A trace cut into blocks of events."""
