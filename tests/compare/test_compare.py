"""``tracedb compare``: runs against a baseline, the parts due to calls and to time per call, gates."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from support import held_comparisons
from support.command import run
from support.tiny import ADD, GEMM, NCCL, Tiny
from tracedb.output.shorten import TIMES


@pytest.fixture(autouse=True, scope="module")
def once() -> Iterator[None]:
    """Tests that compare the same databases share the comparison; one that writes a database gives it a new path."""
    with held_comparisons.kept():
        yield


def rows(*arguments: str | Path) -> list[dict[str, Any]]:
    done = run("-q", "compare", *arguments, "--format", "json")
    assert done.exit_code == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return found


def made(path: Path, gemm_ns: int = 100, gemm_calls: int = 2, extra: str | None = None, label: str = "a") -> Tiny:
    """Four ranks of six steps each: GEMMs, an addition; ``extra`` is a kernel that others do not have."""
    tiny = Tiny(path)
    add(tiny, gemm_ns, gemm_calls, extra, label)
    return tiny


def add(tiny: Tiny, gemm_ns: int = 100, gemm_calls: int = 2, extra: str | None = None, label: str = "a") -> None:
    for rank in range(4):
        tiny.capture(rank, {"run": label})
        for step in range(6):
            start = 10_000 * step
            events = [tiny.kernel(GEMM, start + 500 * n, gemm_ns + rank) for n in range(gemm_calls)]
            events.append(tiny.kernel(ADD, start + 5_000, 50))
            if extra:
                events.append(tiny.kernel(extra, start + 6_000, 30))
            tiny.range(step + 1, f"ProfilerStep#{step}", start, start + 9_000, tuple(events))


def test_two_databases(tmp_path: Path) -> None:
    before = made(tmp_path / "before.duckdb").save()
    after = made(tmp_path / "after.duckdb", gemm_ns=150, gemm_calls=3, extra=NCCL).save()
    found = {(row["kind"], row["name"]): row for row in rows(before, after)}
    gemm = found["kernel", GEMM]
    assert (gemm["status"], gemm["base_units"], gemm["units"]) == ("both", 24, 24)
    assert (gemm["base_independent_units"], gemm["independent_units"]) == (6, 6)
    assert (gemm["base_calls_per_unit"], gemm["calls_per_unit"]) == (2, 3)
    assert (gemm["base_mean_ns"], gemm["mean_ns"]) == (203.0, 454.5)
    assert (gemm["difference_mean_ns"], gemm["by_calls_mean_ns"], gemm["by_time_mean_ns"]) == (251.5, 101.5, 150.0)
    assert gemm["ratio"] == 454.5 / 203 and gemm["verdict"] == "slower" and gemm["p_value"] < 0.01
    assert found["kernel", ADD]["verdict"] == "within the spread" and found["kernel", ADD]["ratio"] == 1
    assert (found["kernel", NCCL]["status"], found["kernel", NCCL]["by_calls_mean_ns"]) == ("new", 30)
    assert found["collective", NCCL]["status"] == found["class", "collective"]["status"] == "new"
    assert found["gemm", GEMM]["difference_mean_ns"] == 251.5
    assert found["timeline", "computation"]["base_mean_ns"] == 203 + 50  # of a step
    assert found["total", "kernel time"]["difference_mean_ns"] == 251.5 + 30
    back = {(row["kind"], row["name"]): row for row in rows(after, before)}
    assert back["kernel", NCCL]["status"] == "vanished" and back["kernel", GEMM]["verdict"] == "faster"


def test_labels_paths_and_a_baseline(tmp_path: Path) -> None:
    tiny = made(tmp_path / "x.duckdb")
    add(tiny, gemm_ns=200, label="b")
    add(tiny, gemm_ns=300, label="c")
    db = tiny.save()
    found = rows("run=a", "run=b", "run=c", "--db", db, "--baseline", "run=b", "--kind", "total")
    assert [(row["side"], row["difference_mean_ns"]) for row in found] == [("run=a", -200), ("run=c", 200)]
    (found_too,) = rows("run=a,rank=1", "capture5.json", "--db", db, "--kind", "total")
    assert (found_too["base_mean_ns"], found_too["mean_ns"], found_too["verdict"]) == (252, 450, "slower")
    (numbered,) = rows("1", "5", "--db", db, "--kind", "total")
    assert (numbered["base_mean_ns"], numbered["mean_ns"], numbered["base_units"]) == (250, 450, 6)
    (skipped,) = rows("run=a", "run=b", "--db", db, "--kind", "total", "--skip-warmup", "1")
    assert (skipped["units"], skipped["independent_units"]) == (20, 5)


def test_whole_names_of_folders_go_before_pieces_of_them(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "x.duckdb")
    for folder, duration in (("a", 100), ("a100", 400), ("b", 300)):
        tiny.capture(0, path=f"/runs/{folder}/t.json")
        tiny.kernel(GEMM, 0, duration)
    (found,) = rows("runs/a", "b", "--db", tiny.save(), "--kind", "total")
    assert (found["base_mean_ns"], found["mean_ns"]) == (100, 300)


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A database, and one whose GEMMs take 80 % more time."""
    folder = tmp_path_factory.mktemp("compare")
    return made(folder / "before.duckdb").save(), made(folder / "after.duckdb", gemm_ns=180).save()


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (("total_ns>5%",), 4),
        (("total_ns>150", "calls>0%"), 4),
        (("timeline.total_ns>500%", "kernel.call_ns>20 %"), 4),
        (("total_ns>90%", "calls>0%"), 0),
        (("timeline[computation]>5%",), 4),
        (("timeline[idle]>5%", f"kernel[{ADD}].call_ns>5%"), 0),
        (("class[mat*].total_ns>60%", "class[elem*]>1%"), 4),
        (("class[nope]>1%",), 3),
        (("class[nope]>1%", "total_ns>5%"), 4),
    ],
)
def test_gates(slower: tuple[Path, Path], limits: tuple[str, ...], code: int) -> None:
    done = run("compare", *slower, *(word for text in limits for word in ("--fail-on", text)))
    assert done.exit_code == code, done.stderr
    assert ("gate failed" in done.stderr) == (code == 4)
    assert ("no class is named 'nope'; existing ones include: matmul, elementwise" in done.stderr) == (
        "class[nope]>1%" in limits
    )
    holds = {"calls>0%", "total_ns>90%", "timeline.total_ns>500%", "timeline[idle]>5%", f"kernel[{ADD}].call_ns>5%",
             "class[elem*]>1%"}  # fmt: skip
    assert [f"tracedb: passed: {text}: " in done.stderr for text in limits] == [text in holds for text in limits]
    assert "kernel time" in done.stdout


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_a_verdict_stands_in_one_line_and_a_row_has_one_unit(
    slower: tuple[Path, Path], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run("-q", "compare", *slower).stdout.splitlines()
    rule = next(at for at, line in enumerate(lines) if line.startswith("─"))
    assert all(len(line) <= width for line in lines)
    assert all(line.endswith(("too few steps", "slower", "faster", "within the spread")) for line in lines[rule + 1 :])
    assert len({unit for line in lines[:rule] for unit in line.split() if unit in ("µs", "ms", "s")}) == 1


def test_a_gate_on_the_length_of_a_step(tmp_path: Path) -> None:
    """Kernels of a rank that waits in a collective count as kernel time, which may fall while steps get longer."""
    found = []
    for name, waits, gap in (("before", 400, 0), ("after", 100, 700)):
        tiny = Tiny(tmp_path / f"{name}.duckdb")
        tiny.capture(0, {})
        for step in range(6):
            start = 10_000 * step
            events = (tiny.kernel(NCCL, start, waits), tiny.kernel(GEMM, start + waits + gap, 100))
            tiny.range(step + 1, f"ProfilerStep#{step}", start, start + 9_000, events)
        found.append(tiny.save())
    assert run("compare", *found, "--fail-on", "total_ns>5%").exit_code == 0
    done = run("compare", *found, "--fail-on", "step_ns > 5%", "--fail-on", "step_ns>100%", "--beyond-noise")
    assert done.exit_code == 4
    assert "gate failed: step_ns > 5%" in done.stderr and "total: 500 → 900 ns (+80.0 %)" in done.stderr
    assert done.stderr.count("gate failed") == 1


def test_a_gate_is_about_growth(slower: tuple[Path, Path]) -> None:
    assert run("compare", *reversed(slower), "--fail-on", "total_ns>5%").exit_code == 0


def test_what_cannot_be_compared(slower: tuple[Path, Path], tmp_path: Path) -> None:
    db, _ = slower
    for arguments, code, text in (
        ((db,), 2, "two sides or more"),
        (("--capture", "rank9", "--capture", "1", "--db", db), 2, "no capture has it in its path"),
        ((db, "run=a", "--db", db, "--baseline", "run=z"), 2, "none of the sides"),
        ((db, "run=z", "--db", db), 3, "run=z: no capture"),
        ((db, "nowhere.json", "--db", db), 3, "nowhere.json: no capture"),
        ((db, "run=a", "--db", db, "--skip-warmup", "9"), 3, "after 9 steps"),
        ((db, "run=a", "--db", db, "--fail-on", "speed>5%"), 2, "expected [KIND.]METRIC>LIMIT[%] or KIND[NAME]"),
        ((db, "run=a", "--db", tmp_path / "none.duckdb"), 1, "no such database"),
        ((db, "after.duckdb", "--db", tmp_path / "none.duckdb"), 2, "after.duckdb: no such database, and there is no"),
        ((db, "rank=x", "--db", db), 2, "a rank is a number"),
    ):
        done = run("compare", *arguments)
        assert done.exit_code == code, (arguments, done.stderr)
        assert text in done.stderr and done.stderr.count("\n") == 1


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of one capture: a of two steps, b of four, c without steps, e on two GPUs, f of another model, g without
    kernels, h by another profiler."""
    tiny = Tiny(tmp_path_factory.mktemp("odd") / "x.duckdb")
    for name, steps, marks, gpus, model in (
        ("a", 2, True, 1, "H100"),
        ("b", 4, True, 1, "H100"),
        ("c", 4, False, 1, "H100"),
        ("e", 2, True, 2, "H100"),
        ("f", 2, True, 1, "A100"),
        ("g", 0, True, 1, "H100"),
        ("h", 2, True, 1, "H100"),
    ):
        source = "nsys" if name == "h" else "torch"
        number = tiny.capture(None, {"run": name}, sha256=name, path=f"/data/{name}/x.json", source=source)
        tiny.connection.execute("UPDATE main.device SET name = ? WHERE capture_id = ?", [model, number])
        if gpus == 2:
            tiny.add("device", capture_id=number, device_id=1, vendor="NVIDIA", name=model)
        for step in range(steps):
            start = 10_000 * step
            events = tuple(tiny.kernel(GEMM, start + 500 * n, 100, device_id=n % gpus) for n in range(2))
            if marks:
                tiny.range(step + 1, f"ProfilerStep#{step}", start, start + 9_000, events)
    return tiny.save()


@pytest.mark.parametrize(
    ("sides", "words", "ratio"),
    [
        (("run=a", "run=a"), "are the same capture", 1),
        (("run=a", "a/x.json"), "are the same capture", 1),
        (("run=a", "run=b"), "run=a has 2 steps of ranks, run=b has 4", 1),
        (("run=a", "run=c"), "values of run=a are of a step, those of run=c of a whole capture", None),
        (("run=a", "run=e"), "a capture of run=a has 1 GPU, one of run=e has 2", None),
        (("run=a", "run=f"), "run=a is of H100, run=f of A100", 1),
        (("run=a", "run=h"), "run=a was recorded by torch, run=h by nsys", 1),
        (("--capture", "1", "--capture", "f"), "1 is of H100, f of A100", 1),
    ],
)
def test_sides_that_are_not_alike(odd: Path, sides: tuple[str, ...], words: str, ratio: int | None) -> None:
    done = run("compare", *sides, "--db", odd, "--kind", "total", "--format", "json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert [words in text for text in found["warnings"]] == [True]
    assert f"tracedb: warning: {found['warnings'][0]}" in done.stderr
    (row,) = found["rows"]
    assert (row["ratio"], row["difference_mean_ns"]) == (ratio, None if ratio is None else 0)
    assert row["verdict"] == ("not comparable" if ratio is None else "too few steps")


def test_shared_captures_are_said(odd: Path) -> None:
    done = run("compare", "run=a", ".json", "--db", odd, "--kind", "total")
    assert "run=a and .json share 1 of their captures" in done.stderr


@pytest.mark.parametrize("other", ["run=c", "run=e"])
def test_a_gate_on_sides_that_cannot_be_compared(odd: Path, other: str) -> None:
    for limit in ("total_ns>5%", "kernel.calls>1000%"):
        done = run("compare", "run=a", other, "--db", odd, "--fail-on", limit)
        assert done.exit_code == 3
        assert f"--fail-on {limit} can neither hold nor fail" in done.stderr.splitlines()[-1]
    assert run("compare", "run=a", other, "--db", odd, "--fail-on", "kernel.call_ns>5%").exit_code == 0


def test_a_side_without_kernels_is_refused(odd: Path) -> None:
    for sides in (("run=a", "run=g"), ("run=g", "run=a")):
        for flags in ((), ("--fail-on", "total_ns>5%")):
            done = run("compare", *sides, "--db", odd, *flags)
            assert (done.exit_code, done.stdout) == (3, "")
            assert "run=g" in done.stderr and done.stderr.count("\n") == 1


def noisy(path: Path, durations: list[int], calls: int = 1) -> Path:
    """One rank with a step of each duration, spent in equal calls of a GEMM."""
    tiny = Tiny(path)
    tiny.capture(0, {})
    for step, duration in enumerate(durations):
        start = 100_000 * step
        events = tuple(tiny.kernel(GEMM, start + 10_000 * n, duration) for n in range(calls))
        tiny.range(step + 1, f"ProfilerStep#{step}", start, start + 90_000, events)
    return tiny.save()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """``runs(100, 200)``: the database of a run with a step of each duration; each is made once."""
    folder = tmp_path_factory.mktemp("noisy")
    return cache(lambda *durations: noisy(folder / f"{'-'.join(map(str, durations))}.duckdb", list(durations)))


@pytest.mark.parametrize(
    ("base", "other", "limit", "code", "said"),
    [
        ([100, 200, 300, 400], [110, 230, 330, 460], "total_ns>5%", 0, ""),  # within the spread
        ([100, 101, 102, 103], [200, 201, 202, 203], "total_ns>5%", 4, "p = 0.03"),
        ([100, 101, 102, 103], [200, 201, 202, 203], "kernel.call_ns>5%", 4, "p = 0.03"),
        ([100, 101, 102, 103], [200, 201, 202, 203], "calls>0", 0, ""),  # no more calls
        ([100, 101, 102, 103], [200, 201, 202, 203], "total_ns>500%", 0, ""),
        ([100, 101, 102], [200, 201, 202, 203], "total_ns>5%", 3, "needs 4 steps a side"),
    ],
)
def test_gates_beyond_noise(
    runs: Callable[..., Path], base: list[int], other: list[int], limit: str, code: int, said: str
) -> None:
    sides = runs(*base), runs(*other)
    done = run("compare", *sides, "--fail-on", limit, "--beyond-noise")
    assert done.exit_code == code, done.stderr
    assert said in done.stderr.splitlines()[-1]


def test_more_calls_beyond_noise(tmp_path: Path) -> None:
    sides = noisy(tmp_path / "a.duckdb", [100] * 5), noisy(tmp_path / "b.duckdb", [100] * 5, calls=2)
    assert run("compare", *sides, "--fail-on", "calls>0", "--beyond-noise").exit_code == 4
    assert run("compare", *sides, "--fail-on", "call_ns>0", "--beyond-noise").exit_code == 0


def test_junit_and_annotations(tmp_path: Path) -> None:
    """Names of kernels are data: they neither end an XML attribute nor begin a workflow command."""
    hostile = 'k"&<b>]]>\x1b\n::error::x'
    sides = []
    for name, duration in (("a", 100), ("b", 200)):
        tiny = Tiny(tmp_path / f"{name}.duckdb")
        tiny.capture(0, {}, sha256=name)
        tiny.kernel(hostile, 0, duration)
        sides.append(tiny.save())
    gates = ["kernel.total_ns>5%", "timeline[idle]>5%", "class[nope]>5%"]
    path = tmp_path / "gates.xml"
    flags = [word for gate in gates for word in ("--fail-on", gate)]
    done = run("compare", *sides, *flags, "--junit", path, "--github", "--format", "json")
    assert done.exit_code == 4
    assert len(json.loads(done.stdout)["rows"]) > 0
    suite = ElementTree.parse(path).getroot()[0]
    assert [suite.get(key) for key in ("tests", "failures", "errors")] == ["3", "1", "1"]
    found = [(case.get("name"), [child.tag for child in case]) for case in suite.iter("testcase")]
    assert found == [(gates[0], ["failure"]), (gates[1], ["system-out"]), (gates[2], ["error"])]
    (passed,) = suite.findall("testcase/system-out")
    assert passed.text == f"{sides[1]}: idle: 0 → 0 ns"
    (failure,) = suite.iter("failure")
    assert 'k"&<b>]]> ::error::x: 100 → 200 ns (+100.0 %)' in str(failure.text)
    commands = [line for line in done.stderr.splitlines() if line.startswith("::")]
    assert len(commands) == 2
    assert commands[0].startswith("::error title=tracedb compare%3A kernel.total_ns>5%25::")
    assert commands[0].endswith("]> ::error::x: 100 → 200 ns (+100.0 %25)")


def test_rows_left_out_are_said(slower: tuple[Path, Path]) -> None:
    done = run("compare", *slower, "--kind", "timeline", "--top", "2", "--format", "json")
    assert json.loads(done.stdout)["warnings"][-1].startswith("2 of 6 rows")
    assert "2 of 6 rows" in done.stderr


def ranks_of_steps(path: Path, durations: list[list[int]], is_ranked: bool = True, marked: bool = True) -> Path:
    """A run with a GEMM of each duration: a list for each step, with an item for each rank."""
    tiny = Tiny(path)
    for rank in range(len(durations[0])):
        tiny.capture(rank if is_ranked else None, {}, path=f"/run/rank{rank}.json" if is_ranked else "/run/all.sqlite")
        for step, of_ranks in enumerate(durations):
            event = tiny.kernel(GEMM, 10_000 * step, of_ranks[rank])
            if marked:
                tiny.range(step + 1, f"ProfilerStep#{step}", 10_000 * step, 10_000 * step + 9_000, (event,))
    return tiny.save()


@pytest.mark.parametrize("is_ranked", [True, False])
@pytest.mark.parametrize("marked", [True, False])
def test_ranks_of_a_step_are_no_evidence_apart_from_each_other(tmp_path: Path, is_ranked: bool, marked: bool) -> None:
    """Eight ranks of one step would be eight values a side, all of them larger on one side; it is one step."""
    sides = [
        ranks_of_steps(tmp_path / f"{name}.duckdb", [[base + rank for rank in range(8)]], is_ranked, marked)
        for name, base in (("a", 100), ("b", 200))
    ]
    (row,) = rows(*sides, "--kind", "total")
    assert (row["base_mean_ns"], row["mean_ns"], row["units"], row["independent_units"]) == (103.5, 203.5, 8, 1)
    assert (row["p_value"], row["verdict"]) == (None, "too few steps" if marked else "too few runs")
    done = run("compare", *sides, "--fail-on", "total_ns>5%", "--beyond-noise")
    assert done.exit_code == 3 and "a side has 1" in done.stderr


def test_the_test_is_over_means_of_the_ranks_of_a_step(tmp_path: Path) -> None:
    """Ranks far apart hide no difference between steps; and many ranks make none out of few steps."""
    base = [[100, 900], [101, 901], [102, 902], [103, 903]]
    sides = [
        ranks_of_steps(tmp_path / "a.duckdb", base),
        ranks_of_steps(tmp_path / "b.duckdb", [[value + 10 for value in step] for step in base]),
    ]
    (row,) = rows(*sides, "--kind", "total")
    assert (row["units"], row["independent_units"], row["verdict"]) == (8, 4, "slower")
    assert row["p_value"] == pytest.approx(0.0304, abs=1e-4)  # of 4 against 4 that do not overlap


def test_a_difference_that_chance_gives_once_in_twenty_is_within_the_spread(tmp_path: Path) -> None:
    """Four steps against four, where one value of a side lies between those of the other: just above the limit."""
    sides = [
        ranks_of_steps(tmp_path / f"{name}.duckdb", [[value] for value in values])
        for name, values in (("a", (100, 101, 102, 104)), ("b", (103, 105, 106, 107)))
    ]
    (row,) = rows(*sides, "--kind", "total")
    assert row["p_value"] == pytest.approx(0.0606, abs=1e-4) and row["verdict"] == "within the spread"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of two ranks: base with 4 and 8 channels, tree with 8. A kernel takes 100 µs at 8 channels, else 50 µs."""
    tiny = Tiny(tmp_path_factory.mktemp("settings") / "x.duckdb")
    for sweep, channels in (("base", "4"), ("base", "8"), ("tree", "8")):
        for rank in (0, 1):
            name = f"{sweep}/{channels}/{rank}"
            tiny.capture(rank, {"sweep": sweep, "channels": channels}, sha256=name, path=f"/data/{name}.json")
            tiny.kernel(GEMM, 0, 100_000 if channels == "8" else 50_000)
    return tiny.save()


def test_settings_of_one_side_are_left_out(settings: Path) -> None:
    done = run("compare", "sweep=base", "sweep=tree", "--db", settings, "--kind", "total", "--format", "json")
    found = json.loads(done.stdout)
    assert [row["ratio"] for row in found["rows"]] == [1]
    left_out = "sweep=base: 2 captures are left out, whose settings not every side has (channels=4)"
    assert found["warnings"] == [left_out]  # and none of the number of GPUs: a run has two on either side


def test_sides_told_apart_by_a_setting_are_compared_whole(settings: Path) -> None:
    done = run("compare", "channels=4", "channels=8", "--db", settings, "--kind", "total", "--format", "json")
    found = json.loads(done.stdout)
    assert [row["ratio"] for row in found["rows"]] == [2]
    assert found["warnings"] == ["channels=8: 2 captures are left out, whose settings not every side has (sweep=tree)"]


def test_gpus_are_counted_by_run(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "x.duckdb")
    for name, ranks in (("a", 1), ("b", 2)):
        for rank in range(ranks):
            tiny.capture(rank, {"run": name}, sha256=f"{name}{rank}", path=f"/data/{name}/{rank}.json")
            tiny.kernel(GEMM, 0, 100)
    done = run("compare", "run=a", "run=b", "--db", tiny.save(), "--kind", "total", "--format", "json")
    assert json.loads(done.stdout)["warnings"] == ["a run of run=a has 1 GPU, one of run=b has 2"]


def several_runs(path: Path, of_sides: dict[str, list[list[int]]]) -> Path:
    """Sides of several runs: for each run, the duration of the kernel of each step."""
    tiny = Tiny(path)
    for side, of_runs in of_sides.items():
        for number, durations in enumerate(of_runs):
            tiny.capture(0, {"side": side, "run": str(number)}, path=f"/run/{side}{number}.json")
            for step, duration in enumerate(durations):
                event = tiny.kernel(GEMM, 10_000 * step, duration)
                tiny.range(step + 1, f"ProfilerStep#{step}", 10_000 * step, 10_000 * step + 9_000, (event,))
    return tiny.save()


def test_steps_of_one_run_are_no_evidence_apart_from_each_other(tmp_path: Path) -> None:
    """Two runs against two: twelve steps a side, all apart, but only two values that chance could have ordered."""
    db = several_runs(tmp_path / "x.duckdb", {
        "a": [[100, 101, 102, 103, 104, 105], [110, 111, 112, 113, 114, 115]],
        "b": [[120, 121, 122, 123, 124, 125], [130, 131, 132, 133, 134, 135]],
    })  # fmt: skip
    sides = ("side=a", "side=b", "--db", db)
    done = run("compare", *sides, "--kind", "total", "--format", "json")
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["independent_units"], row["base_independent_units"], row["tested_over"]) == (2, 2, "runs")
    assert (row["p_value"], row["verdict"]) == (None, "too few runs")
    assert (
        "too few runs to tell a difference from noise: 2 of the baseline, 2 of side=b; each side needs 4" in done.stderr
    )
    done = run("compare", *sides, "--fail-on", "total_ns>5%", "--beyond-noise")
    assert done.exit_code == 3 and "needs 4 runs a side" in done.stderr and "record more runs" in done.stderr
    done = run("compare", "side=a,run=0", "side=b,run=0", "--db", db, "--kind", "total")
    assert "verdicts are over steps, of one run a side: they say nothing about other runs" in done.stderr
    assert done.stdout.rstrip().endswith("slower")


