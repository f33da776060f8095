"""Keeping a lake: verify finds what is missing, compact changes no answer."""

from __future__ import annotations

import json
import shlex
import shutil
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import tracedb
from support.command import run
from support.lake_comparison import differences, rows
from support.loading import trace
from tracedb.lake import compact
from tracedb.storage import lake_manifest, lake_tables
from tracedb.storage.lake_store import Store

COMPARED = ("v1.stragglers", *(f"main.{table}" for table in lake_tables.declared() if table != "capture"),
            "(SELECT * EXCLUDE ingested_at FROM main.capture)")  # fmt: skip
"""Every table whole, on which all views depend, and a view of facts about several captures."""


@pytest.fixture
def lake(exported: Path, tmp_path: Path) -> Path:
    """A copy of the sample lake."""
    return Path(shutil.copytree(exported, tmp_path / "lake"))


@pytest.fixture(scope="module")
def right(exported: Path) -> dict[str, list[Any]]:
    """What the sample lake answers."""
    return answers(exported)


def answers(lake: Path) -> dict[str, list[Any]]:
    with tracedb.connect(lake) as connection:
        return {name: rows(connection, name, {}) for name in COMPARED}


def entries(lake: Path) -> list[str]:
    return sorted(path.name for path in (lake / "manifest").iterdir() if path.name.startswith(("compact-",)))


def of_one_run(lake: Path) -> list[lake_manifest.Held]:
    """Return the entries of the first run."""
    manifest = lake_manifest.read(Store(lake))
    first = next(iter(manifest.runs()))
    return [item for item in manifest.captures if item.entry.captures[0].run == first]


def states(lake: Path, *options: str) -> tuple[int, list[str]]:
    done = run("lake", "verify", lake, "--format", "json", *options)
    return done.exit_code, [row["state"] for row in json.loads(done.stdout)["rows"]]


