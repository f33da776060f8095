"""Several processes in one file: merged ones are separated, interleaved bytes are rejected."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.readings import Reading, read
from support.traces import HEADER, LAYOUTS, Event, annotation, call, document, kernel, launched, op, write
from tracedb.errors import ReadError


class TestMergedProcesses:
    @staticmethod
    def rank(pid: int, device: int, count: int = 50, shift: float = 0, first: int = 1) -> list[Event]:
        events = launched(count, first=first, pid=pid, device=device)
        for event in events:
            event["ts"] += shift
            event["name"] += f" of {pid}"
        events.append(annotation(shift, 100 * count, f"forward of {pid}", pid=pid, tid=pid))
        projection = annotation(
            50 + shift, 100 * count - 90, f"forward of {pid}", pid=device, tid=7, cat="gpu_user_annotation"
        )
        return [*events, projection]

    @staticmethod
    def arranged(ranks: list[list[Event]], order: str) -> list[Event]:
        events = [event for rank in ranks for event in rank]
        if order == "by time":
            events.sort(key=lambda event: float(event["ts"]))
        elif order != "one after the other":
            events.sort(key=lambda event: (event["cat"] == "kernel") == (order == "calls first"))
        return events

    @staticmethod
    def check(found: Reading, pids: list[int], count: int) -> None:
        assert sorted(row["pid"] for row in found.captures) == pids
        for capture in found.captures:
            part, mark = capture["part"], f" of {capture['pid']}"
            for table in ("kernel_event", "launch", "op"):
                names = found.rows(table, "name", part=part)
                assert len(names) == count
                assert all(name.endswith(mark) for name in names)
            launches = dict(found.rows("launch", "launch_id", "start_ns", part=part))
            starts = found.rows("kernel_event", "start_ns", "launch_id", part=part)
            assert all(start - launches[launch] == 45_000 for start, launch in starts)
            assert all(found.rows("kernel_event", "op_id", part=part))

    @pytest.mark.parametrize("order", ["one after the other", "by time", "calls first", "kernels first"])
    @pytest.mark.parametrize("devices", [(0, 1), (0, 0)], ids=["own device", "same device"])
    def test_equal_ids_link_within_their_process(self, tmp_path: Path, order: str, devices: tuple[int, int]) -> None:
        spare = op(0, 1, pid=100, tid=100)  # row 0, so that no id is 0
        ranks = [[spare, *self.rank(100, devices[0])][1:], self.rank(200, devices[1], shift=7)]
        found = read(write(tmp_path / "x.json", [annotation(0, 1, "first"), *self.arranged(ranks, order)]))
        self.check(found, [100, 200], 50)
        assert found.issues["several_processes"] == 2
        assert sum(row["events_read"] for row in found.captures) == 305
        assert all(row["status"] == "complete" for row in found.captures)

    def test_four_ranks_by_time_with_other_external_ids(self, tmp_path: Path) -> None:
        ranks = [self.rank(100 + r, r, shift=3 * r, first=1 + 7 * r) for r in range(4)]
        found = read(write(tmp_path / "x.json", [annotation(0, 1, "x"), *self.arranged(ranks, "by time")]))
        self.check(found, [100, 101, 102, 103], 50)

    @pytest.mark.parametrize("pids", [(100, 200), (200, 100)])
    def test_halfway_between_two_calls_the_first_is_taken(self, tmp_path: Path, pids: tuple[int, int]) -> None:
        ranks = [self.rank(pid, 0, shift=pid / 100) for pid in (100, 200)]
        tied = [
            event
            for number in range(40)
            for event in (
                call(6_000 + number, 1, 9_000 + number, pid=pids[0], tid=pids[0]),
                kernel(7_000 + number, 1, "tied", correlation=9_000 + number),
                call(6_000 + number, 1, 9_000 + number, pid=pids[1], tid=pids[1]),
            )
        ]
        found = read(write(tmp_path / "x.json", [*self.arranged(ranks, "one after the other"), *tied]))
        parts = {capture["pid"]: capture["part"] for capture in found.captures}
        assert found.rows("kernel_event", "name", part=parts[pids[0]]).count("tied") == 40
        assert "tied" not in found.rows("kernel_event", "name", part=parts[pids[1]])

    def test_a_projected_annotation_stays_with_its_kernels(self, tmp_path: Path) -> None:
        ranks = [self.rank(100, 0), self.rank(200, 1, shift=7)]
        found = read(write(tmp_path / "x.json", self.arranged(ranks, "by time")))
        for capture in found.captures:
            names = found.rows("annotation", "name", part=capture["part"])
            assert names == [f"forward of {capture['pid']}"] * 2

    def test_the_rank_comes_from_the_process_name(self, tmp_path: Path) -> None:
        events = [event for rank in (3, 5) for event in launched(3, pid=rank, device=rank)]
        for event in events:
            if event["cat"] != "kernel":
                event["pid"] = f"rank {event['pid']}"
        found = read(write(tmp_path / "x.json", events))
        assert [(row["pid"], row["rank"]) for row in found.captures] == [(3, 3), (5, 5)]

    def test_the_rank_of_the_header_is_given_to_no_process(self, tmp_path: Path) -> None:
        header = {**HEADER, "distributedInfo": {"rank": 0, "world_size": 2}}
        events = [*self.rank(100, 0), *self.rank(200, 1)]
        found = read(write(tmp_path / "x.json", events, header=header))
        assert [(row["rank"], row["world_size"]) for row in found.captures] == [(None, 2), (None, 2)]

    def test_stray_events_make_no_process(self, tmp_path: Path) -> None:
        stray = [call(3, 1, None, "cudaGetDevice", pid=5, tid=5), op(3, 1, pid=6, tid=6), annotation(0, 1, "x", pid=7)]
        found = read(write(tmp_path / "x.json", [*self.rank(100, 0), *stray]))
        assert (found.capture["pid"], found.capture["events_read"]) == (100, 155)


class TestSeveralWriters:
    """Two ranks' bytes in one file are refused, however they are mixed."""

    @staticmethod
    def content(rank: int, layout: str, after: bool = False) -> bytes:
        chance = rank + 3
        events = launched(700, pid=1000 + rank, device=rank)
        for event in events:
            chance = chance * 1103515245 + 12345 & 0x7FFFFFFF
            event["name"] += "x" * (chance >> 16 & 31)
        info = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}}
        return document(events, layout, HEADER if after else {**HEADER, **info}, info if after else None)

    @pytest.mark.parametrize("layout", LAYOUTS[:3])
    @pytest.mark.parametrize("size", [64 << 10, 4 << 10, 8191, 12_345, 300, 100])
    def test_interleaved_blocks_of_two_ranks_are_refused(self, tmp_path: Path, layout: str, size: int) -> None:
        one, two = self.content(0, layout), self.content(1, layout)
        pieces = [
            text[place : place + size] for place in range(0, max(len(one), len(two)), size) for text in (one, two)
        ]
        with pytest.raises(ReadError, match=r"wrote to (it|this file) at once|no traceEvents"):
            read(write(tmp_path / "x.json", b"".join(pieces)))

    @pytest.mark.parametrize("size", [64 << 10, 4 << 10, 8191, 50_021])
    @pytest.mark.parametrize("after", [False, True])
    def test_two_ranks_written_over_each_other_are_refused(self, tmp_path: Path, size: int, after: bool) -> None:
        texts = [self.content(rank, "native", after) for rank in (0, 1)]
        pieces = [texts[place // size % 2][place : place + size] for place in range(0, max(map(len, texts)), size)]
        with pytest.raises(ReadError, match="at once"):
            read(write(tmp_path / "x.json", b"".join(pieces)))

    @pytest.mark.parametrize("between", [b"", b"\n", b",\n"])
    def test_two_traces_in_sequence_are_refused(self, tmp_path: Path, between: bytes) -> None:
        one, two = self.content(0, "native"), self.content(1, "compact")
        for content in (one + between + two, two + between + one):
            with pytest.raises(ReadError, match="two traces were written into one file"):
                read(write(tmp_path / "x.json.gz", content))

    def test_the_rest_of_a_longer_trace_under_a_shorter_one_is_refused(self, tmp_path: Path) -> None:
        one, two = self.content(0, "native"), self.content(1, "compact")
        assert len(two) < len(one)
        with pytest.raises(ReadError, match="at once"):
            read(write(tmp_path / "x.json", two + one[len(two) :]))

    def test_a_trace_inside_the_events_of_another_is_refused(self, tmp_path: Path) -> None:
        inner = self.content(1, "compact")
        for place in (0, 1, 2):
            events: list[Event | bytes] = [kernel(1), kernel(2)]
            events.insert(place, inner)
            with pytest.raises(ReadError, match="at once"):
                read(write(tmp_path / "x.json", events, "compact"))

    def test_two_event_arrays_are_refused(self, tmp_path: Path) -> None:
        path = write(tmp_path / "x.json", [kernel(1)], after=b'"traceEvents": [' + b"]")
        with pytest.raises(ReadError, match="a second traceEvents array"):
            read(path)

    def test_two_ranks_in_the_header_are_refused(self, tmp_path: Path) -> None:
        infos = [{**HEADER, "distributedInfo": {"backend": "nccl", "rank": rank}} for rank in (0, 1)]
        with pytest.raises(ReadError, match="ranks 0 and 1"):
            read(write(tmp_path / "x.json", [kernel(1)], header=infos[0], after=infos[1]))
        assert read(write(tmp_path / "x.json", [kernel(1)], header=infos[1], after=infos[1])).capture["rank"] == 1
