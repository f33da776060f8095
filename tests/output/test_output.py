"""Answers in every format: exact and complete for machines, short and harmless for people."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from tracedb.errors import TracedbError, UsageError
from tracedb.output import Answer, Column, Show, about, choose_format, from_rows, from_sql, write
from tracedb.output.display import MISSING, strips
from tracedb.output.machine_text import write_csv, write_json, write_ndjson
from tracedb.output.markdown_html import write_html, write_markdown
from tracedb.output.shorten import brief, dims, paths_apart, shorten, without_common_ends
from tracedb.output.terminal import write_table

TO = "\N{EN DASH}"

COLUMNS = [
    Column("name", "VARCHAR", None, "Kernel name."),
    Column("total_ns", "BIGINT", "ns", "Total time, in ns."),
    Column("share_percent", "DOUBLE", "percent"),
    Column("labels", "MAP(VARCHAR, VARCHAR)"),
]
ROWS: list[Sequence[object]] = [
    ('gemm<128, "a|b">', 9_007_199_254_740_993, 62.5, {"threads": "256"}),
    ("=HYPERLINK(1)", None, float("nan"), {}),
]


def sample(rows: Sequence[Sequence[object]] = ROWS) -> Answer:
    answer = from_rows(COLUMNS, list(rows))
    answer.report = "top-kernels"
    return answer


def text_of(writer: object, answer: Answer) -> str:
    target = io.StringIO(newline="")
    assert callable(writer)
    writer(answer, target)
    return target.getvalue()


class TestMachines:
    def test_csv_is_rfc_4180_and_no_formula(self) -> None:
        assert text_of(write_csv, sample()) == (
            "name,total_ns,share_percent,labels\r\n"
            '"gemm<128, ""a|b"">",9007199254740993,62.5,"{""threads"": ""256""}"\r\n'
            "'=HYPERLINK(1),,,{}\r\n"
        )

    def test_numbers_as_text_are_no_formulas(self) -> None:
        answer = from_rows([Column("delta", "VARCHAR")], [("-1",), ("+1.5",), ("-x",), ("@a",)])
        assert text_of(write_csv, answer).split() == ["delta", "-1", "+1.5", "'-x", "'@a"]

    def test_json_has_warnings_notes_and_how_many_rows_are_left_out(self) -> None:
        answer = from_rows([Column("name", "VARCHAR")], [("plain",)])
        answer.warnings, answer.notes, answer.left_out = ["a"], ["the gist"], "1 of 9 rows"
        found = json.loads(text_of(write_json, answer))
        assert (found["warnings"], found["notes"]) == (["a", "1 of 9 rows"], ["the gist"])
        assert text_of(write_csv, answer) == "name\r\nplain\r\n"

    def test_json_says_what_the_answer_is(self) -> None:
        assert text_of(write_json, sample()) == (
            "{\n"
            '"report": "top-kernels",\n'
            '"version": null,\n'
            '"database": null,\n'
            '"filters": {},\n'
            '"warnings": [],\n'
            '"columns": [\n'
            '{"name": "name", "type": "VARCHAR", "unit": null, "description": "Kernel name."},\n'
            '{"name": "total_ns", "type": "BIGINT", "unit": "ns", "description": "Total time, in ns."},\n'
            '{"name": "share_percent", "type": "DOUBLE", "unit": "percent", "description": null},\n'
            '{"name": "labels", "type": "MAP(VARCHAR, VARCHAR)", "unit": null, "description": null}\n'
            "],\n"
            '"rows": [\n'
            '{"name": "gemm<128, \\"a|b\\">", "total_ns": 9007199254740993, "share_percent": 62.5, '
            '"labels": {"threads": "256"}},\n'
            '{"name": "=HYPERLINK(1)", "total_ns": null, "share_percent": null, "labels": {}}\n'
            "]\n"
            "}\n"
        )

    def test_json_without_rows_is_json(self) -> None:
        assert json.loads(text_of(write_json, sample([])))["rows"] == []

    def test_ndjson_is_a_row_a_line(self) -> None:
        lines = text_of(write_ndjson, sample()).splitlines()
        assert [json.loads(line)["name"] for line in lines] == ['gemm<128, "a|b">', "=HYPERLINK(1)"]

    def test_values_of_every_kind(self) -> None:
        values = [
            True,
            Decimal("3"),
            Decimal("1.5"),
            datetime(2026, 1, 2, 3),
            [1, float("inf")],
            2**100,
            b"\x01",
        ]
        answer = from_rows([Column(f"c{at}", "?") for at in range(len(values))], [values])
        row = json.loads(text_of(write_ndjson, answer))
        assert list(row.values()) == [True, 3, 1.5, "2026-01-02T03:00:00", [1, None], 2**100, "01"]


class TestFiles:
    def test_parquet_keeps_types_and_meanings(self, tmp_path: Path) -> None:
        with duckdb.connect() as connection:
            query = "SELECT 'k' AS name, 5::HUGEINT AS total_ns, MAP {'a': 'b'} AS labels"
            answer = from_sql(connection, query, {"total_ns": "Total time, in ns."})
            write(answer, "parquet", tmp_path / "a.parquet")
        table = pq.read_table(tmp_path / "a.parquet")
        assert [str(field.type) for field in table.schema][:2] == ["string", "int64"]
        assert table.schema.field("total_ns").metadata[b"unit"] == b"ns"
        assert table.to_pylist() == [{"name": "k", "total_ns": 5, "labels": [("a", "b")]}]

    def test_parquet_stops_at_the_limit(self, tmp_path: Path) -> None:
        with duckdb.connect() as connection:
            answer = from_sql(connection, "FROM range(9) AS t(n)")
            answer.most = 4
            write(answer, "parquet", tmp_path / "a.parquet")
        assert pq.read_table(tmp_path / "a.parquet").column("n").to_pylist() == [0, 1, 2, 3]

    def test_xlsx_holds_text_as_text(self, tmp_path: Path) -> None:
        pytest.importorskip("xlsxwriter", reason="the xlsx extra is not installed")
        for name in ("a.xlsx", "b.xlsx"):
            write(sample(), "xlsx", tmp_path / name)
        assert (tmp_path / "a.xlsx").read_bytes() == (tmp_path / "b.xlsx").read_bytes()
        with zipfile.ZipFile(tmp_path / "a.xlsx") as book:
            sheet = book.read("xl/worksheets/sheet1.xml").decode()
        assert "<f>" not in sheet
        assert "=HYPERLINK(1)" in sheet
        assert "9007199254740993" in sheet  # beyond float64, so it is text

    def test_xlsx_without_the_extra_is_one_line(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "xlsxwriter", None)
        with pytest.raises(TracedbError, match=r"pip install 'tracedb-gpu\[xlsx\]'"):
            write(sample(), "xlsx", tmp_path / "a.xlsx")
        assert list(tmp_path.iterdir()) == []

    def test_a_file_appears_only_when_it_is_whole(self, tmp_path: Path) -> None:
        def broken() -> object:
            yield ROWS[0]
            raise KeyboardInterrupt

        out = tmp_path / "a.csv"
        out.write_text("before")
        answer = sample()
        answer.rows = broken()  # type: ignore[assignment]
        with pytest.raises(KeyboardInterrupt):
            write(answer, "csv", out)
        assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
        assert out.read_text() == "before"

    def test_a_folder_that_is_not_there_is_one_line(self, tmp_path: Path) -> None:
        with pytest.raises(TracedbError, match="cannot be written: there is no folder"):
            write(sample(), "csv", tmp_path / "none" / "a.csv")


class TestFormat:
    @pytest.mark.parametrize(
        ("name", "form"),
        [
            ("a.CSV", "csv"),
            ("a.jsonl", "jsonl"),
            ("a.md", "markdown"),
            ("a.htm", "html"),
            ("a.txt", "table"),
        ],
    )
    def test_the_ending_says_it(self, name: str, form: str) -> None:
        assert choose_format(None, Path(name)) == form

    def test_the_option_wins(self) -> None:
        assert choose_format("json", Path("a.csv")) == "json"
        assert choose_format(None, None) == "table"

    @pytest.mark.parametrize(("form", "out"), [(None, Path("a.dat")), ("parquet", None), ("xlsx", None)])
    def test_what_cannot_be_is_a_usage_error(self, form: str | None, out: Path | None) -> None:
        with pytest.raises(UsageError):
            choose_format(form, out)


class TestEyes:
    def test_table_has_one_unit_a_column(self) -> None:
        rows: list[Sequence[object]] = [("a", 1_234_567_890, 62.51, {}), ("b", 2_000, None, {"k": "v"})]
        answer = sample(rows)
        answer.shows = [
            Show(("name",)),
            Show(("total_ns",), "total"),
            Show(("share_percent",), "share"),
            Show(("labels",)),
        ]
        assert text_of(write_table, answer).splitlines() == [
            "                 share",
            "name   total ms      %  labels",
            "──────────────────────────────",
            "a     1,234.568   62.5  \N{EN DASH}",
            "b         0.002      \N{EN DASH}  k=v",
        ]

    def test_the_unit_of_a_column_leaves_no_time_at_zero(self) -> None:
        """If the longest would get more than ten digits for that, a short one is less than the last of its decimals."""
        for times, unit, shown in (
            ((12e9, 3e5), "ms", ["12,000.000", "0.300"]),
            ((12e9, 6e5, 0), "s", ["12.000", "0.001", "0.000"]),
            ((4e9, 400, 10), "µs", ["4,000,000.0", "0.4", "<0.1"]),
            ((2e16, -10), "s", ["20,000,000.000", ">-0.001"]),
            ((2e16, 10), "s", ["20,000,000.000", "<0.001"]),
        ):
            answer = from_rows([Column("total_ns", "BIGINT", "ns")], [(int(time),) for time in times])
            answer.shows = [Show(("total_ns",), "t")]
            head, _, *cells = text_of(write_table, answer).splitlines()
            assert (head.split()[-1], [cell.strip() for cell in cells]) == (unit, shown)
            answer = replace(answer, rows=[(int(time),) for time in times])
            assert [line.strip("| `") for line in text_of(write_markdown, answer).splitlines()[2:]] == shown
            page = text_of(write_html, answer)
            assert re.findall(r'data-value="([^"]*)"', page) == [cell.replace(",", "").strip("<>") for cell in shown]
            assert [html.unescape(cell) for cell in re.findall(r"data-value[^>]*>(.*?)</td>", page)] == shown

    def test_expressions_of_a_query_stay_on_a_line_where_there_is_room(self, monkeypatch: pytest.MonkeyPatch) -> None:
        answer = from_rows([Column('sum(("end" - "start"))', "BIGINT"), Column("n", "BIGINT")], [(1, 2)])
        for width, heads in ((40, 1), (20, 3)):
            monkeypatch.setenv("COLUMNS", str(width))
            assert len(text_of(write_table, answer).partition("─")[0].splitlines()) == heads

    def test_a_name_leaves_room_for_the_rest_of_a_table_of_every_column(self) -> None:
        answer = from_rows(
            [Column("name", "VARCHAR"), Column("n", "BIGINT")], [("x" * 300 + "1", 7), ("x" * 300 + "2", 8)]
        )
        answer.shows = [Show(("name",), kind="name"), Show(("n",))]
        answer.is_wide = True
        lines = text_of(write_table, answer).splitlines()
        assert max(map(len, lines)) < 90 and len(set(lines)) == 4

    def test_spans_leave_no_time_at_zero(self) -> None:
        for times, shown in (
            (((2_000, 3_000), (9_000_000, 20_000_000)), ["0.002\N{EN DASH}0.003", "9.000\N{EN DASH}20.000"]),
            (((200_000, 300_000), (9_000_000, 20_000_000)), ["0.2\N{EN DASH}0.3", "9.0\N{EN DASH}20.0"]),
            (((0, 300), (9_000_000, 20_000_000)), ["0.000\N{EN DASH}0.300", "9,000.000\N{EN DASH}20,000.000"]),
        ):
            answer = from_rows([Column("from_ns", "BIGINT", "ns"), Column("to_ns", "BIGINT", "ns")], times)
            answer.shows = [Show(("from_ns", "to_ns"), "from-to", "span")]
            lines = text_of(write_table, answer).splitlines()
            assert [line.strip() for line in lines[-2:]] == [
                text.replace("\N{EN DASH}", "\N{EN DASH}") for text in shown
            ]

    def test_spans_show_that_their_ends_differ(self) -> None:
        columns = [about("from_ns", "BIGINT"), about("to_ns", "BIGINT")]
        answer = from_rows(columns, [(6_912, 6_947), (6_947, 9_100), (7_000, 7_000)])
        answer.shows = [Show(("from_ns", "to_ns"), "from-to", "span")]
        assert strips(answer, list(answer.rows))[0].cells == [f"6.912{TO}6.947", f"7{TO}9", f"7{TO}7"]

    def test_numbers_of_a_query_have_few_digits(self) -> None:
        values = [0.006304114355595356, 1636.8152173913043, 123456789.53, 2.0, 1e300, float("nan"), None]
        answer = from_rows([about("x", "DOUBLE")], [(value,) for value in values])
        assert strips(answer, list(answer.rows))[0].cells == [
            *("0.0063041144", "1636.8152", "123456789.5", "2.0", "1e+300", MISSING, MISSING),
        ]
        text = io.StringIO()
        write_csv(answer, text)
        assert "0.006304114355595356" in text.getvalue()

    def test_gpus_lose_their_maker_before_their_number(self) -> None:
        answer = from_rows([about("gpu", "VARCHAR")], [("NVIDIA H100 80GB HBM3",), ("NVIDIA H200",), ("AMD",)])
        answer.shows = [Show(("gpu",), "GPU", kind="gpu", floor=8)]
        (strip,) = strips(answer, list(answer.rows))
        assert strip.cells == ["NVIDIA H100 80GB HBM3", "NVIDIA H200", "AMD"]
        assert strip.shorten is not None and strip.shorten(strip.cells, 8) == ["H100 80…", "H200", "AMD"]

    def test_lists_and_spans_of_unknown_values(self) -> None:
        columns = [Column("flags", "VARCHAR[]"), Column("min_ns", "BIGINT", "ns"), Column("max_ns", "BIGINT", "ns")]
        answer = from_rows(columns, [(["a", "b"], 1_000, 2_000), ([], None, None)])
        answer.shows = [Show(("flags",)), Show(("min_ns", "max_ns"), "min-max", "span")]
        lines = [line.split("  ") for line in text_of(write_table, answer).splitlines()[-2:]]
        assert [[cell.strip() for cell in line if cell] for line in lines] == [
            ["a, b", "1\N{EN DASH}2"],
            ["\N{EN DASH}", "\N{EN DASH}"],
        ]

    def test_table_fits_the_width_and_says_what_it_left(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "40")
        answer = from_rows(
            [Column("name", "VARCHAR"), *(Column(f"column{at}", "BIGINT") for at in range(9))],
            [("x" * 300, *range(9))],
        )
        target = io.StringIO()
        left = write_table(answer, target)
        assert left > 0
        assert max(len(line) for line in target.getvalue().splitlines()) <= 40

    def test_a_table_stands_on_its_rule_and_wide_letters_take_two_places(self) -> None:
        answer = from_rows([Column("name", "VARCHAR"), Column("n", "BIGINT")], [("日本", 7), ("a\x1b[2Jb", None)])
        answer.shows = [Show(("name",), ""), Show(("n",), "two words", "raw")]
        assert text_of(write_table, answer).splitlines() == [
            " " * 10 + "two",
            " " * 8 + "words",
            "─" * 13,
            "日本" + " " * 8 + "7",
            "a\N{REPLACEMENT CHARACTER}[2Jb" + " " * 6 + "\N{EN DASH}",
        ]

    def test_a_long_table_takes_no_longer_than_a_long_csv_by_far(self) -> None:
        rows = [(f"kernel_{n % 50}", n, n * 7, "x" * (n % 90)) for n in range(20_000)]
        names = ("name", "start_ns", "duration_ns", "note")
        kinds = ("VARCHAR", "BIGINT", "BIGINT", "VARCHAR")
        took = {}
        for form in (write_csv, write_table, write_markdown, write_html):
            begun = time.process_time()
            written = text_of(form, from_rows([Column(*pair) for pair in zip(names, kinds, strict=True)], rows))
            took[form] = time.process_time() - begun
            assert written.count("kernel_7") >= 400
        assert max(took.values()) < 10 * max(took[write_csv], 0.1)

    def test_long_markdown_and_html_are_written_before_their_last_row_is_read(self) -> None:
        for form in (write_markdown, write_html):
            target = io.StringIO()
            written: list[int] = []

            def rows(target: io.StringIO = target, written: list[int] = written) -> Iterator[Sequence[object]]:
                for at in range(3_000):
                    written.append(target.tell())
                    yield (f"{'x' * 80}{at}", at)

            answer = from_rows([Column("name", "VARCHAR"), Column("n", "BIGINT")], [])
            answer.rows = rows()
            answer.shows = [Show(("name",), kind="name"), Show(("n",))]
            form(answer, target)
            assert written[999] < 2_000 < written[1_001] < written[2_001]
            lines = [line for line in target.getvalue().splitlines() if "x" * 20 in line]
            assert len(set(lines)) == 3_000

    def test_a_long_table_is_written_before_its_last_row_is_read(self) -> None:
        target = io.StringIO()
        written: list[int] = []

        def rows() -> Iterator[Sequence[object]]:
            for at in range(20_000):
                if at % 1000 == 999:
                    written.append(target.getvalue().count("\n"))
                yield (
                    f"void kernel_of_a_family_with_a_long_name<{at // 2}>(a_rather_long_argument, {at // 2})",
                    at * 1000,
                )

        columns = [Column("name", "VARCHAR"), Column("total_ns", "BIGINT", "ns")]
        answer = Answer(columns, rows(), lambda: pytest.fail("not asked for"))
        answer.shows = [Show(("name",), kind="name", floor=16), Show(("total_ns",))]
        write_table(answer, target)
        lines = target.getvalue().splitlines()
        assert written[:2] == [0, 1000 + 3]  # two lines of header, a rule, and the first page
        assert written[-1] > 18_000
        names = [line.rsplit(maxsplit=1)[0] for line in lines[3:]]
        assert len(names) == 20_000
        assert [first == second for first, second in zip(names[::2], names[1::2], strict=True)] == [True] * 10_000
        assert len(set(names)) == 10_000
        assert " ".join(lines[:2]).split() == ["total", "name", "µs"]
        assert lines[3].endswith(" 0.0") and lines[-1].endswith(" 19,999.0")

    def test_terminal_codes_in_names_do_nothing(self) -> None:
        answer = from_rows([Column("name", "VARCHAR")], [("\x1b[2J[red]x\u202e",)])
        assert (
            text_of(write_table, answer).splitlines()[2]
            == "\N{REPLACEMENT CHARACTER}[2J[red]x\N{REPLACEMENT CHARACTER}"
        )

    def test_markdown_takes_no_name_for_its_own(self) -> None:
        answer = from_rows(
            [Column("name", "VARCHAR"), Column("calls", "BIGINT", "count")],
            [("<script>|`", 1), ("plain", 1_000)],
        )
        answer.shows = [Show(("name",), kind="name"), Show(("calls",))]
        assert text_of(write_markdown, answer) == (
            "| name | calls |\n|---|---:|\n| `` <script>\\|` `` | 1 |\n| plain | 1,000 |\n"
        )

    def test_markdown_says_what_is_beside_the_rows(self) -> None:
        answer = from_rows([Column("name", "VARCHAR")], [("plain",)])
        answer.warnings, answer.notes, answer.left_out = ["<b> of\n| a_b"], ["the gist"], "1 of 9 rows"
        assert text_of(write_markdown, answer) == (
            "| name |\n|---|\n| plain |\n\n> Warning: \\<b\\> of \\| a\\_b\n\n> Note: the gist\n\n> Note: 1 of 9 rows\n"
        )

    def test_html_says_what_is_beside_the_rows(self) -> None:
        answer = from_rows([Column("name", "VARCHAR")], [("plain",)])
        answer.warnings, answer.notes, answer.left_out = ["<w>"], ["<n>"], "1 of 9 rows"
        page = text_of(write_html, answer)
        assert '<p class="warning">Warning: &lt;w&gt;</p>' in page
        assert '<p class="note">Note: &lt;n&gt;</p>\n<p class="note">Note: 1 of 9 rows</p>' in page

    def test_html_escapes_everything(self) -> None:
        answer = from_rows([Column("<b>", "VARCHAR")], [("<script>alert(1)</script>",)])
        answer.report, answer.warnings = "<i>", ["<u>"]
        page = text_of(write_html, answer)
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
        assert "<i>" not in page and "<u>" not in page and "<b>" not in page
        assert "http://" not in page and "https://" not in page and "src=" not in page.replace("default-src", "")


class TestNames:
    def test_different_names_stay_different(self) -> None:
        names = [f"void at::native::kernel<{'x' * 80}, {at}, {'y' * 80}>" for at in range(30)]
        short = shorten(names, 24)
        assert len(set(short)) == 30
        assert max(map(len, short)) <= 24
        assert short == shorten(names, 24)

    def test_paths_are_told_apart_by_the_shortest_part_that_no_other_has(self) -> None:
        same_shape = [f"../d/sweep_{run}/rank{rank}/trace.pt.json.gz" for run in "ab" for rank in (0, 1)]
        assert list(paths_apart(same_shape).values()) == [
            "sweep_a/rank0", "sweep_a/rank1", "sweep_b/rank0", "sweep_b/rank1"
        ]  # fmt: skip
        assert paths_apart(["../d/x.sqlite", "../d/public/x.sqlite"]) == {
            "../d/x.sqlite": "d/x.sqlite", "../d/public/x.sqlite": "public"
        }  # fmt: skip
        assert paths_apart(["a", "a/b", "", "a/b"]) == {"a": "a", "a/b": "b", "": ""}
        assert paths_apart(["/d/x.sqlite"]) == {"/d/x.sqlite": "x.sqlite"}

    def test_short_names_stay(self) -> None:
        assert shorten(["gemm", "void copy"], 20) == ["gemm", "copy"]

    def test_equal_names_are_cut_equally(self) -> None:
        assert len(set(shorten(["a" * 50] * 3, 10))) == 1

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            (
                "[[8192, 4096], [4096, 1024], []]",
                "8192\N{MULTIPLICATION SIGN}4096 · 4096\N{MULTIPLICATION SIGN}1024",
            ),
            ("[[[2, 3], [4]], [5]]", "(2\N{MULTIPLICATION SIGN}3, 4) · 5"),
            ("[]", ""),
            ("no json", "no json"),
            ('{"a": 1}', '{"a": 1}'),
        ],
    )
    def test_shapes(self, text: str, shown: str) -> None:
        assert dims(text) == shown


def test_csv_of_json_reads_back() -> None:
    rows = list(csv.DictReader(io.StringIO(text_of(write_csv, sample()))))
    assert json.loads(rows[0]["labels"]) == {"threads": "256"}


def test_names_of_a_family_go_on_where_they_differ() -> None:
    """Beside other names, what tells them apart is shown instead of numbers; numbers go by the order of the names."""
    family = [
        f"sm80_xmma_gemm_f32f32_f32f32_f32_{layout}_n_tilesize{tile}x8_stage3_warpsize1x4x1_ffma_aligna4_execute_kernel"
        for layout in ("tn", "nn", "nt")
        for tile in ("64x64", "128x128")
    ]
    made = shorten([*family, "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nt_align1>(T1::Params)"], 48)
    assert max(map(len, made)) <= 48 and len(set(made)) == len(made)
    for name, short in zip(family, made, strict=False):
        layout, tile = name.split("_")[6], name.split("tilesize")[1].split("x8_")[0]
        assert f"{layout}_n_tilesize{tile}" in short, short
    one, other = (f"{'b' * 30}{letter}{'b' * 30}" for letter in "yx")
    assert shorten([one, other], 6) == shorten([other, one], 6) == ["bb…bbb", "bb…b#2"]


def test_the_functor_of_an_elementwise_kernel_is_kept() -> None:
    names = [
        f"void at::native::elementwise_kernel<(int)128, (int)2, void at::native::gpu_kernel_impl_nocast<{functor}"
        "(at::TensorIteratorBase &)::[lambda() (instance 3)]::operator ()() const::[lambda(float) (instance 1)]>>(int)"
        for functor in ("at::native::masked_fill_kernel", "at::native::direct_copy_kernel_cuda")
    ]
    one, other = brief(names, dict.fromkeys(names, "elementwise_kernel"))
    assert "masked_fill" in one and "direct_copy" in other


def test_names_of_files_lose_what_all_have_in_common() -> None:
    names = {1: "tracelens_h100_bert_small.json.gz", 3: "tracelens_mi300_bert_small.json.gz"}
    assert without_common_ends(names) == {1: "h100", 3: "mi300"}
    assert without_common_ends({1: "a/rank0.json", 2: "a/rank1.json"}) == {1: "a/rank0.json", 2: "a/rank1.json"}
    kept = {1: "a_long_name_of_a_trace.json", 2: "a_long_name_of_a_trace.json.gz"}
    assert len(set(without_common_ends(kept).values())) == 2


def test_megabytes_keep_their_decimals_in_csv() -> None:
    """As nsys prints them; JSON has numbers."""
    made = from_rows(
        [Column("Total (MB)", "DOUBLE", "MB"), Column("x", "DOUBLE")], [(603.98, 603.98), (0.0, 0.0), (None, 1.5)]
    )
    target = io.StringIO()
    write_csv(made, target)
    assert target.getvalue().split() == ["Total", "(MB),x", "603.980,603.98", "0.000,0.0", ",1.5"]
