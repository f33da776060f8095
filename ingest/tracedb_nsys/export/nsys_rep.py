"""Convert reports (.nsys-rep) to SQLite with `nsys export`; the result is cached, never written next to the report."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from tracedb.errors import ReadError
from tracedb.storage.spill_folder import spill_folder
from tracedb_nsys.export import cache
from tracedb_nsys.export.redaction import scrub

ENVIRONMENT = "TRACEDB_NSYS"
TIMEOUT_S = 3600.0
INSTALL_PATTERNS = (
    "/opt/nvidia/nsight-systems/*/bin/nsys",
    "/opt/nvidia/nsight-systems-cli/*/bin/nsys",
    "/opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys",
    "/usr/local/cuda*/bin/nsys",
    "/usr/lib/nsight-systems/bin/nsys",
)
TAIL_BYTES = 64 << 10
VERSION = re.compile(rb"(?<![\d.])20\d\d\.\d{1,2}\.\d{1,2}\.\d{1,5}(?![\d.])")
PERCENT = re.compile(rb"(\d{1,3})%")
PROGRESS = re.compile(r".*\[[=\s]*\d{1,3}%\s*\]")
TOO_NEW = re.compile(r"(?i)version not supported|newer version|unsupported version")
NO_IMPORTER = re.compile(r"(?i)importer (?:binary|error|version)")
IMPORTER_MISSING = (
    "nsys does not find its importer: the folders host-linux-x64 and target-linux-x64 of its installation must be "
    "next to each other (Debian's package needs a link for that)"
)
EXPORT_ELSEWHERE = "run `nsys export --type=sqlite` where the report was made and ingest that file"
INCOMPLETE = "incomplete nsys capture"


def check_complete(path: Path) -> None:
    """Raise ``ReadError`` for the remains of a killed recording: an empty file, or only the raw stream."""
    if path.stat().st_size == 0:
        raise ReadError(f"{INCOMPLETE}: the file is empty; the recording was killed before nsys wrote it; record again")
    if path.name.endswith(".qdstrm"):
        raise ReadError(
            f"{INCOMPLETE}: only the raw stream (.qdstrm) is there, no report. Either the recording was killed, or "
            f"{IMPORTER_MISSING}. Import it with QdstrmImporter of the nsys that wrote it, or record again"
        )


def export(path: Path, progress: Callable[[float], None]) -> Path:
    """Return the SQLite export of a report, from the cache or newly made.

    Private data has been removed from it (``redaction.scrub``). Raises ``ReadError`` if nsys is missing or cannot read
    the report; nsys's own message is passed on.
    """
    target = cache.place(path)
    if not target.exists():
        _make(path, target, progress)
        cache.clean(target)
    cache.used(target)
    return target


def programs() -> list[Path]:
    """Return the nsys programs found, preferred ones first. Raises ``ReadError`` if the configured one is missing."""
    named = os.environ.get(ENVIRONMENT)
    if named:
        found = Path(named) / "nsys" if Path(named).is_dir() else Path(named)
        if not os.access(found, os.X_OK):
            raise ReadError(f"{ENVIRONMENT} names {named}, but there is no nsys program there")
        return [found]
    on_path = shutil.which("nsys")
    usual = [
        path for pattern in INSTALL_PATTERNS for path in sorted(Path("/").glob(pattern[1:]), key=_release, reverse=True)
    ]
    return list(dict.fromkeys([*([Path(on_path)] if on_path else []), *usual]))


def _release(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(path))]


def _make(path: Path, target: Path, progress: Callable[[float], None]) -> None:
    found = programs()
    if not found:
        raise ReadError(
            f"a report of {f'nsys {_release_of(path)}'.rstrip()} needs the program nsys, which is neither on PATH nor "
            f"in the usual folders; install Nsight Systems, name it with --nsys or in {ENVIRONMENT}, or "
            f"{EXPORT_ELSEWHERE}"
        )
    with spill_folder(target) as folder:
        draft = Path(folder) / "export.sqlite"
        said = ""
        for program in found:
            said = _run(program, path, draft, progress)
            if draft.exists() and not said:
                scrub(draft)
                cache.keep(draft, target)
                return
            if not TOO_NEW.search(said):
                break
        raise ReadError(_failure(path, program, said))


def _run(program: Path, path: Path, draft: Path, progress: Callable[[float], None]) -> str:
    """Run the export; returns nsys's message if it failed, else "". Raises ``ReadError`` if it takes too long."""
    options = ("--type=sqlite", "--force-overwrite=true", f"--output={draft}")
    command = [str(program), "export", *options, str(path.absolute())]
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as error:
        raise ReadError(f"{program} cannot be run ({error.strerror})") from error
    late = threading.Event()
    timer = threading.Timer(TIMEOUT_S, _stop, (process, late))
    timer.daemon = True
    timer.start()
    try:
        said = b"".join(_watched(process, progress)).decode(errors="replace")
        code = process.wait()
    finally:
        timer.cancel()
        with suppress(OSError):
            process.kill()
        process.wait()
    if late.is_set():
        raise ReadError(f"{program} export took longer than {TIMEOUT_S:,.0f} s and was stopped")
    if code == 0 and draft.exists():
        return ""
    return _words(said) or f"exit status {code} and no file"


def _stop(process: subprocess.Popen[bytes], late: threading.Event) -> None:
    late.set()
    process.kill()


def _watched(process: subprocess.Popen[bytes], progress: Callable[[float], None]) -> Iterator[bytes]:
    """Yield the program's output, and report the percentages in it as progress."""
    assert process.stdout is not None
    told = 0
    while piece := os.read(process.stdout.fileno(), 4096):
        percents = [int(number) for number in PERCENT.findall(piece)]
        if percents and told < percents[-1] <= 100:
            progress((percents[-1] - told) / 100)
            told = percents[-1]
        yield piece


def _words(said: str) -> str:
    """Return the program's message, without its progress bar."""
    lines = [PROGRESS.sub("", line).strip() for line in re.split(r"[\r\n]+", said)]
    return " ".join(line for line in lines if line)[:400]


def _failure(path: Path, program: Path, said: str) -> str:
    if TOO_NEW.search(said):
        release = _release_of(path)
        report = f"the report of nsys {release}" if release else "the report"
        needed = f"Nsight Systems {release} or later" if release else "a newer Nsight Systems"
        return (
            f"{report} is newer than {_version(program)} ({program}), which says: {said.rstrip('.')}. "
            f"Install {needed}, or {EXPORT_ELSEWHERE}"
        )
    if NO_IMPORTER.search(said):
        return f"{IMPORTER_MISSING}; it says: {said}"
    return f"{program} export failed: {said}"


def _release_of(path: Path) -> str:
    """Return which release of nsys wrote the report, from its last section; "" if it does not say."""
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - TAIL_BYTES, 0))
        found = VERSION.search(file.read())
    return found[0].decode() if found else ""


def _version(program: Path) -> str:
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        said = ""
    found = re.search(r"\d{4}\.\d[\w.-]*", said)
    return f"nsys {found[0]}" if found else "this nsys"
