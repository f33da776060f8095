"""The staging tables and their columns: narrow rows as they are in the file, before linking.

This is the single declaration: of the SQL tables, of the batches of both readers (the compiled one in the order of its
``rows.h``), and of the columns held in memory. Names and other texts are numbers that refer to ``text``.
"""

from __future__ import annotations

DDL = {
    "gpu": """event_id BIGINT, pid BIGINT, tid BIGINT, kind VARCHAR, name BIGINT, start_ns BIGINT, duration_ns BIGINT,
        external_id BIGINT, device_id BIGINT, context_id BIGINT, stream_id BIGINT, correlation_id BIGINT,
        registers BIGINT, shared_bytes BIGINT, grid_x BIGINT, grid_y BIGINT, grid_z BIGINT, block_x BIGINT,
        block_y BIGINT, block_z BIGINT, occupancy DOUBLE, bytes BIGINT, graph_id BIGINT, graph_node_id BIGINT""",
    "launch": """launch_id BIGINT, pid BIGINT, tid BIGINT, name BIGINT, start_ns BIGINT, duration_ns BIGINT,
        external_id BIGINT, correlation_id BIGINT, kernel BIGINT, graph_node_id BIGINT""",
    "op": """op_id BIGINT, pid BIGINT, tid BIGINT, name BIGINT, start_ns BIGINT, duration_ns BIGINT,
        external_id BIGINT, sequence_number BIGINT, forward_thread_id BIGINT, input_dims BIGINT, input_types BIGINT,
        input_strides BIGINT, concrete_inputs BIGINT""",
    "annotation": """annotation_id BIGINT, pid BIGINT, tid BIGINT, name BIGINT, style VARCHAR, start_ns BIGINT,
        duration_ns BIGINT, device_id BIGINT, stream_id BIGINT""",
    "frame": """frame_id BIGINT, pid BIGINT, tid BIGINT, name BIGINT, start_ns BIGINT, duration_ns BIGINT,
        python_id BIGINT, python_parent BIGINT""",
    "message": """event_id BIGINT, collective VARCHAR, message_in BIGINT, message_out BIGINT, in_splits VARCHAR,
        out_splits VARCHAR, dtype VARCHAR, group_name VARCHAR, group_size BIGINT, group_ranks VARCHAR,
        source_rank BIGINT, destination_rank BIGINT, peer BIGINT, sequence BIGINT""",
    "memory": """memory_event_id BIGINT, pid BIGINT, tid BIGINT, start_ns BIGINT, device_type BIGINT,
        device_id BIGINT, address BIGINT, bytes BIGINT, allocated BIGINT, reserved BIGINT""",
    "sync": """sync_id BIGINT, pid BIGINT, tid BIGINT, sync_kind VARCHAR, start_ns BIGINT, duration_ns BIGINT,
        device_id BIGINT, context_id BIGINT, stream_id BIGINT, correlation_id BIGINT, waited_stream_id BIGINT,
        cuda_event_id BIGINT, record_correlation_id BIGINT""",
    "counted": """counted_id BIGINT, pid BIGINT, tid BIGINT, name BIGINT, start_ns BIGINT, duration_ns BIGINT""",
    "metric": "counted_id BIGINT, name BIGINT, value DOUBLE",
    "text": "id BIGINT, value VARCHAR",
    "process": "pid BIGINT, name VARCHAR",
}
"""Columns by table, as in CREATE TABLE."""
COLUMNS = {table: dict(column.split() for column in columns.split(",")) for table, columns in DDL.items()}
"""SQL types by table and column, in the table's order."""
SCANNED = ("gpu", "launch", "op", "annotation", "frame")
"""Tables filled by the compiled reader, in its order."""
NUMBERED = (*SCANNED, "memory", "sync", "counted")
"""Tables with one row per event, with its start and process; the first column numbers the events."""
