-- Which collective does a word name: a recorded collective, an operator or a kernel? NULL if none.
-- bare: the word in lower case without underscores and spaces. Names that contain another name come first:
-- reduce-scatter before scatter and reduce. Short names count only at the start, or after a namespace or a library
-- prefix.
CREATE MACRO v1._collective_spelt(bare) AS
CASE
    WHEN bare LIKE '%reducescatter%' THEN 'reduce_scatter'
    WHEN bare LIKE '%allreduce%' OR bare LIKE '%crossdevicereduce%' THEN 'allreduce'
    WHEN bare LIKE '%allgather%' THEN 'allgather'
    WHEN bare LIKE '%alltoall%' THEN 'alltoall'
    WHEN bare LIKE '%broadcast%' OR bare LIKE '%bcast%' THEN 'broadcast'
    WHEN bare LIKE '%barrier%' THEN 'barrier'
    WHEN regexp_matches(bare, 'sendrecv|(^|:)i?(send|recv)') THEN 'sendrecv'
    WHEN regexp_matches(bare, '(^|:|ncclkernel|nccldevkernel)reduce') THEN 'reduce'
    WHEN regexp_matches(bare, '(^|:|nccl)gather') THEN 'gather'
    WHEN regexp_matches(bare, '(^|:|nccl)scatter') THEN 'scatter'
END;

COMMENT ON MACRO v1._collective_spelt IS 'Collective that a word in lower case without underscores names: allreduce, allgather …; NULL for none.';
