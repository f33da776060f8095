"""Find out which operator each kernel of a graph replay comes from: fills ``main.graph_link``.

A replay launches all kernels of a graph with one call, so nothing in it says which operator they belong to. The calls
that were recorded into the graph, or a run of the same kernels without a graph, do: they are matched by graph node
where both record it, else by aligning the order of kernel names. They may be in another capture of the same process,
so this is done once all captures of an ingest are loaded, for the whole file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracedb.derive import across_captures, launch_order, sequence_alignment
from tracedb.ingester.name_patterns import GRAPH_LAUNCH, KERNEL_LAUNCH
from tracedb.storage import pending_facts, resources, statements

MEMORY_LIMIT = "1GB"
LEAST_SHARE = 0.5
"""A replay is aligned only with a sequence that has at least this share of its kernels, in order."""
MOST_TRIED = 3
"""Sequences that are aligned with a replay: those that share most names with it."""
MOST_ROWS = 1_000_000
"""Launches or kernels of one sequence that are considered, from its start."""
_TABLES = (
    *("graph_replay", "graph_text", "graph_token", "graph_captured", "graph_captured_op", "graph_origin"),
    "graph_unnamed",
)
Numbers = npt.NDArray[np.int64]
Columns = dict[str, npt.NDArray[Any]]


def link_file(database: Path, memory_limit: str = MEMORY_LIMIT, if_owed: bool = False) -> None:
    """Fill the table of a database; ``if_owed``: unless nothing was loaded since it was last done, by any process.

    Raises ``DatabaseBusy`` while another process holds the database, ``TracedbError`` if memory runs out; the table is
    unchanged in both cases.
    """
    across_captures.derive(
        database,
        pending_facts.GRAPH_LINKS,
        link,
        memory_limit,
        if_owed,
        f"matching graph replays with recorded launches takes more than {memory_limit}; load the captures of each "
        "process into a file of their own",
    )


def link(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill the table of the current catalog, and mark it done. Call inside a transaction."""
    pending_facts.settle(connection, pending_facts.GRAPH_LINKS)
    connection.execute("DELETE FROM main.graph_link")
    if not are_possible(connection):
        return
    _run(connection, "graph_replays")
    ((replayed,),) = connection.execute("SELECT count(*) FROM temp.graph_replay").fetchall()
    if replayed:
        _run(connection, "graph_origins")
        _run(connection, "graph_nodes")
        _align(connection)
    for table in _TABLES:
        connection.execute(f"DROP TABLE IF EXISTS temp.{table}")


