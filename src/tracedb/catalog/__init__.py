"""What a database and this installation hold."""
