"""Operators on the CPU: each once, and whole sweeps through the command."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from support.command import run

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
# ruff: noqa: E402
from tracedb.errors import TracedbError
from tracedb.regress.work_model import work
from tracedb.sampling.configuration import Configuration
from tracedb.sampling.layer_kinds import LAYERS
from tracedb.sampling.operator import Operator, Prepared
from tracedb.sampling.operator_registry import find, shipped
from tracedb.sampling.recording import Outcome, Recorder, fault_of

OPERATORS = {
    "embedding", "layernorm", "RMSlayernorm", "linear1", "linear2", "linear3", "linear4", "linear_final", "flash_atten",
    "gelu", "swiglu", "RoPE", "res_add", "parallel_cross_entropy_128", "softmax", "fillmask", "baddbmm", "bmm",
    "qkv_gradients", "ScaledUpperTriangMaskedSoftmax", "moe", "expert_copies",
    "firstStage_optimizer", "middleStage_optimizer", "lastStage_optimizer",
}  # fmt: skip
SMALL = {
    "mp": 2, "b": 2, "h": 4, "l": 16, "dim": 32, "encoders": 1,
    "moe_num_experts": 4, "intermediate_size": 32, "top_k": 2,
}  # fmt: skip
CPU = torch.device("cpu")


def recorder(operator: Operator, dtype: Any = torch.float32) -> Recorder:
    """Return what runs an operator, on the processor."""
    return Recorder(
        operator, Configuration(Path("x.yml"), operator.name, (), (), None, wait=0, warmup=1, active=2), dtype, CPU
    )


def small(operator: Operator) -> dict[str, int]:
    """Return a small shape of an operator."""
    needs = operator.needs if {"dim", "h"} & set(operator.needs) else (*operator.needs, "dim")
    return {name: SMALL[name] for name in ("mp", *needs)}


class TestOperators:
    """The shipped ones, forward and backward."""

    def test_all_are_there(self) -> None:
        assert {name for name, operator in shipped().items() if not operator.is_model} == OPERATORS
        assert {name for name, operator in shipped().items() if operator.is_model} == {
            f"host_{kind}" for kind in LAYERS
        }

    @pytest.mark.parametrize("name", sorted(OPERATORS))
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
    def test_runs(self, name: str, dtype: Any) -> None:
        operator = shipped()[name]
        shape = small(operator)
        assert recorder(operator, dtype).invalid(shape) is None
        assert recorder(operator, dtype).once(shape) == Outcome(shape, "sampled")

    @pytest.mark.parametrize("name", sorted(name for name in OPERATORS if not name.endswith("_optimizer")))
    def test_backward_gives_every_leaf_a_gradient(self, name: str) -> None:
        prepared = shipped()[name].build(small(shipped()[name]), torch.float32, CPU)
        outputs = prepared.forward()
        sum(output.sum() for output in (outputs if isinstance(outputs, tuple) else (outputs,))).backward()
        assert [leaf.grad is not None and leaf.grad.shape == leaf.shape for leaf in prepared.leaves] == [True] * len(
            prepared.leaves
        )

    @pytest.mark.parametrize(
        ("name", "sizes"),
        [
            ("linear1", [(2, 16, 32), (48, 32)]),
            ("linear2", [(2, 16, 16), (32, 16)]),
            ("linear3", [(2, 16, 32), (64, 32)]),
            ("linear4", [(2, 16, 64), (32, 64)]),
            ("linear_final", [(2, 16, 32), (25_152, 32)]),
            ("embedding", [(25_152, 32)]),
            ("gelu", [(2, 16, 64)]),
            ("bmm", [(4, 16, 16), (4, 16, 128)]),
            ("flash_atten", [(2, 2, 16, 128)] * 3),
            ("parallel_cross_entropy_128", [(32, 25_152)]),
        ],
    )
    def test_sizes_are_one_ranks_share(self, name: str, sizes: list[tuple[int, ...]]) -> None:
        leaves = shipped()[name].build(small(shipped()[name]), torch.float32, CPU).leaves
        assert [tuple(leaf.shape) for leaf in leaves] == sizes

    @pytest.mark.parametrize(
        ("name", "sizes"),
        [
            ("linear1", [(2, 16, 32), (32, 32)]),
            ("linear3", [(2, 16, 32), (24, 32)]),
            ("linear4", [(2, 16, 24), (32, 24)]),
            ("gelu", [(2, 16, 24)]),
            ("swiglu", [(2, 16, 24)] * 2),
            ("flash_atten", [(2, 2, 16, 8), (2, 1, 16, 8), (2, 1, 16, 8)]),
            ("qkv_gradients", [(2, 16, 32)]),
        ],
    )
    def test_sizes_of_a_llama_like_layer(self, name: str, sizes: list[tuple[int, ...]]) -> None:
        """Four heads of width 8 over two ranks, of which two share a key and a value; an MLP of width 48."""
        shape = {"mp": 2, "b": 2, "h": 4, "kv": 2, "l": 16, "dim": 32, "ffn": 48}
        operator = shipped()[name]
        assert recorder(operator).once(shape) == Outcome(shape, "sampled")
        leaves = operator.build(shape, torch.float32, CPU).leaves
        assert [tuple(leaf.shape) for leaf in leaves] == sizes
        prepared = operator.build(shape, torch.float32, CPU)
        outputs = prepared.forward()
        moved = sum(t.numel() for t in (*prepared.leaves, *(outputs if isinstance(outputs, tuple) else (outputs,))))
        if name not in ("swiglu", "qkv_gradients"):  # several kernels, none
            assert work(name, "fwd", "fp16", shape)[1] == 2 * moved

    def test_grouped_attention_shares_keys_and_values(self) -> None:
        shape = {"b": 1, "h": 4, "kv": 2, "l": 8, "dim": 32}
        prepared = shipped()["flash_atten"].build(shape, torch.float32, CPU)
        query, key, value = prepared.leaves
        shared = (tensor.repeat_interleave(2, dim=1) for tensor in (key, value))
        expected = torch.nn.functional.scaled_dot_product_attention(query, *shared, is_causal=True)
        assert torch.allclose(prepared.forward(), expected, atol=1e-5)

    def test_masked_softmax_and_fillmask_hide_the_future(self) -> None:
        shape = {"mp": 1, "b": 1, "h": 1, "l": 4}
        weights = shipped()["ScaledUpperTriangMaskedSoftmax"].build(shape, torch.float32, CPU).forward()
        assert torch.equal(weights[0, 0].triu(1), torch.zeros(4, 4))
        assert torch.allclose(weights.sum(-1), torch.ones(1, 1, 4))
        assert (shipped()["fillmask"].build(shape, torch.float32, CPU).forward()[0, 0].triu(1) <= 0).all()

    def test_rotation_keeps_lengths(self) -> None:
        prepared = shipped()["RoPE"].build({"mp": 1, "b": 1, "h": 2, "l": 8}, torch.float32, CPU)
        turned = prepared.forward()
        assert torch.allclose(turned.norm(dim=-1), prepared.leaves[0].norm(dim=-1), atol=1e-4)
        assert not torch.allclose(turned, prepared.leaves[0])

    def test_every_routed_token_is_worked_on_once_where_all_experts_are_local(self) -> None:
        shape = {**SMALL, "mp": 1, "top_k": 4}
        prepared = shipped()["moe"].build(shape, torch.float32, CPU)
        x, _, up, down = prepared.leaves
        with torch.no_grad():
            up.copy_(up[:1].expand_as(up))
            down.copy_(down[:1].expand_as(down))
        # All experts are alike and all are chosen, so their weights sum to 1: the layer is one expert.
        alone = torch.nn.functional.gelu(x @ up[0]) @ down[0]
        assert torch.allclose(prepared.forward(), alone, atol=1e-2, rtol=1e-3)

    @pytest.mark.parametrize(
        ("name", "change", "words"),
        [
            ("linear1", {"mp": 5}, "dim 32 is not divisible by mp 5"),
            ("bmm", {"mp": 8}, "h 4 is not divisible by mp 8"),
            ("flash_atten", {"dim": 30}, "dim 30 is not divisible by h 4"),
            ("linear3", {"kv": 2}, "kv needs h in columns_name"),
            ("flash_atten", {"kv": 3}, "kv 3 is not divisible by mp 2"),
            ("flash_atten", {"mp": 1, "kv": 3}, "h 4 is not divisible by kv 3"),
            ("linear3", {"ffn": 47}, "ffn 47 is not divisible by mp 2"),
            ("flash_atten", {"dim": 4096}, "the flash backend supports heads up to 256, not 1024"),
            ("RoPE", {"dim": 12}, "heads of 3 do not split in halves"),
            ("moe", {"moe_num_experts": 5, "mp": 1}, "128 routed tokens cannot be divided evenly among 5 experts"),
            ("moe", {"top_k": 8}, "top_k 8 is more than moe_num_experts 4"),
            ("moe", {"intermediate_size": 129}, "intermediate_size 129 is more than four times dim 32"),
            ("lastStage_optimizer", {"mp": 5, "dim": 35}, "vocabulary 50304 is not divisible by mp 5"),
        ],
    )
    def test_shapes_that_do_not_exist(self, name: str, change: dict[str, int], words: str) -> None:
        operator = shipped()[name]
        if "top_k" in change or "moe_num_experts" in change:
            change = {"b": 4, **change}
        assert recorder(operator).invalid({**small(operator), **change}) is not None
        assert words in str(recorder(operator).invalid({**small(operator), **change}))

    def test_a_missing_parameter_is_named(self) -> None:
        assert recorder(shipped()["linear2"]).invalid({"mp": 1, "b": 1}) == "linear2 needs l, dim in columns_name"
        assert recorder(shipped()["linear1"]).invalid({"mp": 1, "b": 1, "l": 1}) == "needs dim or h in columns_name"


INTERRUPTING = """
import os
import signal

