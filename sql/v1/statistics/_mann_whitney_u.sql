-- Mann-Whitney's U: the number of pairs of one of n values and one of the others in which the first is greater; ties
-- count half.
-- twice_ranks: the sum over the n values of 2 * rank() + ties - 1, which is twice their mid-rank among all values.
CREATE MACRO v1._mann_whitney_u(n, twice_ranks) AS (twice_ranks - n::HUGEINT * (n + 1)) / 2;

COMMENT ON MACRO v1._mann_whitney_u IS 'Mann-Whitney''s U of n values from twice the sum of their middle ranks: pairs won, ties as half.';
