"""``v1.point_to_point``: sends and receives find their kernels, also in batches, and each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pytest

from support.pipelines import Message, Pipeline, document
from tracedb.pipeline.run import ingest

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]
SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
ZERO = 1759000000000000000


@pytest.fixture(scope="module", params=[True, False], ids=["batched", "one by one"])
def loaded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Pipeline, duckdb.DuckDBPyConnection]]:
    """Two steps of a pipeline of three stages on the ranks 1, 3 and 5."""
    pipeline = Pipeline(
        [10, 20, 10], [20, 30, 20], 3, transfer=4, is_batched=request.param, steps=2, group=[1, 3, 5]
    ).run()
    folder = tmp_path_factory.mktemp("pipeline")
    for stage in range(3):
        (folder / f"rank{pipeline.group[stage]}.json").write_text(document(pipeline, stage))
    ingest(folder, db=folder / "t.duckdb")
    with duckdb.connect(str(folder / "t.duckdb"), read_only=True) as connection:
        yield pipeline, connection


def test_every_message_of_a_pipeline(loaded: tuple[Pipeline, duckdb.DuckDBPyConnection]) -> None:
    """Each message has the two kernels that carried it in the simulation."""
    pipeline, connection = loaded
    kernels: dict[tuple[Message, bool, int], tuple[int, int]] = {
        (message, message.source == stage, step): (item.start or 0, item.end or 0)
        for stage, items in enumerate(pipeline.items)
        for step, item in items
        for message in item.messages
    }
    expected = [
        (
            pipeline.group[message.source],
            pipeline.group[message.destination],
            step,
            2048,
            ZERO + 1000 * start,
            1000 * (end - start),
            ZERO + 1000 * kernels[message, False, step][0],
            1000 * (kernels[message, False, step][1] - kernels[message, False, step][0]),
        )
        for (message, is_send, step), (start, end) in kernels.items()
        if is_send
    ]
    found = connection.execute(
        """SELECT source_rank, destination_rank, step, message_bytes, send_start_ns, send_duration_ns, recv_start_ns,
               recv_duration_ns
           FROM v1.point_to_point ORDER BY ALL"""
    ).fetchall()
    assert found == sorted(expected)
    assert len(found) == 2 * 2 * 2 * 3  # steps, pairs of neighbours, directions, micro-batches


def test_the_shorter_kernel_is_the_transfer(loaded: tuple[Pipeline, duckdb.DuckDBPyConnection]) -> None:
    pipeline, connection = loaded
    rows = connection.execute(
        """SELECT transfer_ns, send_wait_ns, recv_wait_ns, send_duration_ns, recv_duration_ns, matched_by, ordinal
           FROM v1.point_to_point"""
    ).fetchall()
    assert {(min(row[3:5]), row[3] - row[0], row[4] - row[0]) == row[:3] for row in rows} == {True}
    assert {row[5] for row in rows} == {"batch" if pipeline.items[0][1][1].is_batch else "call"}
    assert {row[6] for row in rows} == {1, 2, 3, 4, 5, 6}


CALLS = "call_id collective message_in_elements destination_rank source_rank rank_in_group"
COLUMNS = "source_rank, destination_rank, ordinal, message_bytes, transfer_ns, send_wait_ns, recv_wait_ns, match_rule"
QUERY = f"SELECT {COLUMNS} FROM v1.point_to_point ORDER BY ALL"


def rank(
    insert: Insert,
    number: int,
    *calls: tuple[str, int | None],
    start: int = 0,
    durations: tuple[int, ...] = (),
    **shared: Any,
) -> None:
    """A rank with calls, one kernel each: 100 ns apart, recorded with the other rank's number in the group."""
    insert("capture", "capture_id rank", (number, number), source="torch")
    ids = range(1, len(calls) + 1)
    insert("collective_call", CALLS,
           *[(i, name, 50, None, None, peer) for i, (name, peer) in zip(ids, calls, strict=True)],
           capture_id=number, dtype="Float",
           **{"group_name": "0", "group_ranks": "[0, 1, 2, 3]", **shared})  # fmt: skip
    insert("op", "op_id start_ns", *[(i, start + 100 * i) for i in ids], capture_id=number, name="record_param_comms",
           duration_ns=10)  # fmt: skip
    lengths = durations or (10,) * len(calls)
    insert("kernel_event", "event_id start_ns duration_ns collective call_id",
           *[(100 + i, start + 100 * i + 5, lengths[i - 1], calls[i - 1][0], i) for i in ids],
           capture_id=number, kind="kernel", name=SEND_RECV, device_id=0)  # fmt: skip


def test_no_rows(ask: Ask) -> None:
    assert ask(QUERY) == []


