"""From files to rows in the database: discover, detect, read, write, derive."""
