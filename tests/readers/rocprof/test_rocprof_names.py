"""Any kernel name survives: always if quoted properly; in rocprofv3's quoting unless it has quotes or line breaks."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.examples import MORE
from support.rocprof_files import AGENTS, ERAS, Value, direct, kernel, kernel_trace, proper
from support.rocprof_loaded import names, read
from tracedb.ingester.issues import Account
from tracedb_rocprof.csv.chunks import Parser, parsed
from tracedb_rocprof.csv.headers import header_of
from tracedb_rocprof.string_ids import Texts

ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
TRICKY = st.text('",\n\r \\a1', max_size=12)
LIKE_RECORDS = st.sampled_from(
    ['"', '""', '","', '",1,2', "\n", 'a\n"KERNEL_DISPATCH","Agent 4",1', "1,2,3,4,5,6,7", ""]
)
NAMES = st.lists(ANY | TRICKY | LIKE_RECORDS, min_size=1, max_size=6)
QUOTING = st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC, csv.QUOTE_ALL])
NAMED_ISSUES = {"quotes_doubled", "quotes_not_escaped", "line_unreadable"}
FEW = settings(max_examples=60 * MORE, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def numbered(found: Sequence[str]) -> list[dict[str, Value]]:
    """A dispatch for each name; its start says which."""
    return [kernel(name, 10 * at, 10 * at + 5) for at, name in enumerate(found)]


def parse(found: Sequence[str], era: str, writer: Callable[..., str]) -> tuple[dict[int, str], set[str]]:
    """Return the names by start, and the issues, of a file of an era."""
    rows = [[row.get(name, AGENTS[era] if name == "Agent_Id" else 0) for name in ERAS[era]] for row in numbered(found)]
    file = io.BytesIO(writer(ERAS[era], rows).encode())
    header = header_of(file.readline())
    assert header is not None
    parser, texts, account = Parser(header), Texts(), Account()
    kept: dict[int, int] = {}
    for block in parsed(file, parser, 1):
        starts = block.columns["start_timestamp"].to_pylist()
        kept.update(zip(starts, texts.of(block.columns["kernel_name"], block.is_undecided).tolist(), strict=True))
        account.lost("line_unreadable", block.unreadable, "")
    texts.settle(account)
    return {start: texts.text(number) for start, number in kept.items()}, set(account.issues)


@pytest.mark.parametrize("era", ERAS)
@FEW
@given(found=NAMES, quoting=QUOTING)
def test_properly_written(era: str, found: list[str], quoting: int) -> None:
    kept, issues = parse(found, era, proper(quoting))
    assert kept == {10 * at: name for at, name in enumerate(found)}
    assert issues <= {"quotes_doubled"}


@settings(FEW, max_examples=200 * MORE)
@given(found=NAMES, era=st.sampled_from(list(ERAS)))
def test_written_by_the_tool(found: list[str], era: str) -> None:
    """Of names with quotes or line ends, what is not unchanged has an issue that says so."""
    kept, issues = parse(found, era, direct)
    wanted = {10 * at: name for at, name in enumerate(found)}
    if kept != wanted:
        assert issues & NAMED_ISSUES
    plain = {start: name for start, name in wanted.items() if not set(name) & set('"\n\r')}
    assert {start: name for start, name in kept.items() if start in plain} == plain


@settings(FEW, max_examples=10 * MORE)
@given(found=NAMES, quoting=QUOTING, era=st.sampled_from(list(ERAS)))
def test_through_to_the_rows(found: list[str], quoting: int, era: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = kernel_trace(Path(folder) / "x_kernel_trace.csv", numbered(found), era, proper(quoting))
        reading = read(path)
    assert (names(reading), reading.faults) == (found, {})
