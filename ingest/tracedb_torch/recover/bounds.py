"""Where events begin and end in text that does not parse as a whole."""

from __future__ import annotations

import json
import re
from itertools import islice

EVENT_START = re.compile(rb'\{\s*"(?:ph|cat|name|pid|tid|ts|dur|args|id)"\s*:')
PHASE = re.compile(rb'"ph"\s*:\s*"[^"]{0,2}"\s*,')
"""Only events have one, not what stands in their arguments."""
PHASE_START = re.compile(rb"\{\s*" + PHASE.pattern)
OBJECTS_MEET = re.compile(rb"\}\s*,(?=\s*\{)")
"""Where an event may end, and another one or another object of a list begin."""
EVENT_KEY = re.compile(rb'"(?:ph|cat|ts|dur|pid|tid)"|\{\s*"(?:name|args|id|bp|s|cname|sf|tts|bind_id|scope)"\s*:')
MANY_STARTS = 20  # places at which an event is looked for inside a lost piece

_raw = json.JSONDecoder(strict=False)


def boundary(text: bytes, place: int) -> re.Match[bytes] | None:
    """Return where the event at ``place`` ends and another follows, sound or not; None if none follows.

    Objects in lists inside an event meet as events do, but have no key of an event. Wherever blocks are cut, a boundary
    is found, so that what is malformed ends at the same place inside a block and at the end of one.
    """
    found = OBJECTS_MEET.search(text, place)
    while found is not None:
        following = OBJECTS_MEET.search(text, found.end())
        if EVENT_KEY.search(text, found.end(), following.start() if following else len(text)):
            return found
        found = following
    return None


def is_event(latin: str, place: int) -> bool:
    """Whether a whole event stands after the blanks at ``place``."""
    try:
        value, _ = _raw.raw_decode(latin, latin.index("{", place))
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "ph" in value and "name" in value


def next_start(text: bytes, latin: str, place: int, end: int) -> int:
    """Where to read on after a lost piece: at a whole event that begins inside it, else behind it."""
    for start in islice(EVENT_START.finditer(text, place + 1, end), MANY_STARTS):
        if is_event(latin, start.start()):
            return start.start()
    return end
