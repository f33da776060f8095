"""Examples in the help, suggestions for mistyped commands, and tab completion."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from support.command import run
from support.tiny import GEMM, Tiny
from tracedb.cli import completion_candidates, options
from tracedb.cli.examples import EXAMPLES
from tracedb.cli.main import COMMANDS, cli


@pytest.fixture
def file(sample: Path) -> Path:
    return sample


def groups() -> list[str]:
    """Return the names of sub-commands, such as ``lake align``."""
    ctx = click.Context(cli)
    found = {name: cli.get_command(ctx, name) for name in COMMANDS}
    return [
        f"{name} {member}"
        for name, group in found.items()
        if isinstance(group, click.Group)
        for member in group.commands
    ]


@pytest.mark.parametrize("name", [*COMMANDS, *groups()])
def test_every_help_has_examples_that_parse(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "is_lake", lambda path: True)
    shown = run(*name.split(), "--help").stdout
    assert "INTEGER" not in shown and "FLOAT RANGE" not in shown, "an option without a metavar"
    assert "...\n" not in shown.replace("[ARGS]...\n", ""), "a sentence of the list of commands is cut"
    assert EXAMPLES[name]
    for line in EXAMPLES[name]:
        assert f"  {line}\n" in shown
        _, *words = shlex.split(line.partition(" < ")[0])
        ctx = click.Context(cli, info_name="tracedb")
        found, command, rest = cli.resolve_command(ctx, words)
        while isinstance(command, click.Group) and rest:
            found, command, rest = command.resolve_command(click.Context(command, parent=ctx), rest)
        assert command is not None
        assert command.make_context(found, rest, parent=ctx).params


@pytest.mark.parametrize(("typed", "meant"), [("reprot", "report"), ("ingset", "ingest"), ("breif", "brief")])
def test_the_command_that_was_meant(typed: str, meant: str) -> None:
    done = run(typed)
    assert done.exit_code == 2
    assert f"there is no command {typed!r}; did you mean {meant}?" in done.stderr


@pytest.mark.parametrize("typed", ["critical-path", "critical_path"])
def test_a_report_typed_as_a_command(typed: str) -> None:
    done = run(typed, "--db", "run.duckdb")
    assert done.exit_code == 2
    assert f"there is no command {typed!r}, but a report: `tracedb report critical-path`" in done.stderr


def test_a_command_like_no_other() -> None:
    assert "did you mean" not in run("xyzzy").stderr


def offered(line: str) -> list[str]:
    """Return what is offered for the last word of a command line, which may be empty."""
    *words, incomplete = line.split(" ")
    completions = ShellComplete(cli, {}, "tracedb", "_TRACEDB_COMPLETE").get_completions(words[1:], incomplete)
    return [item.value for item in completions]


def test_commands_and_reports_are_completed(file: Path) -> None:
    assert offered("tracedb re") == ["report", "replay", "remove"]
    assert offered("tracedb report gemm-v") == ["gemm-variance"]
    assert "--db" in offered("tracedb --")


def test_labels_classes_and_views_of_the_database_are_completed(file: Path) -> None:
    assert offered(f"tracedb report --db {file} --where ch") == ["channels=16", "channels=4"]
    assert offered(f"tracedb --db {file} report --where ch") == ["channels=16", "channels=4"]
    assert offered(f"tracedb report --db {file} --by t") == ["threads"]
    assert offered(f"tracedb report --db {file} --by ran") == ["rank", "range"]
    assert offered(f"tracedb report --db {file} --rank ") == ["0", "1", "2", "3"]
    assert "matmul" in offered(f"tracedb report --db {file} --class ")
    assert offered(f"tracedb schema --db {file} kernel_e") == ["kernel_event"]
    assert offered(f"tracedb views show --db {file} top_") == ["top_kernels"]
    assert offered(f"tracedb views show --db {file.parent}/none.duckdb top_") == ["top_kernels"]
    assert offered(f"tracedb schema --db {file.parent}/none.duckdb kernel_e") == ["kernel_event"]


def test_a_database_that_cannot_be_read_offers_nothing(tmp_path: Path) -> None:
    (tmp_path / "text.duckdb").write_text("no database")
    assert offered(f"tracedb report --db {tmp_path}/text.duckdb --where ") == []
    assert offered(f"tracedb report --db {tmp_path}/none.duckdb --class ") == []


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("--where colour = g", ["green"]),  # as bash takes colour=g apart
        ("--where colour =", ["blue", "green"]),
        ("--where = colour = g", ["green"]),
        ("--where col", ["colour=blue", "colour=green"]),
        ("--class collective,mat", ["collective,matmul"]),
    ],
)
def test_bash_gets_what_follows_the_equals_sign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, found: list[str]
) -> None:
    tiny = Tiny(tmp_path / "run.duckdb")
    for rank, value in enumerate(("blue", "green")):
        tiny.capture(rank, {"colour": value})
        tiny.kernel(GEMM, 0, 1)
    line = f"tracedb report --db = {tiny.save()} {words}"
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    said = completion_candidates.WordsOfBash(cli, {}, "tracedb", "_TRACEDB_COMPLETE").complete()
    assert said.split() == [f"plain,{value}" for value in found]


@pytest.mark.parametrize(("name", "seconds"), [("report", 10), ("ingest", 600), ("views verify", 10)])
def test_the_help_names_the_waiting_time_of_this_command(name: str, seconds: int) -> None:
    assert f"0 does not wait. [default: {seconds}]" in " ".join(run(*name.split(), "--help").stdout.split())
