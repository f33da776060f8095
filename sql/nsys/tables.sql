-- Tables of nsys as temporary views over the tables of a file: what `tracedb shell --as nsys` and `sql --as nsys` see.
-- Text ids are hashes of the text, so no dictionary is built; globalTid and globalPid are put together as nsys does
-- (machine << 48 | process << 24 | thread). The last column, captureId, is not nsys's. Correlation ids and process ids
-- repeat between captures, and queries join by them alone: so each capture after the first is a machine of its own, with
-- correlation ids of its own; a single capture keeps its recorded ids.
CREATE OR REPLACE TEMP MACRO nsys_text_id(value) AS (hash(value) >> 1)::BIGINT;
CREATE OR REPLACE TEMP MACRO nsys_process(pid, machine) AS ((machine + 1) << 48) + ((pid & 16777215) << 24);
CREATE OR REPLACE TEMP MACRO nsys_correlation(id, machine) AS id + (machine << 40);

CREATE OR REPLACE TEMP VIEW nsys_capture AS
-- The word in braces is replaced in catalog/nsys_tables.py: by nothing, or by a WHERE clause that selects captures.
SELECT c.capture_id, row_number() OVER (ORDER BY c.capture_id) - 1 AS machine
FROM main.capture AS c{captures};

CREATE OR REPLACE TEMP MACRO nsys_short_name(name) AS regexp_extract(
    regexp_replace(name, '<unnamed>::|\(anonymous namespace\)::', '', 'g'), '([A-Za-z_0-9]+) *(?:<.*)?(?:\(.*)?$', 1
);

CREATE OR REPLACE TEMP VIEW CUPTI_ACTIVITY_KIND_KERNEL AS
SELECT
    e.start_ns AS start, e.start_ns + e.duration_ns AS "end", e.device_id AS deviceId, e.context_id AS contextId,
    e.stream_id AS streamId, nsys_correlation(e.correlation_id, c.machine) AS correlationId,
    nsys_process(l.process_id, c.machine) AS globalPid,
    nsys_text_id(e.name) AS demangledName,
    nsys_text_id(nsys_short_name(e.name)) AS shortName,
    nsys_text_id(e.name) AS mangledName, e.registers_per_thread AS registersPerThread,
    e.grid_x AS gridX, e.grid_y AS gridY, e.grid_z AS gridZ,
    e.block_x AS blockX, e.block_y AS blockY, e.block_z AS blockZ,
    e.static_shared_bytes AS staticSharedMemory, e.dynamic_shared_bytes AS dynamicSharedMemory,
    e.graph_node_id AS graphNodeId, e.capture_id AS captureId
FROM main.kernel_event AS e
INNER JOIN nsys_capture AS c ON c.capture_id = e.capture_id
LEFT JOIN main.launch AS l ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id
WHERE e.kind = 'kernel';

CREATE OR REPLACE TEMP VIEW CUPTI_ACTIVITY_KIND_MEMCPY AS
SELECT
    e.start_ns AS start, e.start_ns + e.duration_ns AS "end", e.device_id AS deviceId, e.context_id AS contextId,
    e.stream_id AS streamId, nsys_correlation(e.correlation_id, c.machine) AS correlationId,
    nsys_process(l.process_id, c.machine) AS globalPid, e.bytes,
    CASE e.copy_kind
        WHEN 'HtoD' THEN 1 WHEN 'DtoH' THEN 2 WHEN 'DtoD' THEN 8 WHEN 'HtoH' THEN 9 WHEN 'PtoP' THEN 10 ELSE 0
    END AS copyKind,
    e.graph_node_id AS graphNodeId, e.capture_id AS captureId
FROM main.kernel_event AS e
INNER JOIN nsys_capture AS c ON c.capture_id = e.capture_id
LEFT JOIN main.launch AS l ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id
WHERE e.kind = 'memcpy';

CREATE OR REPLACE TEMP VIEW CUPTI_ACTIVITY_KIND_MEMSET AS
SELECT
    e.start_ns AS start, e.start_ns + e.duration_ns AS "end", e.device_id AS deviceId, e.context_id AS contextId,
    e.stream_id AS streamId, nsys_correlation(e.correlation_id, c.machine) AS correlationId,
    nsys_process(l.process_id, c.machine) AS globalPid, e.bytes,
    e.graph_node_id AS graphNodeId, e.capture_id AS captureId
FROM main.kernel_event AS e
INNER JOIN nsys_capture AS c ON c.capture_id = e.capture_id
LEFT JOIN main.launch AS l ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id
WHERE e.kind = 'memset';

CREATE OR REPLACE TEMP VIEW CUPTI_ACTIVITY_KIND_RUNTIME AS
SELECT
    l.start_ns AS start, l.start_ns + l.duration_ns AS "end",
    nsys_process(l.process_id, c.machine) + (l.thread_id & 16777215) AS globalTid,
    nsys_correlation(l.correlation_id, c.machine) AS correlationId, nsys_text_id(l.name) AS nameId, l.capture_id AS captureId
FROM main.launch AS l
INNER JOIN nsys_capture AS c ON c.capture_id = l.capture_id;

CREATE OR REPLACE TEMP VIEW NVTX_EVENTS AS
SELECT
    a.start_ns AS start, a.start_ns + a.duration_ns AS "end",
    CASE a.style WHEN 'mark' THEN 34 WHEN 'start_end' THEN 60 ELSE 59 END AS eventType,
    CASE WHEN a.style = 'start_end' THEN a.annotation_id END AS rangeId,
    a.name AS text, nsys_process(a.process_id, c.machine) + (a.thread_id & 16777215) AS globalTid,
    nsys_text_id(a.name) AS textId, a.domain AS domainName, a.capture_id AS captureId
FROM main.annotation AS a
INNER JOIN nsys_capture AS c ON c.capture_id = a.capture_id
WHERE a.style IN ('push_pop', 'start_end', 'mark', 'user');

CREATE OR REPLACE TEMP VIEW StringIds AS
SELECT nsys_text_id(t.value) AS id, t.value
FROM (
    SELECT e.name AS value FROM main.kernel_event AS e
    UNION
    SELECT nsys_short_name(e.name) FROM main.kernel_event AS e
    UNION
    SELECT l.name FROM main.launch AS l
    UNION
    SELECT a.name FROM main.annotation AS a
) AS t;

CREATE OR REPLACE TEMP VIEW ENUM_CUDA_MEMCPY_OPER AS
SELECT *
FROM (VALUES
    (0, 'CUDA_MEMCPY_KIND_UNKNOWN', 'Unknown'), (1, 'CUDA_MEMCPY_KIND_HTOD', 'Host-to-Device'),
    (2, 'CUDA_MEMCPY_KIND_DTOH', 'Device-to-Host'), (8, 'CUDA_MEMCPY_KIND_DTOD', 'Device-to-Device'),
    (9, 'CUDA_MEMCPY_KIND_HTOH', 'Host-to-Host'), (10, 'CUDA_MEMCPY_KIND_PTOP', 'Peer-to-Peer')
) AS v (id, name, label);

CREATE OR REPLACE TEMP VIEW TARGET_INFO_GPU AS
SELECT DISTINCT
    d.device_id AS id, d.name, d.memory_bytes AS totalMemory, d.sm_count AS smCount,
    d.max_clock_mhz * 1000000::BIGINT AS clockRate, d.uuid
FROM main.device AS d
INNER JOIN nsys_capture AS c ON c.capture_id = d.capture_id;
