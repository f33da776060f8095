-- Which single change is worth most? Grain: recording × span × scenario that tracedb whatif --store timed.
-- Dependencies are edited and timed again by the command (docs/what-if.md); this view ranks its answers by their gain.
-- Several changes made together, and the recording itself, have no place.
CREATE VIEW v1.whatif AS
SELECT
    w.capture_id, c.labels, w.rank, w.ranks, w.span,
    CASE WHEN w.changes = 1
        THEN rank() OVER (PARTITION BY w.capture_id, w.span, w.changes ORDER BY w.predicted_ns)
    END AS place,
    w.scenario, w.changes, w.steps, w.measured_ns, w.predicted_ns, w.gain_percent, w.bound_by, w.limit_ns, w.limit_percent,
    w.predicted_at
FROM main.whatif AS w
LEFT JOIN main.capture AS c ON c.capture_id = w.capture_id;

COMMENT ON VIEW v1.whatif IS 'Time of the recorded steps under changes, ranked by their gain, after tracedb whatif --store. Grain: recording × span × scenario.';
COMMENT ON COLUMN v1.whatif.capture_id IS 'Capture; of several ranks that are timed together the first. [-]';
COMMENT ON COLUMN v1.whatif.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.whatif.rank IS 'Rank that ends last under the scenario; NULL if unknown. [-]';
COMMENT ON COLUMN v1.whatif.ranks IS 'Number of captures that are timed together. [count]';
COMMENT ON COLUMN v1.whatif.span IS 'What is timed: steps, step N, window FROM:TO (ns), steps of a chosen range, or the whole capture.';
COMMENT ON COLUMN v1.whatif.place IS 'Place among the single changes of the recording and span, by gain; NULL for several changes together and for none. [-]';
COMMENT ON COLUMN v1.whatif.scenario IS 'The change, as options of tracedb whatif; no change for the recording itself.';
COMMENT ON COLUMN v1.whatif.changes IS 'Number of changes that are made together; 0 for the recording itself. [count]';
COMMENT ON COLUMN v1.whatif.steps IS 'Number of steps in the span; 0 if none is marked. [count]';
COMMENT ON COLUMN v1.whatif.measured_ns IS 'Time as recorded, from the start of the first step to the end of the last. [ns]';
COMMENT ON COLUMN v1.whatif.predicted_ns IS 'The same time under the scenario. [ns]';
COMMENT ON COLUMN v1.whatif.gain_percent IS 'By how much less that is. [percent]';
COMMENT ON COLUMN v1.whatif.bound_by IS 'What takes most of the critical path under the scenario (critical_path.bound_by).';
COMMENT ON COLUMN v1.whatif.limit_ns IS 'The time if the change were taken as far as it goes: the work takes no time. [ns]';
COMMENT ON COLUMN v1.whatif.limit_percent IS 'By how much less that is: the largest possible gain. [percent]';
COMMENT ON COLUMN v1.whatif.predicted_at IS 'When it was predicted, UTC.';
