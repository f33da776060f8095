"""Output for continuous integration: JUnit XML and GitHub Actions annotations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Case:
    """A check: its name, and why it failed or could not be made; if both are empty it passed, with what it found."""

    name: str
    failed: str = ""
    undecided: str = ""
    passed: str = ""


def junit(suite: str, cases: Sequence[Case], said: Sequence[str]) -> str:
    """Return the checks as JUnit XML, with remarks as the output of the suite."""
    failures, errors = sum(bool(case.failed) for case in cases), sum(bool(case.undecided) for case in cases)
    counts = {"name": suite, "tests": str(len(cases)), "failures": str(failures), "errors": str(errors)}
    root = ElementTree.Element("testsuites", counts)
    top = ElementTree.SubElement(root, "testsuite", {**counts, "skipped": "0"})
    for case in cases:
        item = ElementTree.SubElement(top, "testcase", {"classname": suite, "name": _xml(case.name)})
        for kind, text in (("failure", case.failed), ("error", case.undecided)):
            if text:
                ElementTree.SubElement(item, kind, {"message": _xml(text)}).text = _xml(text)
        if case.passed:
            ElementTree.SubElement(item, "system-out").text = _xml(case.passed)
    if said:
        ElementTree.SubElement(top, "system-out").text = _xml("\n".join(said))
    ElementTree.indent(root)
    return "<?xml version='1.0' encoding='utf-8'?>\n" + ElementTree.tostring(root, "unicode") + "\n"


def annotation(level: str, title: str, text: str) -> str:
    """Return a workflow command of GitHub Actions, ``::LEVEL title=…::…``; text is escaped, so that it cannot end the
    command or start another."""
    title = _command(title).replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={title}::{_command(text)}"


def _command(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _xml(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
