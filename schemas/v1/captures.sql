-- What was loaded: captures, their devices, and what ingest skipped, repaired or guessed.

CREATE TABLE main.capture (
    capture_id INTEGER PRIMARY KEY,
    source VARCHAR NOT NULL,
    path VARCHAR,
    part INTEGER NOT NULL DEFAULT 0,
    sha256 VARCHAR,
    size_bytes BIGINT,
    host VARCHAR,
    pid BIGINT,
    rank INTEGER,
    world_size INTEGER,
    tool_version VARCHAR,
    clock_zero_unix_ns BIGINT,
    status VARCHAR NOT NULL DEFAULT 'complete'
        CHECK (status IN ('complete', 'truncated', 'repaired', 'no_gpu_activity')),
    labels MAP(VARCHAR, VARCHAR) NOT NULL DEFAULT MAP {},
    events_read BIGINT,
    events_skipped BIGINT,
    rows_written BIGINT,
    ingester VARCHAR,
    metadata VARCHAR,
    ingested_at TIMESTAMP
);
COMMENT ON TABLE main.capture IS 'One process''s trace by one profiler.';
COMMENT ON COLUMN main.capture.capture_id IS 'Number of the capture in this file. [-]';
COMMENT ON COLUMN main.capture.source IS 'Profiler or format: torch, torch_memory (a memory snapshot), nsys, rocprofv3, rocpd, or the name that a third-party ingester gives.';
COMMENT ON COLUMN main.capture.path IS 'Path of the file, as given to ingest.';
COMMENT ON COLUMN main.capture.part IS 'Number of the process within the file; 0 unless the file holds several. [-]';
COMMENT ON COLUMN main.capture.sha256 IS 'SHA-256 over the bytes of all its files on disk; files that are already loaded are recognised by it.';
COMMENT ON COLUMN main.capture.size_bytes IS 'Size of all its files on disk. [bytes]';
COMMENT ON COLUMN main.capture.host IS 'Host name as recorded; NULL if not captured.';
COMMENT ON COLUMN main.capture.pid IS 'Process id on the recording machine. [-]';
COMMENT ON COLUMN main.capture.rank IS 'Rank: from the trace, else from path or file name, else NULL. [-]';
COMMENT ON COLUMN main.capture.world_size IS 'Number of ranks of the job as recorded; NULL if not captured. [count]';
COMMENT ON COLUMN main.capture.tool_version IS 'Version of the recording tool or trace format, as text.';
COMMENT ON COLUMN main.capture.clock_zero_unix_ns IS 'Unix time at zero of the capture''s clock; NULL if unknown. [ns]';
COMMENT ON COLUMN main.capture.status IS 'complete; truncated (the file ends early); repaired (events were repaired or lost); no_gpu_activity.';
COMMENT ON COLUMN main.capture.labels IS 'Labels from the path, --label and --labels-from: sweep, threads, channels and others.';
COMMENT ON COLUMN main.capture.events_read IS 'Events found in the files: rows_written plus events_skipped. [count]';
COMMENT ON COLUMN main.capture.events_skipped IS 'Events that produced no row; ingest_issue has the reasons. [count]';
COMMENT ON COLUMN main.capture.rows_written IS 'Rows produced from events, over all event tables. [count]';
COMMENT ON COLUMN main.capture.ingester IS 'Ingester and the version of its package.';
COMMENT ON COLUMN main.capture.metadata IS 'Selected trace header fields as JSON text (format, versions, backend, process groups).';
COMMENT ON COLUMN main.capture.ingested_at IS 'When the capture was loaded, UTC.';

CREATE TABLE main.device (
    capture_id INTEGER NOT NULL,
    device_id INTEGER NOT NULL,
    vendor VARCHAR,
    name VARCHAR,
    sm_count INTEGER,
    max_clock_mhz INTEGER,
    memory_bytes BIGINT,
    uuid VARCHAR,
    arch VARCHAR,
    is_used BOOLEAN
);
COMMENT ON TABLE main.device IS 'One GPU of a capture, used or only visible to the process.';
COMMENT ON COLUMN main.device.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.device.device_id IS 'Device number, as in the GPU rows of this capture. [-]';
COMMENT ON COLUMN main.device.vendor IS 'NVIDIA, AMD or another vendor; NULL if unknown.';
COMMENT ON COLUMN main.device.name IS 'Product name as recorded; NULL if not captured.';
COMMENT ON COLUMN main.device.sm_count IS 'Number of streaming multiprocessors or compute units. [count]';
COMMENT ON COLUMN main.device.max_clock_mhz IS 'Maximum clock of the compute units; NULL if not captured. [MHz]';
COMMENT ON COLUMN main.device.memory_bytes IS 'Device memory. [bytes]';
COMMENT ON COLUMN main.device.uuid IS 'Device UUID; NULL if not captured.';
COMMENT ON COLUMN main.device.arch IS 'Architecture, such as sm_90 or gfx94x.';
COMMENT ON COLUMN main.device.is_used IS 'Whether any GPU row of the capture is on this device.';

CREATE TABLE main.ingest_issue (
    capture_id INTEGER,
    code VARCHAR NOT NULL,
    severity VARCHAR NOT NULL DEFAULT 'note' CHECK (severity IN ('note', 'warning')),
    count BIGINT NOT NULL DEFAULT 1,
    skipped BIGINT NOT NULL DEFAULT 0,
    detail VARCHAR
);
COMMENT ON TABLE main.ingest_issue IS 'What ingest skipped, repaired, guessed or ignored.';
COMMENT ON COLUMN main.ingest_issue.capture_id IS 'Capture; NULL for a file that gave no capture. [-]';
COMMENT ON COLUMN main.ingest_issue.code IS 'Code, such as event_repaired or flow_events; docs/issue-codes.md lists all of them.';
COMMENT ON COLUMN main.ingest_issue.severity IS 'note: not stored by design; warning: the file is faulty, and --strict fails.';
COMMENT ON COLUMN main.ingest_issue.count IS 'Number of events concerned. [count]';
COMMENT ON COLUMN main.ingest_issue.skipped IS 'Number of them that produced no row; the sum over codes is capture.events_skipped. [count]';
COMMENT ON COLUMN main.ingest_issue.detail IS 'What was found, where, and how it was handled.';
