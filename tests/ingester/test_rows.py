"""The event counts of a capture, and the rows that ingesters build with the schema's types."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tracedb.ingester.issues import Account
from tracedb.ingester.rows import CaptureRow, Device, capture_row, device_rows, issue_rows
from tracedb.storage import schema


def lines(account: Account) -> list[tuple[Any, ...]]:
    """The rows of ``ingest_issue`` as tuples: code, severity, count, skipped, detail."""
    return [tuple(row.values()) for row in issue_rows(account).to_pylist()]


@pytest.mark.parametrize(
    ("method", "severity", "skipped", "is_repaired"),
    [
        ("left_aside", "note", 3, False),
        ("not_read", "warning", 3, False),
        ("lost", "warning", 3, True),
        ("mended", "warning", 0, True),
        ("warned", "warning", 0, False),
        ("noted", "note", 0, False),
    ],
)
def test_what_each_method_counts(method: str, severity: str, skipped: int, is_repaired: bool) -> None:
    account = Account()
    getattr(account, method)("a_code", 0, "nothing")
    assert (account.issues, account.is_repaired) == ({}, False)
    getattr(account, method)("a_code", 3, "what happened")
    assert lines(account) == [("a_code", severity, 3, skipped, "what happened")]
    assert (account.skipped, account.is_repaired) == (skipped, is_repaired)
    assert account.lost_events == (skipped if severity == "warning" else 0)


def test_every_different_detail_is_named_once() -> None:
    account = Account()
    for detail in ("15 rows of A", "5 rows of A", "15 rows of A"):  # one is a part of the other's text
        account.warned("a_code", 1, detail)
    assert lines(account) == [("a_code", "warning", 3, 0, "15 rows of A; 5 rows of A")]


def test_only_the_first_place_is_named() -> None:
    account, later = Account(), Account()
    account.mended("a_code", 1, "JSON was mended", place="byte 10")
    account.mended("a_code", 1, "JSON was mended", place="byte 20")
    later.mended("a_code", 1, "JSON was mended", place="byte 30")
    later.mended("a_code", 1, "characters were replaced", place="byte 40")
    account.merge(later)
    said = "JSON was mended, first at byte 10; characters were replaced, first at byte 40"
    assert lines(account) == [("a_code", "warning", 4, 0, said)]


def test_parts_are_ordered_by_count_and_bounded() -> None:
    account, other = Account(), Account()
    for place in range(10):
        account.lost("a_code", 10 - place, "lost", f"kind {place}")
    other.lost("a_code", 20, "lost", "kind 9")
    account.merge(other)
    named = "21 kind 9, 10 kind 0, 9 kind 1, 8 kind 2, 7 kind 3, 6 kind 4, 5 kind 5, 4 kind 6, 2 more kinds"
    assert lines(account) == [("a_code", "warning", 75, 75, f"lost: {named}")]
    assert account.lost_among({"kind 0", "kind 9"}) == 31


def test_clear_forgets_everything() -> None:
    account = Account(events_read=5, is_cut=True)
    account.lost("a_code", 1, "lost")
    account.clear()
    assert account == Account()


def test_rows_have_the_types_of_the_schema() -> None:
    row = CaptureRow("complete", events_read=3, events_skipped=1, rows_written=2, rank=0, source="rocprof")
    account = Account()
    account.noted("a_code", 1, "a note")
    tables = {
        "capture": capture_row(row),
        "device": device_rows([Device(0, True, name="A"), Device(1, False)]),
        "ingest_issue": issue_rows(account),
    }
    for name, found in tables.items():
        declared = schema.arrow(name)
        assert {field.name: field.type for field in found.schema} == {
            field.name: field.type for field in declared if field.name in found.schema.names
        }
    assert tables["capture"]["events_read"].to_pylist() == [3]
    assert tables["device"]["name"].to_pylist() == ["A", None]
    assert set(tables["device"].schema.names) == set(schema.arrow("device").names)
    assert device_rows([]).schema == tables["device"].schema
    assert issue_rows(Account()).schema == tables["ingest_issue"].schema


def test_a_capture_without_a_source_of_its_own_has_no_such_column() -> None:
    found = capture_row(CaptureRow("complete", 0, 0, 0))
    assert "source" not in found.schema.names
    assert found.schema.field("clock_zero_unix_ns").type == pa.int64()
    assert found.num_rows == 1