def are_possible(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether the current catalog has operators, and calls that launch a graph."""
    ((found,),) = connection.execute(
        """SELECT EXISTS (SELECT 1 FROM main.op) AND EXISTS (
               SELECT 1 FROM main.launch AS l WHERE contains(l.name, ?))""",
        [GRAPH_LAUNCH],
    ).fetchall()
    return bool(found)


@dataclass
class _Sequence:
    """Launches or kernels in order, with the tokens of their names."""

    is_captured: bool
    capture_id: int
    tokens: sequence_alignment.Tokens
    rows: Numbers
    """Row of each in ``graph_origin`` as read."""

    @cached_property
    def counts(self) -> Counter[int]:
        """How often each token occurs."""
        return Counter(self.tokens.tolist())


@dataclass(frozen=True)
class _Replay:
    """The events of one graph launch, stream by stream, each stream in the order of time."""

    capture_id: int
    streams: tuple[tuple[Numbers, sequence_alignment.Tokens], ...]
    """Rows in ``graph_replay`` as read, and tokens; the longest stream first."""

    @property
    def key(self) -> tuple[bytes, ...]:
        """Equal for replays of one graph."""
        return tuple(tokens.tobytes() for _, tokens in self.streams)

    @property
    def size(self) -> int:
        return sum(len(rows) for rows, _ in self.streams)


def _align(connection: duckdb.DuckDBPyConnection) -> None:
    """Write the links found by aligning names, for events that have none yet."""
    replayed = _columns(
        connection,
        """SELECT r.capture_id, r.event_id, coalesce(r.launch_id, -1) AS launch_id,
               coalesce(r.stream_id, -1) AS stream_id, t.token,
               CASE WHEN r.name IN ('memcpy', 'memset') THEN r.name ELSE 'kernel' END AS kind
           FROM temp.graph_replay AS r INNER JOIN temp.graph_text AS t ON t.name = r.name
           ORDER BY r.capture_id, r.launch_id, r.stream_id, r.start_ns, r.event_id""",
    )
    origins = _columns(
        connection,
        """SELECT o.origin = 'captured launch' AS is_captured, o.capture_id, o.process_id, o.sequence_ns, o.token,
               o.launch_id, o.event_id, o.op_id
           FROM temp.graph_origin AS o
           ORDER BY o.origin, o.capture_id, o.process_id, o.sequence_ns, o.start_ns, o.launch_id, o.event_id""",
        nullable=("launch_id", "event_id", "op_id"),
    )
    sequences = list(_sequences(origins))
    nearness = _nearness(connection)
    known: dict[tuple[int, tuple[bytes, ...]], list[tuple[int, int]]] = {}
    pairs: list[npt.NDArray[np.int64]] = []
    unmatched: list[launch_order.Replayed] = []
    for replay in _replays(replayed):
        key = (replay.capture_id, replay.key)
        if key not in known:
            known[key] = _matched(replay, sequences, nearness)
        if known[key]:
            flat = np.concatenate([rows for rows, _ in replay.streams])
            found = np.array(known[key], np.int64)
            pairs.append(np.column_stack((flat[found[:, 0]], found[:, 1])))
        elif len(replay.streams) == 1:
            rows = replay.streams[0][0]
            unmatched.append((replay.capture_id, replayed["event_id"][rows].tolist(), replayed["kind"][rows].tolist()))
    if pairs:
        _write(connection, replayed, origins, np.concatenate(pairs))
    launch_order.link(connection, unmatched, nearness)


def _columns(connection: duckdb.DuckDBPyConnection, query: str, nullable: tuple[str, ...] = ()) -> Columns:
    """Return the columns of a query; nullable ones are masked arrays."""
    found: Columns = connection.execute(query).fetchnumpy()
    return {name: column if name in nullable else np.ma.getdata(column) for name, column in found.items()}


def _groups(*keys: npt.NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Yield the bounds of runs of rows with equal keys."""
    rows = len(keys[0])
    if not rows:
        return
    differs = np.zeros(rows - 1, np.bool_)
    for key in keys:
        differs |= key[1:] != key[:-1]
    cuts = [0, *(np.flatnonzero(differs) + 1).tolist(), rows]
    yield from pairwise(cuts)


def _sequences(origins: Columns) -> Iterator[_Sequence]:
    keys = (origins[name] for name in ("is_captured", "capture_id", "process_id", "sequence_ns"))
    for first, last in _groups(*keys):
        is_captured, capture_id = bool(origins["is_captured"][first]), int(origins["capture_id"][first])
        yield _Sequence(is_captured, capture_id, origins["token"][first:last], np.arange(first, last, dtype=np.int64))


def _replays(replayed: Columns) -> Iterator[_Replay]:
    for first, last in _groups(replayed["capture_id"], replayed["launch_id"]):
        tokens, lanes = replayed["token"][first:last], replayed["stream_id"][first:last]
        streams = [(np.arange(a, b, dtype=np.int64) + first, tokens[a:b]) for a, b in _groups(lanes)]
        streams.sort(key=lambda stream: -len(stream[0]))
        yield _Replay(int(replayed["capture_id"][first]), tuple(streams))


def _nearness(connection: duckdb.DuckDBPyConnection) -> dict[tuple[int, int], int]:
    """Return how likely a graph replayed in one capture was recorded in another: 0 is best, no entry is never.

    The same capture, else one of the same process, else one of the same rank with the same labels.
    """
    rows = connection.execute(
        """SELECT c.capture_id, o.capture_id,
               CASE WHEN c.capture_id = o.capture_id THEN 0
                   WHEN c.pid = o.pid AND c.host IS NOT DISTINCT FROM o.host THEN 1 ELSE 2 END
           FROM main.capture AS c INNER JOIN main.capture AS o
               ON c.rank IS NOT DISTINCT FROM o.rank AND c.source = o.source
           WHERE c.capture_id IN (SELECT r.capture_id FROM temp.graph_replay AS r)
             AND o.capture_id IN (
                 SELECT g.capture_id FROM temp.graph_origin AS g
                 UNION ALL SELECT u.capture_id FROM temp.graph_unnamed AS u)
             AND (c.labels = o.labels OR (c.pid = o.pid AND c.host IS NOT DISTINCT FROM o.host))"""
    ).fetchall()
    return {(capture, other): distance for capture, other, distance in rows}


def _matched(
    replay: _Replay, sequences: list[_Sequence], nearness: dict[tuple[int, int], int]
) -> list[tuple[int, int]]:
    """Return pairs (place among the replay's events, row in ``graph_origin``) for the sequence that fits best.

    Empty if none has enough of its kernels. Of equally good ones, the nearest capture is taken, and captured launches
    before kernels of a run without graphs.
    """
    near = [item for item in sequences if (replay.capture_id, item.capture_id) in nearness]
    near.sort(key=lambda item: (nearness[replay.capture_id, item.capture_id], not item.is_captured, item.capture_id))
    wanted = Counter(token for _, tokens in replay.streams for token in tokens.tolist())
    shared = {id(item): sum(min(count, item.counts[token]) for token, count in wanted.items()) for item in near}
    whole = [item for item in near if shared[id(item)] == replay.size]
    if len(replay.streams) == 1:
        for item in whole:
            at = sequence_alignment.place_of(replay.streams[0][1], item.tokens)
            if at is not None:
                return list(enumerate(item.rows[at : at + replay.size].tolist()))
    best: list[tuple[int, int]] = []
    for item in sorted(near, key=lambda item: -shared[id(item)])[:MOST_TRIED]:
        if shared[id(item)] > len(best) and shared[id(item)] >= LEAST_SHARE * replay.size:
            found = _pairs(replay, item)
            best = max(best, found, key=len)
    return best if len(best) >= LEAST_SHARE * replay.size else []


def _pairs(replay: _Replay, sequence: _Sequence) -> list[tuple[int, int]]:
    """Align a replay with a sequence, stream by stream; what one stream took is not there for the next."""
    free = np.ones(len(sequence.tokens), np.bool_)
    found: list[tuple[int, int]] = []
    before = 0
    for rows, tokens in replay.streams:
        places = np.flatnonzero(free)
        for mine, other in sequence_alignment.aligned(tokens, sequence.tokens[places]):
            found.append((before + mine, int(sequence.rows[places[other]])))
            free[places[other]] = False
        before += len(rows)
    return found


def _write(
    connection: duckdb.DuckDBPyConnection, replayed: Columns, origins: Columns, pairs: npt.NDArray[np.int64]
) -> None:
    """Write links: rows of replayed events, and rows of their origins."""
    mine, other = pairs[:, 0], pairs[:, 1]
    found = pa.table(  # noqa: F841 - DuckDB finds it by name
        {
            "capture_id": replayed["capture_id"][mine],
            "event_id": replayed["event_id"][mine],
            "is_captured": origins["is_captured"][other],
            "origin_capture_id": origins["capture_id"][other],
            **{
                name: pa.array(np.ma.getdata(origins[source])[other], mask=np.ma.getmaskarray(origins[source])[other])
                for name, source in (
                    ("origin_launch_id", "launch_id"),
                    ("origin_event_id", "event_id"),
                    ("op_id", "op_id"),
                )
            },
        }
    )
    connection.execute(
        """INSERT INTO main.graph_link BY NAME
           SELECT f.capture_id, f.event_id, 'aligned' AS rule,
               CASE WHEN f.is_captured THEN 'captured launch' ELSE 'eager kernel' END AS origin,
               f.origin_capture_id, f.origin_launch_id, f.origin_event_id, f.op_id
           FROM found AS f
           ANTI JOIN main.graph_link AS g ON g.capture_id = f.capture_id AND g.event_id = f.event_id
           ORDER BY f.capture_id, f.event_id"""
    )


def _run(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Run the statements of ``sql/derive/NAME.sql``."""
    text = resources.text("sql", "derive", f"{name}.sql")
    text = text.replace("{graph_launch}", GRAPH_LAUNCH).replace("{kernel_launch}", KERNEL_LAUNCH)
    text = text.replace("{most}", str(MOST_ROWS))
    statements.run(connection, text)
