"""Explain why a report has no answer, with counts from SQL.

``CAUSES`` lists the causes in the order in which they are checked: for which needs of reports, and the function that
checks. A new need goes into ``Needs`` and, with its own cause, into that table.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.ingester.name_patterns import GRAPH_LAUNCH
from tracedb.report import not_recorded, time_caveats
from tracedb.report.capture_counts import SELECTED, count, number, row, unread
from tracedb.report.cause_search import Search
from tracedb.report.definition import Report
from tracedb.report.filters import Scope
from tracedb.report.needs import Needs

if TYPE_CHECKING:
    import duckdb


def reason(connection: duckdb.DuckDBPyConnection, report: Report, scope: Scope, path: Path) -> str:
    """Explain why a report has no answer."""
    search = Search(connection, scope, path)
    found = (cause(search) for needs, cause in CAUSES if report.needs in needs)
    return next(filter(None, found), f"nothing is left{search.filters}")


def _no_captures(search: Search) -> str:
    if search.scope.captures:
        return ""
    return f"{search.path}: holds no captures; load some with `tracedb ingest PATH --db {search.path}`"


def _impossible_times(search: Search) -> str:
    return time_caveats.all_impossible(search.connection)


def _clocks_apart(search: Search) -> str:
    return time_caveats.without_clock(search.connection)


def _only_counted(search: Search) -> str:
    events = search.events
    if not events.counted or events.kernels:
        return ""
    return (
        f"nothing but dispatches measured while hardware counters were read ({events.counted}), which is not a plain "
        f"run; --counted includes them"
    )


def _no_ranges(search: Search) -> str:
    if count(search.connection, f"{search.scope.version}._range"):
        return ""
    return "no ranges (NVTX, roctx, record_function) were captured"


def _no_gpu_activity(search: Search) -> str:
    events = search.events
    if events.kernels + events.graphs + events.others:
        return ""
    return _no_gpu(search.connection, search.scope)


def _no_calls(search: Search) -> str:
    return "" if search.calls else "no API calls (CUDA or HIP runtime and driver) were captured"


def _no_copies(search: Search) -> str:
    events = search.events
    if events.others:
        return ""
    return f"no copies or memsets were captured, only {number(events.kernels + events.graphs, 'kernel')}"


def _no_sizes(search: Search) -> str:
    if count(search.connection, "(SELECT s.capture_id FROM main.kernel_event AS s WHERE s.bytes IS NOT NULL)"):
        return ""
    return (
        f"the sizes of the copies were not recorded ({search.events.others} copies and memsets): rocprofv3 writes them "
        "to JSON and rocpd files, not to CSV; cuda-gpu-mem-time-sum has their times"
    )


def _no_kernels(search: Search) -> str:
    _, graphs, others, _ = search.events
    if search.events.kernels:
        return ""
    if graphs:
        return (
            f"no kernels were captured: {number(graphs, 'graph replay')} recorded only as a whole; "
            "record again with graph nodes traced (nsys profile --cuda-graph-trace=node)"
        )
    return f"no kernels were captured, only {others} {'copy or memset' if others == 1 else 'copies and memsets'}"


def _no_time(search: Search) -> str:
    lasting = f"""(SELECT e.capture_id FROM main.kernel_event AS e {SELECTED} WHERE e.time_fault IS NULL
                    GROUP BY e.capture_id HAVING max(e.start_ns + e.duration_ns) > min(e.start_ns))"""
    if count(search.connection, lasting):
        return ""
    total = number(sum(search.events[:3]), "GPU event")
    return f"no time to divide: {total} of duration 0, at one moment in each capture; record a longer run"


def _no_gaps(search: Search) -> str:
    events = search.events
    total = number(events.kernels + events.graphs + events.others, "GPU event")
    return f"no gaps{search.filters}: on no device is idle time between its {total}"


def _no_launches(search: Search) -> str:
    if not search.calls:
        return f"no API calls were captured, so nothing is known of the launch of {search.kernels}"
    return f"no launches were captured{search.filters}: no API call is known to have launched one of the kernels"


def _no_collectives(search: Search) -> str:
    return f"no collectives were captured{search.filters}: none of the {search.kernels} is one"


def _no_gemms(search: Search) -> str:
    return f"no GEMMs were captured{search.filters}: none of the {search.kernels} is of class matmul"


def _no_spreads(search: Search) -> str:
    (gemms,) = row(
        search.connection,
        f"""SELECT count(*) FROM {search.scope.version}._gpu_event AS e {SELECTED}
            WHERE e.kind = 'kernel' AND e.class = 'matmul'""",
    )
    if not gemms:
        return _no_gemms(search)
    return (
        f"no GEMM was called twice{search.filters} by captures that differ in a label or the rank: ingest several "
        "runs, or several ranks, labelled by their folders or with --label"
    )


def _no_matches(search: Search) -> str:
    return f"no collective spans two ranks or more{search.filters}, so there is no waiting to report"


def _no_all_to_alls(search: Search) -> str:
    return (
        f"no all-to-all was captured{search.filters}: none of the {search.kernels} is one by its recorded collective, "
        "its operator or its name"
    )


def _no_messages(search: Search) -> str:
    calls, peers, ranks = row(
        search.connection,
        f"""SELECT count(*), count(c.peer_rank), count(DISTINCT s.rank)
            FROM {search.scope.version}._message_call AS c
            INNER JOIN {search.scope.version}._capture_set AS s ON s.capture_id = c.capture_id""",
    )
    if not calls:
        return (
            "no sends or receives are known: no capture holds calls of send or recv (record_param_comms of PyTorch) "
            "whose kernels were recorded; record with ProfilerActivity.CPU and CUDA"
        )
    if not peers:
        return (
            f"{number(calls, 'send or receive call')} present, but their ranks were not recorded; record again with "
            "record_shapes=True, or with PyTorch 2.5 or later"
        )
    if ranks < 2:
        return f"{number(calls, 'send or receive call')} of one rank only; ingest the captures of all ranks together"
    return f"none of the {calls} send and receive calls has its counterpart on another rank{search.filters}"


def _no_pipelines(search: Search) -> str:
    (pairs,) = row(search.connection, f"SELECT count(*) FROM {search.scope.version}._message_pair AS p")
    if not pairs:
        return _no_messages(search)
    return (
        f"{number(pairs, 'message')} between ranks, but no pipeline{search.filters}: in a pipeline, one rank begins "
        "each step by sending, and each of the others by receiving from the one before it; ingest the captures of all "
        "stages together"
    )


def _no_overlap(search: Search) -> str:
    gemms, collectives = row(
        search.connection,
        f"""SELECT count(*) FILTER (e.class = 'matmul'), count(*) FILTER (e.class = 'collective')
            FROM {search.scope.version}._gpu_event AS e {SELECTED} WHERE e.kind = 'kernel'""",
    )
    if not gemms:
        return f"no GEMMs were captured{search.filters}: no kernel is of class matmul"
    calls = number(gemms, "GEMM call")
    if not collectives:
        return f"no collectives were captured{search.filters}, so nothing ran beside the {calls}"
    return f"none of the {calls} ran beside a collective{search.filters}"


def _no_marked_steps(search: Search) -> str:
    steps = f"(SELECT t.capture_id FROM {search.scope.version}._step AS t WHERE t.step IS NOT NULL)"
    return "" if count(search.connection, steps) else _no_steps(search)


def _no_steps(search: Search) -> str:
    if count(
        search.connection, f"(SELECT t.capture_id FROM {search.scope.version}._step AS t WHERE t.step IS NOT NULL)"
    ):
        return f"no step is left{search.filters}: none of those that are marked holds GPU work"
    return (
        "no steps are marked: record with the schedule of torch.profiler and prof.step() (ProfilerStep#N), or put "
        "a range (NVTX, roctx, record_function) around each step and name it with --step-range GLOB"
    )


def _no_graphs(search: Search) -> str:
    (launches,) = row(
        search.connection,
        f"SELECT count(*) FROM main.launch AS e {SELECTED} WHERE contains(e.name, '{GRAPH_LAUNCH}')",
    )
    if not launches:
        return f"no graph was launched{search.filters} (cudaGraphLaunch, hipGraphLaunch)"
    return (
        f"{number(launches, 'graph launch')} present, but none of their kernels{search.filters}; "
        "record again with graph nodes traced (nsys profile --cuda-graph-trace=node)"
    )


def _no_attention(search: Search) -> str:
    return (
        f"no ranges are named after the parts of attention{search.filters} (such as computing_attention_scores, "
        "computing_softmax, final_matmul) and hold GPU work outside the warm-up"
    )


def _none_by_rule(search: Search) -> str:
    rule = search.scope.rule
    if not rule:
        return ""
    other = "" if rule == "process" else "; try --rule process"
    return f"no kernel was launched inside a range by rule {rule}{search.filters}{other}"


_ALL = frozenset(Needs)
_COPIES = frozenset({Needs.COPIES, Needs.COPY_SIZES})
CAUSES: tuple[tuple[frozenset[Needs], Callable[[Search], str]], ...] = (
    (_ALL, _no_captures),
    (frozenset({Needs.SAMPLES}), not_recorded.no_samples),
    (frozenset({Needs.MEASURES}), not_recorded.no_measures),
    (frozenset({Needs.MEMORY}), not_recorded.no_memory),
    (frozenset({Needs.REPLAY}), not_recorded.no_replay),
    (frozenset({Needs.SCENARIOS}), not_recorded.no_scenarios),
    (frozenset({Needs.PREDICTIONS}), not_recorded.no_predictions),
    (_ALL - {Needs.CALLS, Needs.RANGES}, _impossible_times),
    (frozenset({Needs.LAUNCHES}), _clocks_apart),
    (frozenset({Needs.COUNTERS}), not_recorded.no_counters),
    (_ALL - {Needs.RANGES, Needs.ATTENTION, Needs.CALLS, *_COPIES}, _only_counted),
    (frozenset({Needs.RANGES, Needs.ATTENTION}), _no_ranges),
    (_ALL, _no_gpu_activity),
    (frozenset({Needs.CALLS}), _no_calls),
    (_COPIES, _no_copies),
    (frozenset({Needs.COPY_SIZES}), _no_sizes),
    (_ALL - {Needs.GPU, Needs.PATHS, Needs.GAPS, Needs.CALLS, Needs.STEPS, *_COPIES}, _no_kernels),
    (frozenset({Needs.GPU, Needs.PATHS}), _no_time),
    (frozenset({Needs.PATHS}), not_recorded.no_paths),
    (frozenset({Needs.GAPS}), _no_gaps),
    (frozenset({Needs.LAUNCHES}), _no_launches),
    (frozenset({Needs.COLLECTIVES}), _no_collectives),
    (frozenset({Needs.GEMMS}), _no_gemms),
    (frozenset({Needs.SPREADS}), _no_spreads),
    (frozenset({Needs.MATCHES}), _no_matches),
    (frozenset({Needs.ALL_TO_ALLS}), _no_all_to_alls),
    (frozenset({Needs.MESSAGES}), _no_messages),
    (frozenset({Needs.PIPELINES}), _no_pipelines),
    (frozenset({Needs.OVERLAP}), _no_overlap),
    (frozenset({Needs.STEPS}), _no_steps),
    (frozenset({Needs.MODULES, Needs.STACKS}), not_recorded.no_frames),
    (frozenset({Needs.MODULES}), not_recorded.no_modules),
    (frozenset({Needs.MODULES, Needs.STACKS}), not_recorded.no_work_in_frames),
    (frozenset({Needs.STEP_FLOPS}), _no_marked_steps),
    (frozenset({Needs.FLOPS, Needs.STEP_FLOPS, Needs.SHAPES}), not_recorded.no_flops),
    (frozenset({Needs.GRAPHS}), _no_graphs),
    (frozenset({Needs.ATTENTION}), _no_attention),
    (_ALL, _none_by_rule),
)
"""Causes by need, the more general ones first."""


def _no_gpu(connection: duckdb.DuckDBPyConnection, scope: Scope) -> str:
    if found := unread(connection):
        return f"no GPU activity that tracedb reads: {number(scope.captures, 'capture')} with {found}"
    graph_launches, launches = row(
        connection,
        f"SELECT count(*) FILTER (contains(e.name, '{GRAPH_LAUNCH}')), count(*) FROM main.launch AS e {SELECTED}",
    )
    if graph_launches:
        return (
            f"{number(graph_launches, 'graph launch')} present but no kernels; "
            "record again with graph nodes traced (nsys profile --cuda-graph-trace=node)"
        )
    ops = int(row(connection, f"SELECT count(*) FROM main.op AS e {SELECTED}")[0])
    ranges = int(row(connection, f"SELECT count(*) FROM main.annotation AS e {SELECTED}")[0])
    samples = int(row(connection, f"SELECT count(*) FROM main.operator_sample AS e {SELECTED}")[0])
    held = [(ops, "operator"), (launches, "API call"), (ranges, "range"), (samples, "operator sample")]
    what = ", ".join(number(count, noun) for count, noun in held if count) or "no events"
    return (
        f"no GPU activity was captured: {number(scope.captures, 'capture')} of the CPU only ({what}); "
        "record again with the GPU traced"
    )
