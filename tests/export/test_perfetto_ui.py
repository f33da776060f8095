"""The server that gives a trace to the Perfetto UI: one file, once, to one address."""

from __future__ import annotations

import shlex
import socket
import sys
import time
import webbrowser
from pathlib import Path

import pytest

from tracedb.errors import TracedbError
from tracedb.export import perfetto_ui

BROWSER = """
import sys, urllib.error, urllib.request
from pathlib import Path

address = sys.argv[2].partition("url=")[2]
UI = {"Origin": "https://ui.perfetto.dev"}
refused = []
for path, headers in (("", {"Origin": "https://example.org"}), ("", {"Host": "example.org:9001"}), ("x", UI)):
    try:
        urllib.request.urlopen(urllib.request.Request(address + path, headers=headers), timeout=300)
    except urllib.error.HTTPError as error:
        refused.append(error.code)
assert refused == [403, 403, 404], refused
with urllib.request.urlopen(urllib.request.Request(address, headers=UI), timeout=300) as answer:
    assert answer.headers["Access-Control-Allow-Origin"] == UI["Origin"]
    Path(sys.argv[1] + ".part").write_bytes(answer.read())
Path(sys.argv[1] + ".part").rename(sys.argv[1])
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_the_browser_reads_the_file_once_and_nobody_else_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real server, and for a browser a script that asks as one would."""
    script = tmp_path / "browser.py"
    script.write_text(BROWSER)
    got = tmp_path / "got"
    monkeypatch.setattr(webbrowser, "_tryorder", None)  # so that it looks into the environment again
    monkeypatch.setenv("BROWSER", shlex.join([sys.executable, str(script), str(got), "%s"]) + " &")
    source = tmp_path / "a b.pftrace"
    source.write_bytes(b"x" * 100_000)
    said: list[str] = []
    assert perfetto_ui.serve(source, said.append, free_port(), patience=600)
    assert said[0].startswith(
        "for 600 s the Perfetto UI can read a b.pftrace once: https://ui.perfetto.dev/#!/?url=http"
    )
    for _ in range(6000):  # the browser writes while the server is closed already
        if got.exists():
            break
        time.sleep(0.02)
    assert got.read_bytes() == source.read_bytes()


def test_a_port_that_is_taken_is_said_and_nobody_is_waited_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "_tryorder", None)  # so that it looks into the environment again
    monkeypatch.setenv("BROWSER", shlex.join([sys.executable, "-c", "pass", "%s"]) + " &")
    source = tmp_path / "t.pftrace"
    source.write_bytes(b"x")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(TracedbError, match=r"cannot be had .*; close what uses it, or open"):
            perfetto_ui.serve(source, print, other.getsockname()[1], patience=5)
    assert not perfetto_ui.serve(source, print, free_port(), patience=0.05)
