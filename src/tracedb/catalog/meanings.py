"""What the columns of a user's SELECT mean: those taken unchanged from tables and views keep their descriptions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import duckdb

from tracedb.storage import schema

if TYPE_CHECKING:
    from tracedb.storage.schema import Column

Tables = Mapping[str, list["Column"]]
"""The columns of each table of a FROM clause, by the name that the query gives it."""


def of_query(connection: duckdb.DuckDBPyConnection, query: str) -> dict[str, str]:
    """Return the descriptions of the columns that a query takes from tables and views as they are.

    What is computed, renamed or taken from a subquery has none: a column of that name may mean something else there.
    """
    try:
        ((text,),) = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    except duckdb.Error:  # something other than a SELECT, such as DESCRIBE
        return {}
    statements = json.loads(text).get("statements", [])
    node = statements[0]["node"] if len(statements) == 1 else {}
    if node.get("type") != "SELECT_NODE":
        return {}
    subqueries = {item["key"] for item in node["cte_map"]["map"]}
    tables: dict[str, list[Column]] = {}
    for item in _sources(node["from_table"]):
        if item["type"] != "BASE_TABLE" or item["table_name"] in subqueries or item["column_name_alias"]:
            return {}
        name = item["table_name"]
        tables[item["alias"] or name] = schema.columns(connection, item["schema_name"] or "main", name)
    found: dict[str, str] = {}
    computed: set[str] = set()
    for item in node["select_list"]:
        if item["type"] == "STAR" and not item["expr"]:
            kept = {item["relation_name"]: tables.get(item["relation_name"], [])} if item["relation_name"] else tables
            found |= _described(kept, {column.name for columns in kept.values() for column in columns})
            computed |= {replaced["key"] for replaced in item["replace_list"]}
        elif item["type"] == "COLUMN_REF" and not item["alias"]:
            *of, name = item["column_names"]
            found |= _described({of[-1]: tables.get(of[-1], [])} if of else tables, {name})
        else:
            computed.add(item["alias"])
    return {name: text for name, text in found.items() if name not in computed}


def _sources(item: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the tables and subqueries of a FROM clause."""
    if item["type"] == "JOIN":
        yield from _sources(item["left"])
        yield from _sources(item["right"])
    elif item["type"] != "EMPTY":
        yield item


def _described(tables: Tables, names: set[str]) -> dict[str, str]:
    """Return the descriptions of columns that mean the same in each table that has them."""
    texts: dict[str, set[str]] = {name: set() for name in names}
    for columns in tables.values():
        for column in columns:
            if column.name in texts:
                texts[column.name].add(column.description)
    return {name: text for name, found in texts.items() if len(found) == 1 for text in found if text}
