"""An answer in the form that was asked for."""

from tracedb.output.answer import Answer, Column, about, from_rows, from_sql
from tracedb.output.shape import Show
from tracedb.output.write import choose_format, write

__all__ = ["Answer", "Column", "Show", "about", "choose_format", "from_rows", "from_sql", "write"]
