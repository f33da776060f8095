-- Is this the name of a copy or fill kernel of the ROCm runtime? Up to ROCm 7.1 these were recorded as kernels, later
-- as copies. Copy kernels of a program itself are not included.
CREATE MACRO v1._is_runtime_copy(name) AS starts_with(name, '__amd_rocclr_') OR starts_with(name, 'MEMORY_COPY_');

COMMENT ON MACRO v1._is_runtime_copy IS 'Whether a kernel of this name is a copy or fill by the ROCm runtime.';
