"""``tracedb plot``: charts are really rendered, contain what SQL returned, and respect their limits."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from support.command import report, run
from support.tiny import ADD, GEMM, NCCL, Tiny, two_ranks
from tracedb.plot import draw, registry, rows, theme
from tracedb.plot.definition import Choice
from tracedb.report.filters import Filters
from tracedb.storage import connection as database

SVG = "{http://www.w3.org/2000/svg}"
PICTURES = [picture.name for picture in registry.PICTURES]
HOSTILE = '</script><script>alert("x")</script><img src=x onerror=alert(1)>&amp;\u202egnol\u202c\x1b[31m'


def sweep(path: Path, gemm: str = GEMM, label: str = "a") -> Path:
    """Twelve runs of two ranks: threads 256 and 512, channels 4 and 8, three times each, two steps and a collective."""
    tiny = Tiny(path)
    for run_no, (threads, channels, _) in enumerate((t, c, n) for t in (256, 512) for c in (4, 8) for n in range(3)):
        for rank in (0, 1):
            labels = {"threads": str(threads), "channels": str(channels), "sweep": f"{label}{run_no % 3}"}
            tiny.capture(rank, labels, world_size=2, clock_zero_unix_ns=10**18)
            for step in (0, 1):
                at = 100_000 * step
                late = 5_000 * rank
                events = [
                    tiny.kernel(gemm, at + late, 2_000 + threads * step + run_no),
                    tiny.kernel(ADD, at + late + 10_000, 800),
                    tiny.kernel(
                        NCCL,
                        at + late + 12_000,
                        14_000 - late,
                        stream_id=9,
                        collective="allreduce",
                        message_in_elements=1_024 * channels,
                        message_out_elements=1_024 * channels,
                        dtype="Float",
                        group_name="0",
                        group_size=2,
                        group_ranks="[0, 1]",
                        sequence=step,
                    ),
                ]
                tiny.range(step + 1, f"ProfilerStep#{step}", at, at + 90_000, tuple(events))
    return tiny.save()


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sweep(tmp_path_factory.mktemp("plot") / "sweep.duckdb")


def texts(svg: Path) -> list[str]:
    """Return the texts of a picture, which must be well-formed XML."""
    return ["".join(item.itertext()) for item in ET.parse(svg).iter(f"{SVG}text")]


def marks(svg: Path, kind: str) -> int:
    """Return how many marks of a kind (rect, symbol) a picture has, by their roles."""
    groups = [item for item in ET.parse(svg).iter(f"{SVG}g") if f"mark-{kind} role-mark" in item.get("class", "")]
    return sum(len(item.findall(f"{SVG}path")) for item in groups)


def drawn(path: Path, db: Path, *arguments: str) -> Path:
    done = run("plot", *arguments, "--db", db, "-o", path)
    assert done.exit_code == 0, done.stderr
    assert done.stdout == ""
    return path


@pytest.mark.parametrize("name", [name for name in PICTURES if name != "roofline"])
def test_every_picture_is_a_png(db: Path, tmp_path: Path, name: str) -> None:
    content = drawn(tmp_path / "a.png", db, name).read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", content[16:24])
    assert 500 < width < 3_000 and 200 < height < 6_000


def test_the_list_names_every_picture() -> None:
    done = run("plot", "--list")
    assert done.exit_code == 0
    assert all(re.search(rf"^{name} ", done.stdout, re.MULTILINE) for name in PICTURES)
    assert run("plot").stdout == done.stdout
    words = " ".join(done.stdout.split())
    assert all(picture.title.replace("\n", " ").split()[-1] in words for picture in registry.PICTURES)
    assert "…" not in done.stdout


def test_gantt_draws_every_event_of_a_step_at_its_time(db: Path, tmp_path: Path) -> None:
    svg = drawn(
        tmp_path / "a.svg",
        db,
        "gantt",
        "--step",
        "1",
        "--where",
        "threads=256",
        "--where",
        "channels=4",
        "--where",
        "sweep=a0",
    )
    assert marks(svg, "rect") == 6 + 2
    said = texts(svg)
    assert "GPU activity by stream in step 1" in said
    assert [text for text in said if text.startswith(("r0 · ", "r1 · "))] == [
        "r0 · ranges",
        "r0 · stream 7",
        "r0 · stream 9",
        "r1 · ranges",
        "r1 · stream 7",
        "r1 · stream 9",
    ]
    assert said.count("ProfilerStep#1") == 2
    assert any("n = 6 of 6 events. Above the streams: 2 of 2 ranges, as timed on the host." in text for text in said)
    assert {"matmul", "elementwise", "collective"} <= set(said)


def test_a_window_counts_from_the_first_event_of_a_run(db: Path, tmp_path: Path) -> None:
    svg = drawn(
        tmp_path / "a.svg",
        db,
        "gantt",
        "--rank",
        "0",
        "--where",
        "threads=256",
        "--where",
        "channels=4",
        "--window",
        "9.5us:11us",
        "--where",
        "sweep=a0",
    )
    assert marks(svg, "rect") == 1 + 1  # the elementwise kernel at 10 µs, and the range that holds it
    assert any("--window 9.5µs:11µs" in text for text in texts(svg))


@pytest.mark.parametrize(("ranks", "since"), [((None, None), [0, 0]), ((0, 1), [0, 10**15])])
def test_captures_of_no_rank_that_are_far_apart_begin_together(
    tmp_path: Path, ranks: tuple[int | None, int | None], since: list[int]
) -> None:
    tiny = Tiny(tmp_path / "apart.duckdb")
    for at, rank in enumerate(ranks):
        tiny.capture(rank, {}, clock_zero_unix_ns=10**18)
        tiny.kernel(ADD, at * 10**15, 1_000)
    assert [row["since_ns"] for row in table(tiny.save(), "gantt")] == since


def test_gantt_has_ranges_by_thread_and_depth_on_the_clock_of_its_run(tmp_path: Path) -> None:
    """Marks, ranges outside the time drawn, and lanes whose ranges cannot be seen are left out."""
    tiny = Tiny(tmp_path / "ranges.duckdb")
    for rank, offset in ((0, 0), (1, 300_000)):
        capture = tiny.capture(rank, {}, clock_zero_unix_ns=10**18)
        alignment = {
            "reference_capture_id": 1,
            "offset_ns": offset,
            "at_ns": 0,
            "calls": 1,
            "span_ns": 1,
            "uses_drift": False,
        }
        tiny.add("clock_alignment", capture_id=capture, **alignment)
        tiny.kernel(ADD, offset + 5_000, 100_000)
        for number, (name, start, end, thread, depth) in enumerate(
            (
                ("step", 0, 200_000, 1, 0),
                ("forward", 10_000, 60_000, 1, 1),
                ("loader", 0, 90_000, 2, 0),
                ("blink", 50_000, 50_050, 3, 0),
                ("later", 110_000, 190_000, 1, 1),
            )
        ):
            tiny.range(number + 1, name, offset + start, offset + end, thread_id=thread, depth=depth, process_id=9)
        tiny.add(
            "annotation",
            capture_id=capture,
            annotation_id=9,
            name="mark",
            style="mark",
            start_ns=offset + 20_000,
            is_open=False,
        )
    db = tiny.save()
    drawn_rows = [row for row in table(db, "gantt") if row["is_range"]]
    told = [(row["rank"], row["lane"], row["name"], row["since_ns"], row["duration_ns"]) for row in drawn_rows]
    assert told == [
        (rank, f"ranges of thread {lane}", name, since, duration)
        for rank in (0, 1)
        for lane, name, since, duration in (
            ("1", "step", -5_000, 200_000),
            ("1, depth 1", "forward", 5_000, 50_000),
            ("2", "loader", -5_000, 90_000),
        )
    ]
    done = run("plot", "gantt", "--db", db, "-o", tmp_path / "a.svg")
    assert "2 ranges are left out" in done.stderr
    assert {"step", "forward", "loader"} <= set(texts(tmp_path / "a.svg"))


def test_names_of_ranges_go_without_their_common_start_where_they_do_not_fit(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "ranges.duckdb")
    tiny.capture(0, {})
    tiny.kernel(ADD, 0, 1_200)
    for number in range(12):
        tiny.range(number + 1, f"model.of.a.long.name.index={number}/measured", 100 * number, 100 * number + 99)
    run("plot", "gantt", "--db", tiny.save(), "-o", tmp_path / "a.svg")
    shown = [text for text in texts(tmp_path / "a.svg") if text.startswith("…")]
    assert len(set(shown)) == 12 and all(f"…{number}/" in "".join(shown) for number in range(12))


def test_gantt_says_how_many_streams_and_events_it_leaves_out(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "many.duckdb")
    tiny.capture(0)
    tiny.connection.execute(
        f"""INSERT INTO main.kernel_event
                (capture_id, event_id, kind, name, start_ns, duration_ns, device_id, stream_id)
            SELECT 1, i, 'kernel', '{ADD}', 1000 * i, CASE WHEN i < 100 THEN 5 ELSE 500 END, 0, CASE WHEN i > 6000
            THEN i - 5900 ELSE 7 END FROM range(6050) AS t(i)"""
    )
    done = run("plot", "gantt", "--db", tiny.save(), "-o", tmp_path / "a.svg")
    assert done.exit_code == 0, done.stderr
    assert marks(tmp_path / "a.svg", "rect") == 5_000
    assert "10 streams are left out: they have 10 events" in done.stderr
    assert "the 1,040 shortest events on these streams are left out" in done.stderr
    said = " ".join(texts(tmp_path / "a.svg"))
    assert "10 streams are left out: they have 10 events" in said
    assert "The 1,040 shortest events on these streams" in said


def test_gantt_prefers_busy_streams_to_slight_ones(tmp_path: Path) -> None:
    """Of 41 streams, those below a thousandth of their capture's time give way; of 40, none does."""
    for count in (41, 40):
        tiny = Tiny(tmp_path / f"{count}.duckdb")
        tiny.capture(0)
        for stream in range(count):
            tiny.kernel(ADD, 10 * stream, 9, stream_id=stream)
        tiny.kernel(GEMM, 1_000, 10_000_000, stream_id=count - 1)
        drawn = {row["lane"] for row in table(tiny.save(), "gantt")}
        assert f"stream {count - 1}" in drawn
        assert len(drawn) == 40


