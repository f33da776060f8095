"""Mutations of valid inputs: bytes, JSON values, cells and tables of SQLite.

Every function takes the dice that decide; the same dice give the same result.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any

from support.traces import Raw, dumps

Dice = random.Random
INVALID = "\ue000"
"""Stands in text for bytes that are no UTF-8; ``encoded`` puts them in."""
NUMBERS = (
    *("0", "-0", "-1", "1", "007", "1.", ".5", "-", "+3", "1.5", "1.0005", "1e3", "1E400", "-1e-400", "123.4567"),
    *("9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551615"),
    *("99999999999999999999", "4294967295", "4294967296", "2147483648", "8796093022208.123", "1700000000000000.123"),
)
OTHERS = (
    *("NaN", "Infinity", "-Infinity", "null", "true", "false", "[]", "{}", "[1,2,3]", "[[],{}]", '{"ts":1}', '""'),
    *('"X"', '"B"', '"E"', '"M"', '"12"', '"12.5"', '" 3"', '"007"', '"NaN"', '"stream 7"', '"kernel"', "nul", "'x'"),
)
NAMES = (
    *(
        "a\\u0041\\n",
        "\\ud83d\\ude00",
        "\\ud800",
        "\\q",
        "\\",
        'quote" inside',
        "tab\tinside",
        "line\ninside",
        "nul\0inside",
    ),
    *(
        f"bad {INVALID} bytes",
        "é ü 漢",
        "",
        " ",
        "k" * 300,
        "k" * 70_000,
        '},{"ph":"X"',
        "],",
        "a,b",
        "'; DROP TABLE x",
        "nan",
    ),
)
TOKENS = (
    *(
        b'"',
        b"\\",
        b"\\u00",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\n",
        b"\r\n",
        b"\r",
        b" ",
        b"\t",
        b'""',
        b'","',
        b"},{",
    ),
    *(
        b"null",
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\xc3",
        b"-",
        b".",
        b"e",
        b"1" * 30,
        b"/**/",
        b'"ts":',
        b'"traceEvents":[',
    ),
)
CELLS: tuple[Any, ...] = (
    *(None, 0, 1, -1, 127, 128, 255, 256, 32_768, 1 << 31, 1 << 32, (1 << 53) + 1, (1 << 63) - 1, -(1 << 63)),
    *(0.0, 1.0, 1.5, -2.5, 1e300, float("inf"), 9.3e18, "", "12", "12.5", " 7", "007", "text", "nul\0x", "x" * 3_000),
    *(b"", b"12", b"\xff\xfe", b"\0" * 9, "1e3", "9223372036854775807", "-9223372036854775808", "9223372036854775808"),
)


class Twin(str):
    """A key that may stand in a dict beside another of the same text; JSON text then has it twice."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def encoded(text: str) -> bytes:
    """Return text as a file holds it, with bytes that are no UTF-8 where ``INVALID`` stands."""
    return text.encode("utf-8", "surrogatepass").replace(INVALID.encode(), b"\xff\xfe")


def value(dice: Dice) -> Raw:
    """Return JSON text, or what a faulty writer takes for it."""
    kind = dice.randrange(5)
    if kind < 2:
        return Raw(dice.choice(NUMBERS))
    if kind == 2:
        return Raw(str(dice.choice((1, -1)) * (1 << dice.randrange(70)) + dice.randint(-1, 1)))
    return Raw(dice.choice(OTHERS) if kind == 3 else f'"{dice.choice(NAMES)}"')


def changed_bytes(dice: Dice, data: bytes, other: bytes = b"", least: int = 0) -> bytes:
    """Change bytes at one place from ``least`` on; ``other``: another sound input, of which a part may be put in."""
    if len(data) <= least + 1:
        return data
    at = dice.randrange(least, len(data))
    size = dice.choice((1, 1, 2, 4, 8, 30, 100, 1000))
    head, tail = data[:at], data[at:]
    kind = dice.randrange(9)
    if kind == 0:
        return head + bytes((tail[0] ^ 1 << dice.randrange(8),)) + tail[1:]
    if kind == 1:
        return (
            head + bytes((dice.choice((0, 1, 0x22, 0x2C, 0x0A, 0x30, 0x5C, 0x7B, 0x7D, 0x7F, 0x80, 0xFF)),)) + tail[1:]
        )
    if kind == 2:
        return head + tail[size:]
    if kind == 3:
        return head + dice.choice(TOKENS) * dice.choice((1, 1, 1, 2, 40)) + tail
    if kind == 4:
        return head + dice.choice(TOKENS) + tail[size:]
    if kind == 5:
        return head if dice.randrange(3) == 0 else head + tail[:size] + tail
    if kind == 6 and other:
        place = dice.randrange(len(other))
        return head + other[place : place + size] + tail[dice.choice((0, size)) :]
    if kind == 7:
        place = dice.randrange(len(tail))
        return head + tail[place : place + size] + tail[size:place] + tail[:size] + tail[max(place, 0) + size :]
    return head + dice.randbytes(min(size, 8)) + tail[min(size, 8) :]


