-- Is a kernel of this name a copy or fill that the ROCm runtime does on the device? Up to ROCm 7.1 these were recorded as
-- kernels, later as copies; copies that a program does by kernels of its own are none of them.
CREATE MACRO v1._is_runtime_copy(name) AS starts_with(name, '__amd_rocclr_') OR starts_with(name, 'MEMORY_COPY_');

COMMENT ON MACRO v1._is_runtime_copy IS 'Whether a kernel of this name is a copy or fill by the ROCm runtime.';
