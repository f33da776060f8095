"""Shorten kernel names and shapes for display, keeping the parts that distinguish them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath

ELLIPSIS = "…"
_SHORT = 8
_LONG_FILE = 20
"""Characters from which names of files lose what they have in common."""
_PLAIN = 32
"""Characters up to which a kernel's name is shown in full although it has a short form."""
_LONGEST = 64
"""Characters of a kernel's short form with the arguments that tell it from others."""
TIMES = "\N{MULTIPLICATION SIGN}"
_TAILS = (0.5, 0.35, 0.65, 0.2, 0.8)  # shares of the width for the end of a name
_QUALIFIERS = re.compile(r"(?:(?:\(anonymous namespace\)|<unnamed>|\{anonymous\}|\b[A-Za-z_]\w*)::)+")
_WRAPPER = re.compile(r"\bvoid gpu_kernel_impl(?:_nocast)?<")
"""What stands before the functor of PyTorch's elementwise kernels, and is no help to tell them apart."""
_CASTS = re.compile(r"\([\w: ]+\)(?=-?[0-9])")
_HIDDEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\ud800-\udfff"  # control characters, line ends, writing direction, half a pair
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    r"\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"  # ignorable by default, in Unicode
)


def visible(text: str) -> str:
    """Return text without characters that control a terminal, change the writing direction or cannot be seen."""
    return _HIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)


def shorten(names: Sequence[str], width: int) -> list[str]:
    """Return each name in at most ``width`` characters, shortened in the middle; different names stay different."""
    bare = {name: visible(name.removeprefix("void ")) for name in names}
    distinct = sorted(bare)
    start = common_start([text for text in bare.values() if len(text) > width])
    bare = {name: ELLIPSIS + text[start:] if start and len(text) > width else text for name, text in bare.items()}
    best: dict[str, str] = {}
    for tail in _TAILS:
        cut = {name: middle(bare[name], width, tail) for name in distinct}
        if len(set(cut.values())) > len(set(best.values())):
            best = cut
        if len(set(best.values())) == len(distinct):
            break
    if len(set(best.values())) < len(distinct):
        families = _by_family({name: visible(name.removeprefix("void ")) for name in bare}, best, width)
        best = families if len(set(families.values())) > len(set(best.values())) else best
    told = _tell_apart({name: best[name] for name in bare}, bare, width) if best else {}
    return [told[name].replace(ELLIPSIS * 2, ELLIPSIS) for name in names]


