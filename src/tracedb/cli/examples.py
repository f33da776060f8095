"""Examples that ``--help`` shows, by command; each is a whole command line."""

from __future__ import annotations

import click

EXAMPLES: dict[str, tuple[str, ...]] = {
    "ingest": ("tracedb ingest traces/ --db run.duckdb", "tracedb ingest rank0.json.gz --label threads=256"),
    "report": (
        "tracedb report top-kernels --rank 0 --top 10",
        "tracedb report top-kernels --class matmul,attention --by capture --top 5",
        "tracedb report gemm-variance --where channels=4,8 --by sweep,channels --sort -cv_percent",
        "tracedb report gemm-variance --by threads --by channels --format csv -o gemm.csv",
        "tracedb report gemm-variance --engine spark --lake /data/lake",
        "tracedb report kernels --class '!copy' --where channels=16 --show-sql",
        "tracedb report kernels --path '*rank0*' --range 'forward*' --range 'backward*' --wide",
        "tracedb report gpu-timeline top-kernels stragglers -o run.xlsx",
        "tracedb report --all -o reports",
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
    "sql-dialect": (
        "tracedb sql-dialect clickhouse -o views.sql",
        "tracedb sql-dialect spark --view top-kernels --view idle-breakdown",
    ),
    "export": (
        "tracedb export perfetto --where channels=16 -o run.pftrace",
        "tracedb export rocprof-yaml --top 3 -o count.yaml",
    ),
    "export lake": ("tracedb export lake traces.lake --db run.duckdb", "tracedb export lake s3://traces/lake"),
    "export perfetto": ("tracedb export perfetto --rank 0 -o rank0.pftrace", "tracedb export perfetto --open"),
    "export rocprof-yaml": ("tracedb export rocprof-yaml --top 3 -o count.yaml",),
    "export samples-csv": ("tracedb export samples-csv --db samples.duckdb -o samples",),
    "export stacks": ("tracedb export stacks --rank 0 -o run.folded",),
    "export variance-csv": ("tracedb export variance-csv --top 3 -o variance",),
    "export xlsx": ("tracedb export xlsx --db sweep.duckdb -o sheets",),
    "label": (
        "tracedb label 3 threads=512",
        "tracedb label 3 'before/*' run=before",
        "tracedb label rank3.json team=",
    ),
    "merge": ("tracedb merge machine1.duckdb machine2.duckdb -o all.duckdb",),
    "remove": ("tracedb remove 3", "tracedb remove rank3.json 'before/*'"),
    "lake": ("tracedb lake compact traces.lake", "tracedb lake verify traces.lake"),
    "lake align": ("tracedb lake align traces.lake",),
    "lake compact": ("tracedb lake compact traces.lake",),
    "lake verify": ("tracedb lake verify traces.lake", "tracedb lake verify --quick --remove-unused traces.lake"),
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
    "views show": ("tracedb views show top-kernels",),
    "views verify": ("tracedb views verify --db run.duckdb",),
    "schema": ("tracedb schema", "tracedb schema kernel_event", "tracedb schema top_kernels"),
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
    """Append a command's examples to its help, and those of its sub-commands to theirs."""
    command.epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in EXAMPLES[name])
    if isinstance(command, click.Group):
        for member, found in command.commands.items():
            add(f"{name} {member}", found)
