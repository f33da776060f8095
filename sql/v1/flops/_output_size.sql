-- How long is the output of a convolution along one dimension?
-- All arguments are whole numbers: size of the input, of the kernel, padding on each side, stride, dilation.
CREATE MACRO v1._output_size(input_size, kernel_size, padding, stride, dilation) AS
(input_size + 2 * padding - dilation * (kernel_size - 1) - 1) // nullif(stride, 0) + 1;

COMMENT ON MACRO v1._output_size IS 'Length of a convolution''s output along one dimension.';
