"""Causes of a missing answer that ``no_answer`` checks: something that only some recordings or commands provide."""

from __future__ import annotations

from tracedb.report.capture_counts import SELECTED, count, number, row
from tracedb.report.cause_search import Search


def no_samples(_search: Search) -> str:
    """Say why there are no sampled operators."""
    return (
        "no sampled operators: no range is named fwd|OPERATOR|key=value|… (or bwd, step, comm); "
        "`tracedb sample` records some"
    )


def no_measures(search: Search) -> str:
    """Say why there are no measured times."""
    (names,) = row(
        search.connection,
        """SELECT string_agg(name, ', ' ORDER BY name) FROM (
               SELECT DISTINCT m.name FROM main.measure AS m ORDER BY m.name LIMIT 5)""",
    )
    if names is None:
        return (
            "no times measured outside of traces: ingest a CSV of them, with a column range and one such as mean_ms, "
            "or with columns such as forward_mean_ms"
        )
    return f"no range{search.filters} has the name of a measured time ({names}) and labels that agree with its settings"


def no_replay(_search: Search) -> str:
    """Say why there are no replayed operators."""
    return "no operators were replayed into this database; run `tracedb replay` on a machine with PyTorch"


def no_predictions(search: Search) -> str:
    """Say why no operator has a predicted time."""
    if count(search.connection, "main.expected_time"):
        return f"no operator{search.filters} has a predicted time; `tracedb expected` predicts those of all captures"
    return (
        "no operator times were predicted: run `tracedb fit --from traces --db OTHER --models DIR` on other runs of "
        "the same kind of GPU and `tracedb expected --models DIR`, or compare the captures of this file with each "
        "other by `tracedb expected --others`"
    )


def no_scenarios(search: Search) -> str:
    """Say why there are no times under changes."""
    if count(search.connection, "main.whatif"):
        return f"no stored change is left{search.filters}; `tracedb whatif --store` adds some"
    return (
        "no changes were timed and stored: run `tracedb whatif --store`, alone to compare the usual changes, or with "
        "--scale, --remove, --gpu and others; of several ranks, rows belong to the first capture"
    )


def no_paths(search: Search) -> str:
    """Say why there is no critical path."""
    filters = search.scope.filters
    if filters.window is not None:
        return "nothing happened in that window, which is counted from the first GPU event of each run"
    if filters.step_range is not None or count(search.connection, "main.critical_segment"):
        return ""
    return (
        f"the critical paths of {number(search.scope.captures, 'capture')} were not stored: they are found while "
        "`tracedb ingest` loads a trace; load the traces again into a new file, or name ranges with --range GLOB, "
        "whose paths are found now"
    )


def no_counters(_search: Search) -> str:
    """Say why there are no hardware counters."""
    return (
        "no hardware counters were captured; record with rocprofv3 --pmc, see `tracedb export rocprof-yaml`, or with "
        "ncu --csv"
    )


def no_memory(search: Search) -> str:
    """Say why there are no allocations of GPU memory."""
    if count(search.connection, "main.memory_event"):
        return f"no allocations of GPU memory are left{search.filters}: those of the host do not count"
    return (
        "no allocator events were loaded: record with torch.profiler.profile(profile_memory=True), and load without "
        "--no-memory-events"
    )


def no_flops(search: Search) -> str:
    """Say why there are no FLOPs."""
    launching, shaped = row(
        search.connection,
        f"""SELECT count(*), count(o.input_dims)
            FROM (SELECT DISTINCT e.capture_id, e.op_id FROM {search.scope.version}._gpu_event AS e {SELECTED}) AS e
            INNER JOIN main.op AS o ON o.capture_id = e.capture_id AND o.op_id = e.op_id""",
    )
    if not launching:
        return "no operator is known to have launched GPU work; FLOPs follow from operators that torch.profiler records"
    operators = number(launching, "operator call")
    if not shaped:
        return f"no shapes were recorded with the {operators}: record with torch.profiler.profile(record_shapes=True)"
    return f"none of the {operators} that launched GPU work{search.filters} has a formula for FLOPs or bytes"


def no_frames(search: Search) -> str:
    """Say why there are no Python frames."""
    if _frames(search)[0]:
        return ""
    return (
        "no Python frames were captured: record with torch.profiler.profile(with_stack=True), and load them without "
        "--no-stacks"
    )


def no_modules(search: Search) -> str:
    """Say that there are frames, but none of a module."""
    frames, modules = _frames(search)
    return "" if modules else f"no nn.Module was captured among {number(frames, 'Python frame')}"


def no_work_in_frames(search: Search) -> str:
    """Say that no GPU work belongs to the frames."""
    frames, _ = _frames(search)
    return f"no GPU work was launched inside the {number(frames, 'Python frame')}{search.filters}"


def _frames(search: Search) -> tuple[int, int]:
    frames, modules = row(
        search.connection, f"SELECT count(*), count(*) FILTER (e.kind = 'module') FROM main.frame AS e {SELECTED}"
    )
    return int(frames), int(modules)
