"""File and folder names with a special meaning in a shell, SQL, a URI or a glob."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import rocprof_files
from support.loading import ask, ingest
from support.nsys_files import Nsys
from support.traces import launched, write

NAMES = ("run[1]", "a*", "b?", "it's", "50%41", "q#1", "q;1", "x{y,z}", "sp ace", "$(x)", '"')
SIBLINGS = {"run[1]": "run1", "a*": "ab", "b?": "bc", "50%41": "50A", "q#1": "q", "x{y,z}": "xy"}
"""What each would mean as a pattern or an encoded name."""


def _fill(folder: Path, name: str, kernels: int) -> None:
    """Write a capture of each kind, of so many kernels."""
    folder.mkdir(parents=True)
    write(folder / f"{name}.json", launched(kernels))
    for form, pid in (("sqlite", 100), ("parquet", 200)):
        nsys = Nsys()
        for number in range(kernels):
            nsys.launch(number * 1000, number * 1000 + 100, number * 1000 + 500, pid=pid, tid=pid)
        if form == "sqlite":
            nsys.sqlite(folder / f"{name}.sqlite")
        else:
            nsys.parquet(folder / f"other {name}_pqtdir")
    rows = [rocprof_files.kernel("k", 100 * number, 100 * number + 50) for number in range(kernels)]
    rocprof_files.kernel_trace(folder / f"{name}_kernel_trace.csv", rows)


@pytest.mark.parametrize("name", NAMES)
def test_each_path_is_read_as_it_is(tmp_path: Path, name: str) -> None:
    _fill(tmp_path / name, name, 1)
    if name in SIBLINGS:
        _fill(tmp_path / SIBLINGS[name], SIBLINGS[name], 3)
    done = ingest(tmp_path / name, db=tmp_path / "db")
    assert done.exit_code == 0, done.stderr
    rows = ask(
        tmp_path / "db",
        "SELECT c.source, count(*) FROM v1.kernels AS k JOIN capture AS c USING (capture_id) "
        "GROUP BY c.capture_id, c.source ORDER BY ALL",
    )
    assert rows == [("nsys", 1), ("nsys", 1), ("rocprofv3", 1), ("torch", 1)]
