"""Lakes at gs:// and az://.

A folder that fsspec shows there stands in for the packages of Google and Azure: it tests tracedb's part, which is
addresses, listing, writing, and reading through DuckDB. Google's package is tested as well, where it and an emulator of
the store are installed; Azure's has no emulator in Python.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from support.command import run

os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")  # asks by gRPC, which the emulator does not speak
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
    assert_like_a_local_lake(f"{name}://bucket/some/lake", tmp_path / "local")


@pytest.fixture(scope="module")
def google() -> Iterator[str]:
    """The address of an empty bucket in an emulator of Google's store, which ``gcsfs`` reads."""
    servers = pytest.importorskip("gcp_storage_emulator.server", reason="gcp-storage-emulator is not installed")
    pytest.importorskip("gcsfs", reason="gcsfs is not installed")
    server = servers.create_server("localhost", 0, in_memory=True, default_bucket="traces")
    server.start()
    _, port = server._api._httpd.server_address
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("STORAGE_EMULATOR_HOST", f"http://localhost:{port}")
        fsspec.get_filesystem_class("gs").clear_instance_cache()
        yield "gs://traces/some/lake"
        fsspec.get_filesystem_class("gs").clear_instance_cache()
    server.stop()


def test_a_lake_in_google_s_store(google: str, tmp_path: Path) -> None:
    assert_like_a_local_lake(google, tmp_path / "local")
    assert run("lake", "compact", google).exit_code == 0
    assert json.loads(run("lake", "verify", google, "--format", "json").stdout)["rows"] == []


def assert_like_a_local_lake(lake: str, local: Path) -> None:
    """Load a trace twice, report and verify."""
    trace = min(RUN.rglob("*.json.gz"))
    for each in (lake, local):
        done = run("ingest", trace, "--lake", each, "--jobs", "1")
        assert done.exit_code == 0, done.stderr
    assert "1 known before" in run("ingest", trace, "--lake", lake, "--jobs", "1").stderr
    theirs, ours = (run("--lake", each, "report", "top-kernels", "--format", "json") for each in (lake, local))
    assert theirs.exit_code == ours.exit_code == 0, theirs.stderr
    assert json.loads(theirs.stdout)["rows"] == json.loads(ours.stdout)["rows"]
    verified = run("lake", "verify", lake, "--format", "json")
    assert verified.exit_code == 0 and json.loads(verified.stdout)["rows"] == []
