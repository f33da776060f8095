"""One self-contained HTML page: what was recorded, conclusions, pictures, tables, SQL. Needs the extra ``page``."""
