"""The collective metadata of events: name, sizes, type and group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracedb_torch.decode import event_types as ev
from tracedb_torch.decode.checked_fields import MOST_SMALL, CheckedFields, batch_of
from tracedb_torch.decode.values import number_of, text_of


def messages(fields: CheckedFields, ordinals: npt.NDArray[np.int64], args: Sequence[Any]) -> pa.RecordBatch | None:
    """Return ``message`` rows for the events that have such metadata; None if none has."""
    places = [place for place, a in enumerate(args) if a.collective is not ev.NOTHING]
    if not places:
        return None
    args = [args[place] for place in places]
    return batch_of(
        "message",
        event_id=pa.array(ordinals[places]),
        collective=pa.array([text_of(a.collective) for a in args], pa.string()),
        message_in=fields.whole("In msg nelems", [number_of(a.message_in) for a in args]),
        message_out=fields.whole("Out msg nelems", [number_of(a.message_out) for a in args]),
        in_splits=pa.array([_splits(a.in_splits) for a in args], pa.string()),
        out_splits=pa.array([_splits(a.out_splits) for a in args], pa.string()),
        dtype=pa.array([text_of(a.dtype) for a in args], pa.string()),
        group_name=pa.array([text_of(a.group_name) for a in args], pa.string()),
        group_size=fields.whole("Group size", [number_of(a.group_size) for a in args], most=MOST_SMALL),
        group_ranks=pa.array([text_of(a.group_ranks) for a in args], pa.string()),
        source_rank=fields.whole("Src Rank", [number_of(a.source_rank) for a in args], most=MOST_SMALL),
        destination_rank=fields.whole("Dst Rank", [number_of(a.destination_rank) for a in args], most=MOST_SMALL),
        peer=fields.whole("Rank", [number_of(a.peer) for a in args], -MOST_SMALL, MOST_SMALL),
        sequence=fields.whole("Seq", [number_of(a.sequence) for a in args]),
    )


def _splits(value: Any) -> str | None:
    """Return the split sizes per rank; None for an empty list, which means even splits."""
    text = text_of(value)
    return None if text is None or text.strip() in ("", "[]") else text
