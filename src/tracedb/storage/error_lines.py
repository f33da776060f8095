"""Turn any exception of a reader, a library or the database engine into one line for the user.

Needs neither DuckDB nor Arrow: their errors are recognised by the name of the defining module.
"""

from __future__ import annotations

import re
import sys
import threading
import traceback

from tracedb.errors import QUERY_INTERRUPTED, TracedbError

STOPPED = threading.Event()
"""Set once a signal has asked this process to stop: later failures may be consequences of it."""
LONGEST = 400
"""Characters kept of an exception's message."""
_WRAPPED_INTERRUPT = "failed: KeyboardInterrupt"
"""Part of DuckDB's message if Ctrl-C arrives while Python hands it a table."""
_ABORTED = "transaction is aborted"
_LIBRARIES = frozenset({"duckdb", "_duckdb", "pyarrow"})
_DECODERS = frozenset({"gzip", "lzma", "msgspec", "sqlite3", "struct", "zlib", "zstandard"})
_FILE_FAULTS = frozenset({"IOException", "SerializationException", "FatalException"})
_NO_ROOM = frozenset({"No space left on device", "File too large", "Disk quota exceeded"})
_CONDITION = re.compile(
    "|".join((*sorted(_NO_ROOM), "Too many open files", "Input/output error", "Read-only file system"))
)
"""Messages of the operating system if a file cannot be read or written."""
_KIND_OF_ERROR = re.compile(r"^(?:\w+ )*Error: ")


def is_interrupt(error: BaseException) -> bool:
    """Whether an exception is a Ctrl-C that a library has converted."""
    if STOPPED.is_set():
        return True
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, KeyboardInterrupt) or type(seen).__name__ == "InterruptException":
            return True
        if str(seen) == QUERY_INTERRUPTED or _WRAPPED_INTERRUPT in str(seen):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def one_line(error: BaseException, reader: str | None = None) -> str:
    """Describe an exception in one line; ``reader`` is the active ingester.

    tracedb's own errors have a message already. Errors of decoders, of the operating system and of files are faults of
    the input; any other exception is a bug, and is given with its place so that it can be reported.
    """
    if isinstance(error, TracedbError):
        return _shortened(str(error))
    if type(error).__name__ == "OutOfMemoryException":
        return f"not enough memory ({_shortened(str(error), 200)}); raise --memory-limit"
    if isinstance(error, MemoryError):
        return "not enough memory to read it; read fewer files at once (--jobs 1), or on a larger machine"
    library = type(error).__module__.partition(".")[0]
    if library in _LIBRARIES:
        return _of_engine(error, reader)
    if isinstance(error, OSError | UnicodeError):
        return _shortened(str(error)) or type(error).__name__
    if isinstance(error, EOFError) or library in _DECODERS:
        return f"damaged, cut, or of an unknown layout: {_named(error)} ({_where(error, reader)})"
    return f"internal fault of {_where(error, reader)}: {_named(error)}; please report it"


def engine_words(error: BaseException) -> str:
    """Return the database engine's message, without the kind of error and the excerpt of the query."""
    words = []
    for line in str(error).splitlines():
        if line.startswith("LINE "):
            break
        if line.strip():
            words.append(line.strip())
    return _shortened(_KIND_OF_ERROR.sub("", " ".join(words)))


def unwritten(error: BaseException) -> str | None:
    """Say why the engine could not write a file, and what to do; None if the operating system did not fail."""
    found = _CONDITION.search(str(error))
    if found is None:
        return None
    advice = "; make room and run it again" if found[0] in _NO_ROOM else "; fix that and run it again"
    return f"cannot be {'read' if 'not read' in str(error) else 'written'} ({found[0]}){advice}"


def _of_engine(error: BaseException, reader: str | None) -> str:
    first = error
    while _ABORTED in str(first) and (earlier := first.__cause__ or first.__context__) is not None:
        first = earlier
    if first is not error:
        return one_line(first, reader)
    if _ABORTED in str(error):
        return f"internal fault of {_where(error, reader)}: a statement before this one had failed; please report it"
    words = engine_words(error) or type(error).__name__
    if why := unwritten(error):
        named = re.search(r'file "([^"]+)"', words)
        return f"{named[1] if named else 'a file'} {why}"
    if type(error).__name__ in _FILE_FAULTS or words.startswith("Corrupt database file"):
        return words
    return f"holds values that cannot be stored: {words} ({_where(error, reader)}); please report it"


def _where(error: BaseException, reader: str | None) -> str:
    """Return the component that failed, and its innermost line outside of libraries."""
    frames = [(frame.f_globals.get("__name__", "?"), line) for frame, line in traceback.walk_tb(error.__traceback__)]
    own = [item for item in frames if not _is_library(item[0])] or frames
    place = f" in {own[-1][0]} line {own[-1][1]}" if own else ""
    is_ours = not own or own[-1][0].partition(".")[0] == "tracedb"
    who = "tracedb" if reader is None else f"tracedb after ingester {reader}" if is_ours else f"ingester {reader}"
    return who + place


def _is_library(module: str) -> bool:
    top = module.partition(".")[0]
    return top in sys.stdlib_module_names or top in _LIBRARIES or top in _DECODERS or top in ("numpy", "click")


def _named(error: BaseException) -> str:
    said = _shortened(str(error))
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _shortened(text: str, longest: int = LONGEST) -> str:
    return " ".join(text.split())[:longest]
