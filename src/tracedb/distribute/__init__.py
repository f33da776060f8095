"""A report on a lake, divided into tasks that DuckDB runs wherever an engine puts them."""
