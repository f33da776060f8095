"""Run operators over a sweep of shapes, time each with the profiler, and store the samples in the database."""
