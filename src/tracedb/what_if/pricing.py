"""What the recorded GPU work would take on another card, or at other sizes: a factor for each GPU event."""

from __future__ import annotations

from typing import NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt

from tracedb.dependencies.recorded_arrays import Numbers
from tracedb.errors import NotCaptured
from tracedb.regress.card_spec import known
from tracedb.regress.model import Model
from tracedb.regress.other_card import OtherCard, OtherModel, on_other_card
from tracedb.what_if import resized
from tracedb.what_if.change import Change
from tracedb.what_if.resized import Cost, Signature


class Priced(NamedTuple):
    """Factors on the durations of a capture's GPU events, and what they rest on, in ns of recorded time."""

    factor: npt.NDArray[np.float64]
    modelled_ns: int
    """Events of operators that fitted models know."""
    rated_ns: int
    """Events priced by FLOPs and bytes, or by the bandwidth of the memory."""
    kept_ns: int
    """Events that are kept as recorded."""


class _Call(NamedTuple):
    """An operator of the capture, in some pass."""

    signature: Signature
    dtype: str | None
    pass_: str


MODELLED, RATED, KEPT = range(3)


def priced(connection: duckdb.DuckDBPyConnection, capture_id: int, event_ids: Numbers, change: Change) -> Priced:
    """Return the factor of each GPU event.

    Collectives and copies between host and device depend on links, and are kept as recorded; so are products,
    convolutions and attention of unknown FLOPs, whose bound is not known. Raises ``NotCaptured`` if
    the recorded card has no data sheet, or if no tensor has one of the sizes.
    """
    pricing = _Pricing(connection, capture_id, change)
    found: dict[int, float] = {}
    spent = [0, 0, 0]
    for event, op, is_link, is_product, duration in connection.execute(EVENTS, [capture_id]).fetchall():
        factor, basis = (1.0, KEPT) if is_link else pricing.factor(op, is_product, duration)
        found[event] = factor
        spent[basis] += duration
    return Priced(np.array([found.get(event, 1.0) for event in event_ids.tolist()]), *spent)


