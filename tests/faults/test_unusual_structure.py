"""Faults of structure: legacy traces, numbers, odd nesting, values of unexpected types."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.faulty import KERNELS, quoted, read_around
from support.readings import read
from support.traces import LAYOUTS, Event, Raw, bare_list, call, kernel, launched, op, write
from tracedb.errors import ReadError

MANY = 2_500  # kernels of a file that is read in several blocks


class TestLegacyAutogradTraces:
    ROWS = (
        {"name": "mm", "ph": "X", "ts": 1.0, "dur": 2.0, "tid": 0, "pid": "CPU functions", "args": {}},
        {
            "name": "mm",
            "ph": "s",
            "ts": 1.0,
            "tid": 0,
            "pid": "CPU functions",
            "id": 1,
            "cat": "cpu_to_cuda",
            "args": {},
        },
        {"name": "sgemm", "ph": "X", "ts": 3.0, "dur": 2.0, "tid": 0, "pid": "CUDA functions", "args": {}},
    )

    def test_a_legacy_trace_is_refused_with_what_to_do(self, tmp_path: Path) -> None:
        for events, layout in zip((self.ROWS, self.ROWS[::-1], self.ROWS[2:], self.ROWS), LAYOUTS, strict=True):
            with pytest.raises(ReadError, match=r"old torch\.autograd\.profiler.*record again with torch\.profiler"):
                read(write(tmp_path / "x.json", bare_list(list(events), layout)))


class TestTimesAndIdsAsText:
    def test_times_as_text_are_exact(self, tmp_path: Path) -> None:
        found = read(write(tmp_path / "x.json", [kernel("1747118400123456.789", "5.001")]))
        assert found.kernels("start_ns", "duration_ns") == [(1747118400123456789, 5001)]

    @pytest.mark.parametrize("other", ["1747118400123457.123", '"1747118400123457.123"', "1.747118400123457123e15"])
    def test_times_partly_as_text_are_exact(self, tmp_path: Path, other: str) -> None:
        events = [kernel("1747118400123456.789"), kernel(Raw(other)), op(Raw("1747118400123458.001"), 1)]
        for order in (events, events[::-1]):
            found = read(write(tmp_path / "x.json", order))
            assert found.kernels("start_ns") == [1747118400123456789, 1747118400123457123]
            assert found.rows("op", "start_ns") == [1747118400123458001]

    IDS = (
        ("9007199254740993", 2**53 + 1),
        ('"9007199254740995"', 2**53 + 3),
        ("9223372036854775807", 2**63 - 1),
        ("77.0", 77),
        ("1e3", 1000),
        ("0", None),
        ("-1", None),
        ("4294967295", None),
        ("18446744073709551615", None),
        ("1180591620717411303424", None),
        ("null", None),
        ("true", None),
        ('"x"', None),
        ("[1]", None),
        ("{}", None),
    )

    def test_ids_above_2_to_the_53_are_exact(self, tmp_path: Path) -> None:
        events = []
        for place, (text, _) in enumerate(self.IDS):
            events += [kernel(100 + place, 1, correlation=Raw(text)), call(place, 1, Raw(text))]
        found = read(write(tmp_path / "x.json", events))
        kept = [number for _, number in self.IDS]
        assert found.rows("launch", "correlation_id") == kept
        links = [None if number is None else 2 * place + 1 for place, number in enumerate(kept)]
        assert found.kernels("correlation_id", "launch_id") == list(zip(kept, links, strict=True))

    def test_ids_of_unsigned_64_bits_still_link(self, tmp_path: Path) -> None:
        ids = [Raw(str(number)) for number in (2**63, 2**63 + 1, 2**64 - 2)]
        events = [kernel(10 + i, 1, f"k{i}", correlation=number) for i, number in enumerate(ids)]
        calls = [call(i, 1, number) for i, number in enumerate(ids)]
        found = read(write(tmp_path / "x.json", [*events, *calls]))
        assert found.kernels("launch_id") == [3, 4, 5]

    def test_process_and_thread_numbers_as_text(self, tmp_path: Path) -> None:
        calls = [call(i, 1, 7, pid=pid, tid=pid) for i, pid in enumerate((12, "12", Raw("12.0"), " 12 "))]
        found = read(write(tmp_path / "x.json", calls))
        assert found.rows("launch", "process_id", "thread_id") == [(12, 12)] * 4
        assert len(found.captures) == 1

    def test_a_huge_process_number(self, tmp_path: Path) -> None:
        huge = Raw(str(2**63 + 5))
        found = read(write(tmp_path / "x.json", [call(1, 1, 7, pid=huge, tid=huge), kernel(2, correlation=7)]))
        assert found.kernels("launch_id") == [0]


class TestOddStructure:
    """What no list of faults names, and a block-wise reader stumbles over."""

    NASTY = 'void k<},{"name":"ph"},{"ph":"X"},>]}(int)'

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_names_that_look_like_event_boundaries(self, tmp_path: Path, layout: str) -> None:
        events = [kernel(i, 1, f"{self.NASTY}{i % 7}", args={"x": "y" * 2_000}) for i in range(MANY)]
        found = read(write(tmp_path / "x.json", events, layout))
        assert (len(found.kernels()), found.status, found.issues) == (MANY, "complete", {})

    @pytest.mark.parametrize("layout", LAYOUTS)
    @pytest.mark.parametrize("first_only", [True, False])
    def test_objects_in_lists_in_arguments(self, tmp_path: Path, layout: str, first_only: bool) -> None:
        odd = {"x": [{"a": 1}, {"name": 2}, {"ph": 3}], "y": [{"id": {}}, {"s": []}]}
        events = [kernel(i, 1, "k", args={"z": "y" * 2_000} | ({} if first_only and i else odd)) for i in range(MANY)]
        found = read(write(tmp_path / "x.json", events, layout))
        assert (len(found.kernels()), found.status, found.issues) == (MANY, "complete", {})

    def test_event_longer_than_a_block(self, tmp_path: Path) -> None:
        odd = {"x": [{"a": 1}, {"name": "b"}] * 200_000}
        events = [kernel(1, 1, "a"), kernel(2, 1, "b", args=odd), kernel(3, 1, "c")]
        found = read(write(tmp_path / "x.json", events, "compact"))
        assert (found.kernels("name"), found.issues) == (["a", "b", "c"], {})

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_name_of_a_megabyte(self, tmp_path: Path, layout: str) -> None:
        name = "void f<" + "int, " * 200_000 + ">"
        found = read(write(tmp_path / "x.json", [kernel(1), kernel(2, 1, name), kernel(3)], layout))
        assert found.kernels("name") == ["gemm", name, "gemm"]
        found = read(write(tmp_path / "x.json", [kernel(1), kernel(2, 1, quoted(f'"{name}')), kernel(3)], layout))
        assert found.kernels("name") == ["gemm", f'"{name}', "gemm"]

    def test_keys_in_any_order_and_given_twice(self, tmp_path: Path) -> None:
        event = kernel(1, 2, "k", correlation=9)
        shuffled = dict(sorted(event.items(), reverse=True))
        twice = (
            b'{"ts":7,"name":"old","ph":"X","cat":"kernel","name":"new","ts":8,"dur":1,"args":{"stream":1,"stream":2}}'
        )
        found = read(write(tmp_path / "x.json", [shuffled, twice], "compact"))
        assert found.kernels("name", "start_ns", "stream_id") == [("k", 1000, 7), ("new", 8000, 2)]
        assert found.issues == {}

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_items_that_are_not_events(self, tmp_path: Path, layout: str) -> None:
        found = read_around(tmp_path, b"null", b"5", b'"x"', b"[1, 2]", b"{}", b"[]", b"true", layout=layout)
        assert found.kernels() == KERNELS
        assert found.capture["events_read"] == 11

    @pytest.mark.parametrize(
        "deep", ["[" * 100_000 + "]" * 100_000, '{"a":' * 100_000 + "1" + "}" * 100_000, "[" * 100_000]
    )
    def test_deeply_nested_arguments(self, tmp_path: Path, deep: str) -> None:
        bad = (kernel(25, 2, args={"x": Raw(deep)}), op(25, 2, args={"Input Dims": Raw(deep)}), kernel(Raw(deep)))
        found = read_around(tmp_path, *bad)
        assert found.kernels() == KERNELS
        assert found.faults == {"event_unreadable": 3}
        found = read(write(tmp_path / "x.json", [kernel(1)], header={"schemaVersion": 1, "x": Raw(deep)}))
        assert len(found.kernels()) == 1

    def test_nesting_depth_at_the_limit(self, tmp_path: Path) -> None:
        bad = []
        for depth in (900, 960, 970, 980, 990, 1100):
            deep = Raw("[" * depth + "]" * depth)
            bad.append(op(25, 2, args={"Input Dims": deep, "Collective name": deep}))
        assert read_around(tmp_path, *bad).kernels() == KERNELS

    def test_number_of_thousands_of_digits(self, tmp_path: Path) -> None:
        digits = Raw("7" * 5000)
        dims = {"Input Dims": Raw(f"[{digits.text}]")}
        found = read_around(
            tmp_path, op(25, 2, args=dims), kernel(99, 2, args={"bytes": digits}), op(Raw("25.0e0"), 2, args=dims)
        )
        assert found.kernels()[:3] == KERNELS
        assert found.capture["events_read"] == 7

    def test_arguments_of_other_types(self, tmp_path: Path) -> None:
        odd: list[Event | bytes] = [
            {**kernel(1), "args": []},
            {**kernel(2), "args": None},
            {**kernel(3), "args": "x"},
            {**kernel(4), "name": 5},
            {**kernel(5), "name": None},
            {key: value for key, value in kernel(6).items() if key not in ("name", "args", "pid", "tid", "ph")},
            kernel(7, args={"grid": [1, 2], "block": [], "stream": "7", "shared memory": 1.0}),
            kernel(8, args={"grid": "[3, 2, 1]", "device": 2**40, "registers per thread": 2**40}),
        ]
        found = read(write(tmp_path / "x.json", odd))
        names = ["gemm", "gemm", "gemm", "5", "(no name)", "(no name)", "gemm", "gemm"]
        assert found.kernels("name") == names
        assert found.kernels("grid_x", "grid_y", "grid_z", "block_x")[6:] == [(1, 2, 1, None), (3, 2, 1, None)]

    def test_events_without_arguments(self, tmp_path: Path) -> None:
        bare = [{key: value for key, value in event.items() if key != "args"} for event in launched(2)]
        found = read(write(tmp_path / "x.json", bare))
        columns = ("name", "device_id", "stream_id", "correlation_id", "launch_id", "op_id")
        assert found.kernels(*columns) == [("k0", 0, 7, None, None, None), ("k1", 0, 7, None, None, None)]
        assert (len(found.rows("op", "name")), found.status) == (2, "complete")

    def test_an_unknown_category_is_counted(self, tmp_path: Path) -> None:
        events = [
            kernel(1, cat='it\'s "new"'),
            kernel(2, cat=""),
            kernel(3, cat=Raw("7")),
            kernel(4, cat=Raw("null")),
            kernel(5),
        ]
        found = read(write(tmp_path / "x.json", events))
        assert len(found.kernels()) == 1
        assert found.capture["events_skipped"] == 4
        assert found.issues['device_events_not_read:it\'s "new"'] == 1
        assert found.issues["category_missing"] == 1


class TestImpossibleNumbers:
    """A number that cannot be what it stands for is NULL and told of; it is never wrapped, and the row is kept."""

    WHOLE = ("9223372036854775808", "18446744073709551610", "-9223372036854775809", "-5", "1180591620717411303424")
    NO_NUMBER = ("1.5", '"x"', "[1]", "true", "{}", "1e400")

    @pytest.mark.parametrize("text", [*WHOLE, *NO_NUMBER])
    @pytest.mark.parametrize(
        ("name", "columns"),
        [
            ("device", ["device_id"]),
            ("stream", ["stream_id"]),
            ("context", ["context_id"]),
            ("correlation", ["correlation_id"]),
            ("registers per thread", ["registers_per_thread"]),
            ("shared memory", ["shared_bytes"]),
            ("bytes", ["bytes"]),
            ("graph id", ["graph_id"]),
            ("graph node id", ["graph_node_id"]),
            ("Group size", ["group_size"]),
            ("In msg nelems", ["message_in_elements"]),
        ],
    )
    def test_an_impossible_number_is_null_and_counted(
        self, tmp_path: Path, name: str, columns: list[str], text: str
    ) -> None:
        args = {"Collective name": "allreduce", name: Raw(text)}
        found = read(write(tmp_path / "x.json", [kernel(1, 1, args=args), kernel(3)]))
        assert found.kernels(*columns)[0] in (None, (None,))
        assert found.issues["field_unreadable"] == 1
        (issue,) = [row for row in found.tables["ingest_issue"] if row["code"] == "field_unreadable"]
        assert (issue["severity"], issue["skipped"]) == ("warning", 0)
        assert issue["detail"].endswith(f": 1 {name}")

    @pytest.mark.parametrize(
        "sizes", ["[-1,2,3]", "[9223372036854775808,1,1]", '"NaN"', '"a,b"', "[1.5,2,3]", "7", "{}"]
    )
    @pytest.mark.parametrize("name", ["grid", "block"])
    def test_impossible_grid_and_block_sizes_are_null_and_counted(self, tmp_path: Path, name: str, sizes: str) -> None:
        events = [kernel(1, 1, args={name: Raw(sizes)}), kernel(3, 1, grid=[4, 5, 6], block=[7, 8, 9])]
        found = read(write(tmp_path / "x.json", events))
        assert found.kernels(*(f"{name}_{axis}" for axis in "xyz"))[0] == (None, None, None)
        assert found.kernels("grid_y", "block_z")[1] == (5, 9)
        assert found.issues["field_unreadable"] == 1

    @pytest.mark.parametrize("text", WHOLE)
    def test_impossible_process_and_thread_numbers(self, tmp_path: Path, text: str) -> None:
        number = Raw(text)
        found = read(
            write(tmp_path / "x.json", [call(1, 1, 7, pid=number), op(1, 5, tid=number), kernel(2, correlation=7)])
        )
        assert found.rows("launch", "process_id") == [None]
        assert found.kernels("launch_id") == [0]
        is_thread = text == "-5"
        assert found.rows("op", "thread_id") == [-5 if is_thread else None]
        assert found.issues["field_unreadable"] == (1 if is_thread else 2)

    @pytest.mark.parametrize("without", ["device", "stream"])
    def test_the_process_number_gives_the_device_of_a_kernel(self, tmp_path: Path, without: str) -> None:
        event = kernel(1)
        del event["args"][without]
        found = read(write(tmp_path / "x.json", [{**event, "pid": 2**31, "tid": -7}, kernel(3)]))
        assert found.kernels(f"{without}_id")[0] is None
        assert found.faults == {"field_unreadable": 1}

    def test_device_of_more_than_32_bits(self, tmp_path: Path) -> None:
        found = read(write(tmp_path / "x.json", [kernel(1, args={"device": 2**31}), kernel(3)]))
        assert found.kernels("device_id") == [None, 0]
        assert found.faults == {"field_unreadable": 1}
