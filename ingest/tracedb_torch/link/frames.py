"""Rows of Python frames: who called whom, and the modules around each.

Both linkers give the frames as numbers; this is the only place that makes rows of them.
"""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracedb.storage.schema import ROW_GROUP
from tracedb_torch.link.numpy_columns import Column, Held, Texts

Numbers = npt.NDArray[np.int64]
MODULE = "nn.Module: "
FUNCTION = re.compile(r"(?P<file>.+)\((?P<line>\d{1,9})\): ")
PACKAGES = re.compile(r"(?s)[/\\].*[/\\](?:site-packages|dist-packages|lib[/\\]python\d[^/\\]*)[/\\]")
ABSOLUTE = re.compile(r"(?:[A-Za-z]:)?[/\\]")
NOWHERE = -1
ALL = slice(None)


def without_home(name: str) -> str:
    """Return the name of a frame without the folders that a machine's user chose: they hold names of people.

    Of an absolute path, what follows the folder of packages or of Python stays; of others the last two parts.
    """
    if not ABSOLUTE.match(name) or (found := FUNCTION.match(name)) is None:
        return name
    path, rest = found["file"], name[len(found["file"]) :]
    shorter = PACKAGES.sub("", path)
    if ABSOLUTE.match(shorter):
        shorter = "/".join(re.split(r"[/\\]", shorter)[-2:])
    return shorter + rest


def table(held: Held, texts: Texts) -> pa.Table:
    """Return the rows of ``main.frame``, in batches of one row group each."""
    frame = partial(held.column, "frame")
    name, process, duration = texts.column(frame("name")), frame("pid"), frame("duration_ns")
    words = name.words
    assert words is not None
    names = [without_home(name) for name in words.to_pylist()]
    used = np.zeros(len(names), np.bool_)
    used[name.values] = True
    is_module_name = np.array([name.startswith(MODULE) for name in names], np.bool_)
    is_module = is_module_name[name.values]
    parent = _parents(frame("python_id"), frame("python_parent"))
    columns = {
        "frame_id": frame("frame_id").array(ALL),
        "kind": _words(is_module.astype(np.int32), ["function", "module"]),
        "name": name._replace(words=pa.array(names, pa.string())).array(ALL),
        **_places(names, used, name.values),
        "process_id": process.only(process.values >= 0).array(ALL),
        "thread_id": frame("tid").array(ALL),
        "start_ns": frame("start_ns").array(ALL),
        "duration_ns": duration.array(ALL),
        "parent_id": frame("frame_id").at(parent).array(ALL),
        "module_path": _module_paths(name.values, names, is_module, parent),
    }
    return pa.Table.from_batches(pa.table(columns).to_batches(max_chunksize=ROW_GROUP))


def _parents(own: Column, parent: Column) -> Numbers:
    """Return the place of each frame's parent; ``NOWHERE`` if it has none, or none that was recorded."""
    places = np.full(len(own.values), NOWHERE, np.int64)
    known = np.flatnonzero(own.is_there)
    if not len(known):
        return places
    order = known[np.argsort(own.values[known], kind="stable")]
    ids = own.values[order]
    wanted = parent.values.astype(np.int64)
    found = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    is_found = parent.is_there & (ids[found] == wanted)
    places[is_found] = order[found[is_found]]
    places[places == np.arange(len(places))] = NOWHERE  # a frame that names itself
    return places


def _places(names: list[str], used: npt.NDArray[np.bool_], name: Numbers) -> dict[str, pa.Array]:
    """Return file and line, which the name of a function says."""
    files: dict[str, int] = {}
    file_of, line_of = np.full(len(names), NOWHERE, np.int32), np.zeros(len(names), np.int32)
    for place in np.flatnonzero(used).tolist():
        found = None if names[place].startswith(MODULE) else FUNCTION.match(names[place])
        if found is not None:
            file_of[place] = files.setdefault(found["file"], len(files))
            line_of[place] = int(found["line"])
    file = file_of[name]
    there = file >= 0
    return {
        "file": Column(np.maximum(file, 0), there, pa.array(list(files), pa.string())).array(ALL)
        if files
        else pa.nulls(len(name), pa.string()),
        "line": Column(line_of[name], there).array(ALL),
    }


def _module_paths(name: Numbers, names: list[str], is_module: npt.NDArray[np.bool_], parent: Numbers) -> pa.Array:
    """Return the path of the innermost module at or above each frame; NULL where there is none."""
    module = np.where(is_module, np.arange(len(name)), parent)
    for _ in range(64):  # each round doubles the distance that is covered; a circle of parents in a damaged file ends
        open_ = np.flatnonzero((module >= 0) & ~is_module[module])
        if not len(open_):
            break
        module[open_] = module[module[open_]]
    module[(module >= 0) & ~is_module[module]] = NOWHERE
    above = np.where(parent >= 0, module[parent], NOWHERE)
    paths: dict[str, int] = {}
    code: dict[int, int] = {}
    texts: list[str] = []
    for place in np.flatnonzero(is_module).tolist():
        chain: list[int] = []
        while place not in code and place != NOWHERE and len(chain) <= len(names):
            chain.append(place)
            code[place] = NOWHERE
            place = int(above[place])
        prefix = texts[code[place]] + "." if code.get(place, NOWHERE) >= 0 else ""
        for step in reversed(chain):
            path = prefix + names[name[step]].removeprefix(MODULE)
            if path not in paths:
                paths[path] = len(texts)
                texts.append(path)
            code[step] = paths[path]
            prefix = path + "."
    if not texts:
        return pa.nulls(len(name), pa.string())
    codes = np.full(len(name) + 1, NOWHERE, np.int32)
    codes[list(code)] = list(code.values())
    found = codes[module]
    return Column(np.maximum(found, 0), (module >= 0) & (found >= 0), pa.array(texts, pa.string())).array(ALL)


def _words(codes: npt.NDArray[np.int32], words: list[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(words, pa.string()))
