"""How many examples a property is tested with: few in the suite, more in a search.

TRACEDB_EXAMPLES=50 python -m pytest tests/views/test_unions.py
"""

from __future__ import annotations

import os

MORE = int(os.environ.get("TRACEDB_EXAMPLES", "1"))
"""Factor on the number of examples of each property."""
