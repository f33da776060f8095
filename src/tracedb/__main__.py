"""``python -m tracedb``."""

from tracedb.cli import main

if __name__ == "__main__":
    main()
