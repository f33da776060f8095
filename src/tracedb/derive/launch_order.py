"""Match graph replays with captured launches that name no kernels, as on CUDA: by their order.

The events of a replay on one stream run in the order in which they were captured. The launches of a stream capture are
those of the replay if there are as many, of the same kinds in the same order: kernels, copies, memsets. Nothing is
matched if several stream captures of the process fit, since they may differ in shapes, or if the replay uses several
streams, since calls do not say theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb
import pyarrow as pa

Replayed = tuple[int, list[int], list[str]]
"""Capture, and the number and kind of each event in the order of time."""
SAME_PROCESS = 1
"""The largest distance of captures (``graph_links._nearness``) that are of one process."""


class _Window:
    """The launches of one stream capture in the order of time."""

    def __init__(self, capture_id: int) -> None:
        self.capture_id = capture_id
        self.kinds: list[str] = []
        self.launches: list[tuple[int, int | None]] = []
        """Launch and operator."""

    def fits(self, kinds: Sequence[str]) -> bool:
        """Whether a replay of events of these kinds may be of its graph; a copy or memset may run as a kernel."""
        return len(kinds) == len(self.kinds) and all(
            kind in (own, "kernel") for own, kind in zip(self.kinds, kinds, strict=True)
        )


def link(
    connection: duckdb.DuckDBPyConnection, replays: Sequence[Replayed], nearness: Mapping[tuple[int, int], int]
) -> None:
    """Write the links of replays that fit one stream capture of ``temp.graph_unnamed``.

    ``nearness``: distance from the capture of a replay to that of a stream capture; no entry is never.
    """
    windows = _windows(connection) if replays else []
    found: list[tuple[int, int, int, int, int | None]] = []
    for capture_id, events, kinds in replays:
        near = [window for window in windows if nearness.get((capture_id, window.capture_id), 9) <= SAME_PROCESS]
        fitting = [window for window in near if window.fits(kinds)]
        if len(fitting) == 1:
            found += [
                (capture_id, event, fitting[0].capture_id, launch, op)
                for event, (launch, op) in zip(events, fitting[0].launches, strict=True)
            ]
    if found:
        _write(connection, found)


def _windows(connection: duckdb.DuckDBPyConnection) -> list[_Window]:
    windows: dict[tuple[int, int, int], _Window] = {}
    rows = connection.execute(
        """SELECT u.capture_id, u.process_id, u.window_ns, u.kind, u.launch_id, u.op_id
           FROM temp.graph_unnamed AS u ORDER BY u.capture_id, u.process_id, u.window_ns, u.start_ns, u.launch_id"""
    )
    for capture_id, process_id, window_ns, kind, launch_id, op_id in rows.fetchall():
        window = windows.setdefault((capture_id, process_id, window_ns), _Window(capture_id))
        window.kinds.append(kind)
        window.launches.append((launch_id, op_id))
    return list(windows.values())


def _write(connection: duckdb.DuckDBPyConnection, found: list[tuple[int, int, int, int, int | None]]) -> None:
    names = ("capture_id", "event_id", "origin_capture_id", "origin_launch_id", "op_id")
    columns = zip(*found, strict=True)
    rows = pa.table(  # noqa: F841 - DuckDB finds it by name
        {name: pa.array(column, pa.int64()) for name, column in zip(names, columns, strict=True)}
    )
    connection.execute(
        """INSERT INTO main.graph_link BY NAME
           SELECT r.capture_id, r.event_id, 'aligned' AS rule, 'captured launch in order' AS origin,
               r.origin_capture_id, r.origin_launch_id, r.op_id
           FROM rows AS r
           ANTI JOIN main.graph_link AS g ON g.capture_id = r.capture_id AND g.event_id = r.event_id
           ORDER BY r.capture_id, r.event_id"""
    )
