"""Which files are memory snapshots of PyTorch, and which are pickled ones, by their first bytes."""

from __future__ import annotations

import re

KEYS = re.compile(rb'"(?:device_traces|segments)"\s*:\s*\[')
OWN_KEYS = re.compile(rb'"(?:device_traces|segment_type|segment_pool_id|total_size)"\s*:')
BARE = re.compile(rb'^\[\s*\{[^{\[]{0,2000}"total_size"\s*:')  # torch.cuda.memory_snapshot(): the segments alone
PICKLE = re.compile(rb"^\x80[\x02-\x05]")
PICKLED_KEYS = (b"segments", b"device_traces")
AS_PICKLE = (
    "a memory snapshot of PyTorch as pickle, which is never unpickled, because that would run any code in it; if you "
    "trust the file, convert it and ingest the JSON: "
    """python -c "import json, pickle, sys; json.dump(pickle.load(open(sys.argv[1], 'rb')), open(sys.argv[2], 'w'))" """
    "FILE.pickle FILE.json"
)


def is_snapshot(start: bytes) -> bool:
    """Whether a JSON text that begins like this, without leading space, is a memory snapshot."""
    if start.startswith(b"{"):
        return KEYS.search(start) is not None and OWN_KEYS.search(start) is not None
    return BARE.match(start) is not None


def is_pickled(start: bytes) -> bool:
    """Whether a file that begins like this is a pickled memory snapshot."""
    return PICKLE.match(start) is not None and any(key in start for key in PICKLED_KEYS)
