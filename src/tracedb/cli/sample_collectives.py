"""``tracedb sample-collectives``: time collectives between the GPUs of this host or several, on every rank."""

from __future__ import annotations

from pathlib import Path

import click

from tracedb.cli.options import database_option, note, output_options


@click.command("sample-collectives")
@click.argument("configurations", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="CONFIG…")
@database_option
@click.option(
    "--ranks", type=click.IntRange(min=1), metavar="N", help="Processes per node. [default: one per GPU; 2 with gloo]"
)
@click.option(
    "--nodes",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of hosts; run this command on each.",
)
@click.option("--rendezvous", metavar="HOST:PORT", help="Where the nodes meet: one of them, and a free port there.")
@click.option(
    "--backend",
    type=click.Choice(["auto", "nccl", "gloo"]),
    default="auto",
    show_default=True,
    help="nccl on GPUs, gloo on the CPU.",
)
@click.option(
    "--precision", type=click.Choice(["fp16", "bf16", "fp32"]), default="fp16", show_default=True, help="Element type."
)
@click.option(
    "--keep-traces", type=click.Path(path_type=Path), metavar="DIR", help="Keep the ranks' traces in this folder."
)
@output_options
def sample_collectives(
    configurations: tuple[Path, ...],
    db: Path,
    ranks: int | None,
    nodes: int,
    rendezvous: str | None,
    backend: str,
    precision: str,
    keep_traces: Path | None,
    format_name: str | None,
    out: Path | None,
) -> None:
    """Sample the collective of each CONFIG (YAML) over its sizes into the database, profiling every rank.

    In CONFIG, kernel_name is allreduce, allgather, reducescatter, alltoall, broadcast, gather, scatter or p2p; the only
    shape parameter is the number of elements that each rank contributes. All ranks meet at a barrier before each call:
    the shortest time of any rank is the transfer, the rest is waiting.

    On several nodes, run the same command on each at the same time, with a database of its own, and merge these.
    """
    from tracedb.cli.sample import account_of
    from tracedb.output import choose_format, write
    from tracedb.sampling import collectives, configuration

    form = choose_format(format_name, out)
    read = [configuration.read(path) for path in configurations]
    where = collectives.ring(ranks, backend, precision, nodes, rendezvous)
    accounts = []
    for item in read:
        accounts.append(collectives.run(item, where, db, keep_traces))
        note(f"{item.operator}: {len(accounts[-1].outcomes)} sizes on {where.device} with {where.backend}")
    write(account_of(accounts, db), form, out)