import torch
from tracedb.sampling.operator import Operator, Prepared

def build(shape, dtype, device):
    if shape["l"] == 8:
        os.kill(os.getpid(), signal.SIGINT)
    x = torch.ones(shape["l"], dtype=dtype, device=device, requires_grad=True)
    return Prepared(forward=lambda: -x, leaves=[x])

interrupting = Operator("interrupting", build, needs=("l",))
"""


def configuration(folder: Path, **change: object) -> Path:
    """Write the configuration of a sweep of four shapes, one of which does not exist."""
    content: Mapping[str, object] = {
        "kernel_name": "bmm",
        "columns_name": ["mp", "b", "h", "l", "F_dur(us)", "B_dur(us)"],
        "starts": [1, 1, 2, 8],
        "steps": [3, 2, 2, 8],
        "ends": [3, 1, 2, 16],
        "operators": ["mul", "mul", "mul", "add"],
        "wait": 0,
        "warmup": 1,
        "active": 3,
        "shapes": [1, 1, 2, 8],
        **change,
    }
    path = folder / "bmm.yml"
    path.write_text(json.dumps(content))
    return path


def sampled(database: Path, *arguments: str | Path) -> dict[str, Any]:
    """Run ``tracedb sample`` on the processor; returns the one row that it prints."""
    done = run(
        "-q", "sample", *arguments, "--db", database, "--device", "cpu", "--precision", "fp32", "--format", "json"
    )
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)["rows"]
    assert isinstance(row, dict)
    return row


def ask(database: Path, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query."""
    with duckdb.connect(str(database), read_only=True) as connection:
        return connection.execute(query).fetchall()