def test_four_runs_a_side_are_tested_by_their_means(tmp_path: Path) -> None:
    """Steps of a run are far apart and overlap those of the other side; the means of the runs do not."""
    db = several_runs(tmp_path / "x.duckdb", {
        "a": [[100, 900], [101, 901], [102, 902], [103, 903]],
        "b": [[110, 910], [111, 911], [112, 912], [113, 913]],
    })  # fmt: skip
    done = run("compare", "side=a", "side=b", "--db", db, "--kind", "total", "--format", "json")
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["verdict"], row["independent_units"]) == ("slower", 4)
    assert row["p_value"] == pytest.approx(0.0304, abs=1e-4)
    assert "verdicts are over means of runs: 4 of the baseline, 4 of side=b" in done.stderr
    done = run("compare", "side=a", "side=b", "--db", db, "--fail-on", "total_ns>1%", "--beyond-noise")
    assert done.exit_code == 4 and "p = 0.03 over 4 and 4 runs" in done.stderr


def test_a_passed_gate_says_by_how_much_its_entry_grew(runs: Callable[..., Path], tmp_path: Path) -> None:
    sides = runs(100, 200, 300, 400), runs(110, 230, 330, 460)
    path = tmp_path / "gates.xml"
    done = run("compare", *sides, "--fail-on", "total_ns>5%", "--fail-on", "total_ns>50%", "--beyond-noise",
               "--junit", path)  # fmt: skip
    grew = "kernel time: 250 → 282 ns (+13.0 %)"
    assert f"passed: total_ns>5%: {sides[1]}: {grew}, but within the spread, p = 0.67 over 4 and 4 steps" in done.stderr
    assert f"passed: total_ns>50%: {sides[1]}: {grew}\n" in done.stderr
    assert [case.text for case in ElementTree.parse(path).getroot().findall(".//testcase/system-out")] == [
        f"{sides[1]}: {grew}, but within the spread, p = 0.67 over 4 and 4 steps of one run each",
        f"{sides[1]}: {grew}",
    ]


