"""The C readers built with sanitizers, which abort the process on invalid memory accesses."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import build_native
from tracedb_nsys.export import native_pages
from tracedb_rocprof.csv import native_parser
from tracedb_torch.scan import native_scanner

ROOT = Path(__file__).resolve().parents[2]
FLAGS = (
    *("-std=c11", "-O1", "-g", "-fPIC", "-shared", "-fvisibility=hidden"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"),
)
FOLDER = "TRACEDB_FUZZ_LIBRARIES"
USERS = {
    "libtracedb_pages.so": native_pages,
    "libtracedb_csv.so": native_parser,
    "libtracedb_scan.so": native_scanner,
}


def built(folder: Path) -> dict[str, str]:
    """Build the libraries into a folder; returns the environment in which a process can load them.

    Raises SystemExit where there is no compiler that can.
    """
    compiler = build_native.compiler()
    if compiler is None:
        raise SystemExit("no C compiler was found")
    folder.mkdir(parents=True, exist_ok=True)
    for source, name in build_native.LIBRARIES.items():
        sources = [str(path) for path in sorted((ROOT / source).glob("*.c"))]
        done = subprocess.run([*compiler, *FLAGS, "-o", str(folder / name), *sources], check=False)
        if done.returncode:
            raise SystemExit(f"{name} could not be built with sanitizers")
    runtimes = [_runtime(compiler, name) for name in ("libasan.so", "libubsan.so")]
    return {
        FOLDER: str(folder),
        "LD_PRELOAD": " ".join(runtimes),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def _runtime(compiler: list[str], name: str) -> str:
    done = subprocess.run([*compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return str(Path(done.stdout.strip()).resolve())


def use_chosen() -> None:
    """Have readers load the libraries of the folder that the environment names, where it names one."""
    folder = os.environ.get(FOLDER)
    if folder is None:
        return
    for name, user in USERS.items():
        vars(user)["LIBRARY"] = Path(folder) / name
        if user.library() is None:
            raise SystemExit(f"{name} of {folder} cannot be loaded")
