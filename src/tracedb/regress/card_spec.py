"""Specifications of GPUs: of one that was not sampled, from a file, and of sampled ones, from the table device_peak."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tracedb.errors import TracedbError
from tracedb.regress.features import SM_COUNTS
from tracedb.storage import schema
from tracedb.storage.connection import in_memory

TYPES = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8")
BOOST_MHZ = {
    **{"A100": 1410, "A800": 1410, "H100": 1980, "H200": 1980, "H800": 1980, "H20": 1980, "GH200": 1980, "V100": 1530},
    **{"L40S": 2520, "L40": 2490, "B200": 1965, "MI300X": 2100, "MI325X": 2100, "MI250X": 1700},
}
"""Maximum clock by a word in the product name, in MHz, from data sheets."""


@dataclass(frozen=True)
class Spec:
    """A card: memory bandwidth in GB/s, rates of dense products in TFLOP/s by element type, and its multiprocessors
    and their clock in MHz."""

    name: str
    memory_gbps: float
    tensor_tflops: Mapping[str, float]
    sm_count: int | None = None
    sm_clock_mhz: float | None = None

    def tflops(self, dtype: str | None) -> float | None:
        """The rate for an element type; None if it is not known."""
        return self.tensor_tflops.get(dtype or "")


KEYS = ("name", "memory_gbps", "tensor_tflops", "sm_count", "sm_clock_mhz")


def read(path: Path) -> Spec:
    """Return the card that a JSON file describes. Raises ``TracedbError`` that names the fault.

    Keys: ``memory_gbps``, ``tensor_tflops`` (a number for fp16 and bf16, or numbers by element type), and optionally
    ``name``, ``sm_count`` and ``sm_clock_mhz``.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TracedbError(f"{path}: cannot be read ({error.strerror}); name the specification of a GPU") from error
    except ValueError as error:
        raise TracedbError(f"{path}: is not valid JSON ({error})") from error
    if not isinstance(found, dict):
        raise TracedbError(
            f"{path}: is a {type(found).__name__}, expected an object with memory_gbps and tensor_tflops"
        )
    unknown = set(found) - set(KEYS)
    if unknown:
        raise TracedbError(f"{path}: has a key {min(unknown)!r}; expected {', '.join(KEYS)}")
    rates = found.get("tensor_tflops")
    if isinstance(rates, int | float) and not isinstance(rates, bool):
        rates = {"fp16": rates, "bf16": rates}
    if not isinstance(rates, dict) or not rates or not set(rates) <= set(TYPES):
        raise TracedbError(
            f"{path}: tensor_tflops is {rates!r}, expected TFLOP/s, or TFLOP/s by element type ({', '.join(TYPES)})"
        )
    name = found.get("name", path.stem)
    if not isinstance(name, str) or not name:
        raise TracedbError(f"{path}: name is {name!r}, expected a text")
    count, clock = found.get("sm_count"), found.get("sm_clock_mhz")
    return Spec(
        name,
        _positive(path, "memory_gbps", found.get("memory_gbps")),
        {dtype: _positive(path, f"tensor_tflops of {dtype}", rate) for dtype, rate in rates.items()},
        None if count is None else round(_positive(path, "sm_count", count)),
        None if clock is None else _positive(path, "sm_clock_mhz", clock),
    )


def _positive(path: Path, key: str, value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < float("inf"):
        raise TracedbError(f"{path}: {key} is {value!r}, expected a number above 0")
    return float(value)


def named(text: str) -> Spec:
    """Return the card of a JSON file, or the data sheet of a product name such as H200. Raises ``TracedbError``."""
    path = Path(text)
    if path.suffix == ".json" or path.is_file():
        return read(path)
    found = known(text)
    if found is None:
        raise TracedbError(
            f"--gpu {text}: is no file, and no data sheet is known of that name; name a product such as H200 or "
            "MI300X, or a JSON file with memory_gbps and tensor_tflops"
        )
    return found


@cache
def known(gpu: str) -> Spec | None:
    """Return the data sheet of a sampled card by its product name; None if there is none for it."""
    spaced = gpu.replace("NVIDIA", "NVIDIA ").replace("GH200120GB", "GH200 120GB")
    with in_memory() as connection:
        connection.execute(schema.ddl())
        row = connection.execute(
            f"""SELECT p.memory_gbps, {", ".join(f"p.{dtype}_tflops" for dtype in TYPES)}
                FROM main.device_peak AS p
                WHERE p.source = 'data sheet' AND p.memory_gbps IS NOT NULL AND regexp_matches(?, p.device_name)
                ORDER BY p.priority LIMIT 1""",
            [spaced],
        ).fetchone()
    if row is None:
        return None
    rates = {dtype: float(rate) for dtype, rate in zip(TYPES, row[1:], strict=True) if rate}
    return Spec(gpu, float(row[0]), rates, _by_word(SM_COUNTS, gpu), _by_word(BOOST_MHZ, gpu))


def _by_word(values: Mapping[str, int], gpu: str) -> int | None:
    return next((values[word] for word in sorted(values, key=len, reverse=True) if word in gpu.upper()), None)
