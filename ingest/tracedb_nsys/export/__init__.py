"""The forms of an nsys export: SQLite, Parquet, a report to be exported."""
