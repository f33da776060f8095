"""One program traced by two profilers gives one answer: the same kernels per pass, classes and durations."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import pytest

from support import recordings
from tracedb.pipeline import run as pipeline
from tracedb.storage.connection import connect

ALL = {
    "forward": ("torch/h100_forward.json.gz", "nsys/single_forward.sqlite", "forward", "thread"),
    "train": ("torch/h100_train.json.gz", "nsys/single_train.sqlite", "train_step", "process"),
}
PAIRS = {name: pair for name, pair in ALL.items() if all((recordings.DATA / file).exists() for file in pair[:2])}
RUN_TO_RUN = 0.05
"""How far the same kernel's time may lie outside what the other run's calls span: clocks and other runs differ."""
TICK_NS = 32
"""The step of the device's clock: each end of a kernel of a few µs is off by up to that."""


@dataclass(frozen=True)
class Pair:
    """The two traces of a program in one database; the range that is a pass, and the rule that fills it."""

    db: duckdb.DuckDBPyConnection
    range: str
    rule: str

    def of(self, source: str, columns: str) -> list[tuple[str, ...]]:
        """Ask for the kernels of a pass as one profiler saw them; columns are grouped by the first."""
        text = f"""SELECT {columns} FROM (
                SELECT s.spelling, e.class, count(*) / any_value(i.instances) AS calls, sum(e.duration_ns)
                    / any_value(i.instances) AS pass_ns, avg(e.duration_ns) AS avg_ns, min(e.duration_ns) AS min_ns,
                    max(e.duration_ns) AS max_ns
                FROM v1.kernels AS e
                INNER JOIN v1._kernel_spelling AS s ON s.name = e.name
                INNER JOIN v1._range_member AS m ON m.capture_id = e.capture_id AND m.event_id = e.event_id
                INNER JOIN v1._range_instance AS r ON r.capture_id = m.capture_id AND r.annotation_id = m.annotation_id
                INNER JOIN (
                    SELECT capture_id, count(*) AS instances FROM v1._range_instance
                    WHERE name = $range AND NOT is_warmup GROUP BY capture_id
                ) AS i ON i.capture_id = e.capture_id
                WHERE e.source = $source AND m.rule = $rule AND r.name = $range AND NOT r.is_warmup
                GROUP BY s.spelling, e.class
            ) GROUP BY 1 ORDER BY 1"""
        return self.db.execute(text, {"source": source, "range": self.range, "rule": self.rule}).fetchall()


@pytest.fixture(scope="module", params=PAIRS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    torch, nsys, name, rule = PAIRS[request.param]
    path = tmp_path_factory.mktemp("parity") / "run.duckdb"
    for file in (torch, nsys):
        (outcome,) = pipeline.ingest(recordings.DATA / file, db=path)
        assert outcome.error is None
    return Pair(connect(path), name, rule)


@pytest.mark.shared
class TestOneProgram:
    def test_classes(self, pair: Pair) -> None:
        counts = pair.of("torch", "class, sum(calls)")
        assert counts == pair.of("nsys", "class, sum(calls)")
        assert sum(float(count) for _, count in counts) == {"forward": 88, "train_step": 537}[pair.range]

    def test_kernels(self, pair: Pair) -> None:
        """The names differ in spelling only; none of them becomes another's."""
        assert pair.of("torch", "spelling, sum(calls)") == pair.of("nsys", "spelling, sum(calls)")
        ((names, spellings),) = pair.db.execute(
            "SELECT count(*), count(DISTINCT spelling) FROM v1._kernel_spelling"
        ).fetchall()
        assert names == 2 * spellings - plain(pair)

    def test_times(self, pair: Pair) -> None:
        """Every kernel takes as long as the other run's calls of it, and every class, where it lasts, as well."""
        ours = {
            key: (float(low), float(high)) for key, low, high in pair.of("nsys", "spelling, min(min_ns), max(max_ns)")
        }
        faults = [
            (name, average, ours[name])
            for name, average in ((name, float(value)) for name, value in pair.of("torch", "spelling, avg(avg_ns)"))
            if not ours[name][0] * (1 - RUN_TO_RUN) - 2 * TICK_NS
            <= average
            <= ours[name][1] * (1 + RUN_TO_RUN) + 2 * TICK_NS
        ]
        assert faults == []
        totals = zip(pair.of("torch", "class, sum(pass_ns)"), pair.of("nsys", "class, sum(pass_ns)"), strict=True)
        assert [
            (name, mine, theirs)
            for (name, mine), (_, theirs) in totals
            if float(mine) > 20_000 and abs(float(mine) / float(theirs) - 1) > RUN_TO_RUN
        ] == []


def plain(pair: Pair) -> int:
    """Count the names that both profilers print alike."""
    ((alike,),) = pair.db.execute(
        "SELECT count(*) FROM (SELECT name FROM v1.kernels GROUP BY name HAVING count(DISTINCT source) = 2)"
    ).fetchall()
    return int(alike)
