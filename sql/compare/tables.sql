-- The tables that the statements of each side fill.
-- In:  nothing.
-- Out: empty temp tables: side_name, side_setting, side_unit, side_run, side_timeline_unit, side_value, side_fact,
--      side_warning.
CREATE OR REPLACE TEMP TABLE side_name (side INTEGER, name VARCHAR);

CREATE OR REPLACE TEMP TABLE side_setting (side INTEGER, capture_id BIGINT, digest VARCHAR, key VARCHAR, value VARCHAR);

CREATE OR REPLACE TEMP TABLE side_unit (side INTEGER, unit VARCHAR);

CREATE OR REPLACE TEMP TABLE side_run (side INTEGER, capture_id BIGINT, run VARCHAR);

CREATE OR REPLACE TEMP TABLE side_timeline_unit (side INTEGER, unit VARCHAR);

CREATE OR REPLACE TEMP TABLE side_value (
    side INTEGER, kind VARCHAR, name VARCHAR, unit VARCHAR, calls BIGINT, total_ns BIGINT
);

CREATE OR REPLACE TEMP TABLE side_fact (
    side INTEGER, digests VARCHAR[], by_step BOOLEAN, units BIGINT, gpus VARCHAR, gpus_of_capture BIGINT,
    models VARCHAR[], profilers VARCHAR[], warmup_steps BIGINT,
    repeated_ranges STRUCT(name VARCHAR, instances BIGINT, time_ns BIGINT)[]
);

CREATE OR REPLACE TEMP TABLE side_warning (side INTEGER, warning VARCHAR);