class TestCompact:
    def test_it_changes_no_answer(self, lake: Path, right: dict[str, list[Any]]) -> None:
        files = len(list(lake.rglob("*.parquet")))
        done = run("lake", "compact", lake)
        assert done.exit_code == 0 and "8 manifest files replaced" in done.stderr
        after = answers(lake)
        assert {name: differences(right[name], after[name]) for name in COMPARED} == {name: [] for name in COMPARED}
        assert len(entries(lake)) == 2 and len(list(lake.rglob("*.parquet"))) < files / 3
        assert states(lake) == (0, [])
        assert "0 manifest files" in run("lake", "compact", lake).stderr

    def test_what_is_compacted_is_known(self, lake: Path) -> None:
        assert run("lake", "compact", lake).exit_code == 0
        root = Path(__file__).resolve().parents[2] / "examples" / "run"
        done = run("ingest", root, "--lake", lake)
        assert "0 captures loaded, 8 known before" in done.stderr

    def test_a_killed_one_is_finished_by_the_next(
        self, lake: Path, right: dict[str, list[Any]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(compact, "_remove", lambda *given: None)
            compact.compact(lake)
        code, found = states(lake)
        assert code == 0 and set(found) == {"superseded_entry", "unused_file"}
        assert answers(lake) == right  # nothing is counted twice
        assert run("lake", "compact", lake).exit_code == 0
        assert states(lake) == (0, []) and answers(lake) == right

    def test_a_capture_in_two_compacted_entries_counts_once(self, lake: Path, right: dict[str, list[Any]]) -> None:
        """Two processes compacted at once, between them a trace came."""
        held = of_one_run(lake)
        compact._put_together(Store(lake), held[:3], "1GB")
        compact._put_together(Store(lake), held, "1GB")
        assert answers(lake) == right

    def test_the_next_one_keeps_the_entry_that_holds_all(self, lake: Path, right: dict[str, list[Any]]) -> None:
        """Entries overlap, and put together they have the name of one of them."""
        held = of_one_run(lake)
        compact._put_together(Store(lake), held, "1GB")
        (whole,) = entries(lake)
        for some in combinations(held, 2):
            compact._put_together(Store(lake), some, "1GB")
            if entries(lake)[0] != whole:  # it is read first, so that not all captures of the whole one count
                break
        assert entries(lake)[0] != whole
        assert run("lake", "compact", lake).exit_code == 0
        assert answers(lake) == right and states(lake) == (0, [])


class TestVerify:
    def test_a_whole_lake(self, exported: Path) -> None:
        done = run("lake", "verify", exported)
        assert done.exit_code == 0 and "8 captures of 2 runs" in done.stderr

    @pytest.mark.parametrize(
        ("damage", "state"),
        [
            (lambda path: path.unlink(), "missing_file"),
            (lambda path: path.write_bytes(path.read_bytes()[:-1]), "wrong_size"),
            (lambda path: path.write_bytes(path.read_bytes()[:-1] + b"x"), "wrong_content"),
        ],
    )
    def test_a_damaged_file(self, lake: Path, damage: Any, state: str) -> None:
        damage(next((lake / "kernel_event").rglob("*.parquet")))
        assert states(lake) == (1, [state])
        done = run("--lake", lake, "report", "top-kernels")
        assert done.exit_code in (0, 1) and "Traceback" not in done.stderr
        if state == "missing_file":
            assert done.exit_code == 1 and "tracedb lake verify" in done.stderr and done.stderr.count("\n") == 1

    @pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"kind":"captures","layout":"","schema":1,"captures":3}'])
    def test_a_damaged_entry(self, lake: Path, content: bytes) -> None:
        next((lake / "manifest").iterdir()).write_bytes(content)
        code, found = states(lake)
        assert code == 1 and found[0] == "damaged_entry"
        done = run("--lake", lake, "report", "top-kernels")
        assert done.exit_code == 1 and "is damaged" in done.stderr and done.stderr.count("\n") == 1

    @pytest.mark.parametrize(
        "path", ["../x", "kernel_event/run=../part-X.parquet", "/etc/passwd", "launch/part-X.parquet"]
    )
    def test_an_entry_that_names_a_file_elsewhere(self, lake: Path, path: str) -> None:
        entry = next(path for path in (lake / "manifest").iterdir() if not path.name.startswith("facts"))
        said = json.loads(entry.read_text())
        said["files"][0]["path"] = path.replace("X", "0" * 64)
        entry.write_text(json.dumps(said))
        assert states(lake)[1][0] == "damaged_entry"

    def test_files_of_a_killed_process(self, lake: Path) -> None:
        left = lake / "kernel_event" / "run=unlabelled" / f"part-{'0' * 64}.parquet"
        left.parent.mkdir()
        left.write_bytes(b"PAR1")
        assert states(lake) == (0, ["unused_file"])
        assert states(lake, "--remove-unused")[0] == 0 and not left.parent.exists()
        assert states(lake) == (0, [])

    def test_files_of_an_entry_that_cannot_be_read_are_not_removed(
        self, lake: Path, right: dict[str, list[Any]]
    ) -> None:
        entry = next(path for path in (lake / "manifest").iterdir() if not path.name.startswith("facts"))
        content = entry.read_text()
        entry.write_text(json.dumps({**json.loads(content), "format": lake_manifest.FORMAT + 1}))  # a newer tracedb's
        code, found = states(lake, "--remove-unused")
        assert code == 1 and set(found) == {"damaged_entry", "unclaimed_file", "unaligned_run"}
        entry.write_text(content)
        assert states(lake) == (0, []) and answers(lake) == right

    def test_a_run_that_grew(self, lake: Path, tmp_path: Path) -> None:
        trace(tmp_path / "rank7.json")
        labels = ("channels=16", "sweep=sweep_sample", "threads=256")
        flags = [word for label in labels for word in ("--label", label)]
        assert run("ingest", tmp_path / "rank7.json", "--lake", lake, *flags).exit_code == 0
        assert states(lake) == (0, ["unaligned_run"])


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    folder = tmp_path_factory.mktemp("repair")
    traces = [trace(folder / f"t{rank}.json", 3 + rank, rank) for rank in (0, 1)]
    done = run("ingest", *traces, "--lake", folder / "lake", "--label", "threads=4", "--jobs", "1")
    assert done.exit_code == 0, done.stderr
    return folder / "lake", traces


class TestRepair:
    """A trace whose files in the lake are missing or damaged is written again by an ingest, as ``verify`` advises."""

    @pytest.fixture
    def damaged(self, sound: tuple[Path, list[Path]], tmp_path: Path) -> Path:
        """A copy with a wrong byte in one file of a trace, and another file missing."""
        lake = Path(shutil.copytree(sound[0], tmp_path / "lake"))
        self.damage(lake)
        return lake

    @staticmethod
    def damage(lake: Path) -> None:
        changed = sorted((lake / "kernel_event").rglob("*.parquet"))[0]
        changed.write_bytes(changed.read_bytes()[:-1] + b"x")
        manifest = lake_manifest.read(Store(lake))
        name = changed.relative_to(lake).as_posix()
        (held,) = (item for item in manifest.captures if name in {file.path for file in item.entry.files})
        (lake / next(file.path for file in held.entry.files if file.table == "launch")).unlink()

    @staticmethod
    def advised(lake: Path) -> list[list[str]]:
        """Return the words of each command that ``verify`` advises on stderr; its rows must have the same."""
        done = run("lake", "verify", lake, "--format", "json")
        rows = [row for row in json.loads(done.stdout)["rows"] if row["advice"]]
        assert done.exit_code == 1 and rows
        for row in rows:
            assert f"to repair {row['entry']} (" in done.stderr and row["advice"] in done.stderr
            assert (lake / row["entry"]).is_file()
        return [shlex.split(advice)[1:] for advice in dict.fromkeys(row["advice"] for row in rows)]

    def test_the_advice_repairs_a_damaged_and_a_missing_file(
        self, sound: tuple[Path, list[Path]], damaged: Path
    ) -> None:
        assert states(damaged) == (1, ["wrong_content", "missing_file"])
        (command,) = self.advised(damaged)
        assert command[0] == "ingest" and "--label" not in command
        done = run(*command)
        assert done.exit_code == 0 and "1 capture loaded" in done.stderr and "missing or damaged" in done.stderr
        assert states(damaged) == (0, []) and answers(damaged) == answers(sound[0])  # labels included

    def test_so_does_an_ingest_of_everything_by_workers(self, sound: tuple[Path, list[Path]], damaged: Path) -> None:
        done = run("ingest", *sound[1], "--lake", damaged, "--jobs", "2")
        assert done.exit_code == 0 and "1 capture loaded, 1 known before" in done.stderr
        assert states(damaged) == (0, []) and answers(damaged) == answers(sound[0])

    def test_a_removed_entry(self, sound: tuple[Path, list[Path]], damaged: Path) -> None:
        """The file of the right name is not taken for the right file."""
        for name in (damaged / "manifest").glob("*-*.json"):
            if not name.name.startswith("facts"):
                name.unlink()
        assert run("ingest", *sound[1], "--lake", damaged, "--label", "threads=4", "--jobs", "1").exit_code == 0
        assert states(damaged) == (0, []) and answers(damaged) == answers(sound[0])

    def test_a_compacted_entry(self, sound: tuple[Path, list[Path]], tmp_path: Path) -> None:
        """Only an ingest of all its traces can write its files again, and reads them; one of a few compares sizes."""
        lake = Path(shutil.copytree(sound[0], tmp_path / "lake"))
        assert run("lake", "compact", lake).exit_code == 0
        changed = next((lake / "kernel_event").rglob("*.parquet"))
        changed.write_bytes(changed.read_bytes()[:-1] + b"x")
        partly = run("ingest", sound[1][0], "--lake", lake)
        assert partly.exit_code == 0 and "1 known before" in partly.stderr
        next((lake / "launch").rglob("*.parquet")).unlink()
        partly = run("ingest", sound[1][0], "--lake", lake)
        assert partly.exit_code == 1 and "ingest all of them in one call" in partly.stderr
        (command,) = self.advised(lake)
        assert run(*command).exit_code == 0
        assert states(lake) == (0, []) and answers(lake) == answers(sound[0])

    def test_a_byte_of_a_compacted_entry(self, sound: tuple[Path, list[Path]], tmp_path: Path) -> None:
        lake = Path(shutil.copytree(sound[0], tmp_path / "lake"))
        assert run("lake", "compact", lake).exit_code == 0
        changed = next((lake / "kernel_event").rglob("*.parquet"))
        changed.write_bytes(changed.read_bytes()[:-1] + b"x")
        assert run("ingest", *sound[1], "--lake", lake, "--jobs", "1").exit_code == 0
        assert states(lake) == (0, [])

    def test_an_entry_that_cannot_be_read(self, sound: tuple[Path, list[Path]], tmp_path: Path) -> None:
        lake = Path(shutil.copytree(sound[0], tmp_path / "lake"))
        entry = next(path for path in sorted((lake / "manifest").iterdir()) if not path.name.startswith("facts"))
        entry.write_bytes(b"{")
        (command,) = self.advised(lake)
        assert command[:2] == ["ingest", "TRACE"] and entry.name[:64] in command
        assert run("ingest", *sound[1], "--lake", lake, "--label", "threads=4", "--jobs", "1").exit_code == 0
        assert states(lake) == (0, []) and answers(lake) == answers(sound[0])

    def test_facts_about_several_captures(self, exported: Path, lake: Path) -> None:
        held = next(item for item in lake_manifest.read(Store(lake)).facts.values() if item.entry.files)
        for file in held.entry.files:
            (lake / file.path).write_bytes(b"PAR1")
        (command,) = self.advised(lake)
        assert run(*command).exit_code == 0
        assert states(lake) == (0, []) and answers(lake) == answers(exported)

    def test_a_database_is_exported_again(self, exported: Path, sample: Path, lake: Path) -> None:
        self.damage(lake)
        assert run("export", "lake", lake, "--db", sample).exit_code == 0
        assert states(lake) == (0, []) and answers(lake) == answers(exported)

    def test_the_table_cuts_no_name(self, damaged: Path) -> None:
        done = run("lake", "verify", damaged)
        assert "…" not in done.stdout and "…" not in done.stderr


def test_lakes_are_compared(exported: Path, sample: Path) -> None:
    ours = run("--lake", exported, "compare", "channels=4", "channels=16", "--format", "json")
    theirs = run("--db", sample, "compare", "channels=4", "channels=16", "--format", "json")
    assert ours.exit_code == theirs.exit_code == 0, ours.stderr
    assert json.loads(ours.stdout)["rows"] == json.loads(theirs.stdout)["rows"]
    assert run("compare", exported, sample).exit_code == 0


@pytest.mark.parametrize("command", [("brief",), ("doctor",), ("schema", "kernel_event"), ("views",)])
def test_commands_that_read(exported: Path, command: tuple[str, ...]) -> None:
    done = run("--lake", exported, *command)
    assert done.exit_code == 0 and done.stdout, done.stderr


def test_a_lake_is_copied_into_another(exported: Path, tmp_path: Path) -> None:
    assert run("export", "lake", tmp_path / "copy", "--lake", exported).exit_code == 0
    assert answers(exported) == answers(tmp_path / "copy")


def test_the_users_own_rules_go_along(sample: Path, tmp_path: Path) -> None:
    db = Path(shutil.copy(sample, tmp_path / "own.duckdb"))
    import duckdb

    with duckdb.connect(str(db)) as connection:
        connection.execute("INSERT INTO kernel_rule VALUES (1, 'nccl', 'mine')")
        connection.execute("INSERT INTO why_rule VALUES (1, 'name', 'gemm', 'my reason')")
    assert run("export", "lake", tmp_path / "lake", "--db", db).exit_code == 0
    with tracedb.connect(tmp_path / "lake") as connection:
        assert connection.execute("FROM kernel_rule").fetchall() == [(1, "nccl", "mine")]
        assert connection.execute("FROM why_rule").fetchall() == [(1, "name", "gemm", "my reason")]
        assert ("mine",) in connection.execute("SELECT class FROM matmul_fraction").fetchall()


def test_an_address_beyond_the_signed_range(tmp_path: Path, sample: Path) -> None:
    import duckdb

    db = Path(shutil.copy(sample, tmp_path / "own.duckdb"))
    addresses = [0, 1, 2**63 - 1, 2**63, 2**64 - 1]
    with duckdb.connect(str(db)) as connection:
        for number, address in enumerate(addresses):
            connection.execute(
                "INSERT INTO memory_event (capture_id, memory_event_id, address, start_ns) VALUES (1, ?, ?, 0)",
                [number, address],
            )
    assert run("export", "lake", tmp_path / "lake", "--db", db).exit_code == 0
    with tracedb.connect(tmp_path / "lake") as connection:
        assert connection.execute("SELECT address FROM memory_event ORDER BY memory_event_id").fetchall() == [
            (address,) for address in addresses
        ]
