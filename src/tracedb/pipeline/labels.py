"""Labels and rank from a file's path."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
PARALLEL = ("tp", "dp", "pp", "ep", "cp", "sp", "mp", "dcp", "pcp", "edp", "etp", "vpp")
"""Kinds of parallelism whose index launchers write into names, as in dp0_pp0_tp1_rank1 or ID-TP-0-DP-1."""
PLACE = re.compile(rf"(?i)(?<![a-z0-9])({'|'.join(PARALLEL)})(?:[-_]?rank)?[-_]?(\d{{1,5}})(?![a-z0-9])")
PLAIN_PLACES = ("tp", "dp", "pp")
"""Kinds whose short form is ambiguous when alone: ep3 may be an epoch, cp1 a checkpoint."""
NOT_GLOBAL = (
    *PARALLEL,
    *("local", "node", "group", "tensor", "pipeline", "data", "expert", "context", "sequence", "model", "parallel"),
    *("lora", "qlora", "low", "svd", "matrix"),
)
"""Words before ``rank`` that make it something other than the rank of the process."""
RANK = re.compile(
    "(?i)"
    + "".join(rf"(?<!{word})(?<!{word}[_-])" for word in NOT_GLOBAL)
    + r"(?<![a-z])rank[\s_\-=.]*[\[(]?(\d{1,7})(?!\d)"
)
NUMBER = re.compile(r"\d{1,7}")
COUNTED = (
    *("run", "part", "step", "epoch", "cycle", "batch", "sample", "test", "trial", "try", "attempt", "repeat", "chunk"),
    *("segment", "window", "phase", "job", "exp", "experiment", "version"),
)
"""Words that tell what the number after them counts: not ranks."""
ENDINGS = re.compile(r"(?i)(?:\.(?:json|gz|zst|zstd|trace|pt|sqlite|csv|db|parquet|nsys-rep))+$")


def from_path(path: Path) -> dict[str, str]:
    """Return the labels spelled by the folders and the name of ``path``; the nearest to the file wins."""
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
        labels.update(_places(part))
    return labels


def _places(part: str) -> dict[str, str]:
    found = {key.lower(): str(int(number)) for key, number in PLACE.findall(part)}
    return found if len(found) > 1 or set(found) <= {*PLAIN_PLACES} else {}


def rank_from_path(path: Path) -> int | None:
    """Return the rank spelled by the file name, else by the nearest folder; None if neither has one."""
    for part in reversed(_parts(path)):
        found = RANK.findall(part)
        if found:
            return int(found[-1])
    return None


def placed(
    path: Path, labels_from: str | None, given: Mapping[str, str], known_rank: int | None
) -> tuple[dict[str, str], int | None]:
    """Return the labels and rank of a capture, as far as they are known without reading it.

    ``labels_from``: a regex with named groups, where ``rank`` is the rank; ``given``: labels that override all
    others; ``known_rank``: the rank by the ingester, which overrides the path's.
    """
    found = from_path(path)
    rank = None
    if labels_from is not None:
        match = compile_regex(labels_from).search(readable(path.as_posix()))
        named = {key: value for key, value in (match.groupdict() if match else {}).items() if value is not None}
        rank_text = named.pop("rank", None)
        rank = int(rank_text) if rank_text and re.fullmatch(r"\d{1,7}", rank_text) else None
        found.update(named)
    found.update(given)
    if rank is None:
        rank = known_rank if known_rank is not None else rank_from_path(path)
    return dict(sorted(found.items())), rank


def counting(paths: Sequence[Path]) -> list[tuple[str, list[Path]]]:
    """Return files of one folder whose names differ only in a number that counts from 0 without a gap.

    Each group comes with a regex for ``--labels-from``: it takes the number as the rank, or as a label if the word
    before it says what it counts (``run_0``).
    """
    groups: dict[tuple[Path, str, str], dict[int, Path]] = {}
    for path in paths:
        for number in NUMBER.finditer(path.name):
            key = (path.parent, path.name[: number.start()], path.name[number.end() :])
            groups.setdefault(key, {})[int(number[0])] = path
    found = []
    for (_, before, _), members in groups.items():
        if len(members) > 1 and sorted(members) == list(range(len(members))):
            word = re.search(r"([A-Za-z]+)[^A-Za-z]*$", before)
            name = word[1].lower() if word and word[1].lower() in COUNTED else "rank"
            found.append((f"{re.escape(before)}(?P<{name}>[0-9]+)[^/]*$", [members[at] for at in sorted(members)]))
    return found


def compile_regex(pattern: str) -> re.Pattern[str]:
    """Compile the regex of ``--labels-from``. Raises ``UsageError`` if it is invalid or names no group."""
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise UsageError(f"--labels-from: {pattern!r} is not a regular expression: {error}") from error
    if not compiled.groupindex:
        raise UsageError(f"--labels-from: {pattern!r} has no named group such as (?P<threads>\\d+)")
    return compiled


def parse_label(text: str) -> tuple[str, str]:
    """Parse ``K=V`` into key and value. Raises ``UsageError`` for another form."""
    key, equals, value = readable(text).partition("=")
    if not equals or not key.strip() or not value:
        raise UsageError(f"a label is KEY=VALUE, not {text!r}")
    key = key.strip()
    return CANONICAL.get(key.lower(), key), value


def _parts(path: Path) -> list[str]:
    """Return the folders and the name of the absolute path; the name without its endings."""
    absolute = path.absolute()
    return [readable(part) for part in (*absolute.parts[1:-1], ENDINGS.sub("", absolute.name))]


def readable(name: object) -> str:
    """Return a file name as valid text: U+FFFD replaces bytes that are not UTF-8."""
    return str(name).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
