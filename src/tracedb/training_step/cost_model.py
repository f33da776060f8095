"""The cost of a part: from its model if the operator was sampled, else from its work at the rates of sampled ones."""

from __future__ import annotations

import difflib
import math
import statistics
from collections.abc import Mapping

from tracedb.errors import TracedbError, UsageError
from tracedb.regress import own_features
from tracedb.regress.conditions import STEADY, Conditions
from tracedb.regress.work_model import ELEMENT_BYTES, OPERATORS, PRODUCTS, work
from tracedb.training_step import composition, recorded_effects
from tracedb.training_step.composition import GRADIENT_LAYOUT, Part
from tracedb.training_step.configuration import Step
from tracedb.training_step.price import Predictor, Price

UNSURE = 0.3
"""Assumed relative error of an estimate without samples."""
JOINED, COPIED = 0.324, 0.227
"""Shares of a rotation's time that joining and copying its elements take, by kernels that go through strides element
by element: 4.10 and 2.87 of 12.64 ps an element, medians over the recorded sweep of an H100 (the kernel of aten::cat
in RoPE, those of aten::copy_ in flash_atten's backward; their quartiles are within 1.5 %)."""
OPTIMIZER = Part("middleStage_optimizer", "step")
MEMORY_OPERATORS = ("gelu", "layernorm", "RMSlayernorm", "res_add")
GRADIENTS = 3
"""Of query, key and value: concatenated, then copied."""
FLASH_COPIES = 2
"""Number of gradients that a sample of flash_atten's backward copies; a step copies none there."""
SWEPT_ENCODERS = (4, 12)
"""Sweeps of an optimizer have 4 to 12 encoders; the cost per weight is the same."""
COLLECTIVES = {
    "mp_allreduce": "allreduce",
    "dp_allreduce": "allreduce",
    "dp_allgather": "allgather",
    "fsdp_allgather": "allgather",
    "fsdp_reducescatter": "reducescatter",
    "ep_alltoall": "alltoall",
    "pp_p2p": "p2p",
}


def _of(part: Part) -> tuple[str, str]:
    return part.operator, part.pass_


def _unsure(ns: float, basis: str) -> Price:
    return Price(ns, ns * (1 - UNSURE), ns * (1 + UNSURE), basis)


