"""The options that choose and group the events of an answer, such as ``--rank``, ``--where`` and ``--by``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from tracedb.cli import completion_candidates
from tracedb.cli.options import listed

F = TypeVar("F", bound=Callable[..., Any])


def _whole_numbers(ctx: click.Context, parameter: click.Parameter, values: Sequence[str]) -> tuple[int, ...]:
    """Return the whole numbers of a repeatable, comma-separated option."""
    for value in values:
        if not re.fullmatch(r"\s*-?\d{1,9}\s*(,\s*-?\d{1,9}\s*)*", value):
            raise click.BadParameter(f"{value!r} is not a whole number or a list such as 0,1", ctx, parameter)
    return tuple(map(int, listed(ctx, parameter, values)))


def _classes(ctx: click.Context, parameter: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    """Return the classes; an exclamation mark before a list applies to all of it."""
    found = []
    for value in values:
        mark = "!" if value.startswith("!") else ""
        found += [mark + part.strip().removeprefix("!") if mark else part.strip() for part in value.split(",")]
    return tuple(dict.fromkeys(found))


def _captures(ctx: click.Context, parameter: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    """Return the captures; only lists of numbers are split, since paths may contain commas."""
    found = [part for value in values for part in (value.split(",") if re.fullmatch(r"[\d,\s]+", value) else [value])]
    return tuple(dict.fromkeys(part.strip() for part in found))


def capture_option(start: str = "Only this capture") -> Callable[[F], F]:
    """Add ``--capture``; the command gets ``captures`` (see ``tracedb.report.captures.chosen``)."""
    return click.option(
        "--capture",
        "captures",
        multiple=True,
        metavar="ID|PATHPART",
        callback=_captures,
        help=f"{start}: its number, several numbers (1,3), a unique part of its path, or a pattern. May be repeated.",
    )


_ANOTHER_KEY = re.compile(r"(?<!\\),(?=\s*[A-Za-z_][\w.-]*=)")
"""The comma between pairs, as in channels=4,8,threads=256; after a backslash, a comma belongs to the value."""


def _pairs(ctx: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the values by label key; a repeated key matches any of its values, and several keys must all match."""
    found: dict[str, tuple[str, ...]] = {}
    for text in (pair for value in values for pair in _ANOTHER_KEY.split(value)):
        key, equals, value = text.partition("=")
        if not equals or not key or key[-1] in "!<>~":
            hint = "; labels are compared for equality only" if any(sign in text for sign in "!<>~") else ""
            raise click.BadParameter(f"{text!r} is not KEY=VALUE{hint}", ctx, parameter)
        found[key] = (*found.get(key, ()), value)
    return found


_OPTIONS = (
    click.option(
        "--rank",
        "ranks",
        multiple=True,
        callback=_whole_numbers,
        shell_complete=completion_candidates.ranks,
        metavar="N,…",
        help="Only these ranks. May be repeated.",
    ),
    click.option(
        "--device",
        "devices",
        multiple=True,
        callback=_whole_numbers,
        metavar="N,…",
        help="Only these devices. May be repeated.",
    ),
    click.option(
        "--source",
        "sources",
        multiple=True,
        callback=listed,
        shell_complete=completion_candidates.sources,
        metavar="NAME,…",
        help="Only captures of these profilers.",
    ),
    capture_option(),
    click.option(
        "--path",
        "paths",
        multiple=True,
        metavar="GLOB",
        help="Only captures whose path matches (*rank0*, before/*). May be repeated: any of them.",
    ),
    click.option(
        "--where",
        multiple=True,
        callback=_pairs,
        shell_complete=completion_candidates.labels,
        metavar="K=V,…",
        help="Only captures with this label; several values (channels=4,8) match any of them, several labels "
        "(channels=8,threads=256) must all match; a comma within a value is written \\,.",
    ),
    click.option(
        "--class",
        "classes",
        multiple=True,
        callback=_classes,
        shell_complete=completion_candidates.classes,
        metavar="CLASS,…",
        help="Only kernels of these classes (matmul,attention …); with a leading '!', all others.",
    ),
    click.option(
        "--range",
        multiple=True,
        callback=lambda ctx, parameter, values: tuple(dict.fromkeys(values)),
        metavar="GLOB",
        help="Only kernels launched inside matching ranges (forward*, NCCL:*). May be repeated: inside any of them.",
    ),
    click.option(
        "--rule",
        type=click.Choice(["thread", "process", "time"]),
        help="Which kernels are inside a range: launched in it on its thread, launched in it on any thread of its "
        "process, or started during it. [default: process; thread in nvtx-ranges and nvtx-kernels, like nsys; "
        "time if no launches were recorded]",
    ),
    click.option(
        "--skip-warmup",
        type=click.IntRange(min=0),
        default=0,
        metavar="N",
        help="Skip the first N steps of each capture, and everything outside steps.",
    ),
    click.option(
        "--step-range",
        metavar="GLOB",
        help="Use each range with a matching name as a step. [default: ProfilerStep#N]",
    ),
    click.option(
        "--counted",
        is_flag=True,
        help="Also include kernels run while hardware counters were read; their durations are not those of a normal "
        "run.",
    ),
)
"""In the order in which ``--help`` lists them."""
_BY = click.option(
    "--by",
    multiple=True,
    callback=listed,
    shell_complete=completion_candidates.groups,
    metavar="COL,…",
    help="Group by a label, capture, rank, device, source, vendor, range or step. May be repeated.",
)


def capture_filter_options(command: F) -> F:
    """Add the options that select captures; the command gets these fields of ``Filters``."""
    for option in reversed((_OPTIONS[0], *_OPTIONS[2:6])):
        command = option(command)
    return command


def event_filter_options(command: F) -> F:
    """Add the options that select events; the command gets these fields of ``Filters``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def filter_options(command: F) -> F:
    """Add the options that select and group events; the command gets these fields of ``Filters``."""
    return event_filter_options(_BY(command))


def attention_option(command: F) -> F:
    """Add ``--attention-as-matmul``, for commands that print matmul-fraction; no other report accepts it."""
    return click.option(
        "--attention-as-matmul",
        is_flag=True,
        help="Count fused-attention kernels as class matmul (matmul-fraction only).",
    )(command)
