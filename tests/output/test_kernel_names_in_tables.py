"""Terminal tables: short kernel names stay distinct, and verdicts are complete at every width."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence

import pytest

from tracedb.output import Answer, Column, Show, from_rows
from tracedb.output.markdown_html import write_markdown
from tracedb.output.shorten import brief
from tracedb.output.terminal import write_table

FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul>>(int)"
ADD = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>>(int)"
)
GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
SHORT = {FILL: "vectorized_elementwise_kernel", ADD: "vectorized_elementwise_kernel", GATHER: GATHER.partition("(")[0]}


def short(names: Sequence[str]) -> Mapping[str, str]:
    return {name: SHORT[name] for name in names if name in SHORT}


def answer(rows: Sequence[tuple[object, ...]]) -> Answer:
    columns = [Column("name", "VARCHAR"), Column("calls", "BIGINT", "count"), Column("verdict", "VARCHAR")]
    made = from_rows(columns, rows)
    made.shows = [
        Show(("name",), kind="kernel", floor=24, short=short),
        *(Show(("calls",), f"number {at}") for at in range(6)),
        Show(("verdict",), kind="verdict"),
    ]
    return made


def table(made: Answer, width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    target = io.StringIO()
    write_table(made, target)
    return target.getvalue().splitlines()


def test_a_short_name_alone_where_no_other_kernel_has_it() -> None:
    assert brief([FILL, GATHER, "add(int)"], {**SHORT, "add(int)": "add"}) == [SHORT[FILL], SHORT[GATHER], "add(int)"]


def test_a_shared_short_name_with_the_arguments_that_differ() -> None:
    one, other = brief([FILL, ADD], SHORT)
    assert one.startswith("vectorized_elementwise_kernel…FillFunctor<")
    assert other.startswith("vectorized_elementwise_kernel…CUDAFunctor_add")


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_tables_show_short_names_and_whole_verdicts(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = "slower beside collectives"
    made = answer([(FILL, 1_000_000, verdict), (GATHER, 2_000_000, "within the spread")])
    lines = table(made, width, monkeypatch)
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines[2:]).split())
    for word in (*verdict.split(), "within", "spread"):
        assert re.search(rf"\b{word}\b", text), word
    if width == 200:
        assert any(line.startswith("vectorized_elementwise_kernel ") for line in lines)
        assert "ncclDevKernelArgsStorage" not in text


def test_a_wide_table_has_the_names_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    made = answer([(FILL, 1, "x"), (GATHER, 2, "y")])
    made.is_wide = True
    assert any(line.startswith(FILL) for line in table(made, 60, monkeypatch))


def test_names_of_later_pages_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first page knows one kernel of a short name, a later page brings another one."""
    lines = table(answer([(FILL, 1, "")] * 1_000 + [(ADD, 2, "")]), 120, monkeypatch)
    names = {line[: line.index("  ")] for line in lines if line.startswith("vector")}
    assert len(names) == 2


def test_markdown_has_short_names() -> None:
    target = io.StringIO()
    write_markdown(answer([(FILL, 1, "x"), (GATHER, 2, "y")]), target)
    assert "| vectorized_elementwise_kernel |" in target.getvalue().replace("`", "")
    assert "| ncclDevKernel_AllGather_RING_LL |" in target.getvalue().replace("`", "")
