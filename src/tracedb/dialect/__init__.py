"""The views in the SQL of other engines: Spark, ClickHouse, Trino."""
