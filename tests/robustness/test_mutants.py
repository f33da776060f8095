"""The code that ``mutants.py`` changes still exists; the mutations themselves take minutes and are run by hand."""

from __future__ import annotations

import pytest

from robustness import mutants


@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=lambda mutant: mutant.name)
def test_each_finds_its_line_and_its_tests(mutant: mutants.Mutant) -> None:
    assert (mutants.ROOT / mutant.file).read_text(encoding="utf-8").count(mutant.old) == 1
    assert mutant.old != mutant.new
    assert all((mutants.ROOT / path).is_file() for path in mutant.tests.split())
