"""The content of a database and of this installation."""