def changed_tree(dice: Dice, tree: Any, keys: Sequence[str] = ()) -> None:
    """Change one value, key or order within nested dicts and lists, in place; ``keys``: names that mean something."""
    holders = list(_holders(tree))
    if not holders:
        return
    holder = dice.choice(holders)
    if isinstance(holder, dict):
        _change_dict(dice, holder, keys)
    else:
        _change_list(dice, holder)


def _holders(tree: Any) -> Iterable[Any]:
    """Yield the dicts and lists that hold something."""
    if isinstance(tree, dict | list) and tree:
        yield tree
        for item in tree.values() if isinstance(tree, dict) else tree:
            yield from _holders(item)


def _change_dict(dice: Dice, holder: dict[str, Any], keys: Sequence[str]) -> None:
    key = dice.choice(list(holder))
    kind = dice.randrange(10)
    if kind < 5:
        holder[key] = value(dice)
    elif kind == 5:
        del holder[key]
    elif kind == 6:
        holder[dice.choice((key.upper(), f" {key}", f"{key}\\u0020", *keys))] = holder.pop(key)
    elif kind == 7:
        holder[Twin(key)] = value(dice) if dice.randrange(2) else holder[key]
    elif kind == 8 and keys:
        holder[dice.choice(keys)] = value(dice)
    else:
        items = list(holder.items())
        dice.shuffle(items)
        holder.clear()
        holder.update(items)


def _change_list(dice: Dice, holder: list[Any]) -> None:
    at = dice.randrange(len(holder))
    kind = dice.randrange(6)
    if kind < 2:
        holder[at] = value(dice)
    elif kind == 2:
        del holder[at]
    elif kind == 3:
        holder.insert(dice.randrange(len(holder) + 1), holder[at])
    elif kind == 4:
        dice.shuffle(holder)
    else:
        holder.insert(at, value(dice))


def tree_text(dice: Dice, tree: Any) -> bytes:
    """Write as JSON, compact or not."""
    return encoded(dumps(tree, dice.choice((None, None, 1))))


def changed_database(dice: Dice, data: bytes, times: int) -> bytes:
    """Change cells, rows, columns or tables of an SQLite database; what SQLite refuses is left as it is."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(data)
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for _ in range(times):
            try:
                _change_table(dice, connection, dice.choice(tables))
            except sqlite3.Error:
                connection.rollback()
        connection.commit()
        return connection.serialize()


def _change_table(dice: Dice, connection: sqlite3.Connection, table: str) -> None:
    name = f'"{table}"'
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
    rows = [row for (row,) in connection.execute(f"SELECT rowid FROM {name}")]
    column, row, kind = f'"{dice.choice(columns)}"', dice.choice(rows or [1]), dice.randrange(20)
    if kind < 10:
        connection.execute(f"UPDATE {name} SET {column} = ? WHERE rowid = ?", [dice.choice(CELLS), row])
    elif kind < 12:
        connection.execute(f"DELETE FROM {name} WHERE rowid = ?", [row])
    elif kind == 12:
        number = dice.choice((row + 1, row + 1000, -row, 0, 1 << 40, (1 << 63) - 1, -(1 << 63)))
        connection.execute(f"UPDATE {name} SET rowid = ? WHERE rowid = ?", [number, row])
    elif kind == 13:
        chosen = ", ".join(f'"{item}"' for item in columns if item != "id")
        connection.execute(f"INSERT INTO {name} ({chosen}) SELECT {chosen} FROM {name} WHERE rowid = ?", [row])
    elif kind == 14:
        connection.execute(f"ALTER TABLE {name} DROP COLUMN {column}")
    elif kind == 15:
        connection.execute(f"ALTER TABLE {name} RENAME COLUMN {column} TO renamed")
    elif kind == 16:
        connection.execute(
            dice.choice((f"DROP TABLE {name}", f"DELETE FROM {name}", f"ALTER TABLE {name} RENAME TO other"))
        )
    elif kind == 17:
        connection.execute(f"ALTER TABLE {name} ADD COLUMN added DEFAULT 7")
    elif kind == 18:
        connection.execute(f"UPDATE {name} SET {column} = ?", [dice.choice(CELLS)])
    else:
        _make_again(dice, connection, name, columns)


def _make_again(dice: Dice, connection: sqlite3.Connection, name: str, columns: Sequence[str]) -> None:
    """Declare the columns in another order, with other types, or have the table keep its rows by a key."""
    held = connection.execute(f"SELECT * FROM {name}").fetchall()
    order = list(range(len(columns)))
    dice.shuffle(order)
    types = [
        dice.choice(("", "INTEGER", "TEXT", "REAL", "BLOB", "INTEGER PRIMARY KEY")) if at == order[0] else ""
        for at in order
    ]
    end = dice.choice(("", "", " WITHOUT ROWID"))
    if end:
        types[0] = "PRIMARY KEY"
    made = ", ".join(f'"{columns[at]}" {kind}' for at, kind in zip(order, types, strict=True))
    connection.execute(f"DROP TABLE {name}")
    connection.execute(f"CREATE TABLE {name} ({made}){end}")
    marks = ", ".join("?" * len(columns))
    connection.executemany(
        f"INSERT OR IGNORE INTO {name} VALUES ({marks})", [[row[at] for at in order] for row in held]
    )