class TestCommand:
    """Sweeps into a database."""

    def test_a_sweep_its_resumption_and_its_parts(self, tmp_path: Path) -> None:
        config, database = configuration(tmp_path), tmp_path / "s.duckdb"
        first = sampled(database, config, "--parts", "2", "--part", "2")
        assert {key: first[key] for key in ("sampled", "invalid", "known", "captures")} == {
            "sampled": 1, "invalid": 1, "known": 0, "captures": 1,
        }  # fmt: skip
        second = sampled(database, config)
        assert {key: second[key] for key in ("sampled", "invalid", "known", "captures")} == {
            "sampled": 1, "invalid": 1, "known": 2, "captures": 1,
        }  # fmt: skip
        third = sampled(database, config)
        assert (third["sampled"], third["known"], third["captures"]) == (0, 4, 0)
        assert ask(
            database,
            """SELECT shape['mp'], shape['l'], status, detail, capture_id FROM main.sample_status
            ORDER BY ALL""",
        ) == [
            (1, 8, "sampled", None, 2),
            (1, 16, "sampled", None, 1),
            (3, 8, "invalid", "h 2 is not divisible by mp 3", None),
            (3, 16, "invalid", "h 2 is not divisible by mp 3", None),
        ]
        ranges = ask(
            database,
            """SELECT capture_id, name, count(*) FROM main.annotation WHERE name LIKE '%|%' AND style = 'user'
            GROUP BY ALL ORDER BY ALL""",
        )
        assert ranges == [
            (capture, f"{what}|bmm|mp=1|b=1|h=2|l={length}", 3)
            for capture, length in ((1, 16), (2, 8))
            for what in ("bwd", "fwd", "sample")
        ]
        assert ask(database, "SELECT DISTINCT status, labels['sampled'], labels['dtype'] FROM main.capture") == [
            ("no_gpu_activity", "bmm", "fp32")
        ]

    def test_the_log_is_appended_to(self, tmp_path: Path) -> None:
        log = tmp_path / "sample.log"
        log.write_text("before\n")
        sampled(tmp_path / "s.duckdb", configuration(tmp_path), "--log", log)
        first, *_, last = log.read_text().splitlines()
        assert first == "before"
        assert last[:4].isdigit() and "bmm fp32: 4 of 4 shapes" in last

    def test_an_interrupt_keeps_what_was_sampled(self, tmp_path: Path) -> None:
        """The shape with l=8 interrupts the process that runs it; l=16 is left to the next run."""
        (tmp_path / "own.py").write_text(INTERRUPTING)
        config = configuration(tmp_path, kernel_name="interrupting", module_name="own.py", ends=[1, 1, 2, 16])
        database = tmp_path / "s.duckdb"
        arguments: list[str | Path] = ["sample", config, "--db", database, "--device", "cpu", "--precision", "fp32"]
        done = run(*arguments)
        assert done.exit_code == 130, done.stderr
        assert "interrupting fp32 on cpu: 2 shapes to sample" in done.stderr
        assert "stopping after the shape that is running" in done.stderr
        assert "the shapes sampled so far are kept" in done.stderr
        assert ask(database, "SELECT shape['l'], status FROM main.sample_status") == [(8, "sampled")]
        assert ask(database, "SELECT count(*) FROM main.annotation WHERE name LIKE 'fwd|%' AND style = 'user'") == [
            (3,)
        ]
        done = run(*arguments)
        assert done.exit_code == 0, done.stderr
        assert ask(database, "SELECT shape['l'], status FROM main.sample_status ORDER BY ALL") == [
            (8, "sampled"),
            (16, "sampled"),
        ]

    def test_a_log_that_cannot_be_written_ends_the_command_at_once(self, tmp_path: Path) -> None:
        database = tmp_path / "s.duckdb"
        done = run("sample", configuration(tmp_path), "--db", database, "--log", tmp_path / "no" / "x.log")
        assert (done.exit_code, "cannot be written" in done.stderr) == (1, True)
        assert not database.exists()

    def test_one_shape_with_its_trace_kept(self, tmp_path: Path) -> None:
        config, traces = configuration(tmp_path), tmp_path / "traces"
        row = sampled(tmp_path / "s.duckdb", config, "--run", "get_one", "--keep-traces", traces)
        assert (row["sampled"], row["operator"], row["device"]) == (1, "bmm", "cpu")
        assert [path.name for path in traces.iterdir()] == ["bmm_fp32_00000.json.gz"]

    def test_profiling_alone_leaves_no_database(self, tmp_path: Path) -> None:
        config, database = configuration(tmp_path, run="get_profiler"), tmp_path / "s.duckdb"
        done = run("sample", config, "--db", database, "--device", "cpu", "--keep-traces", tmp_path / "traces")
        assert done.exit_code == 0
        assert (tmp_path / "traces" / "bmm_fp16.json.gz").stat().st_size > 1000
        assert f"wrote {tmp_path / 'traces' / 'bmm_fp16.json.gz'}" in done.stderr
        assert not database.exists()

    def test_running_the_function_alone(self, tmp_path: Path) -> None:
        done = run("sample", configuration(tmp_path), "--device", "cpu", "--run", "run_function")
        assert (done.exit_code, done.stdout) == (0, "")
        assert "bmm ran once" in done.stderr

    @pytest.mark.parametrize(
        ("options", "words", "code"),
        [
            (["--device", "cuda:99"], "PyTorch sees", 1),
            (["--device", "tpu"], "tpu", 1),
            (["--device", "cpu", "--part", "3", "--parts", "2"], "parts are numbered from 1 to 2", 2),
        ],
    )
    def test_what_is_wrong_is_said(self, tmp_path: Path, options: list[str], words: str, code: int) -> None:
        done = run("sample", configuration(tmp_path), "--db", tmp_path / "s.duckdb", *options)
        assert (words in done.stderr, done.exit_code) == (True, code)

    def test_no_gpu_is_said(self, tmp_path: Path) -> None:
        if torch.cuda.is_available():
            pytest.skip("there is a GPU")
        done = run("sample", configuration(tmp_path), "--db", tmp_path / "s.duckdb")
        assert "PyTorch sees no GPU here; --device cpu" in done.stderr

    def test_an_unknown_operator_is_named_with_those_that_there_are(self, tmp_path: Path) -> None:
        config = configuration(tmp_path, kernel_name="conv")
        done = run("sample", config, "--db", tmp_path / "s.duckdb", "--device", "cpu")
        assert "there is no operator 'conv'; shipped are embedding, layernorm" in done.stderr


