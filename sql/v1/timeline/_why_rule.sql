-- Which reason stands for a piece of step time? Grain: built-in rule; the lowest matching priority wins. The rules of
-- main.why_rule come before these. subject says what the pattern (RE2) is searched in:
-- kernel: the class, a space and the kernel's name.
-- collective: the operation, small (under 1 MiB), large or unsized, even or uneven (ranks send different sizes), and
--   wait (for a rank that is not the straggler), straggler or transfer.
-- copy: HtoD, DtoH, DtoD, HtoH, PtoP, memcpy (direction unknown) or memset, and small (up to 1 KiB) or large.
-- call: an API call during which the GPU ran out of work, with the direction of the copy that it made.
-- host: an operator or range of the host.
-- A reason named computation is none: the time counts as well used, or cannot be judged.
CREATE VIEW v1._why_rule AS
SELECT r.priority, r.subject, r.pattern, r.reason
FROM (
    VALUES
    (10, 'call', '(?i)synchronize', 'host_sync'),
    (11, 'call', '(?i)memcpy.*dtoh', 'host_sync'),
    (12, 'call', '(?i)memcpy.*(htod|htoa)', 'copy_call'),
    (13, 'call', '(?i)malloc|free|hostalloc|hostregister|memcreate|memmap', 'allocation'),
    (19, 'host', '^aten::(item|_local_scalar_dense|is_nonzero)$', 'host_sync'),
    (20, 'host', '(?i)data.?load|load.?(data|batch)|(next|get|fetch|prepare).?batch|__next__|^data$', 'data_loading'),
    (30, 'kernel', '^graph ', 'computation'),
    (31, 'kernel', '^(matmul|convolution|attention) .*(cutlass|xmma|gemm|gemv|splitk|nvjet|cublas|cudnn|[Tt]ensile'
        || '|Cijk_|flash|fmha|mha|triton_|sm[0-9]+_|ampere_|volta_|turing_|ck::|miopen|winograd)', 'below_peak'),
    (32, 'kernel', '^[a-z_]+ triton_', 'computation'),
    (33, 'kernel', '^optimizer |multi_tensor_apply', 'optimizer'),
    (34, 'kernel', '^copy ', 'copy_kernel'),
    (35, 'kernel', '^(elementwise|normalization|softmax|reduction|random|embedding_index|other) .*(at::|2at|cub::|cub_|3cub'
        || '|thrust|cunn_|softmax_warp|cudnn|miopen|rocprim|hipcub|layer_norm)', 'unfused'),
    (36, 'kernel', '', 'custom_kernel'),
    (40, 'collective', '^(send|recv)', 'pipeline_bubble'),
    (41, 'collective', '^alltoall [a-z]+ uneven (wait|straggler)$', 'expert_imbalance'),
    (42, 'collective', ' straggler$', 'straggler'),
    (43, 'collective', ' wait$', 'uneven_ranks'),
    (44, 'collective', ' small ', 'small_messages'),
    (45, 'collective', '', 'exposed_collective'),
    (50, 'copy', '^DtoH small', 'host_sync'),
    (51, 'copy', '^(HtoD|DtoH|HtoA|AtoH)', 'copy'),
    (52, 'copy', '', 'device_copy')
) AS r (priority, subject, pattern, reason);
