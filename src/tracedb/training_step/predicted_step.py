"""A predicted step: its time with its interval, the parts of that, and caveats in words."""

from __future__ import annotations

from dataclasses import dataclass, field

from tracedb.training_step.composition import Stage
from tracedb.training_step.configuration import Step
from tracedb.training_step.fully_sharded import Sharding
from tracedb.training_step.host_path import HOST_WAIT
from tracedb.training_step.host_wait import Wait
from tracedb.training_step.recorded_effects import Beside, most_speedup

WAITS = 0.02
"""Share of a step that the device waits for its host at least in a step that the host bounds."""


@dataclass
class StageTimes:
    """The costs of one stage, in ns."""

    stage: Stage
    forward: float
    backward: float
    copies: float
    optimizer: float
    optimizer_gaps: float
    allreduce: float
    allgather: float
    sharding: Sharding


@dataclass
class Prediction:
    """A predicted step. ``parts`` sum up to ``ns``."""

    step: Step
    ns: float
    low: float
    high: float
    parts: dict[str, float]
    stages: list[StageTimes]
    estimated: dict[str, str] = field(default_factory=dict)
    """Parts without samples, and the basis of their estimate."""
    speedup: float = 1.0
    """How many times as fast products are priced as they were sampled."""
    sm_clock_mhz: float | None = None
    """SM clock that the step is predicted at; None if that of the samples is not known."""
    host_ns: float | None = None
    """Time in which the host launches the step, as sampled with the profiler; None if not known of every part."""
    is_host_whole: bool = True
    """Whether the host's time between operators is predicted, too, where waiting is."""
    beside: Beside = field(default_factory=Beside)
    """What computation and an all-reduce beside it do to each other."""

    is_as_in_sweep: bool = False
    """Whether products are priced as they were sampled, without what a step changes, which was not measured."""
    outside: list[str] = field(default_factory=list)
    """Parameters in which operators lie beyond the samples of their models."""

    def wait(self, wait: Wait) -> None:
        """Add the time in which the device waits for its host."""
        if wait.ns > 0:
            self.parts[HOST_WAIT] = wait.ns
        self.is_host_whole = wait.is_whole
        self.ns, self.low, self.high = self.ns + wait.ns, self.low + wait.low, self.high + wait.high

    @property
    def is_host_bound(self) -> bool:
        """Whether the device waits for its host for a part of the step that matters."""
        return self.parts.get(HOST_WAIT, 0.0) >= WAITS * self.ns

    @property
    def predicted_ns(self) -> float:
        """The predicted time, in ns."""
        return self.ns

    @property
    def low_ns(self) -> float:
        """Lower end of the interval, in ns."""
        return self.low

    @property
    def high_ns(self) -> float:
        """Upper end of the interval, in ns."""
        return self.high

    @property
    def remarks(self) -> list[str]:
        """Caveats of the prediction, in words."""
        said = list(self.step.remarks)
        said += [f"{name} has no samples; estimated by {how}" for name, how in self.estimated.items()]
        if self.outside:
            said.append(
                f"step {self.step.name} is beyond the range of the samples in {', '.join(self.outside)}: extrapolated, "
                "and its interval is a guess"
            )
        if self.speedup != 1:
            why = ""
            if self.step.operands == "nan":
                why = (
                    ' and on NaN, which weights in fp16 alone become under AdamW; "operands": "finite" says they do not'
                )
            said.append(
                f"matrix products are priced {self.speedup:.2f} times as fast as in a sweep: in a step{why}; measured "
                "on an H100, for sweeps without a regime (`tracedb sample` samples as in a step)"
            )
        if self.is_as_in_sweep:
            said.append(
                f"matrix products are priced as in a sweep, though a step may change their time: an H100's were up to "
                f"{most_speedup(self.step):.2f} times as fast, of {self.step.gpu or 'this GPU'} it is not known "
                "(`tracedb sample` samples as in a step)"
            )
        if self.host_ns is not None and self.host_ns > self.ns:
            said.append(
                f"the GPU may wait for the host, which takes up to {self.host_ns / 1e6:.1f} ms to launch the step (as "
                f"sampled, with the profiler) against {self.ns / 1e6:.1f} ms of GPU time; such waiting is not predicted"
            )
        if self.is_host_bound:
            more = (
                "" if self.is_host_whole else " or longer: Python between operators was not timed (host_*.yml does so)"
            )
            said.append(
                f"step {self.step.name} is bound by its host: the GPU waits {self.parts[HOST_WAIT] / 1e6:.1f} of "
                f"{self.ns / 1e6:.1f} ms for launches{more}"
            )
        if "overlap_slowdown" in self.parts and self.beside.elsewhere:
            said.append(
                f"overlap_slowdown is that of an {self.beside.elsewhere}; `tracedb sample --beside allreduce` measures "
                "it here"
            )
        return said
