"""Lakes at gs:// and az://: a folder that fsspec shows there stands in for the packages of Google and Azure.

What is tested is tracedb's part: addresses, listing, writing, and reading through DuckDB. The packages are not.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from support.command import run

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")

RUN = Path(__file__).resolve().parents[2] / "examples" / "run" / "sweep_sample" / "256thread"


def shown_as(protocol: str, folder: Path) -> type:
    """Return a file system that shows a folder at ``protocol://``."""
    from fsspec.implementations.dirfs import DirFileSystem
    from fsspec.implementations.local import LocalFileSystem

    def made(self: Any, **given: Any) -> None:
        DirFileSystem.__init__(self, path=str(folder), fs=LocalFileSystem(auto_mkdir=True))

    def joined(self: Any, path: Any) -> Any:
        return DirFileSystem._join(self, self._strip_protocol(path) if isinstance(path, str) else path)

    return type("Shown", (DirFileSystem,), {"protocol": protocol, "__init__": made, "_join": joined})


@pytest.mark.parametrize("name", ["gs", "az"])
def test_a_lake_in_another_store(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(import_module("fsspec.registry")._registry, name, shown_as(name, tmp_path / "store"))
    trace, bucket, local = min(RUN.rglob("*.json.gz")), f"{name}://bucket/some/lake", tmp_path / "local"
    for lake in (bucket, local):
        done = run("ingest", trace, "--lake", lake, "--jobs", "1")
        assert done.exit_code == 0, done.stderr
    assert "1 known before" in run("ingest", trace, "--lake", bucket, "--jobs", "1").stderr
    theirs, ours = (run("--lake", lake, "report", "top-kernels", "--format", "json") for lake in (bucket, local))
    assert theirs.exit_code == ours.exit_code == 0, theirs.stderr
    assert json.loads(theirs.stdout)["rows"] == json.loads(ours.stdout)["rows"]
    verified = run("lake", "verify", bucket, "--format", "json")
    assert verified.exit_code == 0 and json.loads(verified.stdout)["rows"] == []
