"""CSV files of rocprofv3."""
