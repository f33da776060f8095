"""Examples that ``--help`` shows, by command; each is a whole command line."""

from __future__ import annotations

import click

EXAMPLES: dict[str, tuple[str, ...]] = {
    "ingest": ("tracedb ingest traces/ --db run.duckdb", "tracedb ingest rank0.json.gz --label threads=256"),
    "report": (
        "tracedb report top-kernels --rank 0 --top 10",
        "tracedb report gemm-variance --by threads --by channels --format csv -o gemm.csv",
        "tracedb report kernels --class '!copy' --where channels=16 --show-sql",
    ),
    "plot": ("tracedb plot gantt --rank 0 --step 3 -o gantt.png",),
    "page": ("tracedb page --db run.duckdb -o run.html",),
    "why": (
        "tracedb why --db run.duckdb",
        "tracedb why --where threads=256 --top 3",
        "tracedb why --step-range train_step",
    ),
    "brief": ("tracedb brief --db run.duckdb", "tracedb brief --where channels=16 -o brief.md"),
    "compare": (
        "tracedb compare channels=4 channels=16 --db sweep.duckdb",
        "tracedb compare before.duckdb after.duckdb --fail-on 'total_ns>5%'",
    ),
    "sql": (
        'tracedb sql "FROM top_kernels LIMIT 5"',
        "tracedb sql - --format json < query.sql",
    ),
    "sql-dialect": ("tracedb sql-dialect clickhouse -o views.sql", "tracedb sql-dialect spark --view top-kernels"),
    "export": (
        "tracedb export perfetto --where channels=16 -o run.pftrace",
        "tracedb export rocprof-yaml --top 3 -o count.yaml",
    ),
    "label": ("tracedb label 3 'before/*' run=before", "tracedb label rank3.json team="),
    "merge": ("tracedb merge machine1.duckdb machine2.duckdb -o all.duckdb",),
    "remove": ("tracedb remove 3 rank2.json",),
    "lake": ("tracedb lake compact traces.lake", "tracedb lake verify traces.lake"),
    "watch": ("tracedb watch -o conditions.csv -- python train.py",),
    "mcp": ("tracedb mcp --db run.duckdb",),
    "shell": ("tracedb shell --db run.duckdb", "tracedb shell --as nsys"),
    "fit": (
        "tracedb fit --db samples.duckdb --models models/",
        "tracedb fit --from traces --db monday.duckdb --db tuesday.duckdb --models models/",
    ),
    "predict": (
        "tracedb predict --models models/ --operator flash_atten --shape mp=1,b=4,h=32,l=4096",
        "tracedb predict --models models/ --trace trace.json.gz",
    ),
    "expected": (
        "tracedb expected --models models/ --db run.duckdb --by rank",
        "tracedb expected --others --db run.duckdb --fail-on 'lost>2%'",
    ),
    "views": ("tracedb views", "tracedb views show top-kernels"),
    "schema": ("tracedb schema", "tracedb schema kernel_event"),
    "ingesters": ("tracedb ingesters --format json",),
    "sample": ("tracedb sample linear1.yml --precision bf16 --db samples.duckdb",),
    "sample-collectives": ("tracedb sample-collectives allreduce.yml --precision bf16 --db samples.duckdb",),
    "replay": (
        "tracedb replay --db run.duckdb --step 3",
        "tracedb replay --db run.duckdb --range 'decode*' --energy 1 --measured passes.csv --format json",
    ),
    "whatif": (
        "tracedb whatif --db run.duckdb",
        "tracedb whatif --scale class=collective:0.5 --step 3",
        "tracedb whatif --remove 'range=dataloader*' --format json",
    ),
    "completion": ("tracedb completion bash",),
    "doctor": ("tracedb doctor --db run.duckdb",),
}


def add(name: str, command: click.Command) -> None:
    """Append a command's examples to its help, unless it has its own."""
    lines = EXAMPLES.get(name)
    if lines and not command.epilog:
        command.epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
