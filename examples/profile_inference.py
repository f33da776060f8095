"""Profile the inference of a decoder: prefill and decode marked, with input shapes.

    python examples/profile_inference.py --model llama -o profile/llama
    torchrun --nproc-per-node 2 examples/profile_inference.py --model bloom -o profile/bloom_tp2
    tracedb ingest profile/llama --db run.duckdb
    tracedb replay --db run.duckdb --range prefill --measured profile/llama/passes.csv

Started by torchrun, the built-in models are shared out over the ranks (tensor parallelism). ``--model`` may also be a
model of the package transformers that lies in its local cache or in a folder; that one runs on one rank.

Written: rank*/trace_rank*.json.gz, passes.csv (wall time and energy of each pass without the profiler).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from pass_meter import PassMeter
from small_models import Cache, Decoder, Size

Generate = Callable[[], None]


def device_of(rank: int, wanted: str | None) -> torch.device:
    """Return this rank's device."""
    if wanted == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


class Passes:
    """The two passes of a built-in decoder."""

    def __init__(self, given: argparse.Namespace, device: torch.device, rank: int, ranks: int) -> None:
        size = Size(given.layers, given.hidden, given.heads, given.kv_heads or given.heads, given.vocabulary, ranks)
        torch.manual_seed(0)
        self.model = Decoder(given.model, size, rank).to(device, getattr(torch, given.dtype)).eval()
        self.prompt = torch.randint(0, given.vocabulary, (given.batch, given.prompt), device=device)
        self.kept: Cache = []

    def prefill(self) -> torch.Tensor:
        """Read the prompt and return the next token of each sequence."""
        self.kept = []
        return self.model(self.prompt, self.kept)[:, -1:].argmax(-1)

    def decode(self, token: torch.Tensor) -> torch.Tensor:
        """Read one token more and return the next one."""
        return self.model(token, self.kept)[:, -1:].argmax(-1)

    def rewind(self, tokens: int) -> None:
        """Forget what came after so many tokens."""
        self.kept = [(key[:, :, :tokens], value[:, :, :tokens]) for key, value in self.kept]


class TransformersPasses:
    """The two passes of a model of the package transformers."""

    def __init__(self, given: argparse.Namespace, device: torch.device) -> None:
        from transformers import AutoModelForCausalLM  # type: ignore[import-not-found, import-untyped, unused-ignore]

        dtype = getattr(torch, given.dtype)
        self.model = AutoModelForCausalLM.from_pretrained(given.model, local_files_only=True).to(device, dtype).eval()
        vocabulary = int(self.model.config.vocab_size)
        self.prompt = torch.randint(0, vocabulary, (given.batch, given.prompt), device=device)
        self.kept: Any = None

    def prefill(self) -> torch.Tensor:
        """Read the prompt and return the next token of each sequence."""
        return self._step(self.prompt, None)

    def decode(self, token: torch.Tensor) -> torch.Tensor:
        """Read one token more and return the next one."""
        return self._step(token, self.kept)

    def rewind(self, tokens: int) -> None:
        """Forget what came after so many tokens."""
        self.kept.crop(tokens)

    def _step(self, tokens: torch.Tensor, kept: Any) -> torch.Tensor:
        answer = self.model(input_ids=tokens, past_key_values=kept, use_cache=True)
        self.kept = answer.past_key_values
        found: torch.Tensor = answer.logits[:, -1:].argmax(-1)
        return found


def wait(device: torch.device) -> None:
    """Wait for the device, so that a range holds all its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def generate(passes: Passes | TransformersPasses, device: torch.device, tokens: int) -> None:
    """Run a prefill and some decodes, each in a range of its own."""
    with record_function("prefill"):
        token = passes.prefill()
        wait(device)
    for _ in range(tokens):
        with record_function("decode"):
            token = passes.decode(token)
            wait(device)


def record(given: argparse.Namespace, rank: int, ranks: int) -> None:
    """Profile on this rank and write its files."""
    device = device_of(int(os.environ.get("LOCAL_RANK", rank)), given.device)
    is_built_in = given.model in ("bloom", "llama")
    passes = Passes(given, device, rank, ranks) if is_built_in else TransformersPasses(given, device)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    folder = given.output / f"rank{rank}"
    folder.mkdir(parents=True, exist_ok=True)
    with torch.inference_mode():
        for _ in range(given.warmup):
            generate(passes, device, given.tokens)
        steps: Any = schedule(wait=0, warmup=1, active=given.repeats, repeat=1)
        with profile(activities=activities, schedule=steps, record_shapes=True) as profiler:
            for number in range(1 + given.repeats):
                generate(passes, device, given.tokens)
                if number < given.repeats:  # a further step would end the recording and throw it away
                    profiler.step()
        profiler.export_chrome_trace(str(folder / f"trace_rank{rank}.json.gz"))
        if ranks == 1:  # loops of a fixed time would end at different passes on several ranks
            meter = PassMeter(device)
            meter.run("prefill", passes.prefill, given.measure_seconds)
            token = passes.prefill()
            length = given.prompt

            def decode() -> None:
                nonlocal token, length
                if length >= given.prompt + given.tokens:  # the cache must not grow beyond that of the recording
                    passes.rewind(given.prompt)
                    length = given.prompt
                token, length = passes.decode(token), length + 1

            meter.run("decode", decode, given.measure_seconds)
            meter.write(given.output / "passes.csv")
    print(f"rank {rank} of {ranks}: {folder}")


def main() -> None:
    """Read the options, join the other ranks if there are any, and record."""
    parser = argparse.ArgumentParser(description="Profile prefill and decode of a decoder.")
    parser.add_argument("--model", default="llama", help="bloom, llama, or a model of transformers on this machine")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--kv-heads", type=int, help="heads of key and value (llama); all if not given")
    parser.add_argument("--vocabulary", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--prompt", type=int, default=32, help="tokens of the prompt")
    parser.add_argument("--tokens", type=int, default=4, help="tokens to decode")
    parser.add_argument("--repeats", type=int, default=2, help="prefills to record, each with its decodes")
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--measure-seconds", type=float, default=1.0, help="time without the profiler, for each pass")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float16"])
    parser.add_argument("--device", choices=["cuda", "cpu"])
    parser.add_argument("-o", "--output", type=Path, default=Path("profile"))
    given = parser.parse_args()
    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if ranks > 1:
        use_gpu = torch.cuda.is_available() and given.device != "cpu"
        dist.init_process_group("nccl" if use_gpu else "gloo")
    record(given, rank, ranks)
    if ranks > 1:
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
