"""``tracedb export rocprof-yaml``: a valid job whose expressions match exactly the selected kernels."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest

from support.command import run
from support.tiny import ADD, GEMM, Tiny, two_ranks
from tracedb.errors import UsageError
from tracedb.export import rocprofv3

NAMES = Path(__file__).parents[1] / "classify" / "kernel_names_sample.tsv"
SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "kernel_names.tsv"
TENSILE = "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT64x32x256_MI16x16x1_SN"


def known(path: Path) -> list[str]:
    """Return the names of the file as rocprofv3 prints them."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return sorted({rocprofv3.DESCRIPTOR.sub("", row["name"]) for row in rows})


def matched(expression: str, names: list[str]) -> list[str]:
    pattern = re.compile(expression)
    return [name for name in names if pattern.search(name)]


@pytest.mark.parametrize("path", [NAMES, pytest.param(SHARED, marks=pytest.mark.shared)], ids=["sample", "all"])
def test_each_name_matches_itself_and_no_other(path: Path) -> None:
    if not path.exists():
        pytest.skip("the names are not beside the repository")
    names = known(path)
    for name in names:
        assert matched(rocprofv3.expression([name]), names) == [name]
    chosen = names[::7]
    assert matched(rocprofv3.expression(chosen), names) == chosen


def test_what_is_escaped_is_known_to_the_tool() -> None:
    """ECMAScript knows no escapes of other characters, which the standard library's function would make."""
    expression = rocprofv3.expression(['void k<a, 3>(b*, "x y"~#-&)::{f}[g] [clone .kd]'])
    assert expression == r'^(void k<a, 3>\(b\*, "x y"~#-&\)::\{f\}\[g\])$'


@pytest.mark.parametrize(
    ("name", "base"),
    [
        (TENSILE, TENSILE),
        ("void at::native::vectorized<4, A<float>>(int, A)", "at::native::vectorized"),
        ("std::enable_if<((8)>(0)), void>::type vllm::norm<c10::Half, 8>(c10::Half*)", "vllm::norm"),
        ("void (anonymous namespace)::soft_max<float>(float*)", "(anonymous namespace)::soft_max"),
        ("axpy(int, int) [clone .kd]", "axpy"),
        ("void f<&g::operator()>(h)", "f"),
    ],
)  # fmt: skip
def test_families(name: str, base: str) -> None:
    assert rocprofv3.base(name) == base
    expression = rocprofv3.expression([name], families=True)
    assert matched(expression, [rocprofv3.DESCRIPTOR.sub("", name)])
    if base != TENSILE:
        assert matched(expression, [f"void {base}<other, 5>(x)", f"{base}(x)", base])
        assert not matched(expression, [f"void {base}_2<other, 5>(x)", f"my{base}(x)"])


def test_jobs_are_checked() -> None:
    changes: list[dict[str, Any]] = [{"pmcs": []}, {"pmc": "SQ_WAVES"}, {"kernel_trace": 1}, {"pmc": ["a b"]}]
    for change in [*changes, {"output_format": ["xml"]}]:
        with pytest.raises(UsageError):
            rocprofv3.check({**rocprofv3.job([GEMM]), **change})


def load(text: str) -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    (made,) = yaml.safe_load(text)["jobs"]
    assert isinstance(made, dict)
    return made


def test_expressions_are_folded_and_read_back_whole() -> None:
    """Each kernel is on a line of its own, whatever its name holds; YAML joins the lines to the same expression."""
    names = ["a|b<c>", "void k<1>(int)", " led by a space", 'q"x\\', "Cijk_A", "x || y", "k: [#]", "日本"]
    job = rocprofv3.job(names)
    text = rocprofv3.text(job, "about")
    assert load(text) == job
    assert matched(load(text)["kernel_include_regex"], [*names, "another"]) == names
    assert [line for line in text.splitlines() if line.strip() == "Cijk_A|\\"]
    assert max(map(len, text.splitlines())) < 90


class TestCommand:
    @pytest.fixture(scope="class")
    @staticmethod
    def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
        return two_ranks(tmp_path_factory.mktemp("export") / "two.duckdb")

    def test_gemms_that_vary_most_by_default(self, db: Path) -> None:
        done = run("export", "rocprof-yaml", "--db", db)
        assert done.exit_code == 0, done.stderr
        made = load(done.stdout)
        assert made == {
            "kernel_include_regex": f"^({GEMM})$",
            "kernel_trace": True,
            "pmc": ["SQ_BUSY_CU_CYCLES", "SQ_WAVES", "SQ_WAVE_CYCLES", "SQ_INSTS_MFMA"],
            "output_format": ["csv", "json"],
        }
        rocprofv3.check(made)

    def test_of_any_report_with_counters_of_ones_own(self, db: Path, tmp_path: Path) -> None:
        out = tmp_path / "count.yaml"
        options = ["--counters", "SQ_WAVES,GRBM_COUNT", "--output-format", "rocpd", "--top", "9", "-o", str(out)]
        done = run("export", "rocprof-yaml", "--db", db, "--report", "top-kernels", *options)
        assert (done.exit_code, done.stdout) == (0, "")
        names = (tmp_path / "count_kernel_list.txt").read_text().splitlines()
        assert set(names) > {GEMM, ADD} and len(names) == 3
        made = load(out.read_text())
        assert (made["pmc"], made["output_format"]) == (["SQ_WAVES", "GRBM_COUNT"], ["rocpd"])
        assert matched(made["kernel_include_regex"], [*names, "another", f"{ADD}2"]) == names

    def test_the_first_of_each_capture(self, tmp_path: Path) -> None:
        tiny = Tiny(tmp_path / "a.duckdb")
        for rank in (0, 1):
            tiny.capture(rank)
            for number, spread in ((1, 900), (2, 500), (3, 100)):
                name = f"Cijk_{rank}_{number}"
                tiny.kernel(name, 10_000 * number, 1_000)
                tiny.kernel(name, 10_000 * number + 5_000, 1_000 + spread)
        db = tiny.save()
        made = load(run("export", "rocprof-yaml", "--db", db, "--top", "2").stdout)
        assert sorted(re.findall(r"\w+_\d", made["kernel_include_regex"])) == [
            "Cijk_0_1",
            "Cijk_0_2",
            "Cijk_1_1",
            "Cijk_1_2",
        ]
        made = load(run("export", "rocprof-yaml", "--db", db, "--top", "1", "--rank", "1").stdout)
        assert made["kernel_include_regex"] == "^(Cijk_1_1)$"

    @pytest.mark.parametrize(
        ("options", "code", "words"),
        [
            (["--counters", "no counter"], 2, "not the name of a counter"),
            (["--output-format", "xml"], 2, "rocprofv3 writes no 'xml'"),
            (["--report", "nothing"], 2, "there is no report"),
            (["--report", "gpu-timeline"], 2, "report gpu-timeline names no kernels"),
            (["--report", "collectives-of-none"], 2, "there is no report"),
            (["--rank", "7"], 3, "no capture has rank 7"),
        ],
    )
    def test_faults(self, db: Path, options: list[str], code: int, words: str) -> None:
        done = run("export", "rocprof-yaml", "--db", db, *options)
        assert (done.exit_code, words in done.stderr) == (code, True), done.stderr

    def test_no_gemms(self, tmp_path: Path) -> None:
        tiny = Tiny(tmp_path / "a.duckdb")
        tiny.capture(0)
        tiny.kernel(ADD, 0, 10)
        done = run("export", "rocprof-yaml", "--db", tiny.save())
        assert (done.exit_code, "has no kernels" in done.stderr) == (3, True)
