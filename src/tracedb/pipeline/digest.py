"""The digest that identifies a capture: SHA-256 over the bytes of its files."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from threading import Thread


def digest_of(paths: Sequence[Path]) -> str:
    """Return the SHA-256 over the bytes of all files."""
    digest = hashlib.sha256()
    block = memoryview(bytearray(1 << 18))  # reused, so that it stays in the core's cache
    for path in paths:
        with path.open("rb", buffering=0) as file:
            while read := file.readinto(block):
                digest.update(block[:read])
    return digest.hexdigest()


class Hashing:
    """Hashes files in a background thread, which releases the interpreter lock."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._digest: str | None = None
        self._error: OSError | None = None
        self._thread = Thread(target=self._run, args=(paths,), name="tracedb-hash", daemon=True)
        self._is_begun = False

    def begin(self) -> None:
        """Start, unless already started."""
        if not self._is_begun:
            self._is_begun = True
            self._thread.start()

    def _run(self, paths: Sequence[Path]) -> None:
        try:
            self._digest = digest_of(paths)
        except OSError as error:
            self._error = error

    def result(self) -> str:
        """Wait for the digest and return it. Raises OSError."""
        self.begin()
        self._thread.join()
        if self._digest is None:
            raise self._error or OSError("the file could not be hashed")
        return self._digest
