-- Violins of the spread of GEMM times: at most 0.45 wide on each side of a level's position.
-- In:  answer: rows of v1.gemm_spread_density. {factors}: a list of factors, empty for all.
SELECT
    a.factor, a.level, a.level_place, a.gemms, a.point, a.spread_ns, a.density,
    a.level_place - 0.45 * a.relative_density AS left_edge,
    a.level_place + 0.45 * a.relative_density AS right_edge
FROM answer AS a
WHERE a.level_place <= 40 AND (len({factors}) = 0 OR list_contains({factors}, a.factor))
ORDER BY list_position({factors}, a.factor) NULLS LAST, a.factor, a.level_place, a.point
