"""The training step to predict: a YAML file of estimate-train-time, or a JSON list of models and their sizes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tracedb.errors import TracedbError
from tracedb.sampling.layer_kinds import GPT_LAYER
from tracedb.training_step.configuration_keys import StepKeys, is_size, unknown

SCHEDULES = ("afab", "1f1b", "lockstep")
OPERANDS = ("finite", "nan")
VOCABULARY = 50_304
HEAD_SIZES = ("pp", "mp", "dp", "b", "h", "l", "dim", "steps_per_update", "gpus_per_node")
"""The values of ``training_config``, in order."""


@dataclass(frozen=True)
class Step:
    """A training step: a model, its distribution over GPUs, and its schedule of micro-batches."""

    name: str
    gpu: str
    dtype: str
    layers: int
    dim: int
    heads: int
    length: int
    batch: int
    """Sequences of one micro-batch."""
    vocabulary: int = VOCABULARY
    pp: int = 1
    mp: int = 1
    dp: int = 1
    kv_heads: int | None = None
    """Heads of key and value; as many as of the query if None."""
    ffn: int | None = None
    """Width between the products of an MLP; four times dim if None."""
    experts: int = 1
    """Experts of a layer, over all ranks."""
    top_k: int = 1
    """Experts that each token goes to."""
    ep: int = 1
    """Replicas that share out the experts."""
    micro_batches: int = 1
    gpus_per_node: int = 1
    layer: tuple[str, ...] = GPT_LAYER
    norm: str = "layernorm"
    loss: str = "parallel_cross_entropy_128"
    schedule: str = "1f1b"
    recompute: bool = False
    zero1: bool = False
    fsdp: bool = False
    """Whether replicas shard weights, gradients and optimizer, and gather the weights layer by layer."""
    overlap: bool = False
    """Whether the gradients' all-reduce overlaps the last backward pass."""
    bucket: int = 1_260_000_000
    """Maximum number of elements of one all-reduce of gradients."""
    forward_syncs: int = 2
    backward_syncs: int = 2
    operands: str = "finite"
    """Operands of matrix products: nan if weights and optimizer are in fp16 alone (see ``recorded_effects``)."""
    ends_on_host: bool = True
    """Whether the host waits for the device at the end of a step, as it does to log the loss."""
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    """Clocks to predict the step at; those of the samples if None."""
    measured_ns: float | None = None
    trace: str | None = None
    """Name of the trace of this step, if there is one."""
    config: str | int | None = None
    """The step's own key in its file."""
    remarks: tuple[str, ...] = ()
    """What of its file is not used."""

    @property
    def shared_heads(self) -> int:
        """Heads of key and value."""
        return self.kv_heads or self.heads

    @property
    def inner(self) -> int:
        """Width between the products of an MLP."""
        return self.ffn or 4 * self.dim

    @property
    def key(self) -> str | int:
        """The step's name in the answer."""
        return self.name if self.config is None else self.config

    def stage_layers(self) -> list[int]:
        """Return the layers of each pipeline stage.

        As in estimate-train-time, the embedding counts as two layers and the head as three, and the middle stages take
        the rest.
        """
        if self.pp == 1:
            return [self.layers]
        blocks = self.layers + 5
        first = -(-blocks // self.pp) - 2
        last = blocks // self.pp - 3
        if self.pp == 2:
            first = self.layers - last
        middle = self.layers - first - last
        if min(first, last, middle) < 0:
            raise TracedbError(f"{self.name}: {self.layers} layers do not fill {self.pp} pipeline stages")
        share, extra = divmod(middle, max(self.pp - 2, 1))
        return [first, *(share + (place < extra) for place in range(self.pp - 2)), last]


def read(path: Path) -> list[Step]:
    """Return the steps described by a file. Raises ``TracedbError`` that names the fault."""
    if path.suffix == ".json":
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise TracedbError(f"{path}: cannot be read ({error.strerror}); name a configuration file") from error
        except ValueError as error:
            raise TracedbError(f"{path}: is not valid JSON ({error})") from error
        items = content if isinstance(content, list) else [content]
        return [_from_sizes(path, item, place) for place, item in enumerate(items)]
    from tracedb.sampling.configuration import read_mapping

    found = read_mapping(path)
    if "training_config" in found:
        return [_from_training_config(path, found)]
    return [_from_sizes(path, found, 0)]


def from_mapping(item: Mapping[str, object], place: int = 0) -> Step:
    """Return the step with these keys. Raises ``TracedbError`` that names the fault."""
    return _from_sizes(Path("configuration"), dict(item), place)


def _from_training_config(path: Path, found: Mapping[str, object]) -> Step:
    values = found["training_config"]
    if not isinstance(values, list) or len(values) != len(HEAD_SIZES) or not all(is_size(value) for value in values):
        raise TracedbError(f"{path}: training_config is {values!r}, expected nine sizes: {', '.join(HEAD_SIZES)}")
    sizes = dict(zip(HEAD_SIZES, values, strict=True))
    given = StepKeys(path, found)
    return _checked(
        path,
        Step(
            name=path.stem,
            gpu=given.text("gpu_name", ""),
            dtype=given.text("dtype", "fp16"),
            layers=given.size("encoders"),
            dim=sizes["dim"],
            heads=sizes["h"],
            length=sizes["l"],
            batch=sizes["b"],
            vocabulary=given.size("vocab", VOCABULARY),
            pp=sizes["pp"],
            mp=sizes["mp"],
            dp=sizes["dp"],
            micro_batches=sizes["steps_per_update"],
            gpus_per_node=sizes["gpus_per_node"],
            layer=given.names("encoder_function_list"),
            norm=given.text("layernorm_name", "layernorm"),
            schedule=given.text("schedule", "lockstep"),
            recompute=given.flag("recompute", True),
            zero1=given.flag("zero1", True),
            overlap=given.flag("overlap", False),
            operands=given.text("operands", "finite"),
            bucket=given.size("comm_bucket", 1_260_000_000),
            forward_syncs=given.size("fwd_syncs", 2),
            backward_syncs=given.size("bwd_syncs", 2),
        ),
    )


def _from_sizes(path: Path, item: object, place: int) -> Step:
    if not isinstance(item, dict):
        raise TracedbError(
            f"{path}: step {place} is {type(item).__name__}, expected an object with layers, dim, heads …"
        )
    given = StepKeys(path, item)
    return _checked(
        path,
        Step(
            name=str(item.get("config", place)),
            gpu=given.text("gpu", ""),
            dtype=given.text("dtype", "fp16"),
            layers=given.size("layers"),
            dim=given.size("dim"),
            heads=given.size("heads"),
            length=given.size("seq"),
            batch=given.size("batch"),
            vocabulary=given.size("vocab", VOCABULARY),
            pp=given.size("pp", 1),
            mp=given.size("mp", 1),
            dp=given.size("dp", 1),
            kv_heads=given.optional_size("kv_heads"),
            ffn=given.optional_size("ffn"),
            experts=given.size("experts", 1),
            top_k=given.size("top_k", 1),
            ep=given.size("ep", 1),
            micro_batches=given.size("micro_batches", 1),
            gpus_per_node=given.size("gpus_per_node", 8),
            layer=(layer := given.layer("layer")),
            norm=given.text("norm", _norm_of(layer)),
            schedule=given.text("schedule", "1f1b"),
            recompute=given.flag("recompute", False),
            zero1=given.flag("zero1", False),
            fsdp=given.flag("fsdp", False),
            overlap=given.flag("overlap", False),
            bucket=given.size("bucket", 1_260_000_000),
            operands=given.text("operands", "nan" if given.text("dtype", "fp16") == "fp16" else "finite"),
            ends_on_host=given.flag("ends_on_host", True),
            sm_clock_mhz=given.number("sm_clock_mhz"),
            memory_clock_mhz=given.number("memory_clock_mhz"),
            measured_ns=None if (measured := given.number("step_us_median")) is None else 1000.0 * measured,
            trace=None if item.get("trace") is None else given.text("trace", ""),
            config=key if isinstance(key := item.get("config", place), str | int) else place,
            remarks=tuple(f"step {item.get('config', place)}: {text} is not used" for text in unknown(item)),
        ),
    )


def _norm_of(layer: tuple[str, ...]) -> str:
    """Return the norm of a layer, which is also that before the head; none in a layer that has none."""
    return next((name for name in layer if "norm" in name), "layernorm")


def _checked(path: Path, step: Step) -> Step:
    if step.schedule not in SCHEDULES:
        raise TracedbError(f"{path}: schedule is {step.schedule!r}, expected one of {', '.join(SCHEDULES)}")
    if step.operands not in OPERANDS:
        raise TracedbError(f"{path}: operands is {step.operands!r}, expected finite or nan")
    if step.heads % step.mp or step.dim % step.heads or step.dim % step.mp:
        raise TracedbError(
            f"{path}: mp {step.mp} does not divide {step.heads} heads, or they do not divide dim {step.dim}"
        )
    if step.heads % step.shared_heads or step.shared_heads % step.mp:
        raise TracedbError(
            f"{path}: mp {step.mp} does not divide {step.shared_heads} kv_heads, or they do not divide "
            f"{step.heads} heads"
        )
    if step.inner % step.mp:
        raise TracedbError(f"{path}: mp {step.mp} does not divide ffn {step.inner}")
    if "moe" in step.layer:
        _check_experts(path, step)
    if step.fsdp and (step.pp > 1 or step.zero1 or step.overlap):
        raise TracedbError(f"{path}: fsdp is not predicted together with pp, zero1 or overlap; leave these out")
    step.stage_layers()
    return step


def _check_experts(path: Path, step: Step) -> None:
    if step.experts % step.ep or step.dp % step.ep:
        raise TracedbError(f"{path}: ep {step.ep} does not divide {step.experts} experts, or dp {step.dp}")
    if step.top_k > step.experts // step.ep or step.batch * step.length * step.top_k % step.experts:
        raise TracedbError(
            f"{path}: top_k {step.top_k} is more than the experts of a rank, or its tokens cannot be divided evenly "
            f"among {step.experts} experts"
        )
