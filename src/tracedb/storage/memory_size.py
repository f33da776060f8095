"""How a size of memory is written: as DuckDB reads it, with its unit."""

import re

SIZE = re.compile(r"[0-9]+(\.[0-9]+)? *([KMGT]i?)?B", re.IGNORECASE)