class Prices:
    """Prices of the parts of one step."""

    def __init__(self, models: Predictor, step: Step, link_gbps: float | None) -> None:
        self._models = models
        self._step = step
        self._gpu = step.gpu or None
        self._shape = composition.shape(step)
        self._link_gbps = link_gbps
        self._clocks = (step.sm_clock_mhz, step.memory_clock_mhz)
        self._priced = {"optimizer": OPTIMIZER}
        self.outside: set[str] = set()
        """Parameters in which operators were priced beyond their samples."""
        self._is_described = any(self.conditions(Part(name, "fwd")).regime for name in (*PRODUCTS, *MEMORY_OPERATORS))

    def part(self, part: Part) -> Price:
        """Return the price of one run of a part."""
        if part.operator == composition.EXPERT_COPIES:
            routed = self._shape | {"l": self._step.length * self._step.top_k}
            if price := self._model(part.operator, "fwd", routed):
                return price
            return self._strided(COPIED * self._step.top_k, passes=2 * self._step.top_k)
        if part.pass_ == "comm":
            chosen = self._step.top_k if part.operator == "ep_alltoall" else 1
            return self.collective(part.operator, self._tokens() * chosen * self._step.dim)
        self._priced[part.name] = part
        if part == Part("res_add", "bwd"):
            # Alone it copies its gradient to both terms; in a layer autograd adds the gradients of the two branches.
            part = Part("res_add", "fwd")
        if part.operator == GRADIENT_LAYOUT:
            if price := self._operator(*_of(part)):
                return price
            return self._strided(GRADIENTS * (JOINED + COPIED), passes=4 * GRADIENTS)
        price = self._operator(*_of(part))
        if self._is_described:
            return price or self._estimate(part)
        # A sweep without a regime: its operators were not laid out as in a step.
        if price and part == Part("flash_atten", "bwd"):
            return self._without_copies(price)
        return (price or self._estimate(part)).times(1 / self.speedup(part.operator))

    @property
    def dtype(self) -> str:
        """The step's element type."""
        return self._step.dtype

    def priced(self, name: str) -> Part | None:
        """Return the operator of a part's name, if it was priced by one."""
        return self._priced.get(name)

    def sampled(self, part: Part) -> tuple[dict[str, int], float] | None:
        """Return a shape of a part and the time that its model gives it, in ns, at the clock of the samples."""
        if part == OPTIMIZER:
            shape = {"mp": self._step.mp, "dim": self._step.dim, "encoders": SWEPT_ENCODERS[0]}
            price = self._model(*_of(part), shape)
        else:
            part = Part("res_add", "fwd") if part.operator == "res_add" else part
            shape, price = dict(self._shape), self._operator(*_of(part))
        return None if price is None else (shape, price.ns)

    def speedup(self, operator: str) -> float:
        """Return how many times as fast an operator is priced as its samples are: 1 if these have a regime."""
        if self._is_described:
            return 1.0
        return recorded_effects.speedup(self._step, operator, getattr(self._models, "sources", ()))

    @property
    def is_as_in_sweep(self) -> bool:
        """Whether products are priced as in a sweep without a regime, since what a step changes was not measured."""
        return not self._is_described and self.speedup(PRODUCTS[0]) == 1

    def step_clock(self, parts: Mapping[str, float]) -> float | None:
        """Return the SM clock at which a step of these parts runs, in MHz; None if the steady clocks are not known.

        Each operator was sampled within a mix, at the clock that the power limit left; a step runs at the mean of these
        clocks over its time.
        """
        states = {name: self.conditions(part) for name, part in self._priced.items() if name in parts}
        known = [
            (parts[name], state.sm_clock_mhz)
            for name, state in states.items()
            if state.regime == STEADY and state.sm_clock_mhz
        ]
        return sum(ns for ns, _ in known) / sum(ns / clock for ns, clock in known) if known else None

    def gap_ns(self) -> float | None:
        """Return the idle time between two queued GPU activities, in ns: the median over the step's operators."""
        known = [gap for part in self._priced.values() if (gap := self.conditions(part).gap_ns) is not None]
        return statistics.median(known) if known and self._is_described else None

    def launches(self, part: Part) -> float:
        """Return how many GPU activities a part launches: as sampled, else roughly."""
        state = self.conditions(part)
        return composition.launches(part) if state.regime is None else state.gpu_events or composition.launches(part)

    def conditions(self, part: Part) -> Conditions:
        """Return the state of the device that the price of a part is for; nothing is known of it without a model."""
        try:
            return self._models.find(self._gpu, part.operator, part.pass_, self._step.dtype).conditions
        except UsageError:
            return Conditions()

    def optimizer(self, weights: int, layer_weights: int, layers: int) -> Price:
        """Return the price of an optimizer's step over a stage's weights."""
        low, high = SWEPT_ENCODERS
        encoders = min(max(layers, low), high)
        shape = {"mp": self._step.mp, "dim": self._step.dim, "encoders": encoders}
        price = self._model(*_of(OPTIMIZER), shape)
        if price is None:
            return self.moved(7 * weights)
        swept = encoders * (12 * self._step.dim**2 / self._step.mp + 4 * self._step.dim)
        return price.times(weights / swept)

    def collective(self, what: str, elements: int) -> Price:
        """Return the price of a collective over a number of elements per rank."""
        step, name = self._step, COLLECTIVES[what]
        ranks = {"mp_allreduce": step.mp, "pp_p2p": 2, "ep_alltoall": step.ep}.get(what, step.dp)
        near = min(ranks, step.gpus_per_node)
        if what.startswith(("dp", "fsdp", "ep")):
            near = min(ranks, max(step.gpus_per_node // step.mp, 1))
        if what == "pp_p2p":
            near = 2 if step.gpus_per_node >= 2 * step.mp * step.dp else 1
        shape = {"elements": elements, "nodes": -(-ranks // near), "gpus_per_node": near}
        for operator in (f"{name}_large", name) if what.startswith(("dp", "fsdp")) else (name,):
            if price := self._model(operator, "comm", shape):
                return price
        if self._link_gbps is None:
            raise TracedbError(
                f"step {step.name}: no model has {name} (pass comm) for {step.gpu or 'this GPU'}; "
                "`tracedb sample-collectives` records it, --link-gbps N prices it by a link's bandwidth"
            )
        part = (ranks - 1) / ranks
        share = {"allreduce": 2 * part, "allgather": ranks - 1.0, "reducescatter": part, "alltoall": part}.get(
            name, 1.0
        )
        moved = elements * ELEMENT_BYTES.get(step.dtype, 2) * share
        return _unsure(moved / self._link_gbps, f"bytes, over a link of {self._link_gbps:g} GB/s")

    def moved(self, elements: float) -> Price:
        """Return the price of reading or writing a number of elements in order."""
        moved = elements * ELEMENT_BYTES.get(self._step.dtype, 2)
        if self._is_described and (price := self._operator("res_add", "fwd")):
            # Gradients are accumulated and copied at the rate of any other sum.
            rate = work("res_add", "fwd", self._step.dtype, self._shape)[1] / price.ns
            return _unsure(moved / rate, "bytes, at the rate of res_add")
        return _unsure(moved / self._memory_rate(), "bytes, at the rate of sampled operators")

    def _tokens(self) -> int:
        return self._step.batch * self._step.length

    def _operator(self, operator: str, pass_: str) -> Price | None:
        """Return the price of an operator at the step's sizes, by its model; None if there is none that knows them."""
        if operator == "RoPE" and self._step.shared_heads != self._step.heads:
            # A layer rotates query and key, of which the latter has fewer heads.
            head = self._step.dim // self._step.heads
            keys = {"h": self._step.shared_heads, "dim": self._step.shared_heads * head}
            both = [self._model(operator, pass_, self._shape), self._model(operator, pass_, self._shape | keys)]
            query, key = both
            return None if query is None or key is None else query.plus(key).times(0.5)
        try:
            names = self._models.find(self._gpu, operator, pass_, self._step.dtype).parameters
        except UsageError:
            return None
        shape = composition.shape_for(operator, self._step, names)
        return None if shape is None else self._model(operator, pass_, shape)

    def _model(self, operator: str, pass_: str, shape: Mapping[str, int], is_of_step: bool = True) -> Price | None:
        """Return the price by a model; None if there is none. ``is_of_step``: whether the shape occurs in the step."""
        gpu, dtype = self._gpu, self._step.dtype
        try:
            model = self._models.find(gpu, operator, pass_, dtype)
            names = model.parameters
            missing = [name for name in names if name not in shape]
            if missing:
                return None
            wanted = {name: shape[name] for name in names}
            ns, low, high = self._models.predict(gpu, operator, pass_, dtype, wanted)
        except UsageError:
            return None
        if is_of_step:
            self.outside.update(model.outside(wanted))
        return Price(ns, low, high, "model").times(model.conditions.slowdown(*self._clocks))

    def _without_copies(self, price: Price) -> Price:
        """Return the price of an attention backward without the copies that its samples include.

        It does two and a half times the forward's products: if it would become shorter than the forward, the samples
        did not include the copies.
        """
        copies = self._strided(FLASH_COPIES * COPIED, passes=2 * FLASH_COPIES).ns
        forward = self._operator("flash_atten", "fwd")
        if price.ns - copies < (forward.ns if forward else 0.0):
            return price
        return Price(price.ns - copies, price.low - copies, price.high - copies, price.basis)

    def _strided(self, share: float, passes: int) -> Price:
        """Return the price of kernels that access one gradient with strides: a share of a rotation's time.

        Without samples of rotations: as many passes over its elements in order.
        """
        price = self._model("RoPE", "fwd", self._shape)
        if price is not None:
            return _unsure(price.ns * share, "elements, at the rate of RoPE's strided kernels")
        return self.moved(passes * self._tokens() * self._step.dim / self._step.mp)

    def _estimate(self, part: Part) -> Price:
        """Return the cost of a part without samples: the larger of its FLOPs' and its bytes' time."""
        if part.operator == self._step.loss and (price := self._loss(part.pass_)):
            return price
        if part.operator not in OPERATORS and own_features.function(part.operator) is None:
            raise self._unknown(part)
        flops, moved = work(part.operator, part.pass_, self._step.dtype, self._shape)
        by_bytes = moved / self._memory_rate()
        if part.operator.startswith(("linear", "bmm", "baddbmm", "flash", "moe")):
            return _unsure(max(flops / self._compute_rate(), by_bytes), "FLOPs, at the rate of sampled operators")
        return _unsure(by_bytes, "bytes, at the rate of sampled operators")

    def _loss(self, pass_: str) -> Price | None:
        """Return the price of log-softmax and loss over the vocabulary, at the rate of the sampled softmax.

        Forward reads and writes the logits once. Backward fills the gradient, then reads it and the logarithms and
        writes: 4 times; the sampled softmax takes 6 of these, in two kernels.
        """
        step = self._step
        elements = self._tokens() * (step.vocabulary // step.mp)
        # The same number of elements, in rows short enough that the sampled softmax reads each of them once.
        length = 1024
        heads = max(round(elements / length**2), 1)
        price = self._model("softmax", pass_, {"mp": 1, "b": 1, "h": heads, "l": length}, is_of_step=False)
        if price is None:
            return None
        scaled = price.times(elements / (heads * length**2) * (4 / 6 if pass_ == "bwd" else 1.0))
        return _unsure(scaled.ns, "bytes, at the rate of softmax")

    def _memory_rate(self) -> float:
        """Return the bytes per ns of the sampled operators that only move memory: their median."""
        rates = []
        for operator in MEMORY_OPERATORS:
            if price := self._operator(operator, "fwd"):
                rates.append(work(operator, "fwd", self._step.dtype, self._shape)[1] / price.ns)
        if not rates:
            raise self._nothing("gelu, layernorm, RMSlayernorm or res_add")
        return sorted(rates)[len(rates) // 2]

    def _compute_rate(self) -> float:
        """Return the FLOPs per ns of the sampled matrix products: their geometric mean."""
        rates = []
        for operator in ("linear1", "linear2", "linear3", "linear4", "linear_final"):
            if price := self._operator(operator, "fwd"):
                rates.append(work(operator, "fwd", self._step.dtype, self._shape)[0] / price.ns)
        if not rates:
            raise self._nothing("linear1 to linear4")
        return math.exp(sum(map(math.log, rates)) / len(rates))

    def _unknown(self, part: Part) -> TracedbError:
        """Return the error for an operator that can be priced by neither a model nor its work."""
        there = sorted({target.operator for target in getattr(self._models, "targets", ())} | set(OPERATORS))
        close = difflib.get_close_matches(part.operator, there, 1)
        return TracedbError(
            f"step {self._step.name}: the models have no {part.operator} ({part.pass_}) that fits the step, and its "
            "work is not known; " + (f"did you mean {close[0]}?" if close else "sample it, or leave it out of layer")
        )

    def _nothing(self, wanted: str) -> TracedbError:
        gpus = getattr(self._models, "gpus", ())
        if self._gpu is None and len(gpus) > 1:
            return TracedbError(
                f"step {self._step.name}: names no GPU, and the models are of several; name one (key gpu, or --gpu): "
                f"{', '.join(gpus)}"
            )
        return TracedbError(
            f"step {self._step.name}: the models have none of {wanted} for {self._step.gpu or 'any GPU'} "
            f"{self._step.dtype}, by whose rate those without samples are estimated; `tracedb sample` records them"
        )
