"""The columns of a comparison: what they mean, and how a table shows them."""

from __future__ import annotations

from tracedb.output import Show

MEANINGS = {
    "side": "The run that is compared with the baseline.",
    "kind": "What is compared: total, timeline, class, collective, gemm (kernel and shapes), kernel.",
    "name": "Which of these.",
    "status": "both, new (not in the baseline) or vanished (only there).",
    "base_units": "Units of the baseline: steps of ranks where all captures mark steps, else captures.",
    "units": "Units of the side.",
    "base_independent_units": "Runs or steps of the baseline that the test is over; their ranks are no evidence apart "
    "from each other.",
    "independent_units": "Runs or steps of the side that the test is over.",
    "tested_over": "What the test is over: runs (their means) if either side has several or no steps are marked, since "
    "steps of one run are not independent; else steps of one run each, which say nothing about other runs.",
    "base_calls_per_unit": "Calls per unit in the baseline.",
    "calls_per_unit": "Calls per unit in the side.",
    "base_mean_ns": "Time per unit in the baseline, in ns.",
    "mean_ns": "Time per unit in the side, in ns.",
    "difference_mean_ns": "Side less baseline, in ns.",
    "ratio": "Side over baseline.",
    "base_call_mean_ns": "Time per call in the baseline, in ns.",
    "call_mean_ns": "Time per call in the side, in ns.",
    "by_calls_mean_ns": "Part of the difference that is due to the number of calls, in ns.",
    "by_time_mean_ns": "Part of the difference that is due to the time of a call, in ns.",
    "p_value": "Two-sided p-value of the Mann-Whitney test over runs or steps (tested_over); NULL below 4 a side.",
    "verdict": "slower or faster (beyond the spread between runs or steps, p < 0.05), within the spread, too few runs, "
    "too few steps, not comparable.",
}
SHOWS = (
    Show(("side",), kind="word"),
    Show(("kind",), kind="word"),
    Show(("name",), kind="name", floor=36),
    Show(("base_calls_per_unit", "calls_per_unit"), "calls", "pair", drop=1),
    Show(("base_mean_ns",), "baseline", scale="unit"),
    Show(("mean_ns",), "now", scale="unit"),
    Show(("difference_mean_ns",), "difference", scale="unit"),
    Show(("ratio",), kind="ratio"),
    Show(("by_calls_mean_ns",), "by calls", drop=2, scale="unit"),
    Show(("by_time_mean_ns",), "by time", drop=2, scale="unit"),
    Show(("p_value",), "p", "number", drop=3),
    Show(("status",), kind="word", drop=4),
    Show(("verdict",), kind="verdict"),
)