class TestFailures:
    """Shapes that fail are rows; the others go on."""

    @staticmethod
    def outcomes(operator: Operator, trace: Path) -> list[Outcome]:
        """Run two shapes, b=1 and b=2."""
        return recorder(operator).profile([{"b": 1}, {"b": 2}], trace)

    def test_out_of_memory_is_tried_again_with_all_memory_free_and_then_written_down(self, tmp_path: Path) -> None:
        tries = []

        def build(shape: dict[str, int], dtype: Any, device: Any) -> Prepared:
            tries.append(shape["b"])
            return Prepared(lambda: torch.empty(2**45 if shape["b"] == 1 else 1, requires_grad=True) * 1)

        found = self.outcomes(Operator("huge", build), tmp_path / "t.json")
        assert [outcome.status for outcome in found] == ["out_of_memory", "sampled"]
        assert tries == [1, 1, 2]

    def test_an_error_is_written_down(self, tmp_path: Path) -> None:
        def build(shape: dict[str, int], dtype: Any, device: Any) -> Prepared:
            x = torch.ones(shape["b"], requires_grad=True)
            return Prepared(lambda: x.view(2) * 1, [x])

        first, second = self.outcomes(Operator("odd", build), tmp_path / "t.json")
        assert (first.status, second.status) == ("error", "sampled")
        assert "RuntimeError: shape '[2]' is invalid" in str(first.detail)

    def test_a_lost_gpu_ends_the_sweep(self) -> None:
        def build(shape: dict[str, int], dtype: Any, device: Any) -> Prepared:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

        with pytest.raises(TracedbError, match="the GPU cannot be used any more by this process"):
            recorder(Operator("bad", build)).once({"b": 1})

    def test_a_failed_shape_is_run_again_on_request_only(self, tmp_path: Path) -> None:
        (tmp_path / "mine.py").write_text(
            "import torch\n"
            "from tracedb.sampling.operator import Operator, Prepared\n"
            "def build(shape, dtype, device):\n"
            "    if shape['l'] == 8:\n"
            "        raise ValueError('not today')\n"
            "    x = torch.ones(shape['l'], requires_grad=True)\n"
            "    return Prepared(lambda: x * 2, [x])\n"
            "bmm = Operator('double', build, needs=('l',))\n"
        )
        config, database = configuration(tmp_path, module_name="mine", ends=[1, 1, 2, 16]), tmp_path / "s.duckdb"
        first = sampled(database, config)
        assert (first["operator"], first["sampled"], first["error"]) == ("double", 1, 1)
        again = sampled(database, config)
        assert (again["error"], again["known"]) == (0, 2)
        retried = sampled(database, config, "--retry-failed")
        assert (retried["error"], retried["known"]) == (1, 1)
        assert ask(database, "SELECT DISTINCT detail FROM main.sample_status WHERE status = 'error'") == [
            ("ValueError: not today",)
        ]


