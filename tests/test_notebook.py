"""The example notebook runs from its first to its last cell, and holds no output and no path of the one who ran it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "examples" / "notebook.ipynb"


def read() -> Any:
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    return notebook


def test_notebook_is_kept_without_output() -> None:
    for cell in read().cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


def test_notebook_runs(tmp_path: Path) -> None:
    for package in ("nbclient", "ipykernel", "polars", "altair"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    import nbclient

    shutil.copytree(ROOT / "examples" / "run", tmp_path / "run")
    notebook = read()
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [_shown(cell) for cell in notebook.cells if cell.cell_type == "code"]
    assert shown[0]["text/plain"] == str([None] * 8)
    assert "collective" in shown[2]["text/plain"]
    assert "channels" in shown[3]["text/markdown"]
    assert "shape:" in shown[5]["text/html"] + shown[5]["text/plain"]
    assert "│ 3 " in shown[8]["text/plain"].replace("     ", " ")
    assert "image/svg+xml" in shown[-1]


def _shown(cell: Any) -> dict[str, str]:
    """Return what a cell shows at its end, by type."""
    found: dict[str, str] = {}
    for output in cell.outputs:
        found.update(output.get("data", {"text/plain": output.get("text", "")}))
    return found
