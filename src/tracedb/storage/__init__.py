"""The database file: opening it, its tables, its views."""
