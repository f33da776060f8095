"""Number texts: each name is stored once, and quoting is resolved when all texts of a file are known."""

from __future__ import annotations

import re
from collections.abc import Hashable
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracedb.ingester.issues import Account

ODD_QUOTES = re.compile(r'(?<!")"(?:"")*(?!")')


def _unknown(key: tuple[Any, ...]) -> str:
    """Return the replacement for an unknown text, made of its key (process, kind, number)."""
    _, kind, *numbers = key
    return f"unknown {kind} {'/'.join(map(str, numbers))}"


class Texts:
    """Gives every text a number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._undecided: dict[str, int] = {}
        self._reserved: dict[Hashable, int] = {}
        self._texts: dict[int, str] = {}
        self.unknown: dict[int, str] = {}
        """Requested texts that are still unknown: the replacement of each, by its number."""

    def number(self, text: str) -> int:
        """Return the number of a text."""
        return self._number(self._numbers, text)

    def text(self, number: int) -> str:
        """Return the text of a number."""
        return self._texts[number]

    @property
    def count(self) -> int:
        """The number of texts; they are numbered from 1."""
        return len(self._texts)

    def undecided(self, text: str) -> int:
        """Return the number of a quoted text that contains quotes, doubled or not."""
        return self._number(self._undecided, text)

    def reserved(self, key: tuple[Any, ...]) -> int:
        """Return the number of a text that will be defined under this key."""
        found = self._reserved.get(key)
        if found is None:
            found = self._reserved[key] = len(self._texts) + 1
            self._texts[found] = _unknown(key)
            self.unknown[found] = _unknown(key)
        return found

    def define(self, key: tuple[Any, ...], text: str) -> None:
        """Define the text of a key, before or after it is requested."""
        number = self.reserved(key)
        self._texts[number] = text
        self.unknown.pop(number, None)

    def _number(self, known: dict[str, int], text: str) -> int:
        found = known.get(text)
        if found is None:
            found = known[text] = len(self._texts) + 1
            self._texts[found] = text
        return found

    def of(self, column: pa.DictionaryArray, is_undecided: bool = False) -> npt.NDArray[np.int64]:
        """Return the numbers of a text column; -1 for a missing text."""
        give = [
            self.undecided(text) if is_undecided and '"' in text else self.number(text)
            for text in column.dictionary.to_pylist()
        ]
        indices = column.indices.fill_null(len(give)) if column.indices.null_count else column.indices
        places = indices.to_numpy()
        found: npt.NDArray[np.int64] = np.array([*give, -1], np.int64)[places]
        return found

    def settle(self, account: Account) -> None:
        """Decide what doubled quotes mean in the texts of the last file.

        If any text contains a quote that is not doubled, the writer does not double them; texts are kept as is.
        """
        doubled = [text for text in self._undecided if not ODD_QUOTES.search(text)]
        if len(doubled) == len(self._undecided):
            for text in doubled:
                self._texts[self._undecided[text]] = text.replace('""', '"')
            account.noted("quotes_doubled", len(doubled), "names with doubled quotes, taken for one quote each")
        else:
            found = len(self._undecided)
            account.noted(
                "quotes_not_escaped", found, "names with quotes that the tool did not escape; kept as written"
            )
        self._undecided = {}

    def table(self, known: int = 0) -> pa.Table:
        """Return the numbered texts (id, value) after the first ``known`` ones."""
        numbers, values = islice(self._texts.keys(), known, None), islice(self._texts.values(), known, None)
        return pa.table({"id": pa.array(numbers, pa.int64()), "value": pa.array(values, pa.string())})
