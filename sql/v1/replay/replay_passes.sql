-- What does a pass take as recorded, and what do the times of its operators alone say that it takes?
-- Grain: recorded pass × rule of the latest replay of a capture. Rules, from the naive to the whole pass run again:
--   naive_sum       calls of an average pass times their replayed medians; what was not replayed is missing
--   kernel_sum      the same with kernel durations, and the recorded time of what was not replayed
--   union_gaps      kernel_sum, shortened as the recorded kernels overlap, and the recorded time without any kernel
--   sequence        the pass replayed call by call, and the recorded time of what was not replayed
--   sequence_graph  the pass replayed as one CUDA graph, likewise
-- Energy: joules of the measured operators, their mean power for the rest of the busy time, the idle device's otherwise.
CREATE VIEW v1.replay_passes AS
WITH sums AS (
    SELECT
        s.replay_id,
        sum(s.calls_per_pass * s.replayed_median_ns) FILTER (s.status = 'replayed') AS naive_ns,
        sum(s.calls_per_pass * coalesce(s.replayed_kernel_median_ns, s.replayed_median_ns)) FILTER (s.status = 'replayed')
            AS replayed_ns,
        sum(s.share_percent) FILTER (s.status = 'replayed' AND s.replayed_median_ns IS NOT NULL) AS replayed_percent,
        sum(s.calls_per_pass * s.joules) AS joules,
        sum(s.calls_per_pass * s.replayed_median_ns) FILTER (s.joules IS NOT NULL) AS joules_ns
    FROM main.replay AS s
    GROUP BY s.replay_id
),
passes AS (
    SELECT
        u.replay_id, u.capture_id, u.activity, p.pass, p.name, p.step,
        p.events, p.kernel_sum_ns, p.union_ns, p.span_ns, p.idle_ns, p.launch_gap_ns,
        coalesce(round(u.measured_ns)::BIGINT, p.wall_ns) AS wall_ns,
        p.wall_ns AS recorded_wall_ns,
        CASE WHEN u.measured_ns IS NULL THEN 'trace' ELSE 'measured' END AS wall_source,
        u.measured_joules, u.idle_watts, u.sequence_joules,
        s.naive_ns, s.replayed_ns, coalesce(s.replayed_percent, 0) AS replayed_percent, s.joules, s.joules_ns,
        p.kernel_sum_ns * (1 - coalesce(s.replayed_percent, 0) / 100) AS other_ns,
        u.sequence_eager_ns, u.sequence_graph_ns,
        p.kernel_sum_ns * (1 - u.sequence_share_percent / 100) AS sequence_other_ns
    FROM main.replay_pass AS p
    INNER JOIN v1._replay_latest AS l ON l.replay_id = p.replay_id
    INNER JOIN main.replay_run AS u ON u.replay_id = p.replay_id
    LEFT JOIN sums AS s ON s.replay_id = p.replay_id
),
predictions AS (
    SELECT
        p.replay_id, p.pass,
        unnest([
            {'name': 'naive_sum', 'place': 1, 'ns': p.naive_ns},
            {'name': 'kernel_sum', 'place': 2, 'ns': p.replayed_ns + p.other_ns},
            {'name': 'union_gaps', 'place': 3, 'ns': (p.replayed_ns + p.other_ns) * p.union_ns / nullif(p.kernel_sum_ns, 0)
                + p.recorded_wall_ns - p.union_ns},
            {'name': 'sequence', 'place': 4, 'ns': p.sequence_eager_ns + p.sequence_other_ns},
            {'name': 'sequence_graph', 'place': 5, 'ns': p.sequence_graph_ns + p.sequence_other_ns}
        ]) AS rule
    FROM passes AS p
)
SELECT
    p.replay_id, p.capture_id, p.pass, p.name, p.step,
    p.events, p.kernel_sum_ns, p.union_ns, p.span_ns, p.idle_ns, p.launch_gap_ns,
    p.wall_ns, p.wall_source, p.recorded_wall_ns,
    p.replayed_percent,
    r.rule.name AS rule,
    r.rule.place AS rule_order,
    round(r.rule.ns)::BIGINT AS predicted_ns,
    100.0 * (r.rule.ns - p.wall_ns) / nullif(p.wall_ns, 0) AS error_percent,
    100.0 * (r.rule.ns - p.recorded_wall_ns) / nullif(p.recorded_wall_ns, 0) AS recorded_error_percent,
    CASE r.rule.name
        WHEN 'union_gaps' THEN
            p.joules
            + p.joules / nullif(p.joules_ns, 0) * greatest(p.replayed_ns + p.other_ns - p.joules_ns, 0)
            + p.idle_watts / 1e9 * greatest(p.wall_ns - p.replayed_ns - p.other_ns, 0)
        WHEN 'sequence' THEN p.sequence_joules
    END AS predicted_joules,
    p.measured_joules,
    100.0 * (predicted_joules - p.measured_joules) / nullif(p.measured_joules, 0) AS joules_error_percent
