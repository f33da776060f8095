"""JUnit XML and GitHub Actions annotations: any text is escaped."""

from __future__ import annotations

from xml.etree import ElementTree

from tracedb.output.ci_reports import Case, annotation, junit


def test_junit() -> None:
    text = junit("s", [Case("a<b"), Case("c", failed='"&]]>\x1b[31m'), Case("d", undecided="e\x00")], ["w<"])
    (suite,) = ElementTree.fromstring(text)
    assert [suite.get(key) for key in ("name", "tests", "failures", "errors")] == ["s", "3", "1", "1"]
    assert [case.get("name") for case in suite.iter("testcase")] == ["a<b", "c", "d"]
    assert [item.text for item in suite.iter("failure")] == ['"&]]>\ufffd[31m']
    assert [item.get("message") for item in suite.iter("error")] == ["e\ufffd"]
    assert [item.text for item in suite.iter("system-out")] == ["w<"]


def test_annotation() -> None:
    text = annotation("error", "a:b,c%", "50 %\r\n::warning::x")
    assert text == "::error title=a%3Ab%2Cc%25::50 %25%0D%0A::warning::x"
