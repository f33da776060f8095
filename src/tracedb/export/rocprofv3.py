"""Input files of rocprofv3 (``-i``): the kernels to count, as regular expressions that match only them.

The tool searches for its expressions (ECMAScript) in the demangled name, so they are anchored, and only special
characters are escaped: that grammar allows no other escapes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from tracedb.errors import UsageError

GUIDE_COUNTERS = ("SQ_BUSY_CU_CYCLES", "SQ_WAVES", "SQ_WAVE_CYCLES", "SQ_INSTS_MFMA")
FORMATS = ("csv", "json", "pftrace", "otf2", "rocpd")
SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}]")
DESCRIPTOR = re.compile(r"(?: \[clone \.kd\]|\.kd)$")
"""Suffix that other tools append to a kernel's name, and rocprofv3 does not."""
ANONYMOUS = "(anonymous namespace)"
ALTERNATIVE = re.compile(r"(?<=^\"\^\()(?! )|(?<=\|)(?! )")
"""Where a line may end in an expression written as JSON: before an alternative."""
FOLD = "\\\\\n      "
BRACKETS = {"<": ">", "(": ")", "[": "]", "{": "}"}

_TEXTS = """kernel_include_regex kernel_exclude_regex kernel_iteration_range pmc_group_interval summary_output_file
    output_file output_directory log_level preload pc_sampling_unit pc_sampling_method pc_sampling_interval agent_index
    att_target_cu att_shader_engine_mask att_simd_select att_buffer_size att_perfcounters att_perfcounter_ctrl"""
_FLAGS = """hip_trace hip_runtime_trace hip_compiler_trace marker_trace kernel_trace memory_copy_trace
    memory_allocation_trace scratch_memory_trace rccl_trace rocdecode_trace rocjpeg_trace hsa_trace hsa_core_trace
    hsa_amd_trace hsa_finalize_trace hsa_image_trace runtime_trace sys_trace stats summary summary_per_domain
    mangled_kernels truncate_kernels kernel_rename minimum-output-data disable-signal-handlers
    pc-sampling-beta-enabled advanced_thread_trace"""
_LISTS = "pmc pmc_groups summary_groups output_format"
JOB: Mapping[str, type] = {
    **dict.fromkeys(_TEXTS.split(), str),
    **dict.fromkeys(_FLAGS.split(), bool),
    **dict.fromkeys(_LISTS.split(), list),
}
"""The allowed keys of a job, with the types of their values."""

Job = Mapping[str, str | bool | list[str]]


def job(
    names: Sequence[str],
    counters: Sequence[str] = GUIDE_COUNTERS,
    formats: Sequence[str] = ("csv", "json"),
    families: bool = False,
) -> Job:
    """Return the job that counts these kernels. Raises ``UsageError`` for values that rocprofv3 would reject."""
    made: Job = {
        "kernel_include_regex": expression(names, families),
        "kernel_trace": True,
        "pmc": list(counters),
        "output_format": list(formats),
    }
    check(made)
    return made


def check(made: Job) -> None:
    """Raise ``UsageError`` unless a job holds only keys, types and values that rocprofv3 knows."""
    for key, value in made.items():
        if key not in JOB:
            raise UsageError(f"rocprofv3 knows no {key!r} in a job")
        if not isinstance(value, JOB[key]):
            raise UsageError(f"{key} of a job is {JOB[key].__name__}, not {value!r}")
    for counter in made.get("pmc", []) if isinstance(made.get("pmc"), list) else []:  # type: ignore[union-attr]
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*(?:\[\d+\])?(?::device=\d+)?", counter):
            raise UsageError(f"{counter!r} is not the name of a counter, such as SQ_WAVES")
    unknown = [name for name in made.get("output_format", []) if name not in FORMATS]  # type: ignore[union-attr]
    if unknown:
        raise UsageError(f"rocprofv3 writes no {unknown[0]!r}; it writes: {', '.join(FORMATS)}")


def expression(names: Sequence[str], families: bool = False) -> str:
    """Return the expression that matches only these names; with ``families`` also their other template instances."""
    parts = [family(name) if families else escaped(DESCRIPTOR.sub("", name)) for name in names]
    return f"^({'|'.join(dict.fromkeys(parts))})$"


def escaped(text: str) -> str:
    """Return the expression that matches a text literally."""
    return SPECIAL.sub(r"\\\g<0>", text)


def family(name: str) -> str:
    """Return the expression for every kernel that differs from this one in template arguments and parameters only.

    A name without either, such as those of Tensile, matches only itself.
    """
    bare = base(name)
    whole = DESCRIPTOR.sub("", name)
    if bare == whole:
        return escaped(whole)
    return rf"(.* )?{escaped(bare)}(<.*>)?(\(.*\))?"


def base(name: str) -> str:
    """Return the qualified name of a kernel, without its return type, template arguments and parameters."""
    text = DESCRIPTOR.sub("", name).replace(ANONYMOUS, "\0")
    opened, kept = list[str](), list[str]()
    for letter in text:
        if letter == "(" and not opened and not "".join(kept).endswith("operator"):
            break
        if letter in BRACKETS:
            opened.append(BRACKETS[letter])
        elif opened and letter == opened[-1]:
            opened.pop()
        elif not opened:
            kept.append(letter)
    words = "".join(kept).split(" ")
    last = next((word for word in reversed(words) if word), "")
    return last.replace("\0", ANONYMOUS)


def text(made: Job, about: str) -> str:
    """Return the job as YAML; texts and lists are written as JSON, which is valid YAML.

    Regular expressions are folded: each alternative is on a line of its own, and YAML joins the lines again.
    """
    lines = [f"# {about}", "jobs:"]
    for number, (key, value) in enumerate(made.items()):
        written = json.dumps(value, ensure_ascii=False)
        if key.endswith("_regex"):
            written = ALTERNATIVE.sub(FOLD, written)
        lines.append(f"  {'  ' if number else '- '}{key}: {written}")
    return "\n".join(lines) + "\n"
