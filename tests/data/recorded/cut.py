"""Cut the recordings of this folder from tracedb's own: ``python cut.py SHARED``, the folder with data and reference.

A torch trace is kept event for event, without its name, which is a path of the recording machine. Of an nsys export,
only the tables that tracedb reads and the strings that they refer to are kept: no environment, processes or paths of
the machine. The reference answers are those of the whole recordings, because no event is omitted. The output is
deterministic.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

HERE = Path(__file__).resolve().parent
TRACES = ("torch/h100_forward.json.gz", "torch/h100_graph.json.gz", "steps/step_0.json.gz")
EXPORTS = ("single_forward", "single_graph")
KEPT = re.compile(r"CUPTI_|CUDA_GRAPH_|ENUM_|NVTX_EVENTS$|StringIds$|TARGET_INFO_(CUDA_|GPU$)|META_DATA_EXPORT$")
NAMES = re.compile(r"(nameId|textId|jsonTextId|Name)$")
TRACE_NAME = re.compile(r',?\s*"traceName"\s*:\s*"[^"]*"')
PRIVATE = re.compile(rb"/(?:root|home|tmp|usr|opt|mnt)/|LD_LIBRARY|SSH_|PATH=")


def trace(source: Path, target: Path) -> None:
    text = TRACE_NAME.sub("", gzip.decompress(source.read_bytes()).decode())
    json.loads(text)
    assert not PRIVATE.search(text.encode()), source
    target.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def export(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    with closing(sqlite3.connect(target)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        named: set[int] = set()
        for table in tables:
            if not KEPT.match(table):
                connection.execute(f'DROP TABLE "{table}"')
                continue
            for _, column, *_ in connection.execute(f'PRAGMA table_info("{table}")').fetchall():
                if NAMES.search(column) and table.startswith(("CUPTI_", "NVTX_", "CUDA_GRAPH_")):
                    named |= {row[0] for row in connection.execute(f'SELECT DISTINCT "{column}" FROM "{table}"')}
        connection.execute("CREATE TEMP TABLE named (id INTEGER PRIMARY KEY)")
        connection.executemany("INSERT INTO named VALUES (?)", [(number,) for number in sorted(named - {None})])
        connection.execute("DELETE FROM StringIds WHERE id NOT IN (SELECT id FROM named)")
        connection.execute("UPDATE TARGET_INFO_GPU SET uuid = NULL")
        connection.commit()
        connection.execute("VACUUM")
    assert not PRIVATE.search(target.read_bytes()), target


def main(shared: Path) -> None:
    for folder in ("data/torch", "data/nsys", "data/steps", "reference/torch", "reference/nsys"):
        (HERE / folder).mkdir(parents=True, exist_ok=True)
    for name in TRACES:
        trace(shared / "data" / name, HERE / "data" / name)
    (step,) = [item for item in json.loads((shared / "data/steps/steps.json").read_text()) if item["config"] == 0]
    (HERE / "data/steps/steps.json").write_text(json.dumps([step], indent=1) + "\n")
    answers = json.loads((shared / "reference/torch/h100_single.json").read_text())
    answers = [answer for answer in answers if answer["file"] in TRACES]
    (HERE / "reference/torch/h100_single.json").write_text(json.dumps(answers, indent=1) + "\n")
    for name in EXPORTS:
        export(shared / "data/nsys" / f"{name}.sqlite", HERE / "data/nsys" / f"{name}.sqlite")
        (HERE / "reference/nsys" / name).mkdir(exist_ok=True)
        for path in sorted((shared / "reference/nsys" / name).glob("*.csv")):
            (HERE / "reference/nsys" / name / path.name).write_bytes(path.read_bytes())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
