"""What to sample: the YAML configuration, whose keys are those of estimate-train-time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tracedb.errors import TracedbError

RUN_MODES = ("get_all", "get_one", "get_profiler", "run_function")
STEPPINGS = ("add", "mul")
UNUSED = ("targets", "warmup_shapes")
"""Keys that are accepted but not needed: durations come from the trace, and each sampled shape has its own warm-up."""


@dataclass(frozen=True)
class Axis:
    """One shape parameter and the values that it takes."""

    name: str
    start: int
    step: int
    end: int
    stepping: str


@dataclass(frozen=True)
class Configuration:
    """What to sample, and how often."""

    path: Path
    operator: str
    columns: tuple[str, ...]
    axes: tuple[Axis, ...]
    shape: dict[str, int] | None
    run: str = "get_all"
    wait: int = 1
    warmup: int = 2
    active: int = 10
    module: str | None = None
    function: str | None = None


def read_mapping(path: Path) -> dict[str, object]:
    """Return the mapping in a YAML or JSON file. Raises ``TracedbError`` if it holds none."""
    try:
        import yaml
    except ModuleNotFoundError as error:
        raise TracedbError("reading a configuration needs PyYAML: pip install 'tracedb-gpu[torch]'") from error
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TracedbError(f"{path}: cannot be read ({error.strerror}); name a configuration file") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise TracedbError(f"{path}: is not valid YAML ({' '.join(str(error).split())[:200]})") from error
    if not isinstance(content, dict):
        raise TracedbError(f"{path}: holds {type(content).__name__}, expected a mapping of keys such as kernel_name")
    return {str(key): value for key, value in content.items()}


def read(path: Path) -> Configuration:
    """Return the configuration in a file. Raises ``TracedbError`` that names the faulty key."""
    content = read_mapping(path)
    columns = _columns(path, content)
    operator = _text(path, content, "kernel_name") or _text(path, content, "function_name")
    if operator is None:
        raise TracedbError(f"{path}: has no kernel_name; expected the name of an operator such as linear1")
    run = _text(path, content, "run") or "get_all"
    if run not in RUN_MODES:
        raise TracedbError(f"{path}: run is {run!r}, expected one of {', '.join(RUN_MODES)}")
    axes = _axes(path, content, columns)
    shapes = content.get("shapes")
    shape = None if shapes is None else dict(zip(columns, _integers(path, "shapes", shapes, len(columns)), strict=True))
    found = Configuration(
        path=path,
        operator=operator,
        columns=columns,
        axes=axes,
        shape=shape,
        run=run,
        wait=_count(path, content, "wait", 1, 0),
        warmup=_count(path, content, "warmup", 2, 0),
        active=_count(path, content, "active", 10, 1),
        module=_text(path, content, "module_name"),
        function=_text(path, content, "function_name"),
    )
    check_run(found)
    return found


def check_run(configuration: Configuration) -> None:
    """Raise ``TracedbError`` if the configuration lacks keys that its mode needs."""
    if configuration.run == "get_all" and not configuration.axes:
        raise TracedbError(f"{configuration.path}: run get_all needs starts, steps, ends and operators")
    if configuration.run != "get_all" and configuration.shape is None:
        raise TracedbError(f"{configuration.path}: run {configuration.run} needs shapes, the one shape to run")


def _columns(path: Path, content: Mapping[str, object]) -> tuple[str, ...]:
    named = content.get("columns_name")
    if not isinstance(named, list) or not named or not all(isinstance(name, str) for name in named):
        raise TracedbError(
            f"{path}: columns_name is {named!r}, expected a list of shape parameters such as [b, l, dim]"
        )
    shape = [name for name in named if not name.endswith("dur(us)")]
    first = content.get("first_n_column", len(shape))
    if first != len(shape):
        raise TracedbError(f"{path}: first_n_column is {first!r}, but columns_name has {len(shape)} shape parameters")
    if len(set(shape)) != len(shape):
        raise TracedbError(f"{path}: columns_name names a shape parameter twice: {', '.join(shape)}")
    return tuple(shape)


def _axes(path: Path, content: Mapping[str, object], columns: Sequence[str]) -> tuple[Axis, ...]:
    if all(content.get(key) is None for key in ("starts", "steps", "ends", "operators")):
        return ()
    starts, steps, ends = (_integers(path, key, content.get(key), len(columns)) for key in ("starts", "steps", "ends"))
    steppings = content.get("operators")
    if not isinstance(steppings, list) or len(steppings) != len(columns):
        raise TracedbError(f"{path}: operators must list add or mul for each of {', '.join(columns)}")
    axes = []
    for name, start, step, end, stepping in zip(columns, starts, steps, ends, steppings, strict=True):
        if stepping not in STEPPINGS:
            raise TracedbError(f"{path}: operators has {stepping!r} for {name}, expected add or mul")
        if step < (1 if stepping == "add" else 2) or start < (0 if stepping == "add" else 1):
            raise TracedbError(f"{path}: {name} starts at {start} and steps by {stepping} {step}, which never ends")
        axes.append(Axis(name, start, step, end, str(stepping)))
    return tuple(axes)


def _integers(path: Path, key: str, value: object, count: int) -> list[int]:
    if not isinstance(value, list) or len(value) != count:
        found = f"{len(value)} values" if isinstance(value, list) else repr(value)
        raise TracedbError(f"{path}: {key} has {found}, expected {count}, one for each shape parameter")
    for item in value:
        if not isinstance(item, int) or isinstance(item, bool):
            raise TracedbError(f"{path}: {key} holds {item!r}, expected whole numbers")
    return list(value)


def _text(path: Path, content: Mapping[str, object], key: str) -> str | None:
    value = content.get(key)
    if value is not None and not isinstance(value, str):
        raise TracedbError(f"{path}: {key} is {value!r}, expected a text")
    return value


def _count(path: Path, content: Mapping[str, object], key: str, default: int, least: int) -> int:
    value = content.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise TracedbError(f"{path}: {key} is {value!r}, expected a whole number of at least {least}")
    return value
