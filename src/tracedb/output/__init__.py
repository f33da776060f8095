"""Write an answer in the requested format."""

from tracedb.output.answer import Answer, Column, about, from_rows, from_sql
from tracedb.output.destination import refuse_overwriting
from tracedb.output.display_column import Show
from tracedb.output.write import choose_format, write, write_text

__all__ = [
    "Answer",
    "Column",
    "Show",
    "about",
    "choose_format",
    "from_rows",
    "from_sql",
    "refuse_overwriting",
    "write",
    "write_text",
]