def table(db: Path, name: str, filters: Filters | None = None, choice: Choice | None = None) -> list[dict[str, Any]]:
    """Return the rows that a picture draws."""
    picture, filters, choice = registry.find(name), filters or Filters(), choice or Choice()
    with database.open_read_only(db) as connection:
        query, select = rows.plan(connection, picture, filters, choice, "v1")
        found, answer = rows.read(connection, db, picture, query, select, choice, filters)
        draw.draw(picture, found, answer.answer, db)
        ran = connection.execute(rows.statement(query, select)).fetchall()
    assert [tuple(row.values()) for row in found.rows] == ran  # --show-sql gives what is drawn
    return found.rows


def test_boxes_have_n_and_significance(db: Path, tmp_path: Path) -> None:
    said = texts(drawn(tmp_path / "a.svg", db, "gemm-variance-threads"))
    (p_value,) = {row["p_value"] for row in report(db, "gemm-spread") if row["factor"] == "threads"}
    assert p_value < 0.01
    assert said.count("n=12") == 2
    assert any("threads: levels differ, p < 0.001" in text and "over 12 medians" in text for text in said)
    assert {"256", "512", "threads"} <= set(said)


def test_by_chooses_the_settings(db: Path, tmp_path: Path) -> None:
    drawn_rows = table(db, "gemm-variance", Filters(by=("channels", "rank")))
    assert [row["factor"] for row in drawn_rows] == ["channels", "channels", "rank", "rank"]
    everything = {row["factor"] for row in table(db, "gemm-variance-violin")}
    assert everything == {"threads", "channels", "sweep", "rank"}
    pairs = table(db, "gemm-variance-interaction", Filters(by=("sweep", "rank")))
    assert {(row["factor"], row["other_factor"]) for row in pairs} == {("sweep", "rank")}
    said = texts(drawn(tmp_path / "i.svg", db, "gemm-variance-interaction", "--by", "sweep", "--by", "rank"))
    number = " to ".join(str(count) for count in sorted({row["gemms"] for row in pairs}))
    assert any(f"n = {number} GEMMs" in text for text in said)
    runs = " to ".join(str(count) for count in sorted({row["runs"] for row in pairs}))
    assert (f"of {runs} runs in a point, which may mix other settings" in " ".join(said)) == (runs != "1")
    assert runs != "1"
    assert not any(text.startswith("n=") for text in said)  # such labels of points would lie on each other


