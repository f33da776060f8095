"""Agents (CPUs and GPUs), and their mapping to the GPU numbers of a process."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tracedb.ingester.rows import Device, device_rows

LABEL = re.compile(r"(?:(agent|gpu|cpu)\s*)?(\d{1,20})", re.IGNORECASE | re.ASCII)
HANDLE = 1 << 16
"""Numbers from here on are agent handles that agent_info does not list."""
MOST_GPUS = 1 << 15


@dataclass(frozen=True)
class Agent:
    """A CPU or GPU as recorded."""

    is_gpu: bool
    node_id: int
    logical_id: int
    name: str | None = None
    product: str | None = None
    vendor: str | None = None
    cu_count: int | None = None
    clock_mhz: int | None = None
    memory_bytes: int | None = None
    uuid: str | None = None
    gpu: int | None = None
    """Index among the GPUs, if recorded."""


def agent_of(row: Mapping[str, str]) -> Agent | None:
    """Return the agent for a row of agent_info; None without a node id."""
    node = _number(row.get("node_id"))
    if node is None:
        return None
    logical = _number(row.get("logical_node_id"))
    return Agent(
        is_gpu=row.get("agent_type", "").upper() == "GPU",
        node_id=node,
        logical_id=node if logical is None else logical,
        name=row.get("name") or None,
        product=row.get("product_name") or None,
        vendor=row.get("vendor_name") or None,
        cu_count=_number(row.get("cu_count")) or None,
        clock_mhz=_number(row.get("max_engine_clk_fcompute")) or None,
        memory_bytes=_number(row.get("local_mem_size")) or None,
    )


def _number(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"\d{1,18}", text) else None


def ordinals(agents: Iterable[Agent]) -> dict[int, Agent]:
    """Return the GPUs by the number under which the process sees them."""
    gpus = sorted((agent for agent in agents if agent.is_gpu), key=lambda agent: (agent.logical_id, agent.node_id))
    if all(agent.gpu is not None for agent in gpus):
        return {int(agent.gpu or 0): agent for agent in gpus}
    return dict(enumerate(gpus))


def gpus_of(labels: Iterable[str], agents: Sequence[Agent]) -> tuple[dict[str, int], list[str], list[str]]:
    """Return the GPU for each agent label, the labels for which this is a guess, and the unknown labels.

    ``Agent 4`` is a logical node id, or with ``--agent-index=absolute`` a node id; a bare number is a node id; ``GPU
    3`` is the index among the GPUs. Labels of CPUs are left out. Labels are guessed by their order if no agents are
    known, or if they are handles; a label missing from the known agents is unknown.
    """
    unknown: list[str] = []
    found: dict[str, int] = {}
    open_labels: list[tuple[int, str]] = []
    known = {id(agent): number for number, agent in ordinals(agents).items()}
    parts = {label: LABEL.fullmatch(label.strip()) for label in labels if label.strip()}
    wanted = {int(match[2]) for match in parts.values() if match and (match[1] or "agent").lower() == "agent"}
    by_logical = {agent.logical_id: agent for agent in agents}
    by_node = {agent.node_id: agent for agent in agents}
    for label, match in parts.items():
        kind, number = ((match[1] or "").lower(), int(match[2])) if match else ("", 0)
        if kind == "cpu":
            continue
        if match is None or (kind and number >= MOST_GPUS):
            unknown.append(label)
            continue
        if kind == "gpu":
            found[label] = number
            continue
        first, second = (by_logical, by_node) if kind else (by_node, by_logical)
        table = first if wanted <= set(first) else second
        agent = table.get(number)
        if agent is None and agents and number < HANDLE:
            unknown.append(label)
        elif agent is None:
            open_labels.append((number, label))
        elif id(agent) in known:
            found[label] = known[id(agent)]
    free = [number for number in range(len(found) + len(open_labels)) if number not in found.values()]
    guessed = [label for _, label in sorted(open_labels)]
    found.update(zip(guessed, free, strict=False))
    return found, guessed, sorted(unknown)


def devices(agents: Iterable[Agent], used: Iterable[int], vendor: str | None) -> pa.Table:
    """Return the rows of ``device``: the GPUs visible to the process and those that it used.

    ``vendor``: for GPUs whose vendor is not recorded.
    """
    known = ordinals(agents)
    busy = set(used)
    return device_rows(_device(number, known.get(number), number in busy, vendor) for number in sorted({*known, *busy}))


def _vendor(text: str) -> str:
    """Return a vendor name as tracedb spells it."""
    return "AMD" if re.search(r"\bAMD\b|Advanced Micro Devices", text) else text


def _positive(value: Any, bits: int) -> int | None:
    """Return a recorded number that fits so many bits; None for 0 and for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << bits else None


def _device(number: int, agent: Agent | None, is_used: bool, vendor: str | None) -> Device:
    if agent is None:
        return Device(number, is_used, vendor)
    return Device(
        device_id=number,
        is_used=is_used,
        vendor=_vendor(agent.vendor) if agent.vendor else vendor,
        name=agent.product,
        sm_count=_positive(agent.cu_count, 31),
        max_clock_mhz=_positive(agent.clock_mhz, 31),
        memory_bytes=_positive(agent.memory_bytes, 63),
        uuid=agent.uuid,
        arch=agent.name,
    )
