"""Recorded operators bound to PyTorch's schemas, and inputs made up for them; names and values are untrusted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
# ruff: noqa: E402
from tracedb.errors import TracedbError
from tracedb.replay import operators, tensors, values, variants
from tracedb.replay.operators import Form, Incomplete, bound, overloads
from tracedb.replay.probe import Bench, Trial
from tracedb.replay.recorded_passes import Signature
from tracedb.replay.tensors import Spec
from tracedb.replay.variants import Context

CPU = torch.device("cpu")
NOTHING = Context(["float32"], [])


def signature(name: str, *inputs: tuple[Any, str, Any, str], **other: Any) -> Signature:
    """An operator with inputs (dims, type, strides, value)."""
    dims, types, strides, texts = ([item[place] for item in inputs] for place in range(4))
    filled: dict[str, Any] = {
        "copy_kind": None, "bytes": None, "matrix_product": False, "kernels": None, "recorded_ns": 1.0,
        "share_percent": 1.0, **other,
    }  # fmt: skip
    return Signature(1, "operator", name, dims, types, strides, texts, **filled)


def tensor(dims: list[int], kind: str = "float", strides: list[int] | None = None) -> tuple[Any, str, Any, str]:
    return dims, kind, strides, ""


def scalar(text: str, kind: str = "Scalar") -> tuple[Any, str, Any, str]:
    return [], kind, [], text


def called(form: Form) -> Any:
    """What an operator returns on the processor."""
    with torch.no_grad():
        return form.call(lambda spec: tensors.make(spec, CPU))()


def first(item: Signature, around: Context = NOTHING) -> Form:
    return variants.of(item, around)[0]


class TestNames:
    """A name is looked up in the registry and nothing else."""

    @pytest.mark.parametrize(
        "name",
        [
            "os::system", "aten::mm; import os", "aten::__class__", "aten::__init__", "aten::mm.__globals__", "mm",
            "aten::", "prim::Print", "aten::no_such_operator", "torch.ops.aten.mm", "aten::mm\n", "",
        ],
    )  # fmt: skip
    def test_hostile_names_are_no_operators(self, name: str) -> None:
        assert overloads(name) == ()

    def test_overloads_of_torchscript_alone_are_left_out(self) -> None:
        names = {overload.name for overload in overloads("aten::add")}
        assert {"Tensor", "Scalar", "out"} <= names
        assert not {"t", "str", "int"} & names

    def test_operators_of_a_library_only_if_the_user_names_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert overloads("replay_test_operators::twice") == ()
        (tmp_path / "replay_test_operators.py").write_text(
            "import torch\n"
            "@torch.library.custom_op('replay_test_operators::twice', mutates_args=())\n"
            "def twice(x: torch.Tensor) -> torch.Tensor:\n"
            "    return 2 * x\n",
            encoding="utf-8",
        )
        monkeypatch.syspath_prepend(tmp_path)
        assert operators.load_library("replay_test_operators") == ["replay_test_operators"]
        assert called(first(signature("replay_test_operators::twice", tensor([3])))).shape == (3,)

    def test_module_that_is_no_library(self) -> None:
        with pytest.raises(TracedbError, match="cannot be imported"):
            operators.load_library("no_such_module_anywhere")
        with pytest.raises(TracedbError, match="registers no operators"):
            operators.load_library("colorsys")

    def test_texts_of_a_trace_are_never_arguments(self) -> None:
        """A recorded file name is not opened."""
        item = signature("aten::from_file", scalar("/etc/passwd", ""), scalar("False"), scalar("10"))
        with pytest.raises(Incomplete, match="filename"):
            bound(item)


class TestValues:
    """Scalars as text, by the type that the schema declares."""

    @pytest.mark.parametrize(
        ("text", "kind", "value"),
        [
            ("-1", "int", -1), ("8192", "SymInt", 8192), ("-inf", "number", float("-inf")), ("1.", "float", 1.0),
            ("0.099999999999999978", "number", 0.099999999999999978), ("False", "bool", False), ("2", "number", 2),
            ("[768]", "List[int]", [768]), ("[]", "List[int]", []), ("[True, False]", "List[bool]", [True, False]),
        ],
    )  # fmt: skip
    def test_reads(self, text: str, kind: str, value: Any) -> None:
        found = values.read(text, kind)
        assert found == value
        assert type(found) is type(value)

    def test_types_and_memory_formats_by_their_number(self) -> None:
        assert values.read("15", "ScalarType") is torch.bfloat16
        assert values.read("2", "MemoryFormat") is torch.channels_last

    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ("99", "ScalarType"), ("9" * 20, "int"), ("__import__('os')", "number"),
            ("(1,)", "List[int]"), ("maybe", "bool"), ("x", "str"), ("cuda:0", "Device"),
        ],
    )  # fmt: skip
    def test_refuses(self, text: str, kind: str) -> None:
        with pytest.raises((ValueError, OverflowError)):
            values.read(text, kind)

    def test_a_long_list_is_refused(self) -> None:
        with pytest.raises(ValueError, match="20001 values"):
            values.read("[" + "1," * 20_000 + "1]", "List[int]")


class TestInputs:
    """Operators of each kind run on inputs as recorded."""

    def test_product_with_strides(self) -> None:
        form = first(
            signature("aten::mm", tensor([3, 2], strides=[1, 3]), tensor([2, 4], "c10::BFloat16", strides=[4, 1]))
        )
        left, right = form.inputs.values()
        assert (left.dims, left.strides, left.dtype) == ((3, 2), (1, 3), "float32")
        assert right.dtype == "bfloat16"
        assert left.bytes == 24

    def test_keyword_arguments_that_are_recorded_in_their_place(self) -> None:
        form = first(signature("aten::addmm", tensor([4]), tensor([3, 2]), tensor([2, 4]), scalar("1"), scalar("2")))
        assert called(form).shape == (3, 4)
        assert (form.inputs["beta"], form.inputs["alpha"]) == (1, 2)

    def test_out_is_an_input(self) -> None:
        item = signature(
            "aten::addmm", tensor([4]), tensor([3, 2]), tensor([2, 4]), scalar("1"), scalar("1"), tensor([3, 4])
        )
        form = first(item)
        assert form.overload.name == "out"
        assert called(form).shape == (3, 4)

    def test_undefined_tensor_and_missing_text(self) -> None:
        backward = signature(
            "aten::native_layer_norm_backward", tensor([4, 8]), tensor([4, 8]), scalar("[8]", "ScalarList"),
            tensor([4, 1]), tensor([4, 1]), tensor([8]), ([], "", [], ""), scalar("[True, True, False]", "ScalarList"),
        )  # fmt: skip
        gradients = called(first(backward))
        assert gradients[0].shape == (4, 8)
        assert gradients[2] is None
        modes = variants.of(signature("aten::gelu", tensor([4]), ([], "", [], "")), NOTHING)
        assert [form.inputs["approximate"] for form in modes] == ["none", "tanh"]

    def test_a_python_number_is_a_tensor_of_the_host(self) -> None:
        forms = variants.of(signature("aten::div", tensor([4, 4]), tensor([], "double")), NOTHING)
        assert [form.inputs["other"].place for form in forms] == ["host", "device"]
        assert called(forms[0]).dtype == torch.float32

    @pytest.mark.parametrize(
        "item",
        [
            signature("aten::embedding", tensor([11, 4]), tensor([50], "long int"), scalar("-1"), scalar("False"),
                      scalar("False")),
            signature("aten::embedding_dense_backward", tensor([50, 4]), tensor([50], "long int"), scalar("11"),
                      scalar("-1"), scalar("False")),
            signature("aten::nll_loss_forward", tensor([50, 7]), tensor([50], "long int"), ([], "", [], ""),
                      scalar("1"), scalar("-100")),
            signature("aten::gather", tensor([9, 4]), scalar("0"), tensor([50, 4], "long int"), scalar("False")),
            signature("aten::index_select", tensor([9, 4]), scalar("-1"), tensor([50], "long int")),
            signature("aten::index_add_", tensor([9, 4]), scalar("0"), tensor([50], "long int"), tensor([50, 4]),
                      scalar("1")),
        ],
        ids=lambda item: item.name,
    )  # fmt: skip
    def test_indices_exist(self, item: Signature) -> None:
        """PyTorch raises for one that does not; on a GPU the process would be lost."""
        called(first(item))

    def test_lists_of_tensors_get_the_types_of_the_capture(self) -> None:
        dims, strides = [[2, 3], [4, 3]], [[3, 1], [3, 1]]
        item = signature("aten::cat", (dims, "TensorList", strides, ""), scalar("0"))
        forms = variants.of(item, Context(["bfloat16", "float32"], []))
        assert [called(form).dtype for form in forms] == [torch.bfloat16, torch.float32]
        assert called(forms[0]).shape == (6, 3)

    def test_long_lists_are_those_of_the_parameters(self) -> None:
        """Traces hold no shapes of lists of more than 30 tensors; the pass's gradients do."""
        lists: list[Any] = [([], "TensorList", [], "")] * 6
        numbers = [scalar(text) for text in ("0.0001", "0.9", "0.999", "0.01", "1e-08", "False", "False")]
        item = signature("aten::_fused_adamw_", *lists, *numbers, ([], "", [], ""), ([], "", [], ""))
        with pytest.raises(Incomplete, match="not recorded"):
            variants.of(item, NOTHING)
        around = Context(["float32"], [Spec((4, 2), None, "float32"), Spec((4,), None, "float32")])
        (form,) = variants.of(item, around)
        assert form.note is not None
        assert [len(form.inputs[name]) for name in ("self", "exp_avg_sqs", "max_exp_avg_sqs", "state_steps")] == [
            2, 2, 0, 2,
        ]  # fmt: skip
        called(form)

    def test_single_precision_products_may_have_used_tf32(self) -> None:
        item = signature("aten::mm", tensor([2, 2]), tensor([2, 2]), matrix_product=True)
        assert [form.tf32 for form in variants.of(item, NOTHING)] == [False, True]

    def test_the_device_is_the_one_that_replays(self) -> None:
        item = signature(
            "aten::to", tensor([4]), ([], "", [], ""), scalar("15"), scalar("False"), scalar("True"), ([], "", [], "")
        )
        assert called(first(item)).dtype == torch.bfloat16
        zeros = signature("aten::zeros", scalar("[3]", "ScalarList"), *[([], "", [], "")] * 4)
        assert called(first(zeros)).shape == (3,)

    @pytest.mark.parametrize("dims", [[-1], ["4"], [2**60], [True], "x", [[1]]])
    def test_odd_shapes_are_refused(self, dims: Any) -> None:
        with pytest.raises(Incomplete):
            bound(signature("aten::neg", (dims, "float", None, "")))

    def test_unknown_type_is_refused(self) -> None:
        with pytest.raises(Incomplete, match="c10::Nonsense"):
            bound(signature("aten::neg", tensor([4], "c10::Nonsense")))

    @pytest.mark.parametrize("kind", sorted(tensors.DTYPES))
    def test_every_known_type_is_made(self, kind: str) -> None:
        if not hasattr(torch, tensors.DTYPES[kind]):
            pytest.skip(f"this PyTorch has no {tensors.DTYPES[kind]}")
        made = tensors.make(Spec((3, 2), (1, 3), tensors.dtype_of(kind), "index", 3), CPU)
        assert made.stride() == (1, 3)

    def test_expanded_inputs_share_memory(self) -> None:
        spec = Spec((1000, 8), (0, 1), "float32")
        assert spec.bytes == 32
        assert tensors.make(spec, CPU).stride() == (0, 1)