FROM predictions AS r
INNER JOIN passes AS p ON p.replay_id = r.replay_id AND p.pass = r.pass
WHERE r.rule.ns IS NOT NULL;

COMMENT ON VIEW v1.replay_passes IS 'Recorded passes beside what replayed operators predict for them, by several rules. Grain: pass × rule of the latest replay of a capture.';
COMMENT ON COLUMN v1.replay_passes.replay_id IS 'Run of tracedb replay. [-]';
COMMENT ON COLUMN v1.replay_passes.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.replay_passes.pass IS 'Number of the pass, from 1 in the order of time. [-]';
COMMENT ON COLUMN v1.replay_passes.name IS 'Name of the step or range; capture for the whole capture.';
COMMENT ON COLUMN v1.replay_passes.step IS 'Step number; NULL for other passes. [-]';
COMMENT ON COLUMN v1.replay_passes.events IS 'GPU events of the pass; of a capture of the CPU only, operators. [count]';
COMMENT ON COLUMN v1.replay_passes.kernel_sum_ns IS 'Sum of their recorded durations. [ns]';
COMMENT ON COLUMN v1.replay_passes.union_ns IS 'Recorded time during which at least one of them runs. [ns]';
COMMENT ON COLUMN v1.replay_passes.span_ns IS 'From the first start to the last end. [ns]';
COMMENT ON COLUMN v1.replay_passes.idle_ns IS 'Span less union. [ns]';
COMMENT ON COLUMN v1.replay_passes.launch_gap_ns IS 'Part of the idle time during which nothing was launched yet: the GPU waited for the CPU. NULL where launches were not recorded. [ns]';
COMMENT ON COLUMN v1.replay_passes.wall_ns IS 'Wall time that predictions are compared with: given by --measured, else that of the trace. [ns]';
COMMENT ON COLUMN v1.replay_passes.wall_source IS 'measured (given by --measured, without a profiler) or trace.';
COMMENT ON COLUMN v1.replay_passes.recorded_wall_ns IS 'Wall time by the trace: from the start of the range to its end or to the last end on the GPU, if that is later. [ns]';
COMMENT ON COLUMN v1.replay_passes.replayed_percent IS 'Share of the recorded time whose operators were replayed. [percent]';
COMMENT ON COLUMN v1.replay_passes.rule IS 'How the prediction is made: naive_sum, kernel_sum, union_gaps, sequence, sequence_graph.';
COMMENT ON COLUMN v1.replay_passes.rule_order IS 'Place of the rule, from the naive to the whole pass run again. [-]';
COMMENT ON COLUMN v1.replay_passes.predicted_ns IS 'Predicted wall time of the pass. [ns]';
COMMENT ON COLUMN v1.replay_passes.error_percent IS 'How far it is above the wall time. [percent]';
COMMENT ON COLUMN v1.replay_passes.recorded_error_percent IS 'How far it is above the wall time by the trace, which the profiler lengthens where the CPU is the bound. [percent]';
COMMENT ON COLUMN v1.replay_passes.predicted_joules IS 'Predicted energy of the pass; NULL if none was measured (--energy), and for rules that say nothing of it. [J]';
COMMENT ON COLUMN v1.replay_passes.measured_joules IS 'Energy of a pass given by --measured. [J]';
COMMENT ON COLUMN v1.replay_passes.joules_error_percent IS 'How far the predicted energy is above it. [percent]';
