-- Adds the values of one side of a comparison, by unit: a step of a rank if all its captures mark steps, else a
-- capture.
-- In:  {db}: the database of the side; {side}: its number; {captures}: condition on a capture c; {skip}: number of
--      steps to skip; temp table side_left_out (left_out.sql); session variable step_range (see v1._step).
-- Out: more rows of temp tables side_unit(side, unit) and side_value(side, kind, name, unit, calls, total_ns); for this
--      side only, side_capture(capture_id), side_marked(by_step, captures, without_steps). More rows of side_run(side,
--      capture_id, run): which captures are ranks of one run, as in v1.configurations; captures of unknown rank belong
--      to the run of their file.
CREATE OR REPLACE TEMP TABLE side_capture AS
SELECT c.capture_id
FROM {db}.main.capture AS c
WHERE c.status <> 'no_gpu_activity' AND ({captures})
    AND c.capture_id NOT IN (SELECT o.capture_id FROM side_left_out AS o WHERE o.side = {side});

INSERT INTO side_run
SELECT {side}, s.capture_id, CASE WHEN s.rank IS NULL THEN 'file ' || c.path ELSE 'set ' || s.set_id END
FROM {db}.v1._capture_set AS s
INNER JOIN {db}.main.capture AS c ON c.capture_id = s.capture_id
SEMI JOIN side_capture AS h ON h.capture_id = s.capture_id;

CREATE OR REPLACE TEMP TABLE side_event AS
SELECT
    e.capture_id, s.step, s.step_index, e.kind, e.name, e.class, e.duration_ns,
    CASE WHEN e.class = 'matmul' THEN o.input_dims END AS input_dims,
    e.collective
FROM {db}.v1._gpu_event AS e
SEMI JOIN side_capture AS c ON c.capture_id = e.capture_id
LEFT JOIN {db}.v1._step_kernel AS s ON s.capture_id = e.capture_id AND s.event_id = e.event_id
LEFT JOIN {db}.main.op AS o ON e.class = 'matmul' AND o.capture_id = e.capture_id AND o.op_id = e.op_id
WHERE e.kind = 'kernel';

CREATE OR REPLACE TEMP TABLE side_marked AS
SELECT
    count(DISTINCT capture_id) AS captures,
    captures - count(DISTINCT capture_id) FILTER (step IS NOT NULL) AS without_steps,
    without_steps = 0 AS by_step
FROM side_event;

CREATE OR REPLACE TEMP TABLE side_measured AS
SELECT
    CASE WHEN m.by_step THEN e.capture_id || '/' || e.step ELSE e.capture_id::VARCHAR END AS unit,
    e.name, e.class, e.input_dims, e.collective, e.duration_ns
FROM side_event AS e
CROSS JOIN side_marked AS m
WHERE (m.by_step AND e.step_index > {skip}) OR (NOT m.by_step AND {skip} = 0);

INSERT INTO side_unit
SELECT DISTINCT {side}, unit
FROM side_measured;

INSERT INTO side_value
SELECT {side}, 'total', 'kernel time', unit, count(*), sum(duration_ns)
FROM side_measured
GROUP BY unit
UNION ALL
SELECT {side}, 'class', class, unit, count(*), sum(duration_ns)
FROM side_measured
GROUP BY unit, class
UNION ALL
SELECT {side}, 'kernel', name, unit, count(*), sum(duration_ns)
FROM side_measured
GROUP BY unit, name
UNION ALL
SELECT {side}, 'gemm', name || coalesce(' ' || input_dims, ''), unit, count(*), sum(duration_ns)
FROM side_measured
WHERE class = 'matmul'
GROUP BY unit, name, input_dims
UNION ALL
SELECT {side}, 'collective', coalesce(collective, name), unit, count(*), sum(duration_ns)
FROM side_measured
WHERE class = 'collective'
GROUP BY unit, coalesce(collective, name);
