"""Waits of a stream for which no profiler says what it waited for, and which did not delay anything as recorded.

A replay needs them: a backward pass that the gradient had reached long before may have to wait for it when it starts
earlier, or when the gradient is sent later.
"""

from __future__ import annotations

import numpy as np

from tracedb.dependencies.causes import LONG_AGO, Causes, lanes
from tracedb.dependencies.recorded_arrays import STREAM_WAIT, Numbers, Recorded


def added(recorded: Recorded, causes: Causes) -> Numbers:
    """Return the awaited event of each event (``Causes.awaited``), with those of such waits added.

    The wait belongs to the event that is launched next, on whichever thread, and is for the event that another stream
    was given last. A wait for something that had not ended when the event started was for something else.
    """
    gpu, calls, awaited = recorded.gpu, recorded.calls, causes.awaited
    waits = calls.start[calls.kind == STREAM_WAIT]
    by_launch = np.argsort(causes.call_start, kind="stable")
    by_launch = by_launch[causes.call_start[by_launch] > LONG_AGO]
    following = np.searchsorted(causes.call_start[by_launch], waits)
    waits, following = waits[following < len(by_launch)], following[following < len(by_launch)]
    event = by_launch[following]
    source = np.full(len(event), -1)
    launched = np.full(len(event), LONG_AGO)
    for mine in lanes(gpu):
        mine = mine[np.argsort(causes.call_start[mine], kind="stable")]
        place = np.searchsorted(causes.call_start[mine], waits) - 1
        last = mine[np.maximum(place, 0)]
        fits = (place >= 0) & (gpu.lane[event] != gpu.lane[last]) & (causes.call_start[last] > launched)
        fits &= gpu.end[last] <= gpu.start[event]
        source[fits], launched[fits] = last[fits], causes.call_start[last[fits]]
    found = awaited.copy()
    is_new = (source >= 0) & (awaited[event] < 0)
    found[event[is_new]] = source[is_new]
    return found
