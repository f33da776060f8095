"""The catalogue of faults: every known fault has tests, and the tests that it names exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
CATALOGUE = TESTS / "faults" / "CATALOGUE.md"
KNOWN = TESTS.parents[1] / "shared" / "formats" / "KNOWN_FAULTS.md"
ROW = re.compile(r"^\| (B\d{3}) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
ID_IN_NAME = re.compile(r"def test_\w*?_?[br]\d{3}_|class TestB\d{3}")


def rows() -> list[tuple[str, str, list[str]]]:
    """Ids, descriptions and named tests."""
    found = ROW.findall(CATALOGUE.read_text(encoding="utf-8"))
    return [(number, fault, re.findall(r"`([^`]+)`", tests)) for number, fault, tests in found]


@cache
def defined(path: Path) -> frozenset[str]:
    """Tests and classes of tests of a file, as pytest names them."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            methods = [item.name for item in node.body if isinstance(item, ast.FunctionDef)]
            names |= {f"{node.name}::{name}" for name in methods if name.startswith("test_")}
            names |= {node.name} if any(name.startswith("test_") for name in methods) else set()
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            names.add(node.name)
    return frozenset(names)


def exists(test: str) -> bool:
    file, _, name = test.partition("::")
    path = TESTS / file
    return path.is_file() and (name in defined(path) if name else bool(defined(path)))


def test_every_row_of_the_table_is_read() -> None:
    text = CATALOGUE.read_text(encoding="utf-8")
    numbers = [number for number, _, _ in rows()]
    assert len(numbers) == len(re.findall(r"^\| [^i-]", text, re.MULTILINE)) == 69
    assert numbers == sorted(set(numbers))


def test_every_fault_has_tests_and_they_exist() -> None:
    assert [number for number, _, tests in rows() if not tests] == []
    assert [(number, test) for number, _, tests in rows() for test in tests if not exists(test)] == []


def test_a_test_that_is_gone_is_noticed() -> None:
    assert exists("faults/test_catalogue.py::test_a_test_that_is_gone_is_noticed")
    assert not exists("faults/test_catalogue.py::test_that_is_gone")
    assert not exists("faults/test_that_is_gone.py")
    assert not exists("support/tiny.py")


def test_names_of_tests_say_the_behaviour_and_not_the_id() -> None:
    assert {
        path.name: found
        for path in TESTS.rglob("test_*.py")
        if (found := ID_IN_NAME.findall(path.read_text(encoding="utf-8")))
    } == {}


@pytest.mark.skipif(not KNOWN.exists(), reason="no shared folder with the list of known faults")
def test_every_known_fault_is_in_the_catalogue() -> None:
    listed = re.findall(r"^\*\*(B\d{3}) ", KNOWN.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == [number for number, _, _ in rows()]