def _by_family(bare: dict[str, str], cut: dict[str, str], width: int) -> dict[str, str]:
    """Return shortened names in which those that begin alike go on where they differ, after the first letters."""
    families: dict[str, list[str]] = {}
    for name, text in bare.items():
        if len(text) > width:
            families.setdefault(text[:_SHORT], []).append(name)
    told = dict(cut)
    for family in families.values():
        start = common_start([bare[name] for name in family])
        if not start:
            continue
        head = max(min(start, width // 5), 1)
        room = max(width - head - 1, 1)
        tries: list[dict[str, str]] = [
            {name: bare[name][:head] + ELLIPSIS + middle(bare[name][start:], room, tail) for name in family}
            for tail in (0.0, *_TAILS)
        ]
        best = max(tries, key=_distinct)
        told.update(best)
    return told


def _distinct(made: dict[str, str]) -> int:
    return len(set(made.values()))


def brief(names: Sequence[str], short: Mapping[str, str]) -> list[str]:
    """Return long kernel names by their short form, ``short``; different names stay different.

    A short form that several of the names share is followed by the template arguments in which they differ.
    """
    distinct = dict.fromkeys(names)
    shared = Counter(short[name] for name in distinct)
    made = {name: visible(name.removeprefix("void ")) for name in distinct}
    groups: dict[str, dict[str, str]] = {}
    for name, bare in made.items():
        own = visible(short[name])
        if len(bare) <= _PLAIN:
            continue
        made[name] = own
        if shared[short[name]] > 1:
            groups.setdefault(own, {})[name] = _arguments(bare, own)
    for own, arguments in groups.items():
        common = _common(list(arguments.values()))
        start = max(common.rfind(mark) for mark in "<(, :") + 1 if len(arguments) > 1 else 0
        mark = ELLIPSIS if start > 1 else ""
        for name, text in arguments.items():
            made[name] = middle(own + mark + text[start if mark else 0 :], max(_LONGEST, len(own) + 16), 0.3)
    made = _numbered(made, _LONGEST)
    return [made[name] for name in names]


def _arguments(bare: str, own: str) -> str:
    """Return the template arguments that follow a kernel's short form in its name, else its parameters.

    They are without namespaces, and numbers in them without casts.
    """
    found = re.search(rf"\b{re.escape(own)}(?=[<(])", bare)
    if found is None:  # a mangled name
        return f" {bare}"
    text = _WRAPPER.sub("", _QUALIFIERS.sub("", _CASTS.sub("", bare[found.end() :])))
    return text[: text.rfind(">(") + 1] or text


def common_start(long: Sequence[str]) -> int:
    """Return the length of the long names' common prefix up to a separator, if omitting it is worthwhile."""
    if len(set(long)) < 2:
        return 0
    common = _common(long)
    start = max(common.rfind(mark) for mark in "_:<(, =") + 1
    return start if start > _SHORT else 0


def _common(texts: Sequence[str]) -> str:
    """Return the common prefix of all texts."""
    first, last = min(texts), max(texts)
    length = next((at for at, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))
    return first[:length]


def middle(text: str, width: int, tail: float = 0.5) -> str:
    """Return text shortened in the middle to ``width`` characters."""
    if len(text) <= width:
        return text
    if width <= 1:
        return ELLIPSIS[:width]
    after = int((width - 1) * tail)
    before = width - 1 - after
    return text[:before] + ELLIPSIS + (text[-after:] if after else "")


def _tell_apart(cut: dict[str, str], bare: dict[str, str], width: int) -> dict[str, str]:
    """Make names that were shortened to the same text distinct: by the part where they differ, else by a number."""
    alike: dict[str, list[str]] = {}
    for name, short in cut.items():
        alike.setdefault(short, []).append(name)
    told = dict(cut)
    for group in alike.values():
        if len(group) == 1:
            continue
        start = len(_common([bare[name] for name in group]))
        head = bare[group[0]][: width // 3]
        for name in group:
            rest = bare[name][max(start - 4, len(head)) :]
            told[name] = f"{head}{ELLIPSIS}{rest[: max(width - len(head) - 1, 0)]}"
    return _numbered(told, width)


def _numbered(told: dict[str, str], width: int) -> dict[str, str]:
    seen: dict[str, int] = {}
    for name, short in list(told.items()):
        seen[short] = seen.get(short, 0) + 1
        if seen[short] > 1:
            mark = f"#{seen[short]}"
            told[name] = short[: max(width - len(mark), 0)] + mark
    return told


def tell_apart(values: Sequence[str]) -> list[str]:
    """Return long label values without their common leading words."""
    distinct = sorted(set(values))
    if len(distinct) < 2 or max(map(len, distinct)) <= _SHORT:
        return list(values)
    common = _common(distinct)
    start = max(common.rfind(mark) for mark in "_-./ ") + 1
    return [value[start:] or value for value in values]


def without_common_ends(names: Mapping[int, str]) -> dict[int, str]:
    """Return long names of files without the start and the end that all have in common; they stay different."""
    texts = set(names.values())
    if len(texts) < 2 or max(map(len, texts)) <= _LONG_FILE:
        return dict(names)
    start = max(_common(list(texts)).rfind(mark) for mark in "_-./ ") + 1
    turned = _common([text[start:][::-1] for text in texts])
    end = max(turned.rfind(mark) for mark in "_-./ ") + 1
    made = {number: text[start : len(text) - end] for number, text in names.items()}
    return made if all(made.values()) else dict(names)


def paths_apart(paths: Iterable[str]) -> dict[str, str]:
    """Return for each path the shortest run of its folders and file name that no other path has, the last such one.

    A path inside another one has its last name. ``--capture`` takes what is returned here.
    """
    parts = {path: tuple(part for part in PurePath(path).parts if part != "/") for path in paths}
    named: dict[str, str] = {}
    for length in range(1, max(map(len, parts.values()), default=0) + 1):
        left = [path for path in parts if path not in named]
        if not left:
            break
        held = Counter(run for each in parts.values() for run in set(runs(each, length)))
        for path in left:
            own = [run for run in runs(parts[path], length) if held[run] == 1]
            if own:
                named[path] = "/".join(own[-1])
    return {path: named.get(path, "/".join(each[-1:])) for path, each in parts.items()}


def runs(parts: tuple[str, ...], length: int) -> Iterator[tuple[str, ...]]:
    """Yield the runs of so many consecutive parts."""
    return (parts[at : at + length] for at in range(len(parts) - length + 1))


def dims(text: str) -> str:
    """Return recorded input shapes as ``8192x4096 · 4096x1024``, with multiplication signs; other text unchanged."""
    try:
        shapes = json.loads(text)
    except ValueError:
        return visible(text)
    if not isinstance(shapes, list):
        return visible(text)
    return " · ".join(part for part in map(_shape, shapes) if part)


def _shape(shape: object) -> str:
    if isinstance(shape, list) and shape and all(isinstance(item, list) for item in shape):
        return "(" + ", ".join(part for part in map(_shape, shape) if part) + ")"
    if isinstance(shape, list):
        return TIMES.join(str(item) for item in shape)
    return ""
