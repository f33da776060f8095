"""Tell which tool wrote a Chrome JSON file. Many tools use the format, and it does not name its writer."""

from __future__ import annotations

import re
from enum import Enum, auto
from pathlib import Path

from tracedb.ingester.decompress import PIECE, start_of
from tracedb_torch.snapshot.recognise import AS_PICKLE, is_pickled, is_snapshot
from tracedb_torch.split.blocks import BOM, EVENTS_KEY

SNIFF = 64 << 10
FIRST_KEYS = re.compile(rb'^\[\s*\{\s*"(?:ph|cat|name|pid|tid|ts)"\s*:')
TRACE_KEYS = re.compile(rb'(?<!\\)"(schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds)"\s*:')
CATEGORY = re.compile(rb'(?<!\\)"cat"\s*:\s*"([^"\\]{1,60})"')
OWN_CATEGORIES = frozenset(
    (
        *("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver", "cpu_op", "user_annotation"),
        *("gpu_user_annotation", "python_function", "cpu_instant_event", "ac2g", "fwdbwd", "cuda_sync", "overhead"),
        *("Kernel", "Memcpy", "Memset", "Runtime", "Operator", "Python", "async_cpu_to_gpu", "async_gpu", "Trace"),
        *("xpu_runtime", "xpu_driver", "xpu_sync", "mtia_runtime", "mtia_ccp_events", "mtia_insight", "cuda_event"),
        *("privateuse1_runtime", "privateuse1_driver", "cuda_profiler_range", "hpu_op", "glow_runtime"),
        *("collective_comm", "external_correlation"),
    )
)
"""Categories that torch.profiler writes."""
LEGACY = re.compile(rb'"pid"\s*:\s*"(?:CPU|CUDA) functions"')  # written by torch.autograd.profiler
ROCPROF = (b'"BeginNs"', b'"EndNs"')  # arguments in the JSON of rocprof v1 and v2
ROCPROFV3 = re.compile(rb'\{\s*"rocprofiler-sdk-tool"\s*:')
ASCEND = re.compile(rb'"(?:Ascend Hardware|CANN|AscendCL@\w*|AI_CORE|AI_VECTOR_CORE)"')
XLA = re.compile(rb'"(?:hlo_module|hlo_op|/device:[GT]PU:\d+|/host:CPU|XLA Ops|XLA Modules|TensorFlow Ops)"')
BROWSER = re.compile(
    rb'"(?:devtools\.timeline[\w.,-]*|CrRendererMain|CrBrowserMain|TracingStartedInBrowser)"'
    rb'|"cat"\s*:\s*"(?:node|v8|blink)[",.]'
)
READ = "tracedb reads traces of torch.profiler, nsys and rocprofv3"
KINDS = (
    (ASCEND, f"a trace of an Ascend NPU, whose rows are not read; {READ}"),
    (XLA, "a trace of JAX, XLA or TensorFlow, which tracedb does not read; record the run with nsys or rocprofv3"),
    (BROWSER, f"a trace of a browser or of Node.js, which holds no GPU work; {READ}"),
)


class Claim(Enum):
    """How sure it is that the file is a torch.profiler trace."""

    NOT_CHROME = auto()
    OF_ROCPROF = auto()
    TORCH = auto()
    OTHER = auto()
    """A Chrome trace written by another tool, or another file that PyTorch writes and tracedb does not read."""
    SNAPSHOT = auto()
    """A memory snapshot of PyTorch."""
    UNKNOWN = auto()
    """A Chrome trace that has to be read whole to decide."""


def claim_of(path: Path) -> tuple[Claim, str]:
    """Decide by the first bytes which tool wrote a file; for ``OTHER``, also return the message for the user."""
    found = (Claim.NOT_CHROME, "")
    for size in (SNIFF, PIECE):
        try:
            start = start_of(path, size)
        except OSError:
            return Claim.NOT_CHROME, ""
        is_whole = len(start) < size
        if is_pickled(start):
            return Claim.OTHER, AS_PICKLE
        text = start.removeprefix(BOM).lstrip()
        if not text.startswith((b"{", b"[")):
            break
        found = _judged(text, is_whole)
        if is_whole or found[0] not in (Claim.NOT_CHROME, Claim.UNKNOWN):
            break
    return found


def _judged(text: bytes, is_whole: bool) -> tuple[Claim, str]:
    if ROCPROFV3.match(text):
        return Claim.OF_ROCPROF, ""
    if is_snapshot(text):
        return Claim.SNAPSHOT, ""
    keys = set(TRACE_KEYS.findall(text)) if text.startswith(b"{") else set()
    if not (FIRST_KEYS.match(text) or (text.startswith(b"{") and EVENTS_KEY.search(text))):
        # No events yet: a long header or a truncated trace. Other formats have a schemaVersion, too.
        is_head = len(keys) > 1 or b'"traceEvents"' in text or (bool(keys) and not is_whole)
        return (Claim.TORCH if is_head and text.startswith(b"{") else Claim.NOT_CHROME), ""
    if keys:
        return Claim.TORCH, ""
    if all(key in text for key in ROCPROF):
        return Claim.OF_ROCPROF, ""
    for pattern, words in KINDS[:1]:  # its operators have a category of torch.profiler
        if pattern.search(text):
            return Claim.OTHER, words
    categories = {name.decode("utf-8", errors="replace") for name in CATEGORY.findall(text)}
    if categories & OWN_CATEGORIES or LEGACY.search(text):
        return Claim.TORCH, ""
    for pattern, words in KINDS:
        if pattern.search(text):
            return Claim.OTHER, words
    return (Claim.OTHER, other(categories)) if is_whole else (Claim.UNKNOWN, "")


def other(categories: set[str]) -> str:
    """Return the message for a Chrome trace of an unknown tool."""
    named = ", ".join(sorted(categories)[:3]) + (", …" if len(categories) > 3 else "")
    what = f"none of its categories ({named}) is" if categories else "its events have no category, such as"
    return f"a Chrome trace, but not of torch.profiler: {what} kernel or cpu_op; {READ}"
