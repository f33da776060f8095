"""The keys of a step's configuration: their names, and their values, each checked as it is taken."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

from tracedb.errors import TracedbError
from tracedb.sampling.layer_kinds import GPT_LAYER, LAYERS

KEYS = (
    *("layers", "dim", "heads", "seq", "batch", "config", "gpu", "dtype", "vocab", "pp", "mp", "dp", "gpus_per_node"),
    *("micro_batches", "schedule", "layer", "norm", "kv_heads", "ffn", "experts", "top_k", "ep", "recompute", "zero1"),
    *("fsdp", "overlap", "bucket", "operands", "sm_clock_mhz", "memory_clock_mhz", "ends_on_host", "step_us_median"),
    "trace",
)
"""Keys of a step."""
MEASUREMENT_KEYS = (
    *("step_us_min", "step_us_max", "step_us_p90", "step_us_by_rank", "steps_us", "medians_us", "params", "torch"),
    *("measured_sm_clock_mhz", "measured_power_w", "measured_temperature_c"),
)
"""Keys that describe how a step was measured (``benchmarks/training_step.py`` writes them); predictions use none."""
OTHER_NAMES = {
    **{"hidden": "dim", "hidden_size": "dim", "num_layers": "layers", "num_heads": "heads", "seq_len": "seq"},
    **{"length": "seq", "batch_size": "batch", "micro_batch_size": "batch", "vocab_size": "vocab"},
}
"""Keys as other programs name them → tracedb's key."""


def unknown(item: Mapping[str, object]) -> list[str]:
    """Return each key that no step has, with the key that may be meant."""
    found = []
    for key in map(str, item):
        if key not in (*KEYS, *MEASUREMENT_KEYS):
            close = OTHER_NAMES.get(key) or next(iter(difflib.get_close_matches(key, KEYS, 1)), None)
            found.append(f"key {key!r}" + (f" (did you mean {close!r}?)" if close else ""))
    return found


class StepKeys:
    """The keys of one step, each checked as it is taken."""

    def __init__(self, path: Path, found: Mapping[str, object]) -> None:
        self._path = path
        self._found = found
        if "product_speedup" in found:
            raise TracedbError(
                f"{path}: product_speedup is no key any more; leave it out, and sample again: `tracedb sample` runs "
                "products at the clock of a step"
            )

    def size(self, key: str, default: int | None = None) -> int:
        value = self._found.get(key, default)
        if not is_size(value) or not isinstance(value, int):
            others = unknown(self._found) if value is None and "training_config" not in self._found else []
            raise TracedbError(
                f"{self._path}: {key} is {value!r}, expected a whole number of at least 1"
                + (f"; unknown: {', '.join(others)}" if others else "")
            )
        return value

    def optional_size(self, key: str) -> int | None:
        return None if self._found.get(key) is None else self.size(key)

    def layer(self, key: str) -> tuple[str, ...]:
        value = self._found.get(key)
        if not isinstance(value, str):
            return self.names(key, GPT_LAYER)
        if value not in LAYERS:
            raise TracedbError(f"{self._path}: {key} is {value!r}, expected {', '.join(LAYERS)} or a list of operators")
        return LAYERS[value]

    def number(self, key: str) -> float | None:
        value = self._found.get(key)
        if value is None:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
            raise TracedbError(f"{self._path}: {key} is {value!r}, expected a number above 0")
        return float(value)

    def text(self, key: str, default: str) -> str:
        value = self._found.get(key, default)
        if not isinstance(value, str):
            raise TracedbError(f"{self._path}: {key} is {value!r}, expected a text")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self._found.get(key, default)
        if not isinstance(value, bool):
            raise TracedbError(f"{self._path}: {key} is {value!r}, expected true or false")
        return value

    def names(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        value = self._found.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, list) or not value or not all(isinstance(name, str) for name in value):
            raise TracedbError(f"{self._path}: {key} is {value!r}, expected a list of operators")
        return tuple(value)


def is_size(value: object) -> bool:
    """Whether a value is a whole number of at least 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
