"""Align two sequences of tokens in order: which places of one correspond to which of the other.

The result is a longest common subsequence, found with Hunt and Szymanski's method: its work grows with the number of
pairs of equal tokens, which is bounded here by aligning runs of several tokens if single ones are too common.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Tokens = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]
Pairs = list[tuple[int, int]]
MOST_PAIRS = 1_000_000
"""Pairs of equal tokens that are considered; a second of work."""
SEED = 4
"""Length of the runs that show where one sequence lies in the other."""


def aligned(part: Tokens, whole: Tokens) -> Pairs:
    """Return pairs (place in ``part``, place in ``whole``) of equal tokens, both increasing, as many as possible.

    If ``part`` occurs in ``whole`` without gaps, its first occurrence is taken. If ``whole`` is much longer (several
    passes over the same work), only the stretch that resembles ``part`` most is considered, so that the result does not
    mix passes. The result is the longest possible one for that stretch, unless tokens repeat so often that runs of them
    are aligned instead.
    """
    if not len(part) or not len(whole):
        return []
    found = place_of(part, whole)
    if found is not None:
        return [(place, found + place) for place in range(len(part))]
    first, last = _stretch(part, whole)
    return [(a, b + first) for a, b in _common(part, whole[first:last])]


def place_of(part: Tokens, whole: Tokens) -> int | None:
    """Return the first place at which ``part`` occurs in ``whole`` without gaps; None if it does not."""
    sought, text = part.astype(np.int32).tobytes(), whole.astype(np.int32).tobytes()
    at = text.find(sought)
    while at >= 0:
        if at % 4 == 0:
            return at // 4
        at = text.find(sought, at + 1)
    return None


def _stretch(part: Tokens, whole: Tokens) -> tuple[int, int]:
    """Return the bounds of the stretch of ``whole`` that resembles ``part``: its rarest runs vote for the offset."""
    slack = len(part) // 8 + SEED
    if len(whole) <= len(part) + 2 * slack or len(part) < SEED:
        return 0, len(whole)
    here, there = _runs(part, whole, SEED)
    numbers, first, counts = np.unique(here, return_index=True, return_counts=True)
    is_rare = counts == counts.min()
    place = {int(number): int(at) for number, at in zip(numbers[is_rare], first[is_rare], strict=True)}
    votes: Counter[int] = Counter()
    for at in np.flatnonzero(np.isin(there, numbers[is_rare])).tolist():
        votes[(at - place[int(there[at])]) // slack] += 1
    if not votes:
        return 0, len(whole)
    both = {at: count + votes.get(at + 1, 0) for at, count in votes.items()}
    offset = min(both, key=lambda at: (-both[at], at)) * slack
    return max(0, offset - slack), min(len(whole), max(0, offset + len(part) + 3 * slack))


def _runs(a: Tokens, b: Tokens, length: int) -> tuple[Numbers, Numbers]:
    """Number the run of ``length`` tokens (a power of two) that begins at each place; equal runs have equal numbers."""
    first, second = a.astype(np.int64), b.astype(np.int64)
    size = 1
    while size < length:
        most = int(max(first.max(initial=0), second.max(initial=0))) + 1
        first, second = (ids[:-size] * most + ids[size:] for ids in (first, second))
        numbers = np.unique(np.concatenate((first, second)), return_inverse=True)[1].astype(np.int64)
        first, second = numbers[: len(first)], numbers[len(first) :]
        size *= 2
    return first, second


def _common(a: Tokens, b: Tokens) -> Pairs:
    """Return a longest common subsequence; of runs of tokens, if single ones give too many pairs."""
    length = 1
    while length <= min(len(a), len(b)):
        here, there = _runs(a, b, length)
        order = np.argsort(there, kind="stable")
        begins, ends = (np.searchsorted(there[order], here, side) for side in ("left", "right"))
        if int((ends - begins).sum()) <= MOST_PAIRS:
            others = order.tolist()
            return _spread(_hunt([others[i:j] for i, j in zip(begins.tolist(), ends.tolist(), strict=True)]), length)
        length *= 2
    return []


def _hunt(matches: Sequence[Sequence[int]]) -> Pairs:
    """Return the longest chain of pairs that increase in both places; ``matches``: places in the other, increasing."""
    ends: list[int] = []  # least end of a chain of each length, in the other sequence
    links: list[tuple[int, int, int]] = []  # pair, and the link before it
    last: list[int] = []  # link that ends the chain of each length
    for place, others in enumerate(matches):
        for other in reversed(others):
            size = bisect_left(ends, other)
            links.append((place, other, last[size - 1] if size else -1))
            if size == len(ends):
                ends.append(other)
                last.append(len(links) - 1)
            else:
                ends[size], last[size] = other, len(links) - 1
    chain: Pairs = []
    at = last[-1] if last else -1
    while at >= 0:
        place, other, at = links[at]
        chain.append((place, other))
    return chain[::-1]


def _spread(chain: Pairs, length: int) -> Pairs:
    """Return the pairs of single tokens of aligned runs."""
    pairs: Pairs = []
    for a, b in chain:
        first = max(0, pairs[-1][0] + 1 - a, pairs[-1][1] + 1 - b) if pairs else 0
        pairs += [(a + more, b + more) for more in range(first, length)]
    return pairs
