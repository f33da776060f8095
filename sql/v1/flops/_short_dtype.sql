-- What is the short name of PyTorch's element type: fp64, fp32, fp16, bf16, fp8, fp4, int8, …?
CREATE MACRO v1._short_dtype(torch_type) AS
CASE v1._plain_type(torch_type)
    WHEN 'double' THEN 'fp64'
    WHEN 'float' THEN 'fp32'
    WHEN 'half' THEN 'fp16'
    WHEN 'bfloat16' THEN 'bf16'
    WHEN 'char' THEN 'int8'
    WHEN 'short' THEN 'int16'
    WHEN 'int' THEN 'int32'
    WHEN 'long' THEN 'int64'
    ELSE regexp_replace(v1._plain_type(torch_type), '^float([48])_.*', 'fp\1')
END;

COMMENT ON MACRO v1._short_dtype IS 'Short name of PyTorch''s element type, such as bf16.';