def test_both_directions_are_counted_apart(insert: Insert, ask: Ask, report: Report) -> None:
    rank(insert, 0, ("send", 1), ("recv", 1), ("send", 1), durations=(10, 70, 30))
    rank(insert, 1, ("send", 0), ("recv", 0), ("recv", 0), durations=(20, 40, 30))
    first, other, second = (0, 1, 1, 200, 10, 0, 30, "order"), (1, 0, 1, 200, 20, 0, 50, "order"), (0, 1, 2, 200, 30, 0)
    assert ask(QUERY) == [first, (*second, 0, "order"), other]
    assert report("point_to_point", COLUMNS, where={"pair": "pair.source = 'nsys'"}) == []
    assert report("point_to_point", "source_rank", where={"pair": "pair.source_rank = 1"}) == [(1,)]


def test_sends_to_other_ranks_and_groups_are_counted_apart(insert: Insert, ask: Ask) -> None:
    rank(insert, 0, ("send", 2), ("send", 1), ("send", 1))
    rank(insert, 1, ("recv", 0), ("recv", 0))
    insert("collective_call", CALLS, (9, "send", 7, None, None, 1), capture_id=0, dtype="Float", group_name="5",
           group_ranks="[0, 1]")  # fmt: skip
    insert("kernel_event", "event_id start_ns duration_ns collective call_id", (109, 0, 5, "send", 9), capture_id=0,
           kind="kernel", name=SEND_RECV)  # fmt: skip
    assert [row[:4] for row in ask(QUERY)] == [(0, 1, 1, 200), (0, 1, 2, 200)]


@pytest.mark.parametrize(
    ("ranks", "is_found"),
    [
        ("[0, 1, 2, 3]", True),
        (None, True),  # groups were not recorded
        ("[]", True),  # the header has the ranks
        ("[3, 2, 1, 0]", False),
        ("[0, 2]", False),
    ],
)
def test_the_number_in_the_group_gives_the_other_rank(
    insert: Insert, ask: Ask, db: duckdb.DuckDBPyConnection, ranks: str | None, is_found: bool
) -> None:
    rank(insert, 0, ("send", 1), group_ranks=ranks)
    rank(insert, 1, ("recv", 0), group_ranks=ranks)
    db.execute("""UPDATE main.capture SET metadata = '{"pg_config": [{"pg_name": "0", "ranks": [0, 1, 3]}]}'""")
    assert [row[:2] for row in ask(QUERY)] == [(0, 1)] * is_found


def test_a_shortened_list_of_ranks_goes_on_in_equal_steps(insert: Insert, ask: Ask) -> None:
    shown = ", ".join(str(4 * number) for number in range(30))
    rank(insert, 160, ("send", 41), group_ranks=f"[{shown}, ...]")
    rank(insert, 164, ("recv", 40), group_ranks=f"[{shown}, ...]")
    assert [row[:2] for row in ask(QUERY)] == [(160, 164)]


def test_recorded_ranks_come_first(insert: Insert, ask: Ask, db: duckdb.DuckDBPyConnection) -> None:
    rank(insert, 4, ("send", 1), group_ranks="[]")
    rank(insert, 7, ("recv", 0), group_ranks="[]")
    assert ask(QUERY) == []
    db.execute("UPDATE main.collective_call SET destination_rank = 7 WHERE collective = 'send'")
    db.execute("UPDATE main.collective_call SET source_rank = 4 WHERE collective = 'recv'")
    assert [row[:2] for row in ask(QUERY)] == [(4, 7)]


def test_recordings_that_begin_at_different_calls(insert: Insert, ask: Ask) -> None:
    """The receiver recorded two calls more at the beginning: only from the end do kernels overlap."""
    rank(insert, 0, ("send", 1), ("send", 1), start=200)
    rank(insert, 1, *[("recv", 0)] * 4)
    rows = ask("SELECT ordinal, match_rule, send_start_ns - recv_start_ns FROM v1.point_to_point ORDER BY ALL")
    assert rows == [(1, "order from the end", 0), (2, "order from the end", 0)]


def test_a_rank_that_occurs_twice_is_left_out(insert: Insert, ask: Ask) -> None:
    rank(insert, 0, ("send", 1))
    rank(insert, 1, ("recv", 0))
    insert("capture", "capture_id rank", (5, 1), source="torch")
    assert len(ask(QUERY)) == 1  # the other recording has no sends
    insert("collective_call", CALLS, (1, "recv", 50, None, None, 0), capture_id=5, group_name="0", group_ranks="[0, 1]")
    insert("kernel_event", "event_id start_ns duration_ns collective call_id", (101, 107, 5, "recv", 1), capture_id=5,
           kind="kernel", name=SEND_RECV)  # fmt: skip
    assert ask(QUERY) == []


