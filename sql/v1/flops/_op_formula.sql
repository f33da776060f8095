-- Which operators have a formula for FLOPs or bytes, and where do they take their operands?
-- Grain: operator name. family: which view has the formula. x, y and z are places of tensors among the inputs, from 1:
-- of a product (2·batch·m·n·k) the two factors and the summand; of a convolution input, weight and the gradient of the
-- output; of attention query, key and value. flag is the place of the scalar that changes the formula: the output's
-- type of a scaled product, padding (stride and dilation follow it) or the mask of outputs of a convolution, whether
-- attention is causal; of a pointwise operator, how many operands it has. Signatures are those of PyTorch's
-- native_functions.yaml and of flash-attn 2.7. Of the rest only bytes are known.
CREATE VIEW v1._op_formula AS
SELECT f.name, f.family, f.x, f.y, f.z, f.flag
FROM (
    VALUES
    ('aten::mm', 'product', 1, 2, NULL, NULL),
    ('aten::addmm', 'product', 2, 3, 1, NULL),
    ('aten::addmm_', 'product', 2, 3, 1, NULL),
    ('aten::_addmm_activation', 'product', 2, 3, 1, NULL),
    ('aten::bmm', 'product', 1, 2, NULL, NULL),
    ('aten::baddbmm', 'product', 2, 3, 1, NULL),
    ('aten::baddbmm_', 'product', 2, 3, 1, NULL),
    ('aten::mv', 'product', 1, 2, NULL, NULL),
    ('aten::addmv', 'product', 2, 3, 1, NULL),
    ('aten::addmv_', 'product', 2, 3, 1, NULL),
    ('aten::dot', 'product', 1, 2, NULL, NULL),
    ('aten::vdot', 'product', 1, 2, NULL, NULL),
    ('aten::_int_mm', 'product', 1, 2, NULL, NULL),
    ('aten::_scaled_mm', 'product', 1, 2, NULL, 7),
    ('aten::_scaled_mm_v2', 'product', 1, 2, NULL, NULL),
    ('aten::linear', 'product', 1, 2, 3, NULL),
    -- Rows or columns of several products in one; where each ends is data, so that all rows count.
    ('aten::_grouped_mm', 'grouped', 1, 2, NULL, NULL),
    ('aten::_scaled_grouped_mm', 'grouped', 1, 2, NULL, NULL),
    ('aten::cudnn_convolution', 'convolution', 1, 2, NULL, 3),
    ('aten::miopen_convolution', 'convolution', 1, 2, NULL, 4),
    ('aten::miopen_depthwise_convolution', 'convolution', 1, 2, NULL, 4),
    ('aten::convolution_backward', 'convolution_backward', 2, 3, 1, 11),
    ('aten::cudnn_convolution_backward_input', 'convolution_backward', NULL, 3, 2, NULL),
    -- [batch, length, heads, size of a head]
    ('aten::_flash_attention_forward', 'attention_by_length', 1, 2, 3, 9),
    ('aten::_flash_attention_backward', 'attention_by_length', 2, 3, 4, 12),
    ('flash_attn::_flash_attn_forward', 'attention_by_length', 1, 2, 3, 6),
    ('flash_attn::_flash_attn_backward', 'attention_by_length', 2, 3, 4, 12),
    ('aten::_efficient_attention_forward', 'attention_by_length', 1, 2, 3, 10),
    ('aten::_efficient_attention_backward', 'attention_by_length', 2, 3, 4, 15),
    -- [batch, heads, length, size of a head]
    ('aten::_cudnn_attention_forward', 'attention_by_head', 1, 2, 3, 11),
    ('aten::_cudnn_attention_backward', 'attention_by_head', 2, 3, 4, 15),
    ('aten::_scaled_dot_product_flash_attention', 'attention_by_head', 1, 2, 3, 5),
    ('aten::_scaled_dot_product_flash_attention_backward', 'attention_by_head', 2, 3, 4, 12),
    ('aten::_scaled_dot_product_efficient_attention', 'attention_by_head', 1, 2, 3, 7),
    ('aten::_scaled_dot_product_efficient_attention_backward', 'attention_by_head', 2, 3, 4, 12),
    ('aten::_scaled_dot_product_cudnn_attention', 'attention_by_head', 1, 2, 3, 7),
    ('aten::_scaled_dot_product_cudnn_attention_backward', 'attention_by_head', 2, 3, 4, 15)
) AS f (name, family, x, y, z, flag)
UNION ALL
SELECT 'aten::' || n.name AS name, n.family, 1 AS x, NULL AS y, NULL AS z, n.operands AS flag
FROM (
    SELECT unnest(string_split(w.names, ' ')) AS name, w.family, w.operands
    FROM (
        VALUES
        -- A new tensor, of the size that the inputs are broadcast to.
        ('neg abs exp log sqrt rsqrt reciprocal sin cos sigmoid tanh relu leaky_relu gelu silu hardswish threshold',
            'pointwise', 1),
        ('add sub rsub mul div pow clamp_min gelu_backward silu_backward sigmoid_backward tanh_backward '
            || 'threshold_backward hardswish_backward', 'pointwise', 2),
        ('clamp where masked_fill addcmul addcdiv lerp', 'pointwise', 3),
        -- The first input is also written.
        ('add_ sub_ mul_ div_ neg_ abs_ exp_ sqrt_ rsqrt_ pow_ sigmoid_ tanh_ relu_ leaky_relu_ silu_ clamp_ clamp_min_ '
            || 'threshold_ masked_fill_ addcmul_ addcdiv_ lerp_', 'in_place', NULL),
        -- A new tensor of the size of the first input; a row's statistics are left out.
        ('_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data native_layer_norm _fused_rms_norm',
            'in_place', NULL),
        -- The first input is only written.
        ('copy_ fill_ zero_', 'move', NULL)
    ) AS w (names, family, operands)
) AS n;
