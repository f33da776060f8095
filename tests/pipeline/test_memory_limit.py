"""A file that needs more memory is read once more with a higher limit; a limit set by the user is respected."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from support.traces import kernel, write
from tracedb.pipeline import batch_load, discovery
from tracedb.pipeline.task import Outcome, Request


@pytest.fixture
def request_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Request:
    monkeypatch.setattr(batch_load, "MEMORY_LIMIT", "1MB")
    return Request(
        (write(tmp_path / "a.json", [kernel(at, 1, name=f"k{at}") for at in range(400)]),), tmp_path / "t.duckdb"
    )


def outcome(request: Request) -> Outcome:
    (task,) = discovery.detect(discovery.discover(request.paths)).tasks
    return batch_load.load([task], request, {})[0]


def test_read_again_with_more(request_: Request) -> None:
    done = outcome(request_)
    assert (done.error, done.loaded[0].kernels) == (None, 400)


def test_the_user_decides(request_: Request) -> None:
    done = outcome(replace(request_, memory_limit="1MB"))
    assert done.loaded == []
    assert done.error is not None and done.error.endswith("raise --memory-limit")
    assert not request_.database.exists()
