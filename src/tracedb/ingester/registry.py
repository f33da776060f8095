"""The installed ingesters, shipped or third-party: those of the entry-point group ``tracedb.ingesters``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from tracedb.errors import UsageError
from tracedb.ingester.protocol import Described, Ingester

GROUP = "tracedb.ingesters"


@dataclass(frozen=True)
class Registered:
    """An installed ingester, known by name without importing it."""

    name: str
    distribution: str
    version: str
    entry: EntryPoint

    def load(self) -> Ingester:
        """Import it. Raises whatever its import raises, TypeError if it is not an ingester."""
        ingester = self.entry.load()
        if not isinstance(ingester, Ingester):
            raise TypeError(f"{self.entry.value} has no name, find and read")
        return ingester


def registered() -> list[Registered]:
    """Return the installed ingesters by name, without importing any."""
    return list(_entries())


@cache  # reading the metadata of every installed package takes longer than loading a small trace
def _entries() -> list[Registered]:
    found = []
    for entry in entry_points(group=GROUP):
        dist = entry.dist
        found.append(Registered(entry.name, dist.name if dist else "?", dist.version if dist else "?", entry))
    return sorted(found, key=lambda item: (item.name, item.distribution))


def load(only: str | None = None) -> list[tuple[Registered, Ingester]]:
    """Import the ingesters, or the one named ``only``.

    A broken third-party ingester is a warning on stderr. Raises ``UsageError`` if ``only`` is not installed or broken.
    """
    known = registered()
    if only is not None:
        known = [item for item in known if item.name == only]
        if not known:
            names = ", ".join(item.name for item in registered()) or "none"
            raise UsageError(f"no ingester named {only!r} is installed; there are: {names}")
    loaded = []
    for item in known:
        try:
            loaded.append((item, item.load()))
        except Exception as error:  # importing a third-party package may fail in any way
            reason = f"ingester {item.name} of {item.distribution} cannot be loaded: {error}"
            if only is not None:
                raise UsageError(reason) from error
            print("tracedb: warning:", " ".join(reason.split()), file=sys.stderr)
    return loaded


def descriptions() -> list[tuple[str, dict[str, str]]]:
    """Return what installed ingesters say about their installation, by name."""
    return [(item.name, source.describe()) for item, source in load() if isinstance(source, Described)]
