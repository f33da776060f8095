"""Invalid JSON as profilers have written it, and what must be recovered from it."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

from support.faulty import KERNELS, around, frames, quoted, read_around
from support.readings import read
from support.traces import HEADER, LAYOUTS, Event, Raw, annotation, bare_list, document, event_text, kernel, op, write
from tracedb_torch.link.frames import without_home

MANY = 2_500  # kernels of a file that is read in several blocks


class TestUnescapedBackslashes:
    NAMES = (
        r"torch\cuda\__init__.py(219): _lazy_init",
        r"C:\Users\someone\site-packages\torch\nn\modules\module.py(1501): _call_impl",
        r"C:\users\x.py(1): f",
        r"\\server\share\_x.py(1): f",
        r"C:\u00e9t\_x.py(1): f",
        r"ends\with\_",
        "C:\\data\\q\\",
        "C:\\dir\\",
        "C:\\\\ok\\_x",
    )

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_names_keep_their_backslashes(self, tmp_path: Path, layout: str) -> None:
        found = read_around(tmp_path, *frames(self.NAMES), layout=layout, end=layout != "compact")
        assert found.kernels() == KERNELS
        assert found.rows("frame", "name") == [without_home(name) for name in self.NAMES]
        assert found.rows("frame", "start_ns")[:2] == [200_000, 201_000]
        assert (found.status, found.faults) == ("repaired", {"event_repaired": len(self.NAMES)})

    def test_names_whose_escapes_happen_to_be_legal_keep_their_backslashes(self, tmp_path: Path) -> None:
        names = [r"torch\nn\functional.py(2): f", r"C:\new\table\run.py(2): f", r"\bin\r\f.py"]
        found = read_around(tmp_path, *frames(names))
        assert found.kernels() == KERNELS
        assert found.rows("frame", "name") == [names[0], "table/run.py(2): f", names[2]]

    def test_any_event_may_hold_an_unescaped_backslash(self, tmp_path: Path) -> None:
        bad = [kernel(25, 2), op(25, 2), annotation(25, 2, "")]
        found = read_around(tmp_path, *({**event, "name": quoted(r"a\_b\cuda")} for event in bad))
        for table in ("kernel_event", "op", "annotation"):
            assert r"a\_b\cuda" in found.rows(table, "name")
        assert found.faults == {"event_repaired": 3}

    def test_skipped_python_stacks_leave_no_repaired_events(self, tmp_path: Path) -> None:
        found = read(write(tmp_path / "x.json", around(frames(self.NAMES))), stacks=False)
        assert found.kernels() == KERNELS
        assert found.issues["python_functions"] == found.issues["event_repaired"] == len(self.NAMES)


class TestUnescapedQuotes:
    NAMES = (
        '{"device": "cpu", "dtype": "float32"}(12): run',
        'a"b',
        '"',
        'say "hi"',
        'f("a", "b")',
        'x", "y": 1, "z',
        '<lambda>{"ph": "X"}',
        '["a", "b"]',
        'torch/_ops.py(1): "aten::add"',
        r'"C:\_x\q": "y"',
    )

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_events_with_unescaped_quotes_are_repaired(self, tmp_path: Path, layout: str) -> None:
        found = read_around(tmp_path, *frames(self.NAMES), layout=layout, end=layout != "compact")
        assert found.kernels() == KERNELS
        assert found.rows("frame", "name") == list(self.NAMES)
        assert (found.status, found.faults) == ("repaired", {"event_repaired": len(self.NAMES)})

    def test_the_issue_gives_the_byte_offset(self, tmp_path: Path) -> None:
        path = write(tmp_path / "x.json", [kernel(1), *frames(['a"b']), kernel(2)])
        (issue,) = [row for row in read(path).tables["ingest_issue"] if row["code"] == "event_repaired"]
        offset = path.read_bytes().index(b'  {\n    "ph": "X", "cat": "python_function"') + 2
        assert f"first at byte {offset}" in issue["detail"]

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_an_event_beyond_repair_is_lost_alone(self, tmp_path: Path, layout: str) -> None:
        bad = (b'{"ph": "X", "cat": "kernel", "name: 5, ts" 7}', b"garbage", b'{"ph": 1 2}', b"}}")
        found = read_around(tmp_path, *bad, layout=layout)
        assert found.kernels() == KERNELS
        assert (found.status, found.faults) == ("repaired", {"event_unreadable": 4})

    def test_one_bad_event_in_a_hundred_thousand_is_found(self, tmp_path: Path) -> None:
        events: list[Event | bytes] = [kernel(i, 1, cat="overhead" if i % 20 else "kernel") for i in range(100_000)]
        events[50_001] = frames(self.NAMES)[0]
        found = read(write(tmp_path / "x.json.gz", events, "compact"), stacks=True)
        assert len(found.kernels()) == 5_000
        assert found.rows("frame", "name") == [self.NAMES[0]]
        assert found.faults == {"event_repaired": 1}
        assert found.capture["events_read"] == 100_000


class TestControlCharactersAndInvalidText:
    NAMES = (
        (b"a\x01b", "ab"),
        (b"a\x00b", "ab"),
        (b"a\x7fb", "ab"),
        (b"a\tb\nc", r"a\tb\nc"),
        (b"config.py(0): \x8f\x01", "config.py(0): \ufffd"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"caf\xe9", "caf\ufffd"),
        (b"\xe9t\xe9 \xc3", "\ufffdt\ufffd \ufffd"),
        (rb"a\ud800b", "a\ufffdb"),
        (rb"a\ud83d\ude00b", "a\U0001f600b"),
        (rb"a\u0001\u0000b", "ab"),
        ("é漢字".encode(), "é漢字"),
    )

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_names_become_valid_text(self, tmp_path: Path, layout: str) -> None:
        bad = [
            event_text(kernel(200 + i, 2, "NAME"), layout).replace(b"NAME", raw)
            for i, (raw, _) in enumerate(self.NAMES)
        ]
        found = read_around(tmp_path, *bad, layout=layout)
        assert found.kernels()[:3] == KERNELS
        assert found.kernels("name")[3:] == [name for _, name in self.NAMES]
        assert found.faults == {"event_repaired": 8}

    def test_invalid_text_in_the_arguments_of_a_collective(self, tmp_path: Path) -> None:
        said = {"External id": 5, "Collective name": "allreduce", "dtype": "TYPE", "In msg nelems": "TYPE"}
        bad = event_text(op(25, 2, "nccl:all_reduce", args=said), "native").replace(b'"TYPE"', b'"\x80f"')
        for other in (b"", b'{"ph": "X",, "cat": "cpu_op"}'):  # a sound block, and one that is read event by event
            found = read_around(tmp_path, bad, *filter(None, [other]))
            assert len(found.rows("op", "name")) == len(read_around(tmp_path).rows("op", "name")) + 1

    @pytest.mark.parametrize("field", ["Process Group Name", "Collective name", "dtype", "In split size"])
    def test_half_a_surrogate_pair_in_an_argument_loses_no_kernel(self, tmp_path: Path, field: str) -> None:
        value = ["A"] if field == "In split size" else "A"
        bad = event_text(kernel(25, 2, "ncclDevKernel_AllReduce", args={field: value}), "native")
        found = read_around(tmp_path, bad.replace(b'"A"', rb'"a\ud800"'))
        assert "ncclDevKernel_AllReduce" in found.kernels("name")
        assert found.faults == {"event_repaired": 1}

    def test_texts_that_are_changed_are_noted(self, tmp_path: Path) -> None:
        names = [rb"k\u001b\u0000", rb"k\u001b\u0000", b"k", rb"a\nb"]
        events = [event_text(kernel(200 + i, 2, "NAME"), "native").replace(b"NAME", raw) for i, raw in enumerate(names)]
        found = read_around(tmp_path, *events)
        assert found.kernels("name")[3:] == ["k", "k", "k", r"a\nb"]
        assert found.issues["text_cleaned"] == 2 and found.status == "complete"

    def test_invalid_text_in_arguments(self, tmp_path: Path) -> None:
        bad = event_text(op(25, 2, args={"Input Dims": ["A", [1]], "Concrete Inputs": ["A"]}), "native")
        found = read_around(tmp_path, bad.replace(b'"A"', b'"a\x00\x8fb"'))
        assert found.rows("op", "input_dims", "concrete_inputs") == [
            ('["a\\u0000\ufffdb", [1]]', '["a\\u0000\ufffdb"]')
        ]

    def test_invalid_text_in_an_event_that_is_not_stored(self, tmp_path: Path) -> None:
        bad = event_text(kernel(25, 2, "A", cat="overhead"), "native").replace(b"A", b"\x8f\x01")
        found = read_around(tmp_path, bad)
        assert found.kernels() == KERNELS
        assert found.issues["overhead_events"] == 1

    @pytest.mark.parametrize("before", [b"\xef\xbb\xbf", b"\n \t", b"\xef\xbb\xbf\r\n"])
    def test_byte_order_mark_and_blanks_before_the_trace(self, tmp_path: Path, before: bytes) -> None:
        for content in (document(around([kernel(99)])), bare_list(around([kernel(99)]))):
            found = read(write(tmp_path / "x.json", before + content))
            assert len(found.kernels()) == 4
            assert found.status == "complete"

    def test_windows_line_ends(self, tmp_path: Path) -> None:
        events = [kernel(i, 1, args={"x": "y" * 2_000}) for i in range(MANY)]
        found = read(write(tmp_path / "x.json", document(events).replace(b"\n", b"\r\n")))
        assert (len(found.kernels()), found.status) == (MANY, "complete")


class TestInvalidLogsBesideTheEvents:
    LOG = b'"INFO": ["started "event_id": 64, "x": [1]", "a"],\n"WARNING": ["b"]'

    def test_an_invalid_log_after_the_events(self, tmp_path: Path) -> None:
        after = self.LOG + b', "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8}'
        found = read(write(tmp_path / "x.json", around([kernel(99)]), after=after))
        assert len(found.kernels()) == 4
        assert (found.status, found.faults) == ("repaired", {"header_unreadable": 1})
        assert (found.capture["rank"], found.capture["world_size"]) == (3, 8)

    def test_an_invalid_log_before_the_events(self, tmp_path: Path) -> None:
        header = self.LOG + b', "schemaVersion": 1, "baseTimeNanoseconds": 1759000000000000001'
        found = read(write(tmp_path / "x.json", around([kernel(99)]), header=header))
        assert len(found.kernels()) == 4
        assert found.faults == {"header_unreadable": 1}
        assert found.capture["clock_zero_unix_ns"] == 1759000000000000001

    @pytest.mark.parametrize("junk", [b"garbage", b"\0" * 5000, b" \n\n", b'{"x": [1, {"y": 2}]}', b"]]}}"])
    def test_garbage_after_the_trace(self, tmp_path: Path, junk: bytes) -> None:
        layout = LAYOUTS[len(junk) % 4]
        found = read(write(tmp_path / "x.json", document([kernel(99)], layout) + junk))
        assert len(found.kernels()) == 1
        assert found.faults == ({} if junk.isspace() else {"header_unreadable": 1})

    def test_a_log_that_quotes_a_trace_adds_no_events(self, tmp_path: Path) -> None:
        log = {"INFO": ['wrote {"traceEvents": [{"ph": "X", "cat": "kernel"}], "distributedInfo": {"rank": 5}}']}
        for where in ({"header": {**HEADER, **log}}, {"after": log}):
            found = read(write(tmp_path / "x.json", around([kernel(99)]), **where))
            assert (len(found.kernels()), found.status, found.capture["rank"]) == (4, "complete", None)


class TestArgumentsOfCollectives:
    NAMES = (
        ("allreduce", "allreduce"),
        ('""allreduce""', "allreduce"),
        ("_allgather_base", "_allgather_base"),
        ('""reduce_scatter_tensor_coalesced""', "reduce_scatter_tensor_coalesced"),
        ('"allreduce"', "allreduce"),
    )
    RANKS = ('"[0, 1]"', "[0, 1]", "[0,1]", '""[0, 1]""')

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_unquoted_and_doubly_quoted_arguments_are_read(self, tmp_path: Path, layout: str) -> None:
        cases = list(product(self.NAMES, self.RANKS, ("BFloat16", '"BFloat16"', '""BFloat16""'), ("0", '"0"', '""0""')))
        events = [
            kernel(
                place,
                1,
                "ncclDevKernel_AllReduce",
                args={
                    "Collective name": Raw(name),
                    "In msg nelems": 1024,
                    "Out msg nelems": Raw('"2048"'),
                    "Group size": 2,
                    "dtype": Raw(dtype),
                    "In split size": Raw('"[]"'),
                    "Process Group Name": Raw(group),
                    "Process Group Ranks": Raw(ranks),
                },
            )
            for place, ((name, _), ranks, dtype, group) in enumerate(cases)
        ]
        found = read(write(tmp_path / "x.json", events, layout))
        names = ("collective", "message_in_elements", "message_out_elements", "group_size", "dtype", "group_name")
        assert found.kernels(*names) == [(name, 1024, 2048, 2, "BFloat16", "0") for (_, name), *_ in cases]
        assert [json.loads(ranks) for ranks in found.kernels("group_ranks")] == [[0, 1]] * len(cases)

    def test_nan_and_infinity_in_arguments(self, tmp_path: Path) -> None:
        values = ("inf", "-inf", "nan", "-nan", "NaN", "Infinity", "-Infinity")
        bad = [
            kernel(200 + i, 1, args={"blocks per SM": Raw(value), "est. achieved occupancy %": 50})
            for i, value in enumerate(values)
        ]
        found = read_around(tmp_path, *bad)
        assert found.kernels("occupancy_percent")[3:] == [50.0] * len(values)
        assert found.kernels()[:3] == KERNELS

    @pytest.mark.parametrize("layout", ["native", "compact"])
    def test_kernels_are_kept_whatever_their_arguments(self, tmp_path: Path, layout: str) -> None:
        broken = (
            {"x": Raw('["a", "it"s"]')},
            {"x": Raw("[float, c10::Half, ]")},
            {"x": Raw("[1, 2")},
            {"x": Raw('"f.py(1): "g"; h"')},
            {"x": Raw("0x7")},
            {"x": Raw("")},
            {"Process Group Ranks": Raw("[0, 1, ..., 7]")},
            {"x": Raw("None"), "y": Raw("True")},
            {"x": Raw("{")},
        )
        bad = [
            kernel(
                200 + place,
                2,
                "nccl",
                correlation=9,
                args={**args, "Collective name": Raw("allreduce"), "grid": [3, 2, 1]},
            )
            for place, args in enumerate(broken)
        ]
        found = read_around(tmp_path, *bad, layout=layout)
        assert found.kernels()[:3] == KERNELS
        columns = ("name", "start_ns", "duration_ns", "stream_id", "correlation_id", "collective", "grid_x", "grid_y")
        rows = [("nccl", 200_000 + 1000 * i, 2_000, 7, 9, "allreduce", 3, 2) for i in range(len(broken))]
        assert found.kernels(*columns)[3:] == rows
        assert found.faults["event_repaired"] == len(broken)
        assert found.kernels("group_ranks")[9] == "[0, 1, ..., 7]"


class TestTrailingCommas:
    @pytest.mark.parametrize("comma", [b",]", b", ]", b",\n]", b",,]", b"\n,\n\n]"])
    def test_a_trailing_comma_is_accepted_silently(self, tmp_path: Path, comma: bytes) -> None:
        layout = LAYOUTS[len(comma) % 4]
        for content in (document([kernel(1), kernel(2)], layout), bare_list([kernel(1), kernel(2)], layout)):
            head, _, tail = content.rpartition(b"]")
            found = read(write(tmp_path / "x.json", head + comma + tail))
            assert len(found.kernels()) == 2
            assert (found.status, found.faults) == ("complete", {})

    def test_a_trailing_comma_after_many_blocks(self, tmp_path: Path) -> None:
        events = [kernel(i, 1, args={"x": "y" * 2_000}) for i in range(MANY)]
        head, _, tail = document(events, after={"traceName": "x"}).rpartition(b"]")
        found = read(write(tmp_path / "x.json", head + b",\n]" + tail))
        assert (len(found.kernels()), found.status) == (MANY, "complete")

    def test_a_trailing_comma_inside_an_event(self, tmp_path: Path) -> None:
        found = read_around(tmp_path, event_text(kernel(25, 2, "k"), "compact").replace(b"}}", b",},}"))
        assert found.kernels()[2] == ("k", 25_000, 2_000)
        assert found.faults == {"event_repaired": 1}
