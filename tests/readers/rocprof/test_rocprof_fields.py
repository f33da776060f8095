"""CSV fields are the same whichever parser reads their block: compiled, Arrow's, or the record parser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.rocprof_files import ERAS, direct, kernel, kernel_trace, write
from support.rocprof_loaded import read
from tracedb.ingester.native_library import CHOICE
from tracedb_rocprof.csv import chunks

LINES = "K,Agent 4,k,1000,1500,{}\n"
HEADER = "Kind,Agent_Id,Kernel_Name,Start_Timestamp,End_Timestamp,Correlation_Id\n"


def by_each(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return the tables that each parser gives."""
    found = [read(folder).tables]
    monkeypatch.setenv(CHOICE, "python")
    found.append(read(folder).tables)
    monkeypatch.setattr(chunks.Parser, "_is_plain", lambda *_: False)
    monkeypatch.setattr(chunks, "_is_clean", lambda _: False)
    return [*found, read(folder).tables]


@pytest.mark.parametrize(
    "value",
    ["nan", "NaN", "NULL", "null", "N/A", "n/a", "#NA", "-1.#IND", "-9223372036854775808", "-9223372036854775807"],
)
def test_what_others_write_for_no_value_is_no_number(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [kernel(f"k{at}", 100 * at, 100 * at + 50) for at in range(1, 4)]
    rows[1]["VGPR_Count"] = value
    text = (
        ",".join(ERAS["7.0"]) + "\n" + "".join(",".join(str(row.get(c, 0)) for c in ERAS["7.0"]) + "\n" for row in rows)
    )
    write(tmp_path / "17_kernel_trace.csv", text)
    first, *others = by_each(tmp_path, monkeypatch)
    assert first["ingest_issue"] and all(other["ingest_issue"] == first["ingest_issue"] for other in others)
    assert all(other["kernel_event"] == first["kernel_event"] for other in others)
    assert {row["code"]: row["severity"] for row in first["ingest_issue"]}.items() & {
        ("field_unreadable", "warning"),
        ("line_unreadable", "warning"),
    }


def test_blanks_round_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "17_kernel_trace.csv", HEADER + "K, Agent 4, k, 1000, 1500, 3\nK,Agent 4,k,2000 ,2500,4\n")
    first, *others = by_each(tmp_path, monkeypatch)
    assert [row["start_ns"] for row in first["kernel_event"]] == [1000, 2000]
    assert all(other == first for other in others)


def test_a_quoted_field_that_goes_over_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "17_kernel_trace.csv", HEADER + '"K\n\rX",Agent 4,"k\nl",1000,1500,3\n' + LINES.format(4))
    first, *others = by_each(tmp_path, monkeypatch)
    assert len(first["kernel_event"]) == 2
    assert all(other == first for other in others)


def test_a_quote_inside_a_field_after_sound_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many quotes and fields as in other lines, and yet another name."""
    lines = ['"K","Agent 4","k, 1",1000,1500,3\n'] * 3 + ['"K","Agent 4"x"k, 1",2000,2500,3\n']
    write(tmp_path / "17_kernel_trace.csv", HEADER + "".join(lines))
    first, *others = by_each(tmp_path, monkeypatch)
    assert [row["name"] for row in first["kernel_event"]] == ["k, 1"] * 3
    assert all(other == first for other in others)


def test_files_of_a_set_with_other_columns(tmp_path: Path) -> None:
    kernel_trace(tmp_path / "17_kernel_trace.csv", [kernel("a", 1_000, 1_500)], "6.0", direct)
    write(tmp_path / "17_memory_copy_trace.csv", HEADER + LINES.format(7).replace("Agent 4", "139690710949888"))
    reading = read(tmp_path)
    assert reading.kernels("name", "correlation_id", "grid_x") == [("a", None, 8), ("k", 7, None)]


@pytest.mark.parametrize("blank", ["\n", "\r\n\r\n", " \n"])
def test_blank_lines_before_the_header(blank: str, tmp_path: Path) -> None:
    write(tmp_path / "17_kernel_trace.csv", blank + HEADER + LINES.format(3))
    reading = read(tmp_path)
    assert reading.kernels("name", "correlation_id") == [("k", 3)]
    assert (reading.status, reading.faults) == ("complete", {})


@pytest.mark.parametrize("size", [100, 1 << 20])
def test_lines_with_too_many_fields_make_no_record_together(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "BLOCK_BYTES", size)
    rows = [kernel(f"k<{at}, int>", 1_000 * at, 1_000 * at + 500) for at in range(1, 6)]
    lines = kernel_trace(tmp_path / "17_kernel_trace.csv", rows).read_text().splitlines(keepends=True)
    lines[2] = lines[2].replace("\n", ",\n")
    lines[3] = lines[3].replace('"Agent 4",', '"Agent 4","X",')
    write(tmp_path / "17_kernel_trace.csv", "".join(lines))
    reading = read(tmp_path)
    assert reading.kernels("name") == ["k<1, int>", "k<4, int>", "k<5, int>"]
    assert reading.faults == {"line_unreadable": 2}
    assert reading.capture["events_skipped"] == 2