class TestMemory:
    """What would not fit is refused before anything is allocated."""

    def outcome(self, item: Signature) -> Any:
        trial = Trial(1, 0, first(item))
        return Bench(CPU, None).probe([trial], None, 1)[trial.name]  # type: ignore[arg-type]

    def test_inputs(self) -> None:
        outcome = self.outcome(signature("aten::neg", tensor([2**40])))
        assert outcome.status == "too_large"
        assert "4,398,046,511,104 bytes" in outcome.detail

    def test_outputs(self) -> None:
        assert self.outcome(signature("aten::mm", tensor([2**20, 1]), tensor([1, 2**20]))).status == "too_large"
        assert self.outcome(signature("aten::repeat", tensor([8]), scalar("[1099511627776]", "ScalarList"))).status == (
            "too_large"
        )

    def test_what_pytorch_refuses_is_said_in_its_words(self) -> None:
        outcome = self.outcome(signature("aten::mm", tensor([2, 3]), tensor([2, 3])))
        assert outcome.status == "failed"
        assert outcome.detail.startswith("RuntimeError")

    def test_small_ones_run(self) -> None:
        outcome = self.outcome(signature("aten::mm", tensor([4, 4]), tensor([4, 4])))
        assert (outcome.status, outcome.bytes) == ("ran", 3 * 64)


def test_overload_with_defaults_that_a_later_version_added() -> None:
    """Older recordings have fewer inputs than the schema of today."""
    form = first(signature("aten::sum", tensor([4, 4])))
    assert called(form).shape == ()
    assert operators.overloads("aten::sum")