def test_names_of_gates_as_reports_spell_them(slower: tuple[Path, Path]) -> None:
    done = run("compare", *slower, "--fail-on", "timeline[exposed_collective]>5%")
    assert (done.exit_code, "passed: timeline[exposed_collective]>5%: " in done.stderr) == (0, True)
    for text, meant in (
        ("exposed_collective>5%", "did you mean 'timeline[exposed collective]>5%'?"),
        ("idle_ns>5", "did you mean 'timeline[idle]>5'?"),
        ("kernel>5%", "did you mean 'kernel.total_ns>5%'?"),
        ("nonsense>5%", "those of timeline are computation, exposed collective"),
    ):
        done = run("compare", *slower, "--fail-on", text)
        assert done.exit_code == 2 and meant in done.stderr


def test_ranges_that_could_be_steps_are_named(tmp_path: Path) -> None:
    """Where no steps are marked and the sides hold different numbers of passes; what is inside a warm-up is none."""
    tiny = Tiny(tmp_path / "x.duckdb")
    for label, passes in (("a", 5), ("b", 4)):
        tiny.capture(None, {"run": label})
        tiny.range(100, "warmup", 0, 2_000, ())
        for step in range(passes):
            event = tiny.kernel(GEMM, 1_000 * step, 900 if step < 2 else 100)
            tiny.range(step + 1, "pass", 1_000 * step, 1_000 * step + 950, (event,))
            tiny.range(step + 20, "part", 1_000 * step, 1_000 * step + 500, (event,))
    db = tiny.save()
    said = run("compare", "run=a", "run=b", "--db", db).stderr.splitlines()
    assert "tracedb: baseline: run=a, now: run=b; times are means per capture, as no steps are marked" in said
    names = "--step-range pass compares steps (3 of run=a and 2 of run=b)"
    hint = f"no steps are marked, so whole captures are compared; {names}"
    assert [text for text in said if "whole captures" in text] == [f"tracedb: warning: {hint}"]
    done = run("compare", "run=a", "run=b", "--db", db, "--step-range", "pass", "--format", "json")
    found = json.loads(done.stdout)
    assert {(row["base_mean_ns"], row["mean_ns"]) for row in found["rows"] if row["kind"] == "total"} == {(100, 100)}
    assert "2 ranges of run=a inside a range named warmup are no steps" in found["warnings"]
    report = run("report", "gpu-timeline", "--by", "step", "--step-range", "pass", "--where", "run=b", "--db", db)
    assert (
        "2 ranges that --step-range matches are inside a range named warmup and left out of the steps" in report.stderr
    )


