-- How many bytes has one element of a type, as named by PyTorch, NCCL, RCCL or a kernel?
-- plain_dtype: in lower case, without the prefix c10:: or nccl. NULL for an unknown type.
CREATE MACRO v1._element_bytes(plain_dtype) AS
CASE
    WHEN regexp_matches(plain_dtype, 'float[48]|^f8|fp[48]|int8|^byte|char|bool|^[iu]8|bits8') THEN 1
    WHEN plain_dtype IN ('half', 'bfloat16', 'float16', 'f16', 'bf16', 'short', 'int16', 'uint16', 'bits16') THEN 2
    WHEN plain_dtype IN ('double', 'float64', 'f64', 'long', 'complexfloat') THEN 8
    WHEN regexp_matches(plain_dtype, '^q?u?int64|^[iu]64$') THEN 8
    WHEN plain_dtype = 'complexdouble' THEN 16
    WHEN plain_dtype IN ('float', 'float32', 'f32', 'int', 'complexhalf') THEN 4
    WHEN regexp_matches(plain_dtype, '^q?u?int32|^[iu]32$') THEN 4
END;

COMMENT ON MACRO v1._element_bytes IS 'Size of an element of a type in lower case without prefix, in bytes; NULL if not known.';
