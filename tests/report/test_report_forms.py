"""The output formats of a report: the content of each, and identical bytes from run to run."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import duckdb
import pytest

from support.command import calls, run
from support.tiny import ANSWERED, two_ranks


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_ranks(tmp_path_factory.mktemp("db") / "trace.duckdb")


class TestForms:
    def test_csv(self, db: Path) -> None:
        done = run("-q", "report", "matmul-fraction", "--db", db, "--format", "csv", "--rank", "0")
        assert done.stdout_bytes.decode().splitlines() == [
            "class,calls,total_ns,share_percent",
            "matmul,3,6000,57.142857142857146",
            "collective,1,4000,38.095238095238095",
            "elementwise,1,500,4.761904761904762",
        ]

    def test_json_says_what_was_asked(self, db: Path) -> None:
        done = run(
            "report",
            "matmul-fraction",
            "--db",
            db,
            "--format",
            "json",
            "--by",
            "rank",
            "--where",
            "threads=256",
        )
        answer = json.loads(done.stdout)
        assert list(answer) == ["report", "version", "database", "filters", "warnings", "columns", "rows"]
        assert answer["filters"] == {"where": {"threads": ["256"]}, "by": ["rank"]}
        units = {column["name"]: (column["type"], column["unit"]) for column in answer["columns"]}
        assert units == {
            "rank": ("INTEGER", None),
            "class": ("VARCHAR", None),
            "calls": ("BIGINT", "count"),
            "total_ns": ("BIGINT", "ns"),
            "share_percent": ("DOUBLE", "percent"),
        }
        assert all(column["description"] for column in answer["columns"])

    def test_markdown(self, db: Path) -> None:
        done = run("-q", "report", "matmul-fraction", "--db", db, "--format", "markdown", "--rank", "0")
        assert done.stdout.splitlines() == [
            "| class | calls | total µs | share % |",
            "|---|---:|---:|---:|",
            "| matmul | 3 | 6.000 | 57.1 |",
            "| collective | 1 | 4.000 | 38.1 |",
            "| elementwise | 1 | 0.500 | 4.8 |",
        ]

    def test_every_table_fits_100_columns(self, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("COLUMNS", raising=False)
        said = run("-q", "report", *ANSWERED, "--db", db).stdout.splitlines()
        lines = [line for line in said if not line.startswith(("note: ", "warning: "))]
        begins = [place for place, line in enumerate(lines) if line.partition(": ")[0] in ANSWERED]
        assert [lines[place].partition(": ")[0] for place in begins] == ANSWERED
        tables = {ANSWERED[n]: lines[a + 1 : b] for n, (a, b) in enumerate(pairwise([*begins, len(lines)]))}
        assert [name for name, table in tables.items() if len(table) <= 2] == []
        assert [name for name, table in tables.items() if max(map(len, table)) > 100] == []

    def test_a_table_reads_no_texts_that_it_does_not_show(self, db: Path) -> None:
        """Signatures are long, and follow from the other columns: no order needs them."""
        shown = run("-v", "report", "unique-kernels", "--db", db)
        query = shown.stderr.partition("LIMIT")[0]
        assert "input_dims" in query
        assert "signature" not in query
        assert "short_name" not in query
        whole = run("-v", "report", "unique-kernels", "--db", db, "--format", "csv")
        header = whole.stdout.splitlines()[0].split(",")
        assert {"signature", "signature_key", "short_name"} <= set(header)
        assert "signature_key" not in whole.stderr.rpartition("ORDER BY")[2]
        by_key = run("-v", "report", "unique-kernels", "--db", db, "--sort", "signature_key")
        assert "ORDER BY signature_key" in by_key.stderr.replace('"', "")

    @pytest.mark.parametrize("form", ["csv", "json", "ndjson", "markdown", "table", "html"])
    def test_the_same_bytes_again(self, form: str, db: Path) -> None:
        first, second = (run("report", "unique-kernels", "--db", db, "--format", form).output for _ in range(2))
        assert first == second

    def test_unique_kernels_as_jsonl_have_the_keys_of_extract_unique_kernels(self, db: Path) -> None:
        done = run("report", "unique-kernels", "--db", db, "--format", "jsonl", "--top", "2", "--rank", "0")
        first, second = map(json.loads, done.stdout.splitlines())
        assert list(first)[:5] == ["name", "device", "signature", "args", "count"]
        assert first["device"] == 0 and first["count"] == calls(db, "--rank", "0")[first["name"]]
        assert json.loads(first["signature"])["name"] == first["name"]
        assert {"grid", "block", "shared memory", "stream"} <= set(first["args"])
        assert first["total_ns"] >= second["total_ns"]
        assert "2 of " in done.stderr and "tier 2 GEMM: " in done.stderr
        by = run("-q", "report", "unique-kernels", "--db", db, "--format", "jsonl", "--by", "rank,device", "--top", "1")
        assert [(row["rank"], row["device"]) for row in map(json.loads, by.stdout.splitlines())] == [(0, 0), (1, 0)]

    def test_jsonl_is_ndjson_elsewhere(self, db: Path) -> None:
        texts = [
            run("-q", "report", "top-kernels", "--db", db, "--format", form).stdout for form in ("jsonl", "ndjson")
        ]
        assert texts[0] == texts[1] != ""

    def test_the_ending_of_the_file_says_the_form(self, db: Path, tmp_path: Path) -> None:
        out = tmp_path / "a.parquet"
        assert run("-q", "report", "top-kernels", "--db", db, "-o", out).stdout == ""
        with duckdb.connect() as connection:
            rows = connection.execute(f"SELECT name, calls FROM '{out}'").fetchall()
        assert dict(rows) == calls(db)

    def test_gemm_variance_says_the_gist_first(self, db: Path) -> None:
        done = run("report", "gemm-variance", "--db", db)
        assert "2 GEMMs" in done.stderr and "6 calls" in done.stderr
        assert "2 with both calls that overlap a collective" in done.stderr
        assert "8\N{MULTIPLICATION SIGN}4 · 4\N{MULTIPLICATION SIGN}2" in done.stdout
        assert "256/r0" in done.stdout
