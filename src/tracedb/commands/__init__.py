"""The commands of ``tracedb``, one module each; they parse, call one function and print."""
