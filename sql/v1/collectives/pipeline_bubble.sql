-- How much of a step does each stage of a pipeline stand idle, when, and which stage paces the others?
-- Grain: configuration × step × rank. v1._pipeline_message describes how stages are found, v1._pipeline_time what is
-- measured. The bubble is NULL if clocks cannot be compared, or if they differ by more than the shortest bubble of the
-- step.
CREATE VIEW v1.pipeline_bubble AS
SELECT
    stage.source, stage.labels, stage.cycle, stage.capture_id, stage.pipeline, stage.step, stage.rank, stage.stage,
    stage.stages, stage.micro_batches, stage.window_ns, stage.compute_ns, stage.transfer_ns,
    CASE WHEN stage.is_measurable THEN stage.bubble_ns END AS bubble_ns,
    CASE WHEN stage.is_measurable THEN 100.0 * stage.bubble_ns / nullif(stage.window_ns, 0) END AS bubble_percent,
    CASE WHEN stage.is_measurable THEN stage.warmup_bubble_ns END AS warmup_bubble_ns,
    CASE WHEN stage.is_measurable
        THEN stage.bubble_ns - stage.warmup_bubble_ns - stage.cooldown_bubble_ns
    END AS steady_bubble_ns,
    CASE WHEN stage.is_measurable THEN stage.cooldown_bubble_ns END AS cooldown_bubble_ns,
    100.0 * (stage.stages - 1) / nullif(stage.forwards + stage.stages - 1, 0) AS ideal_percent,
    stage.wait_ns,
    stage.own_ns,
    stage.is_bottleneck,
    stage.residual_ns AS clock_residual_ns
FROM v1._pipeline_time AS stage
WHERE true /* filter stage */;

COMMENT ON VIEW v1.pipeline_bubble IS 'Idle time of the stages of a pipeline, and the stage that paces the others. Grain: configuration × step × rank.';
COMMENT ON COLUMN v1.pipeline_bubble.source IS 'Profiler or format of the captures.';
COMMENT ON COLUMN v1.pipeline_bubble.labels IS 'Configuration: labels of the captures, without the rank.';
COMMENT ON COLUMN v1.pipeline_bubble.cycle IS 'Recording number, from 1 in time order, if the ranks recorded more than once; else NULL. [-]';
COMMENT ON COLUMN v1.pipeline_bubble.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.pipeline_bubble.pipeline IS 'Pipeline: the rank of its first stage. [-]';
COMMENT ON COLUMN v1.pipeline_bubble.step IS 'Step number; NULL if no steps are marked, so that the whole capture is one. [-]';
COMMENT ON COLUMN v1.pipeline_bubble.rank IS 'Rank. [-]';
COMMENT ON COLUMN v1.pipeline_bubble.stage IS 'Stage of the rank, from 0: the order in which activations pass. [-]';
COMMENT ON COLUMN v1.pipeline_bubble.stages IS 'Number of stages of the pipeline. [count]';
COMMENT ON COLUMN v1.pipeline_bubble.micro_batches IS 'Micro-batches of the step: kernels with which the first stage sends activations, less those by which it receives them (interleaved schedules). [count]';
COMMENT ON COLUMN v1.pipeline_bubble.window_ns IS 'From the first computation of the first stage to the last computation or transfer of any stage; NULL if clocks cannot be compared. [ns]';
COMMENT ON COLUMN v1.pipeline_bubble.compute_ns IS 'Time of the window in which kernels that are not collectives run (interval union); NULL if clocks cannot be compared. [ns]';
COMMENT ON COLUMN v1.pipeline_bubble.transfer_ns IS 'Time in which data moves and nothing is computed: for sends and receives the shorter kernel of the pair, for other collectives the shortest over ranks; NULL if clocks cannot be compared. [ns]';
COMMENT ON COLUMN v1.pipeline_bubble.bubble_ns IS 'Window less computation and transfer: the stage waits, also inside kernels of sends and receives. NULL if clocks cannot be compared, or if their residual exceeds the shortest bubble of the step. [ns]';
COMMENT ON COLUMN v1.pipeline_bubble.bubble_percent IS 'Share of the window. [percent]';
COMMENT ON COLUMN v1.pipeline_bubble.warmup_bubble_ns IS 'Part of the bubble before the first gradient arrives (last stage: the first activation). [ns]';
COMMENT ON COLUMN v1.pipeline_bubble.steady_bubble_ns IS 'Part of the bubble between warm-up and cool-down. [ns]';
COMMENT ON COLUMN v1.pipeline_bubble.cooldown_bubble_ns IS 'Part of the bubble after the last activation has left (last stage: the last gradient). [ns]';
COMMENT ON COLUMN v1.pipeline_bubble.ideal_percent IS 'Bubble of GPipe and 1F1B with equal stages: (stages - 1) / (micro-batches + stages - 1); with several chunks of layers per rank, micro-batches times chunks. [percent]';
COMMENT ON COLUMN v1.pipeline_bubble.wait_ns IS 'Part of the bubble inside kernels of sends, receives and other collectives; the rest has no such kernel running; NULL if clocks cannot be compared. [ns]';
COMMENT ON COLUMN v1.pipeline_bubble.own_ns IS 'From the first to the last computation of the stage, less waiting inside kernels for other ranks: what the stage itself takes for its micro-batches. [ns]';
COMMENT ON COLUMN v1.pipeline_bubble.is_bottleneck IS 'Whether this stage paces the pipeline: over all steps it takes more than 5 % longer for its micro-batches (own_ns) than any other stage; NULL if clocks cannot be compared.';
COMMENT ON COLUMN v1.pipeline_bubble.clock_residual_ns IS 'Median clock residual after alignment, maximum over the ranks of the pipeline; NULL if clocks are not aligned. [ns]';