class TestOwnOperators:
    """Operators of others: from a Python file, and by entry point."""

    def test_a_function_of_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "mine.py").write_text(
            "import torch\n"
            "from tracedb.sampling.operator import Prepared\n"
            "def triple(shape, dtype, device):\n"
            "    x = torch.ones(shape['b'], requires_grad=True)\n"
            "    return Prepared(lambda: 3 * x, [x])\n"
        )
        found = find("triple", "mine.py", None, tmp_path)
        assert found.name == "triple"
        assert recorder(found).once({"b": 2}).status == "sampled"

    def test_an_installed_one_comes_first(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = tmp_path / "own-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1\n")
        (folder / "entry_points.txt").write_text("[tracedb.operators]\ngelu = own_gelu:operator\n")
        (tmp_path / "own_gelu.py").write_text(
            "from tracedb.sampling.operator import Operator\noperator = Operator('own_gelu', lambda *given: None)\n"
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        assert find("gelu", "target_functions", "gelu", tmp_path).name == "own_gelu"

    @pytest.mark.parametrize(
        ("text", "words"),
        [("", "has no 'mine'"), ("mine = 3", "operator 'mine' is a int, expected")],
    )
    def test_a_file_without_it(self, tmp_path: Path, text: str, words: str) -> None:
        (tmp_path / "own.py").write_text(text)
        with pytest.raises(TracedbError, match=words):
            find("mine", "own.py", None, tmp_path)

    def test_no_such_file(self, tmp_path: Path) -> None:
        with pytest.raises(TracedbError, match="no such Python file"):
            find("mine", "none.py", None, tmp_path)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"), "out_of_memory"),
        (MemoryError(), "out_of_memory"),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), "lost"),
        (RuntimeError("expected a memory format"), "failed"),
    ],
)
def test_what_a_fault_means(error: Exception, kind: str) -> None:
    """Each message speaks of memory; only two are about its size."""
    assert fault_of(error).kind == kind
