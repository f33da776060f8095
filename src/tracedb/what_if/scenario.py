"""Changes to a recording, as ``tracedb whatif`` takes them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tracedb.errors import UsageError
from tracedb.regress.card_spec import Spec
from tracedb.regress.model_folder import Models
from tracedb.what_if.change import Change, together
from tracedb.what_if.resized import sizes

KEYS = ("class", "name", "op", "range")
HOST = "host"
"""Class that stands for all work of the host."""
COPY = "copy"
COLLECTIVE = "collective"


@dataclass(frozen=True)
class Scale:
    """A factor on the time of some work."""

    key: str
    """What ``pattern`` is: a class of GPU work or ``host``, the name of a kernel, an operator or a range."""
    pattern: str
    factor: float
    is_removed: bool = False
    """Whether the work is left out: its synchronizations do not wait either."""


@dataclass(frozen=True)
class Scenario:
    """Changes that are made together."""

    scales: tuple[Scale, ...] = ()
    launch_delay_ns: int | None = None
    """Time from a launch to its work on an empty stream; None: as recorded."""
    ranks_are_equal: bool = False
    """Whether collectives wait for no rank, and the slower ranks take as long as the median one."""
    bandwidth: float = 1.0
    """Factor on the speed of collectives, once all ranks are there."""
    waits_for_gpu: bool = True
    """Whether the host waits in synchronizations."""
    priced: Change | None = None
    """Another card, or other sizes of tensors."""
    words: tuple[str, ...] = field(default=(), compare=False)
    """The options that give it."""

    @property
    def text(self) -> str:
        return " ".join(self.words) or "no change"

    @property
    def changes(self) -> int:
        """Number of changes that are made together."""
        return sum(word.startswith("--") for word in self.words)

    @property
    def limit(self) -> Scenario:
        """The same changes taken as far as they go."""
        scales = tuple(scale if scale.factor >= 1 else replace(scale, factor=0.0) for scale in self.scales)
        delay = None if self.launch_delay_ns is None else 0
        return replace(
            self, scales=scales, launch_delay_ns=delay, bandwidth=math.inf if self.bandwidth > 1 else self.bandwidth
        )


def combined(parts: list[Scenario]) -> Scenario:
    """Return all changes as one scenario."""
    whole = Scenario()
    for part in parts:
        whole = Scenario(
            whole.scales + part.scales,
            part.launch_delay_ns if part.launch_delay_ns is not None else whole.launch_delay_ns,
            whole.ranks_are_equal or part.ranks_are_equal,
            whole.bandwidth * part.bandwidth,
            whole.waits_for_gpu and part.waits_for_gpu,
            together(whole.priced, part.priced),
            whole.words + part.words,
        )
    return whole


def scaled(text: str) -> Scenario:
    """Return the scenario of ``--scale KEY=PATTERN:FACTOR``. Raises ``UsageError``."""
    found = re.fullmatch(r"(\w+)=(.+):([^:]*)", text, re.DOTALL)
    factor = _number(found[3]) if found else None
    if found is None or factor is None or found[1] not in KEYS:
        raise UsageError(
            f"--scale {text!r} is not KEY=PATTERN:FACTOR, such as class=collective:0.5 or 'name=*gemm*:0.8' "
            f"(keys: {', '.join(KEYS)})"
        )
    return Scenario((Scale(found[1], found[2], factor),), words=("--scale", _quoted(text)))


def removed(text: str) -> Scenario:
    """Return the scenario of ``--remove KEY=PATTERN``. Raises ``UsageError``."""
    key, equals, pattern = text.partition("=")
    if not equals or not pattern or key not in KEYS:
        raise UsageError(f"--remove {text!r} is not KEY=PATTERN, such as 'range=dataloader*' (keys: {', '.join(KEYS)})")
    return Scenario((Scale(key, pattern, 0.0, is_removed=True),), words=("--remove", _quoted(text)))


def launched_after(delay_ns: int) -> Scenario:
    """Return the scenario of ``--launch-delay NS``."""
    return Scenario(launch_delay_ns=delay_ns, words=("--launch-delay", str(delay_ns)))


def equal_ranks() -> Scenario:
    """Return the scenario of ``--ranks-equal``."""
    return Scenario(ranks_are_equal=True, words=("--ranks-equal",))


def without_waiting() -> Scenario:
    """Return the scenario of ``--no-sync``."""
    return Scenario(waits_for_gpu=False, words=("--no-sync",))


def faster_network(text: str) -> Scenario:
    """Return the scenario of ``--bandwidth FACTOR``, with or without a final x. Raises ``UsageError``."""
    factor = _number(text.removesuffix("x"))
    if not factor:
        raise UsageError(f"--bandwidth {text!r} is not a factor above 0, such as 2 or 2x")
    return Scenario(bandwidth=factor, words=("--bandwidth", text))


def on_card(name: str, spec: Spec, models: Models | None) -> Scenario:
    """Return the scenario of ``--gpu NAME``."""
    return Scenario(priced=Change(spec, None, models), words=("--gpu", _quoted(name)))


def resized(texts: Sequence[str], models: Models | None) -> Scenario:
    """Return the scenario of ``--shape OLD=NEW``, given once or several times. Raises ``UsageError``."""
    return Scenario(priced=Change(None, sizes(texts), models), words=("--shape", ",".join(texts)))


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 <= value <= 1e6 else None


def _quoted(text: str) -> str:
    return text if re.fullmatch(r"[\w=:.,#/-]+", text) else f"'{text}'"