class _Pricing:
    """The factors of one capture's operators."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, capture_id: int, change: Change) -> None:
        self._change = change
        self._gpu = _gpu(connection, capture_id)
        self._own = known(self._gpu) if self._gpu else None
        if change.spec is not None and self._own is None:
            raise NotCaptured(
                f"capture {capture_id} was recorded on {self._gpu or 'an unknown GPU'}, of which no data sheet is "
                "known, so its times cannot be scaled to another card"
            )
        self._other = OtherCard(change.models, change.spec) if change.models and change.spec else None
        self._calls: dict[_Call, tuple[float, int]] = {}
        rows = connection.execute(CALLS, [capture_id]).fetchall()
        self._of_op = {op: _Call(Signature(*of), dtype, pass_) for op, *of, dtype, pass_, _ in rows}
        self._time = _medians([(self._of_op[row[0]], float(row[-1])) for row in rows])
        signatures = sorted({call.signature for call in self._time}, key=str)
        self._before = resized.costs(signatures, {})
        self._after = resized.costs(signatures, change.sizes) if change.sizes else self._before
        if change.sizes and not any(map(self._is_changed, signatures)):
            wanted = ", ".join(map(str, change.sizes))
            raise NotCaptured(
                f"no operator with GPU work in capture {capture_id} has a tensor with a size of {wanted}; "
                "`tracedb report op-flops` lists their shapes"
            )

    def factor(self, op: int | None, is_product: bool, duration: int) -> tuple[float, int]:
        """Return the factor of an event, and what it rests on."""
        call = None if op is None else self._of_op.get(op)
        if call is not None:
            if call not in self._calls:
                self._calls[call] = self._of_call(call)
            factor, basis = self._calls[call]
            is_unknown = basis == RATED and is_product and not self._after[call.signature].flops
            return (1.0, KEPT) if is_unknown else (factor, basis)
        if is_product or self._change.spec is None or self._own is None or not duration:
            return 1.0, KEPT
        return self._rated(float(duration), None, None, None) / duration, RATED

    def _of_call(self, call: _Call) -> tuple[float, int]:
        before, after = self._before[call.signature], self._after[call.signature]
        own, other = self._models(call)
        time = self._time[call]
        if other is not None and own is None and _fits(other, after):
            return _predicted(other, after) / time, MODELLED  # times of other cards alone
        factor, basis = 1.0, KEPT
        if self._is_changed(call.signature):
            if own is not None and _fits(own, before) and _fits(own, after):
                factor, basis = _predicted(own, after) / _predicted(own, before), MODELLED
            else:
                factor, basis = self._by_work(call, before, after), RATED
        if self._change.spec is None:
            return factor, basis
        if own is not None and other is not None and _fits(own, after) and _fits(other, after):
            return factor * _predicted(other, after) / _predicted(own, after), MODELLED
        there = self._rated(time * factor, after.flops, after.bytes, call.dtype)
        return there / time, RATED

    def _is_changed(self, signature: Signature) -> bool:
        return self._after[signature].elements != self._before[signature].elements

    def _models(self, call: _Call) -> tuple[Model | None, OtherModel | None]:
        models, name = self._change.models, call.signature.name
        if models is None:
            return None, None
        own = models.exact(self._gpu or "unknown", name, call.pass_, call.dtype)
        return own, self._other.exact(name, call.pass_, call.dtype) if self._other else None

    def _by_work(self, call: _Call, before: Cost, after: Cost) -> float:
        """Return the ratio of times by that of FLOPs or bytes, whichever bounds the operator; else of elements."""
        rate = self._own.tflops(call.dtype) if self._own else None
        if self._own and rate and before.flops and after.flops and before.bytes and after.bytes:
            is_by_memory = before.bytes / self._own.memory_gbps > before.flops / rate / 1e3
            return after.bytes / before.bytes if is_by_memory else after.flops / before.flops
        for one, other in ((before.flops, after.flops), (before.bytes, after.bytes)):
            if one and other:
                return other / one
        return after.elements / before.elements if before.elements else 1.0

    def _rated(self, time_ns: float, flops: int | None, bytes_: int | None, dtype: str | None) -> float:
        """Return the time on the other card by the ratio of the rates of both."""
        assert self._own is not None and self._change.spec is not None
        by_bytes = None if bytes_ is None else np.array([float(bytes_)])
        by_flops = None if not flops else np.array([float(flops)])
        return float(on_other_card(np.array([time_ns]), by_flops, by_bytes, dtype, self._own, self._change.spec)[0])


def _fits(model: Model | OtherModel, cost: Cost) -> bool:
    shape = cost.shape
    return shape is not None and set(shape) == set(model.parameters)


def _predicted(model: Model | OtherModel, cost: Cost) -> float:
    (found,) = model.predict([cost.shape or {}])
    return found.predicted_ns


def _medians(times: list[tuple[_Call, float]]) -> dict[_Call, float]:
    found: dict[_Call, list[float]] = {}
    for call, time in times:
        found.setdefault(call, []).append(time)
    return {call: max(float(np.median(values)), 1.0) for call, values in found.items()}


def _gpu(connection: duckdb.DuckDBPyConnection, capture_id: int) -> str | None:
    ((name,),) = connection.execute(
        "SELECT min(d.name) FROM main.device AS d WHERE d.capture_id = ?", [capture_id]
    ).fetchall()
    return None if name is None else str(name)


EVENTS = """
SELECT
    e.event_id, e.op_id,
    e.class = 'collective' OR (e.kind = 'memcpy' AND coalesce(e.copy_kind, '') <> 'DtoD') AS is_link,
    e.class IN ('matmul', 'convolution', 'attention') AS is_product,
    e.duration_ns
FROM v1._gpu_event AS e
WHERE e.capture_id = ?
"""
CALLS = """
SELECT
    o.op_id, o.name, o.input_dims, p.input_types, p.concrete_inputs, o.math_dtype, o.pass, o.busy_ns
FROM v1._operator_call AS o
INNER JOIN main.op AS p ON p.capture_id = o.clock_id AND p.op_id = o.op_id
WHERE o.clock_id = ? AND o.input_dims IS NOT NULL AND o.pass <> 'comm'
ORDER BY o.op_id
"""
