"""Find where events begin and end in text that does not parse as a whole."""

from __future__ import annotations

import json
import re
from itertools import islice

EVENT_START = re.compile(rb'\{\s*"(?:ph|cat|name|pid|tid|ts|dur|args|id)"\s*:')
PHASE = re.compile(rb'"ph"\s*:\s*"[^"]{0,2}"\s*,')
"""A key that only events have, not their arguments."""
PHASE_START = re.compile(rb"\{\s*" + PHASE.pattern)
OBJECTS_MEET = re.compile(rb"\}\s*,(?=\s*\{)")
"""Where an event may end and the next event, or object of a list, begins."""
EVENT_KEY = re.compile(rb'"(?:ph|cat|ts|dur|pid|tid)"|\{\s*"(?:name|args|id|bp|s|cname|sf|tts|bind_id|scope)"\s*:')
MANY_STARTS = 20  # candidate starts of an event tried inside a lost piece

_raw = json.JSONDecoder(strict=False)


def boundary(text: bytes, place: int) -> re.Match[bytes] | None:
    """Return where the event at ``place`` ends and another follows, valid or not; None if none follows.

    Objects in lists inside an event meet as events do, but lack an event's key. The same boundary is found wherever
    blocks are split, so a malformed piece ends at the same place inside a block and at its end.
    """
    found = OBJECTS_MEET.search(text, place)
    while found is not None:
        following = OBJECTS_MEET.search(text, found.end())
        if EVENT_KEY.search(text, found.end(), following.start() if following else len(text)):
            return found
        found = following
    return None


def is_event(latin: str, place: int) -> bool:
    """Whether a whole event follows the white space at ``place``."""
    try:
        value, _ = _raw.raw_decode(latin, latin.index("{", place))
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "ph" in value and "name" in value


def next_start(text: bytes, latin: str, place: int, end: int) -> int:
    """Where to resume after a lost piece: at a whole event that begins inside it, else after it."""
    for start in islice(EVENT_START.finditer(text, place + 1, end), MANY_STARTS):
        if is_event(latin, start.start()):
            return start.start()
    return end