def batch(insert: Insert, number: int, *calls: tuple[str, str, str], launch: int = 500) -> None:
    """A rank whose operators name shapes and the other rank, and one kernel launched after them."""
    insert("capture", "capture_id rank", (number, number), source="torch")
    insert("op", "op_id name input_dims concrete_inputs start_ns",
           *[(i, *call, 100 * i) for i, call in enumerate(calls, 1)], capture_id=number, thread_id=1,
           duration_ns=10)  # fmt: skip
    insert("launch", "launch_id start_ns", (50, launch), capture_id=number, thread_id=1, name="cuLaunchKernelEx",
           duration_ns=5)  # fmt: skip
    insert("kernel_event", "event_id start_ns duration_ns launch_id", (60, 600 + number, 40, 50), capture_id=number,
           kind="kernel", name=SEND_RECV)  # fmt: skip


def test_operators_of_traces_without_metadata(insert: Insert, ask: Ask) -> None:
    """The operators of batches name the size and the other rank; the element type is not known."""
    batch(insert, 0, ("c10d::send", "[[[64,2]],[],[],[]]", '["","","1","0"]'),
          ("c10d::recv_", "[[[8]],[],[],[]]", '["","","1","0"]'))  # fmt: skip
    batch(insert, 1, ("c10d::recv_", "[[[64,2]],[],[],[]]", '["","","0","0"]'),
          ("c10d::send", "[[[8]],[],[],[]]", '["","","0","0"]'))  # fmt: skip
    rows = ask(
        "SELECT source_rank, destination_rank, send_event_id, recv_event_id, message_bytes FROM v1.point_to_point"
    )
    assert sorted(rows) == [(0, 1, 60, 60, None), (1, 0, 60, 60, None)]


def test_calls_after_the_last_launch_have_no_kernel(insert: Insert, ask: Ask) -> None:
    batch(insert, 0, ("c10d::send", "[[[64]],[],[],[]]", '["","","1","0"]'), launch=50)
    batch(insert, 1, ("c10d::recv_", "[[[64]],[],[],[]]", '["","","0","0"]'))
    assert ask(QUERY) == []


def test_kernels_launched_by_a_thread_of_the_library(insert: Insert, ask: Ask, db: duckdb.DuckDBPyConnection) -> None:
    """Communicators that do not block: one thread calls, another launches."""
    batch(insert, 0, ("c10d::send", "[[[64]],[],[],[]]", '["","","1","0"]'))
    batch(insert, 1, ("c10d::recv_", "[[[64]],[],[],[]]", '["","","0","0"]'))
    db.execute("UPDATE main.launch SET thread_id = 77")
    assert [row[:2] for row in ask(QUERY)] == [(0, 1)]


def test_a_range_around_calls_and_one_launch_holds_a_batch(insert: Insert, ask: Ask) -> None:
    """Two batches, each in a range of its own; the second call of the first comes after its launch."""
    for number, kinds in ((0, ("c10d::send", "c10d::recv_")), (1, ("c10d::recv_", "c10d::send"))):
        insert("capture", "capture_id rank", (number, number), source="torch")
        insert("op", "op_id name start_ns", *[(i, kinds[i % 2], 100 * i) for i in range(4)], capture_id=number,
               thread_id=1, duration_ns=10, input_dims="[[[8]],[],[],[]]",
               concrete_inputs=f'["","","{1 - number}","0"]')  # fmt: skip
        insert("annotation", "annotation_id name start_ns", (50, "nccl:coalesced", 0), (51, "nccl:coalesced", 200),
               capture_id=number, style="user", thread_id=1, duration_ns=150)  # fmt: skip
        insert("launch", "launch_id start_ns", (60, 50), (61, 250), capture_id=number, thread_id=1,
               name="cuLaunchKernelEx", duration_ns=5)  # fmt: skip
        insert("kernel_event", "event_id start_ns launch_id", (70, 400, 60), (71, 500, 61), capture_id=number,
               duration_ns=40, kind="kernel", name=SEND_RECV)  # fmt: skip
    rows = ask("SELECT source_rank, ordinal, send_event_id, recv_event_id FROM v1.point_to_point ORDER BY ALL")
    assert rows == [(0, 1, 70, 70), (0, 2, 71, 71), (1, 1, 70, 70), (1, 2, 71, 71)]


def test_a_batch_launched_inside_its_last_call(insert: Insert, ask: Ask, db: duckdb.DuckDBPyConnection) -> None:
    """The kernel is known to belong to one of the calls, and carries out the others of the batch, too."""
    rank(insert, 0, ("send", 1), ("recv", 1), ("send", 1))
    rank(insert, 1, ("recv", 0), ("send", 0), ("recv", 0))
    db.execute("DELETE FROM main.kernel_event WHERE call_id = 1")
    insert("launch", "launch_id start_ns capture_id", *[(i, 100 * i + 5, c) for i in (2, 3) for c in (0, 1)],
           name="cuLaunchKernelEx", duration_ns=1)  # fmt: skip
    db.execute("UPDATE main.kernel_event SET launch_id = call_id")
    rows = ask("SELECT source_rank, ordinal, send_event_id, recv_event_id FROM v1.point_to_point ORDER BY ALL")
    assert rows == [(0, 1, 102, 102), (0, 2, 103, 103), (1, 1, 102, 102)]