def test_timeline_draws_the_parts_of_the_average(db: Path, tmp_path: Path) -> None:
    """Four parts of each configuration, end to end, as the report has them."""
    drawn_rows = table(db, "timeline", Filters(by=("threads", "channels")))
    told = {
        (row["threads"], row["channels"], row["part"]): row["mean_ns"]
        for row in report(db, "gpu-timeline-average", "--by", "threads", "--by", "channels")
    }
    assert len(drawn_rows) == 16
    for row in drawn_rows:
        assert row["mean_ns"] == told[row["threads"], row["channels"], row["part"]]
        assert row["to_ns"] - row["from_ns"] == pytest.approx(row["mean_ns"])
    svg = drawn(tmp_path / "a.svg", db, "timeline", "--by", "threads", "--by", "channels")
    assert marks(svg, "rect") == 16
    assert [text for text in texts(svg) if text.endswith("(n=6)")] == [
        "256 · 4 (n=6)",
        "256 · 8 (n=6)",
        "512 · 4 (n=6)",
        "512 · 8 (n=6)",
    ]


def test_timeline_gives_each_file_of_no_rank_its_own_bar(tmp_path: Path) -> None:
    """Processes of one file stay one run, and so do captures of which a rank is known."""
    made = Tiny(tmp_path / "t.duckdb")
    for name, duration in (("a", 1_000), ("b", 9_000)):
        made.capture(None, path=f"/traces/{name}.json")
        made.kernel(GEMM, 0, duration)
    db = made.save()
    assert [(row["capture"], row["to_ns"]) for row in table(db, "timeline") if row["part"] == "idle"] == [
        (1, 1_000),
        (2, 9_000),
    ]
    said = texts(drawn(tmp_path / "a.svg", db, "timeline"))
    assert [text for text in said if "(n=1)" in text] == ["1 a.json (n=1)", "2 b.json (n=1)"]
    for number, (paths, ranks) in enumerate(((("a", "a"), (None, None)), (("a", "b"), (0, 1)))):
        made = Tiny(tmp_path / f"{number}.duckdb")
        for name, rank in zip(paths, ranks, strict=True):
            made.capture(rank, path=f"/traces/{name}.json")
            made.kernel(GEMM, 0, 1_000)
        assert {row["ranks"] for row in table(made.save(), "timeline")} == {2}


