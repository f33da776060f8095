"""Writing and keeping a lake: Parquet files of any number of captures, which other engines read too."""
