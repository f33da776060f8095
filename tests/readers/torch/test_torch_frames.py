"""Python frames and modules: rows of ``frame``, by both readers and both linkers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.readings import read
from support.traces import MAIN_THREAD, PROCESS, Event, kernel, launched, write
from tracedb_torch import staging
from tracedb_torch.link.frames import without_home


def frame(number: int | None, parent: int | None, ts: float, dur: float | None, name: str, **more: Any) -> Event:
    args = {"Python id": number, "Python parent id": parent, **more}
    args = {key: value for key, value in args.items() if value is not None or key == "Python parent id"}
    times = {"ts": ts} if dur is None else {"ts": ts, "dur": dur}
    return {
        "ph": "X",
        "cat": "python_function",
        "name": name,
        "pid": PROCESS,
        "tid": MAIN_THREAD,
        **times,
        "args": args,
    }


STACK = (
    frame(1, None, 1, 90, "train.py(10): <module>"),
    frame(2, 1, 2, 50, "nn.Module: GPT_0"),
    frame(3, 2, 3, 40, "torch/nn/modules/module.py(1783): _call_impl"),
    frame(4, 3, 4, 30, "nn.Module: Block_0"),
    frame(5, 4, 5, 20, "gpt.py(16): forward"),
    frame(6, 5, 6, 1, "<built-in method softmax>"),
    frame(7, 3, 40, 2, "nn.Module: Block_1"),
    frame(8, 77, 60, 2, "lost.py(1): caller"),
    frame(9, 9, 63, 2, "circle.py(1): itself"),
    frame(11, 12, 66, 2, "circle.py(2): one"),
    frame(12, 11, 66, 2, "circle.py(3): other"),
    frame(None, None, 70, 2, "old.py(1): without ids"),
    frame(13, 1, 75, None, "open.py(1): end"),
)


@pytest.mark.parametrize("way", ["held", "staged", "python"])
def test_parents_files_and_modules(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "staged":
        monkeypatch.setattr(staging, "HELD_BYTES", 0)
    if way == "python":
        monkeypatch.setenv("TRACEDB_READER", "python")
    found = read(write(tmp_path / "x.json", [*launched(1), *STACK, kernel(90, 2)]))
    rows = found.tables["frame"]
    name_of = {row["frame_id"]: row["name"] for row in rows}
    seen = {
        row["name"]: (row["kind"], row["file"], row["line"], name_of.get(row["parent_id"]), row["module_path"])
        for row in rows
    }
    assert seen == {
        "train.py(10): <module>": ("function", "train.py", 10, None, None),
        "nn.Module: GPT_0": ("module", None, None, "train.py(10): <module>", "GPT_0"),
        "torch/nn/modules/module.py(1783): _call_impl": (
            *("function", "torch/nn/modules/module.py", 1783, "nn.Module: GPT_0", "GPT_0"),
        ),
        "nn.Module: Block_0": (
            *("module", None, None, "torch/nn/modules/module.py(1783): _call_impl", "GPT_0.Block_0"),
        ),
        "gpt.py(16): forward": ("function", "gpt.py", 16, "nn.Module: Block_0", "GPT_0.Block_0"),
        "<built-in method softmax>": ("function", None, None, "gpt.py(16): forward", "GPT_0.Block_0"),
        "nn.Module: Block_1": (
            *("module", None, None, "torch/nn/modules/module.py(1783): _call_impl", "GPT_0.Block_1"),
        ),
        "lost.py(1): caller": ("function", "lost.py", 1, None, None),
        "circle.py(1): itself": ("function", "circle.py", 1, None, None),
        "circle.py(2): one": ("function", "circle.py", 2, "circle.py(3): other", None),
        "circle.py(3): other": ("function", "circle.py", 3, "circle.py(2): one", None),
        "old.py(1): without ids": ("function", "old.py", 1, None, None),
        "open.py(1): end": ("function", "open.py", 1, "train.py(10): <module>", None),
    }
    durations = {row["name"]: row["duration_ns"] for row in rows}
    assert (durations["gpt.py(16): forward"], durations["open.py(1): end"]) == (20_000, None)
    assert (found.capture["rows_written"], found.capture["events_skipped"]) == (len(launched(1)) + len(STACK) + 1, 0)


def test_modules_in_a_circle_end(tmp_path: Path) -> None:
    """Only a damaged file has these."""
    events = [frame(1, 2, 1, 9, "nn.Module: A_0"), frame(2, 1, 1, 9, "nn.Module: B_0"), frame(3, 2, 2, 1, "f.py(1): f")]
    found = read(write(tmp_path / "x.json", [*launched(1), *events]))
    assert all(row["module_path"] for row in found.tables["frame"])


@pytest.mark.parametrize(
    ("recorded", "stored"),
    [
        ("train.py(3): step", "train.py(3): step"),
        ("/home/someone/venv/lib/python3.11/site-packages/torch/nn/module.py(1): f", "torch/nn/module.py(1): f"),
        ("/usr/lib/python3.11/threading.py(982): _bootstrap", "threading.py(982): _bootstrap"),
        ("/home/someone/project/train.py(3): step", "project/train.py(3): step"),
        (r"C:\Users\someone\project\train.py(2): g", "project/train.py(2): g"),
        ("<built-in method add of /x>", "<built-in method add of /x>"),
    ],
)
def test_folders_of_people_are_not_stored(recorded: str, stored: str) -> None:
    assert without_home(recorded) == stored