def test_top_kernels_are_bars_with_share_calls_and_class(db: Path, tmp_path: Path) -> None:
    drawn_rows = table(db, "top-kernels")
    assert [(row["name"], row["total_ns"], row["place"]) for row in drawn_rows] == [
        (row["name"], row["total_ns"], place) for place, row in enumerate(report(db, "top-kernels"), 1)
    ]
    svg = drawn(tmp_path / "a.svg", db, "top-kernels")
    assert marks(svg, "rect") == 3
    said = texts(svg)
    assert {"matmul", "elementwise", "collective", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"} <= set(said)
    assert [text for text in said if text.endswith("· 48 calls")] == [
        f"{row['share_percent']:.1f} % · 48 calls" for row in drawn_rows
    ]
    assert any("n = 144 calls." in text for text in said)
    said = texts(drawn(tmp_path / "b.svg", db, "top-kernels", "--by", "rank"))
    assert [text for text in said if text.startswith("rank ")] == ["rank 0", "rank 1"]


def test_an_svg_has_room_for_wider_fonts(tmp_path: Path) -> None:
    """Browsers draw an SVG in a font of theirs; a PNG needs no more room than it was laid out with."""
    made = Tiny(tmp_path / "t.duckdb")
    made.capture(0)
    made.kernel("k" * 40, 0, 1_000)
    db = made.save()
    width = struct.unpack(">I", drawn(tmp_path / "a.png", db, "top-kernels").read_bytes()[16:20])[0] / 2
    svg = ET.parse(drawn(tmp_path / "a.svg", db, "top-kernels")).getroot()
    assert float(svg.get("width", "0")) - width == pytest.approx(40 * 1.3 + 14, abs=1)


def test_top_kernels_say_how_many_names_they_leave_out(tmp_path: Path) -> None:
    made = Tiny(tmp_path / "t.duckdb")
    for rank in (0, 1):
        made.capture(rank)
        for number in range(32):
            made.kernel(f"kernel_{number:02}", 1_000 * number, 0 if number > 30 else 9)
    db = made.save()
    done = run("plot", "top-kernels", "--db", db, "-o", tmp_path / "a.svg")
    assert "2 kernel names are left out: they have 3.2 % of the time" in done.stderr, done.stderr
    assert marks(tmp_path / "a.svg", "rect") == 30
    done = run("plot", "top-kernels", "--by", "rank", "--db", db, "-o", tmp_path / "a.svg")
    assert "44 bars are left out: a panel has the 10 kernel names with most time" in done.stderr
    assert marks(tmp_path / "a.svg", "rect") == 20


def test_timeline_labels_no_part_that_is_narrower_than_its_label(tmp_path: Path) -> None:
    made = Tiny(tmp_path / "t.duckdb")
    made.capture(0, {"threads": "1"})
    made.kernel(GEMM, 0, 100_000_000)
    made.capture(0, {"threads": "2"})
    made.kernel(GEMM, 0, 900_000)
    made.kernel(GEMM, 980_000, 20_000)
    svg = drawn(tmp_path / "a.svg", made.save(), "timeline")
    assert [text for text in texts(svg) if text.endswith(" %")] == ["100 %"]


def test_collectives_and_waiting(db: Path, tmp_path: Path) -> None:
    points = table(db, "collective-bandwidth", Filters(by=("channels",)))
    assert [(row["channels"], row["message_bytes"], row["calls"]) for row in points] == [
        ("4", 16_384, 12),
        ("8", 32_768, 12),
    ]
    assert {row["latency_median_ns"] for row in points} == {9_000}
    svg = drawn(tmp_path / "a.svg", db, "collective-latency", "--by", "channels")
    assert marks(svg, "symbol") == 2
    cells = table(db, "waiting")
    assert len(cells) == 12 * 2 * 2
    assert {(row["rank"], row["wait_ns"]) for row in cells} == {(0, 5_000), (1, 0)}
    said = " ".join(texts(drawn(tmp_path / "w.svg", db, "waiting", "--where", "channels=4")))
    assert "Panels: sweep / threads. Waiting of a rank in a step" in said and "one for each call and rank" in said


def test_histogram_and_pace_of_a_chosen_kernel(db: Path, tmp_path: Path) -> None:
    bars = table(db, "kernel-histogram", choice=Choice(kernel="nvjet"))
    assert {row["name"] for row in bars} == {GEMM}
    assert sum(row["calls"] for row in bars) == 48
    assert marks(drawn(tmp_path / "a.svg", db, "kernel-histogram", "--kernel", "nvjet*"), "rect") == len(bars)
    points = table(db, "kernel-pace", Filters(ranks=(0,)), Choice(kernel=GEMM))
    assert [(row["call_index"], row["interval_ns"]) for row in points] == [(1, None), (2, 100_000.0)] * 12
    said = " ".join(texts(drawn(tmp_path / "b.svg", db, "kernel-pace")))
    assert "n = 24 calls" in said and "12 GPUs are left out: 12 are drawn, with 24 of 48 calls" in said


def test_axes_of_few_counts_and_of_less_than_a_decade_have_ticks_of_their_own(tmp_path: Path) -> None:
    assert theme.count_axis([2, 1])["values"] == [0, 1, 2]
    assert theme.log_ticks(13.8, 22.4) == [15, 20]
    assert theme.log_ticks(6e3, 440e3)[-1] == 300e3
    assert theme.size_values(3.4) == [1, 2, 3]
    assert "1.907 MiB" in texts(drawn(tmp_path / "a.svg", messages(tmp_path, 2_000_000), "collective-latency"))


def test_few_message_sizes_stand_side_by_side_and_many_form_an_axis(tmp_path: Path) -> None:
    few = drawn(tmp_path / "few.svg", messages(tmp_path, 4, 25_186_304), "collective-bandwidth")
    assert {"4 B", "24.02 MiB"} <= set(texts(few)) and marks(few, "line") == 0
    sizes = [3 * 4**power for power in range(1, 8)]
    many = drawn(tmp_path / "many.svg", messages(tmp_path, *sizes), "collective-bandwidth")
    assert "12 B" not in texts(many) and "16 B" in texts(many) and marks(many, "line") > 0


def messages(folder: Path, *sizes: int) -> Path:
    """Return two ranks that do a collective of each size outside of steps, at the same time."""
    tiny = Tiny(folder / f"messages{len(sizes)}.duckdb")
    for rank in (0, 1):
        tiny.capture(rank)
        for place, size in enumerate(sizes):
            tiny.kernel(NCCL, 20_000 * place, 10_000, collective="allreduce", message_in_elements=size // 4,
                        dtype="Float", group_size=2, group_name="0", group_ranks="[0, 1]", sequence=1 + place,
                        stream_id=20)  # fmt: skip
    return tiny.save()


def test_kernels_named_like_properties_of_javascript_are_drawn(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "names.duckdb")
    tiny.capture(0)
    names = ("constructor", "__proto__", "toString", "valueOf", "plain")
    for place, name in enumerate(names):
        tiny.kernel(name, 1_000 * place, 100 + place)
    svg = drawn(tmp_path / "a.svg", tiny.save(), "top-kernels")
    assert set(names) <= {text.strip() for text in texts(svg)}


def test_waiting_without_steps_and_without_waiting(tmp_path: Path) -> None:
    said = texts(drawn(tmp_path / "a.svg", messages(tmp_path, 4_000), "waiting"))
    assert "no steps are marked" in said and "outside" not in said
    assert [text for text in said if text.startswith("waiting, ")] == []  # nothing for a scale from 0 to 0


def test_utilization_draws_shares_of_windows(db: Path) -> None:
    parts = table(db, "utilization", Filters(ranks=(0,)))
    assert {row["part"] for row in parts} == {"computation", "exposed collective"}
    assert all(0 <= row["low_percent"] < row["high_percent"] <= 100 + 1e-9 for row in parts)
    assert len({row["gpu"] for row in table(db, "utilization-map")}) == 24


def test_long_runs_of_calls_are_put_together(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "many.duckdb")
    tiny.capture(0)
    tiny.connection.execute(
        f"""INSERT INTO main.kernel_event
                (capture_id, event_id, kind, name, start_ns, duration_ns, device_id, stream_id)
            SELECT 1, i, 'kernel', '{ADD}', 1000 * i, 10 + i % 7, 0, 7 FROM range(1000) AS t(i)"""
    )
    points = table(tiny.save(), "kernel-pace")
    assert [row["calls"] for row in points] == [4] * 250
    assert {row["interval_ns"] for row in points} == {1_000.0}
    assert points[0]["duration_ns"] == 11.5


def test_a_page_holds_all_it_needs(db: Path, tmp_path: Path) -> None:
    page = drawn(tmp_path / "a.html", db, "timeline").read_text()
    own = re.sub(r"<script>.*?</script>", "", page, count=1, flags=re.DOTALL)  # without Vega
    assert not re.search(r"<(?:script|link|img)[^>]+(?:src|href)=|https?://(?!vega.github.io/schema/)", own)
    assert "default-src 'none'" in page
    (held,) = re.findall(r'<script type="application/json" id="specification">(.*?)</script>', page)
    assert json.loads(held)["title"]["text"] == "GPU time by configuration"
    assert "FROM v1.gpu_timeline_average" in page


@pytest.fixture(scope="module")
def hostile_db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plot") / "hostile.duckdb"
    return sweep(path, "ampere_sgemm_" + HOSTILE + "x" * 10_000, label=HOSTILE)


@pytest.mark.parametrize("form", ["svg", "html"])
@pytest.mark.parametrize("name", ["gantt", "gemm-variance-violin", "kernel-histogram", "collective-latency", "waiting"])
def test_hostile_names_stay_text(hostile_db: Path, tmp_path: Path, name: str, form: str) -> None:
    content = drawn(tmp_path / f"a.{form}", hostile_db, name).read_bytes()
    if form == "svg":
        said = texts(tmp_path / "a.svg")
        assert max(map(len, said)) < 2_000
        assert not re.search("[\u202a-\u202e\x1b]", "".join(said))
    elif form == "html":
        assert content.count(b"<script>alert") == 0
        assert b"<img src=x" not in content
        assert content.decode().count("</script>") == 3


def test_a_class_of_the_users_own_has_a_colour(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "own.duckdb")
    tiny.capture(0)
    tiny.add("kernel_rule", priority=1, pattern=".*vectorized.*", **{"class": "<b>mine</b>"})
    tiny.kernel(ADD, 0, 5)
    assert "<b>mine</b>" in texts(drawn(tmp_path / "a.svg", tiny.save(), "gantt"))


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["gant", "-o", "a.png"], 2, "there is no picture 'gant'; did you mean gantt?"),
        (["gantt"], 2, "name the picture's file with -o"),
        (["gantt", "-o", "a.gif"], 2, "known are .png, .svg and .html"),
        (["gantt", "--kernel", "x", "-o", "a.png"], 2, "picture gantt has no use for --kernel"),
        (["gantt", "--by", "rank", "-o", "a.png"], 2, "picture gantt cannot be grouped by rank"),
        (["gantt", "--window", "5:7", "-o", "a.png"], 2, "is not FROM:TO with units"),
        (["gantt", "--window", "7ms:5ms", "-o", "a.png"], 2, "ends before it begins"),
        (["gantt", "--step", "9", "-o", "a.png"], 3, "no GPU activity in step 9"),
        (["gantt", "--window", "5s:6s", "-o", "a.png"], 3, "no GPU activity in that window"),
        (["gantt", "--rank", "9", "-o", "a.png"], 3, "no capture has rank 9"),
        (["gemm-variance", "--by", "batch", "-o", "a.png"], 2, "no capture has a label 'batch'"),
        (["timeline", "--by", "batch", "-o", "a.png"], 2, "cannot group by 'batch'"),
        (["collective-latency", "--by", "rank", "--by", "sweep", "-o", "a.png"], 2, "takes --by 1 times at most"),
        (
            ["kernel-pace", "--kernel", "nothing", "-o", "a.png"],
            3,
            "no kernel name equals, contains or matches 'nothing'; those",
        ),
        (
            ["kernel-histogram", "--kernel", "nothing", "-o", "a.png"],
            3,
            "no kernel name equals, contains or matches 'nothing'",
        ),
    ],
)
def test_what_cannot_be_drawn_is_said_in_one_line(
    db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("plot", *arguments, "--db", db)
    assert (done.exit_code, done.stdout) == (code, "")
    assert said in done.stderr and done.stderr.count("\n") == 1
    assert not list(tmp_path.glob("a.*"))


def test_what_was_not_captured_is_said(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "plain.duckdb")
    tiny.capture(0)
    tiny.kernel(ADD, 0, 5)
    db = tiny.save()
    for name, said in (
        ("gemm-variance", "no GEMMs were captured"),
        ("collective-bandwidth", "no collectives were captured"),
        ("waiting", "no collective spans two ranks or more"),
    ):
        done = run("plot", name, "--db", db, "-o", tmp_path / "a.png")
        assert done.exit_code == 3 and said in done.stderr, name
    one = two_ranks(tmp_path / "two.duckdb")
    done = run("plot", "gemm-variance-rank", "--rank", "0", "--db", one, "-o", tmp_path / "a.png")
    assert "captures that differ in a label or the rank" in done.stderr
    assert not (tmp_path / "a.png").exists()


def test_the_database_is_not_drawn_over(db: Path) -> None:
    before = db.read_bytes()
    assert "which an answer would replace" in run("plot", "timeline", "--db", db, "-o", db).stderr
    assert db.read_bytes() == before


def test_without_the_extra_one_line_names_it(db: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['vl_convert'] = None; sys.argv[1:] = ['plot', 'timeline', '--db', "
        f"{str(db)!r}, '-o', {str(tmp_path / 'a.png')!r}]; from tracedb.cli.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == (
        "tracedb: error: plot needs the package vl_convert, which is not installed: pip install 'tracedb-gpu[plot]'\n"
    )


def test_what_is_not_drawn_with_is_not_imported(db: Path) -> None:
    code = (
        f"import sys, tracedb; sys.argv[1:] = ['report', 'top-kernels', '--db', {str(db)!r}]\n"
        "from tracedb.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: print([name for name in ('altair', 'vl_convert', 'tracedb.plot') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.endswith("[]\n")


def test_show_sql_prints_what_a_picture_draws(db: Path) -> None:
    done = run("plot", "gantt", "--step", "1", "--rank", "0", "--db", db, "--show-sql")
    assert done.exit_code == 0, done.stderr
    with database.open_read_only(db) as connection:
        assert len(connection.execute(done.stdout).fetchall()) == 36 + 12  # events, and ranges above them
