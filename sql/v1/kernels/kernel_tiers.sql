-- How are time and calls distributed over memory operations, matrix products and everything else?
-- Grain: tier, as in v1.unique_kernels. Sums of doubles depend on the order of the rows in their last digits, hence
-- round.
CREATE VIEW v1.kernel_tiers AS
SELECT
    /* by u */
    u.tier,
    CASE u.tier WHEN 1 THEN 'memory' WHEN 2 THEN 'GEMM' ELSE 'other' END AS meaning,
    count(*) AS signatures,
    100.0 * count(*) / nullif(sum(count(*)) OVER (/* partition */), 0) AS signatures_percent,
    sum(u.calls)::BIGINT AS calls,
    100.0 * sum(u.calls) / nullif(sum(sum(u.calls)) OVER (/* partition */), 0) AS calls_percent,
    round(sum(u.calls_per_step), 6) AS calls_per_step,
    sum(u.total_ns)::BIGINT AS total_ns,
    100.0 * sum(u.total_ns) / nullif(sum(sum(u.total_ns)) OVER (/* partition */), 0) AS share_percent
FROM v1._unique_kernel AS u /* inline */
GROUP BY /* by u */ u.tier;

COMMENT ON VIEW v1.kernel_tiers IS 'Time and calls of memory operations, matrix products and everything else. Grain: tier.';
COMMENT ON COLUMN v1.kernel_tiers.tier IS '1: memory operation (memcpy, memset); 2: matrix product (GEMM, GEMV, split-K reduction); 3: everything else. [-]';
COMMENT ON COLUMN v1.kernel_tiers.meaning IS 'Name of the tier.';
COMMENT ON COLUMN v1.kernel_tiers.signatures IS 'Number of unique kernels. [count]';
COMMENT ON COLUMN v1.kernel_tiers.signatures_percent IS 'Share of all unique kernels in the answer (with --by: in the group). [percent]';
COMMENT ON COLUMN v1.kernel_tiers.calls IS 'Number of calls. [count]';
COMMENT ON COLUMN v1.kernel_tiers.calls_percent IS 'Share of all calls in the answer (with --by: in the group). [percent]';
COMMENT ON COLUMN v1.kernel_tiers.calls_per_step IS 'Calls per marked, selected or detected step; NULL without any. [count]';
COMMENT ON COLUMN v1.kernel_tiers.total_ns IS 'Sum of durations. [ns]';
COMMENT ON COLUMN v1.kernel_tiers.share_percent IS 'Share of the total time in the answer (with --by: in the group). [percent]';
