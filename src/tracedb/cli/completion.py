"""``tracedb completion``: the script with which a shell completes commands, options, reports and labels."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from tracedb.cli import completion_candidates as candidates


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script for Tab completion in SHELL.

    \b
    bash: eval "$(tracedb completion bash)"     in ~/.bashrc
    zsh:  eval "$(tracedb completion zsh)"      in ~/.zshrc
    fish: tracedb completion fish | source      in ~/.config/fish/completions/tracedb.fish
    """
    candidates.register()
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(ctx.find_root().command, {}, "tracedb", "_TRACEDB_COMPLETE").source())
