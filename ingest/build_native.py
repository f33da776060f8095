"""Builds the compiled readers with the system's C compiler; hatchling runs this for wheels.

Without a compiler the wheel holds Python only, and traces are read by the Python reader with the same result. An
editable install finds each library beside its sources.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARIES = {
    "ingest/tracedb_nsys/export/native": "libtracedb_pages.so",
    "ingest/tracedb_rocprof/csv/native": "libtracedb_csv.so",
    "ingest/tracedb_torch/scan/native": "libtracedb_scan.so",
    "src/tracedb/intervals/native": "libtracedb_nest.so",
}
"""The folders that are compiled, each into one library."""
FLAGS = ("-std=c11", "-O3", "-fPIC", "-shared", "-fvisibility=hidden")
COMPILERS = ("cc", "gcc", "clang")


class NativeReader(BuildHookInterface[Any]):
    """Adds the libraries to a wheel and tags it for this platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; continue without the library if that fails."""
        if self.target_name != "wheel":
            return
        fault = build_all(Path(self.root))
        if fault:
            self.app.display_warning(
                f"tracedb: {fault}; traces will be read in Python, some two to four times slower. Install a "
                "C compiler (Debian: apt-get install gcc libc6-dev) and install tracedb again for the compiled one."
            )
            return
        build_data["artifacts"].extend(f"{folder}/{name}" for folder, name in LIBRARIES.items())
        if version != "editable":
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform_tag()}"


def build_all(root: Path) -> str | None:
    """Compile every library below ``root``; return the first failure, None if all succeeded."""
    faults = [build(root / folder, name) for folder, name in LIBRARIES.items()]
    return next((fault for fault in faults if fault), None)


def build(folder: Path, name: str) -> str | None:
    """Compile the library of ``folder`` in place; return the failure, None if there was none.

    A library in use is replaced, never overwritten; after a failure the old one is removed.
    """
    library, fresh = folder / name, folder / f"{name}.{os.getpid()}"
    fault = _compile(folder, fresh)
    if fault is None:
        fresh.replace(library)
    else:
        fresh.unlink(missing_ok=True)
        library.unlink(missing_ok=True)
    return fault


def _compile(folder: Path, target: Path) -> str | None:
    command = compiler()
    if command is None:
        return "no C compiler was found"
    sources = sorted(path.name for path in folder.glob("*.c"))
    try:
        done = subprocess.run(
            [*command, *FLAGS, "-o", target.name, *sources], cwd=folder, capture_output=True, text=True, check=False
        )
    except OSError as error:
        return f"the C compiler {command[0]} does not run ({error.strerror})"
    if done.returncode == 0:
        return None
    first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:200])
    return f"the C compiler {command[0]} failed ({first})"


def compiler() -> list[str] | None:
    """Return the command of the compiler: ``CC`` of the environment, else the first one found."""
    if chosen := os.environ.get("CC"):
        return shlex.split(chosen)
    return next(([name] for name in COMPILERS if shutil.which(name)), None)


def platform_tag() -> str:
    """Return the platform tag of wheels."""
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


if __name__ == "__main__":  # in a checkout: python ingest/build_native.py
    sys.exit(build_all(Path(__file__).parents[1]))