def test_gemms_without_shapes_are_shown_once(tmp_path: Path) -> None:
    """They are the rows of kind kernel again; files for programs keep both."""
    before, after = (made(tmp_path / name).save() for name in ("before.duckdb", "after.duckdb"))
    table = run("compare", before, after)
    assert {line.split()[0] for line in table.stdout.splitlines()[2:]} >= {"kernel", "class"}
    assert not any(line.startswith("gemm") for line in table.stdout.splitlines())
    only = run("compare", before, after, "--kind", "gemm").stdout.splitlines()
    assert any(line.startswith("nvjet") for line in only)  # of one kind, which no column repeats
    assert {row["kind"] for row in rows(before, after)} >= {"gemm", "kernel"}


def test_shapes_and_long_names_are_shown_as_reports_show_them(tmp_path: Path) -> None:
    """GEMMs of one kernel are told apart by their shapes, kernels of one template by their arguments."""
    sides = []
    for name, factor in (("a", 1), ("b", 2)):
        tiny = Tiny(tmp_path / f"{name}.duckdb")
        tiny.capture(0, {})
        for number, rows_of in enumerate((8192, 4096)):
            tiny.add("op", capture_id=1, op_id=number, name="aten::mm", start_ns=0, duration_ns=1, thread_id=1,
                     input_dims=f"[[{rows_of}, 4096], [4096, 1024], [], []]")  # fmt: skip
            tiny.kernel(GEMM, 1_000 * number, 100 * factor, op_id=number)
            tiny.kernel(ADD.replace("<4,", f"<{4 * number + 4},"), 1_000 * number + 500, 50 * factor)
        sides.append(tiny.save())
    done = run("compare", *sides, "--kind", "gemm")
    shapes = [f"{rows_of}{TIMES}4096 · 4096{TIMES}1024 " for rows_of in (8192, 4096)]
    assert [text in done.stdout for text in shapes] == [True, True] and "[]" not in done.stdout
    assert "by calls" not in " ".join(done.stdout.split())  # nothing of it is due to the number of calls
    done = run("compare", *sides, "--kind", "kernel")
    assert "…4, CUDAFunctor_add<float>>" in done.stdout and "…8, CUDAFunctor_add<float>>" in done.stdout
