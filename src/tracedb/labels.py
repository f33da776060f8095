"""Labels and rank that a path tells."""

from __future__ import annotations

import re
from pathlib import Path

from tracedb.errors import UsageError

CANONICAL = {
    "thread": "threads",
    "nthreads": "threads",
    "channel": "channels",
    "nchannels": "channels",
    "nccl_channels": "channels",
    "rccl_channels": "channels",
}
THREADS = re.compile(r"(?i)^(\d+)[-_]?threads?$|^threads?[-_]?(\d+)$")
CHANNELS = re.compile(r"(?i)^(?:[nr]ccl[-_]?)?(\d+)[-_]?ch(?:annels?)?$|^(?:[nr]ccl[-_]?)?channels?[-_]?(\d+)$")
SWEEP = re.compile(r"(?i)^sweep(?:$|[-_.\d])")
ITERATION = re.compile(r"(?i)(?:^|[._-])(?:iteration|iter|step)[-_]?(\d+)(?=$|[._-])")
PASS = re.compile(r"(?i)^pass[_-]?(\d+)$")
KEY_VALUE = re.compile(r"(?:^|[,;&]|__)([A-Za-z_][\w.-]{0,63}?)=([^=,;&/]{1,200}?)(?=$|[,;&]|__)")
RANK = re.compile(r"(?i)(?<!local[_-])(?<!local)(?<!node[_-])(?<!node)(?<![a-z])rank[\s_\-=.]*[\[(]?(\d{1,7})(?!\d)")
ENDINGS = re.compile(r"(?i)(?:\.(?:json|gz|zst|zstd|trace|pt|sqlite|csv|db|parquet|nsys-rep))+$")


def from_path(path: Path) -> dict[str, str]:
    """Return the labels that the folders and the name of ``path`` spell; the nearest to the file wins."""
    labels: dict[str, str] = {}
    for part in _parts(path):
        for key, value in KEY_VALUE.findall(part):
            if key.lower() != "rank":
                labels[CANONICAL.get(key.lower(), key)] = value
        if found := THREADS.match(part):
            labels["threads"] = found[1] or found[2]
        if found := CHANNELS.match(part):
            labels["channels"] = found[1] or found[2]
        if SWEEP.match(part):
            labels["sweep"] = part
        if found := PASS.match(part):
            labels["pass"] = found[1]
        if found := ITERATION.search(part):
            labels["iteration"] = found[1]
    return labels


def rank_from_path(path: Path) -> int | None:
    """Return the rank that the file name, else the nearest folder, spells; None if none does."""
    for part in reversed(_parts(path)):
        found = RANK.findall(part)
        if found:
            return int(found[-1])
    return None


def compile_regex(pattern: str) -> re.Pattern[str]:
    """Return the regex of ``--labels-from``. Raises ``UsageError`` if it is none or names no group."""
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise UsageError(f"--labels-from: {pattern!r} is no regular expression: {error}") from error
    if not compiled.groupindex:
        raise UsageError(f"--labels-from: {pattern!r} has no named group such as (?P<threads>\\d+)")
    return compiled


def parse_label(text: str) -> tuple[str, str]:
    """Return key and value of ``K=V``. Raises ``UsageError`` for another form."""
    key, equals, value = readable(text).partition("=")
    if not equals or not key.strip() or not value:
        raise UsageError(f"--label takes KEY=VALUE, not {text!r}")
    key = key.strip()
    return CANONICAL.get(key.lower(), key), value


def _parts(path: Path) -> list[str]:
    """Return folders and name of the absolute path, without the endings of the name."""
    absolute = path.absolute()
    return [readable(part) for part in (*absolute.parts[1:-1], ENDINGS.sub("", absolute.name))]


def readable(name: object) -> str:
    """Return a name of the system's as valid text: U+FFFD stands for a byte of it that is no UTF-8."""
    return str(name).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
