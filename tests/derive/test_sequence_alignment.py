"""Alignment of two sequences of tokens: as long as possible, in order, within one pass, with bounded work."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from tracedb.derive import sequence_alignment
from tracedb.derive.sequence_alignment import Pairs, aligned


def tokens(values: list[int] | str) -> sequence_alignment.Tokens:
    return np.array([ord(value) if isinstance(value, str) else value for value in values], np.int32)


def longest(a: list[int], b: list[int]) -> int:
    """The length of a longest common subsequence, by the textbook's table."""
    row = [0] * (len(b) + 1)
    for x in a:
        before = row
        row = [0]
        for j, y in enumerate(b):
            row.append(before[j] + 1 if x == y else max(before[j + 1], row[j]))
    return row[-1]


def assert_sound(pairs: Pairs, a: list[int], b: list[int]) -> None:
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(pairs))


def test_it_is_as_long_as_possible() -> None:
    chance = random.Random(7)
    for _ in range(200):
        a, b = ([chance.randrange(4) for _ in range(chance.randrange(30))] for _ in range(2))
        pairs = sequence_alignment._common(tokens(a), tokens(b))
        assert_sound(pairs, a, b)
        assert len(pairs) == longest(a, b)


def test_the_first_of_two_passes_is_taken() -> None:
    assert aligned(tokens("abcab"), tokens("xabcababcab")) == [(i, i + 1) for i in range(5)]


def test_a_kernel_that_only_one_has_does_not_mix_passes() -> None:
    """In the second pass every kernel of the replay would find its place; in one pass all but the extra one do."""
    layers = [n for layer in range(20) for n in (100 + layer, 1, 2, 3)]
    replay = [*layers[:40], 102, *layers[40:]]
    pairs = aligned(tokens(replay), tokens(layers * 3))
    assert len(pairs) == len(layers)
    assert max(other for _, other in pairs) < len(layers)


def test_common_tokens_are_aligned_by_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence_alignment, "MOST_PAIRS", 2_000)
    chance = random.Random(3)
    whole = [chance.randrange(6) for _ in range(1000)]
    part = whole[:300] + whole[310:700] + whole[705:]
    pairs = sequence_alignment._common(tokens(part), tokens(whole))
    assert_sound(pairs, part, whole)
    assert len(pairs) > 0.98 * len(part)


@pytest.mark.parametrize(("a", "b"), [("", "abc"), ("abc", ""), ("abc", "xyz")])
def test_nothing_in_common(a: str, b: str) -> None:
    assert aligned(tokens(a), tokens(b)) == []
