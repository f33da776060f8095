-- Which class has a GPU kernel, by its name? Grain: built-in rule; the lowest matching priority wins.
-- The order matters: names that list many operators come first, because their words would mislead every later rule;
-- then collective, attention and convolution, whose names often contain "gemm"; then matmul; then the rest.
-- pattern is an RE2 regular expression that is searched for in the subject of a name: lower case, without return type,
-- clone suffix and anonymous namespaces, and cut before the template arguments, unless the kernel only runs the functor
-- named there (see v1._kernel_subject). The CASE of v1._shipped_priority is made of these rows.
CREATE VIEW v1._kernel_rule AS
SELECT r.priority, r.pattern, r.class
FROM (
    VALUES
    -- Inductor lists every fused ATen operator, even those whose result it only reads (addmm, convolution,
    -- all_reduce). The prefix says what the kernel does: tem a template, per and red a reduction, poi pointwise.
    (10, '^triton_(tem_.*|flex_)(attention|decoding)', 'attention'),
    (11, '^triton_(tem_.*)?convolution', 'convolution'),
    (12, '^triton_(tem_|b?mm|addmm|baddbmm)', 'matmul'),
    (13, '^triton_.*(softmax|_amax_.*exp_.*sub.*_sum)', 'softmax'),
    (14, '^triton_(per|red|mix|poi)_.*((layer|rms|batch|group|instance)_norm|var_mean|_mean_.*rsqrt)',
        'normalization'),
    (15, '^triton_(per|red|mix)_.*_(sort|topk)', 'embedding_index'),
    (16, '^triton_(per|red|mix|spl)_', 'reduction'),
    (17, '^triton_poi_.*(embedding|_index|_take_|nonzero|[^l]_gather|[^et]_scatter)', 'embedding_index'),
    (18, '^triton_poi_fused_(inductor_)?(rand|bernoulli)[a-z_]*[0-9]*$', 'random'),
    -- Pointwise, but only moves, casts and fills; the tail is a number or an old signature (0d1d2de),
    -- after the underscore of an in-place operator (copy_).
    (19, '^triton_poi_fused(_+('
        || 'to_copy|copy|clone|contiguous|convert_element_type|cat|stack|split|split_with_sizes|chunk|unbind'
        || '|slice|slice_scatter|slice_backward|select|select_scatter|select_backward|unsafe_view|view|reshape'
        || '|t|transpose|permute|expand|repeat|squeeze|unsqueeze|flip|roll|as_strided|detach|constant_pad_nd'
        || '|(reflection|replication)_pad[123]d|pixel_(un)?shuffle|lift_fresh|view_as_real|unfold|narrow'
        || '|movedim|alias|full|full_like|new_full|zeros|zeros_like|new_zeros|ones|ones_like|new_ones'
        || '|empty|empty_like|fill|zero'
        || '))+(_+[0-9][0-9cde]*)*$', 'copy'),
    (20, '^triton_(poi|for)_|^triton_fused_', 'elementwise'),

    -- ATen loops: the functor in the template arguments says what the loop does; a type named there is not a matmul.
    -- First those of THC, before PyTorch 1.2.
    (26, 'kernelpointwiseapply.*bernoulli', 'random'),
    (27, 'kernelpointwiseapply[1-4](<|i[0-9]+)(tensor(take|put|masked(copy|select))[a-z]*op|wrapindexop)',
        'embedding_index'),
    (28, 'kernelpointwiseapply[1-4](<|i[0-9]+)(copyop|tensorfillop)', 'copy'),
    (29, 'kernelpointwiseapply', 'elementwise'),
    (30, 'distribution_(binary_|nullary_)?elementwise|distribution_nullary', 'random'),
    (31, '(index|scatter_gather)_elementwise', 'embedding_index'),
    (32, 'elementwise_kernel.*(batch|group|layer|rms)_?norm', 'normalization'),
    (33, 'elementwise_kernel.*(copy_kernel|copy_device_to_device|fillfunctor|[^_]fill_kernel|flip_kernel)', 'copy'),
    (34, 'elementwise_kernel', 'elementwise'),
    -- ATen's and apex's loops over lists of tensors. "lamb" must not match lambda, nor "lion" million.
    (35, 'multi_tensor_.*(fusedoptimizer|adam|adagrad|sgd|lamb[^d]|novograd|[^l]lion|_lars|distopt)', 'optimizer'),
    (36, 'multi_tensor_apply.*(norm|lpmax)', 'reduction'),
    (37, 'multi_tensor_apply.*(::copy<|4copyi|copyfunctor|zerofunctor)', 'copy'),
    (38, 'multi_tensor_apply', 'elementwise'),
    -- ATen's reductions: mangled names keep the functor, whose words (norm, welford) do not mean a normalization here.
    (39, 'at(::|6)native(::|13)reduce_kernel', 'reduction'),

    -- Single-GPU routing for DeepEP and DeepGEMM, named after them.
    (40, 'src2dst|(^|_)deep_?(ep|gemm)_[a-z0-9_]*(permute|reorder)', 'embedding_index'),
    -- Collectives: library kernels, then hand-written all-reduces, then expert dispatch and combine.
    (41, 'nccl|rccl|msccl|onerankreduce|nvshmem|roc_?shmem|nvls_', 'collective'),
    (42, 'cross_device_reduce|all_?reduce|all_?gather|reduce_?scatter|all_?(to|2)_?all|quick_?reduce|multimem_'
        || '|(one|two)_?shot_(push|pull|reduce)|userbuffers|symm_?mem|symmetric_memory|c10d::cuda|ggml_cuda_ar_'
        || '|lamport|mnnvl', 'collective'),
    (43, 'deep_?ep|(^|[:_])ep::|(inter|intra)_?node|(^|[^a-z])ep_?(dispatch|combine)|(^|[^a-z0-9])a2a|moe_?a2a',
        'collective'),

    -- Named after attention, but not attention: norms and gates of its inputs, the KV cache, the unfused softmax.
    (50, 'norm_?(mul_)?rope|qk_?norm', 'normalization'),
    (51, '(and|to)_cache|store_?kv|(append|update|write|set|copy|save)_?(paged_?)?(mla_?)?kv'
        || '|kv_?(cache_)?(write|store|update|append|copy|scatter)|copy_blocks|swap_blocks', 'copy'),
    (52, '(attn|attention)_?soft_?max', 'softmax'),
    (53, 'attn_(qkv_)?(prepare|gate)', 'elementwise'),
    -- Attention, with the auxiliary kernels of its split forms (combine, merge, preprocess, dq convert) and Triton's
    -- short names.
    (54, 'attn|attention|attend|fmha|sdpa|xqa|(^|[^a-z])([gm]qa|m?mha|mla)([^a-z]|$)|(^|:)flash::'
        || '|flash_?(fwd|bwd|dec|mla|combine)|(batch|single)_?(prefill|decode)|(prefill|decode)_?with'
        || '|(^|_)flash_?[2-4](_|$)|hstu|natten|(^|:)fna(_|::)|merge_?states?|variablelengthmerge'
        || '|lightning_indexer|dot_do_o|convert_dq|bwd_dq|dk_?dv|dq_?dk', 'attention'),
    (55, '^_*(fwd|bwd)_(grouped_)?kernel(_(stage|fuse|split|flash|inner|d[kqv]).*)?$|^_*bwd_(preprocess|inner)'
        || '|^_splitk_reduce$|^reduce_segments$', 'attention'),
    -- Recurrences that replace attention.
    (56, 'gated_delta|delta_rule|delta_net|selective_scan|ssm_scan|chunk_(scan|state|gla)|(^|:)_?chunk_(fwd|bwd)'
        || '|state_passing|(^|[^a-z])wkv|fused_recurrent|retention', 'attention'),

    -- Helpers that only mention a GEMM or a convolution: tables of pointers and offsets, pooling, layout of weights.
    (60, 'gemm_?(starts|offsets|prologue|helper|args|arguments|data)([^a-z]|$)|gemm::scale_'
        || '|gemm_?(pointers|ptrs|buffer|metadata)|grouped_gemm_data|set_[a-z_]*(kernel|gemm)_args|setscaleinternal'
        || '|setoutputkernel|init_device_workspace|fillptrarray|rnn_(block)?persist|ctc_loss|ssd_pre_matmul'
        || '|compute[a-z0-9]*offsets|problem_sizes|batched_ptrs|ids_helper|pooling|(max|avg|average|adaptive)_?pool'
        || '|pool[123]d', 'other'),
    (61, '^[^<]*::transpose|reorder_?([ih]mma|awq)|transpose_and_pack|repack|permute_(cols|scales)'
        || '|deep_gemm::[a-z0-9_]*(pack|clean_)', 'copy'),
    -- An activation quantised for the GEMM that its name ends with.
    (62, '(silu|gelu|swiglu|(^|[^a-z])act)[a-z0-9_]*quant[a-z0-9_]*gemm', 'elementwise'),
    -- The weight gradient of a linear layer, which the next rules would take for a convolution.
    (63, 'deep_gemm|wgrad_gemm|(^|[^t_]|[^t]_)gemm_wgrad', 'matmul'),
    -- cuDNN's and MIOpen's normalizations, in namespaces of convolution or beside pooling.
    (64, 'batch_?norm|(finalizebn|combinescalebias)stats|(^|[^a-z])(bn_pointwise|reduce_bn_)'
        || '|(^|[^a-z]|miopen)lrn(_|fw|bw|forward|backward|compute|fill|within|across)', 'normalization'),

    -- Convolutions are GEMMs inside. "conv" before an e is a conversion; scudnn and h884cudnn are cuDNN's SASS.
    (70, 'implicit_gemm|fprop|dgrad|wgrad|winograd|[shdi][0-9]*cudnn_|cutlass[a-z0-9_]*cudnn|cudnn::cnn|depthwise'
        || '|conv([^e]|$)|convolve|igemm_(v[0-9]|fwd|bwd|wrw)|first_layer_(filter|fwd|[ih]mma)'
        || '|gemm[a-z0-9_]*_bwd_(weight|data)|miopencv|wrw', 'convolution'),
    -- Steps of the unfused algorithms: im2col, FFT.
    (71, 'im2col|col2im|im[23]d2col|vol2col|col2vol|vol2im|(^|:)dse::|(^|:)fft[123]d_(c2r|r2c)|flip_filter'
        || '|mult_and_sum_complex', 'convolution'),

    -- Library matrix products: cuBLAS, cuBLASLt, nvjet, CUTLASS, Tensile, CK; and their split-K reductions.
    (80, 'gemm|gemv|gevm|nvjet|(^|_)[cd]ij[k-n]*_|split_?k_?reduce|reduce_?split_?k|collectivemma'
        || '|cutlass.*(tensorop|simt)|largek_lds64|epilogue(::|4)impl|(^|:|blas_)dot_kernel|reduce_1block_kernel'
        || '|syrk|trmm|syhe(rk|mm)_|sm[0-9]+_xmma_|(^|[^a-z])((sy|he|tr|[sgt]b|[sht]p)mv[nt]?|ger[uc]?)_kernel'
        || '|sp(mm|mv)|sddmm|([cb]sr|coo)m[mv]|flatmm', 'matmul'),
    -- Matrix products of Triton, llama.cpp and users: mm, matmul, matvec or mul_mat.
    (81, 'mat_?mul|mul_mat|mat_?vec|matrix_?(vector_?)?(mul|prod)|mmvq|mul_?m[mv]([^a-z]|$)'
        || '|(^|[^a-z])(b|add|baddb)?mm([^a-z]|$)|(^|[^a-z])[whi]?mma([^a-z]|$)|(^|[^a-z])mfma|tensor_?core|einsum',
        'matmul'),
    -- Quantised, mixture-of-experts and LoRA products with other names.
    (82, 'marlin|weight_only|machete|wna16|wv_?spl?i?t_?k|llmm1|(quantized|[wf]p?[48][a-z0-9]*|int[48])_linear|fmoe'
        || '|fused_?moe_?(kernel|[a-z0-9_]*[wf]p?[48])|^_?fused_moe|moe_?mm|[bs]gmv|lora_(shrink|expand|[ab](_|$))',
        'matmul'),

    -- Words that would mislead the rules below: conversion of experts' rows to FP4, renormalised routing, norms of
    -- gradients, rope_norm, rotary_embedding.
    (89, 'cvt_[a-z0-9]+_to_fp4', 'other'),
    (90, 'routing|topk_?gating|moe_?(align|sort|fused_gate|topk)|expert', 'embedding_index'),
    (91, 'lp_?norm|lpmax|vector_norm|grad_norm|norm_?twoops|nrm2|norm_(l[12p]|sq)|sum_?sq', 'reduction'),
    (92, '(^|[^p])rope|rotary|timestep_embedding|sinusoid', 'elementwise'),

    -- TensorFlow's softmax, whose name contains normalized.
    (99, 'normalizedprob', 'softmax'),
    -- Normalization with its backward and statistics; "norma" is the normal distribution.
    (100, 'norm([^a]|act|$)|normaliz|(^|[^a-z])rms_?(fwd|bwd|fp8|quant)|(^|[^a-z])[bl]n_?(fw|bw|inf|add)|gammabeta'
        || '|rowwisemoments|fusedparamscuda|internalgradients|cucomputegradinput|welford'
        || '|calc_invstd|fused_ln|bn_?(add_?)?relu', 'normalization'),
    (110, 'soft_?max|cross_?entropy|logsumexp', 'softmax'),

    -- cuDNN's scaled and combined tensors; rows that are quantised while they are stored.
    (118, 'op_(generic_)?tensor_kernel|scaletensor(5d)?_kernel|scal_or_zero', 'elementwise'),
    (119, 'indexing_backward|set_rows', 'embedding_index'),
    -- Quantisation is neither a copy nor a reduction, whatever else the name says; a fused activation is elementwise.
    (120, 'act_and_mul|silu|gelu|swiglu|geglu|activation::|masked_fill|dropout|nll_loss(2d)?_backward'
        || '|margin_?loss_backward', 'elementwise'),
    (121, 'quant|qparam|rowwise_to|to_[a-z0-9]*rowwise|scale_[0-9]+x[0-9]+', 'other'),
    -- Generators and samplers, but not upsamplers.
    (122, 'philox|^rng_|gen_(mtgp|quasi)|mt19937_kernel|curand|[hr]ip?rand|rocrand|xorwow|mrg32k3a|sobol|gen_sequenced'
        || '|generate_seed|multinomial|bernoulli|gumbel|(^|[^a-z])sampling(::|_?from)|samplingfrom'
        || '|(^|[^e])rand(om|n|int|perm|_)|uniform_([^s]|s[^h])|exponential_kernel', 'random'),
    -- Generic kernels of Eigen (TensorFlow) and rocPRIM, by their functor; arithmetic before casts and moves.
    -- Then everything named copy.
    (123, 'eigenmetakernel.*tensor(reduction|tuplereducer)op|trampoline_kernel.*(scan|reduce)(_by_key)?_config',
        'reduction'),
    (124, 'eigenmetakernel.*tensorcwise', 'elementwise'),
    (125, 'eigenmetakernel.*tensor(conversion|padding|shuffling|slicing|concatenation)op', 'copy'),
    (126, 'eigenmetakernel', 'elementwise'),
    (127, '(^|:)_*copy', 'copy'),

    -- THC's reductions along a dimension (their names contain index); XLA's pointwise fusions (names contain select).
    (128, 'transformreduce(inner|outer)|reduce_tensor_(index_)?kernel|tensor_kernel_scan|^cupy_count_nonzero',
        'reduction'),
    (129, '^(loop|wrapped)_(select|compare)', 'elementwise'),
    -- Embedding before optimizer: FBGEMM's fused embedding backward names both.
    (130, 'l(ru|fu|xu)_(cache|update)|embedding|_embs?(_|$)|(^|[^a-z])w[tp]e_|(bf|f|fp)16_row_f32|compute_grad_weight'
        || '|krn_partial|partial_segments|sum_and_scatter', 'embedding_index'),
    (131, 'adam|adagrad|adafactor|rmsprop|(^|[^a-z])(sgd|lamb|lion|muon|lars)([^a-z]|$)|optimizer|opt_step'
        || '|apply(gradientdescent|momentum|adadelta|ftrl)', 'optimizer'),
    -- Index, sort, select, and the routing of tokens to experts.
    (132, 'index|indices|invert_permute|^cupy_(getitem|choose|put)|gather|scatter|(^|[^n])sort|onesweep|block_merge'
        || '|top_?k([^e]|e[^r]|$)|kthvalue|unique|partition|select|nonzero|bucketize|get_rows|lookup'
        || '|searchsorted|(^|[^a-z])take([^a-z]|$)|permute_[12]d|pooled_emb|long_segments|lengths|offsets_range|jagged'
        || '|to_dense|moe|unpermute|expand_?(to|input)|dynamic_(update_)?slice|compute_cuda_kernel', 'embedding_index'),

    -- CuPy's elementwise kernels are named maximum and minimum. Scans count as reductions, their set-up does not.
    (140, '^cupy_(nan)?(max|min|prod|all|any|sum|mean|var|std)(_|$)', 'reduction'),
    (141, 'scan_?init|init_lookback|init_[a-z_]*scan_state|scanbykeyinit|compact_?init', 'other'),
    (142, 'reduce|reduction|reducing|(^|[^a-z])(sum|mean|amax|amin|asum|cumsum|cumprod)([^a-z]|$)|sum_?(rows|kernel)'
        || '|arg_?(max|min)|i?amax_kernel|aminmax|top1|count_equal|scan([^a-z]|$)|scankernel|scan(inner|outer)|cleanup'
        || '|bias_?grad|nll_loss(2d)?_forward|margin_?loss_forward|margincriterion_updateoutput'
        || '|nllcriterion_updateoutput', 'reduction'),

    -- Moves: copy, fill, cast, layout, concatenation, padding; but not prefill, broadcast and unroll.
    (150, 'copy|cpy|(^|[^e])fill|memset|(^|[^bd])cast|convert'
        || '|to_(bf16|bfloat16|f16|f32|fp16|fp32|fp8|half|float)([^a-z]|$)'
        || '|(float|half|bf16|f16|f32)2(float|half|bf16|f16|f32)|to_[a-z0-9_]*layout|transpose|permut|reorder|reshape'
        || '|nchwto|nhwcto|tonchw|tonhwc|nchw2|nhwc2|swapdimension|shuffleintensor|transform_kernel'
        || '|tensor_?(transform|to_?buffer)|settensor[45]d|generic4(to3)?channel|transform_[0-4]+|concat|catarray'
        || '|chunk_cat|split_with_sizes|split_v_kernel|slice|(^|[^a-z])(cat|pad|pack|stack|zero)([^a-z]|$)|padding'
        || '|padinput|pad_reflect|unpack|(^|[^n])roll(_|$)|flip|repeat|broadcast_(fusion|kernel)|wrapped_broadcast'
        || '|settovalue|splitopkernel|subtensorop|set_?zero|zero_?(out|init|buffer|grad)', 'copy'),

    -- Elementwise: single words, which must match as a whole, and names of functions.
    (160, 'element_?wise|pointwise|vec(tor)?_?add|(^|[^a-z])(add|sub|mul|div|fma|exp|log|pow|sqrt|rsqrt|abs|neg|acc'
        || '|scal|scale|bias|mask|where|clamp|lerp|tri|act|glu|[sd]?axpy|w?axpby|triad|iota)(kernel)?([^a-z]|$)',
        'elementwise'),
    (161, 'relu|elu([^a-z]|$)|sigmoid|tanh|softplus|softcap|activation|neuron|miopenactive|gated_(op_)?kernel'
        || '|hardswish|snake_kernel|(^|[^a-z_])cross_kernel|(^|[^a-z])(sqr|sin|cos|step|sgn)_f(16|32)|hadamard'
        || '|vectorizedbroadcast|bias_?add|addbias|bias(nhwc|nchw)|add_?residual|scalepacked|mask_inf|tri[ul]|clamp'
        || '|arange|linspace|unary_|binary_|bcast|op_?[1-5]?d?_?tensor|upsample|upscale|interpol|(lstm|gru)_?cell'
        || '|updategradinput|parallel_for|__transform|loop_[a-z_]*fusion|^(fusion|wrapped_)|_gpu_dt_|^cupy_'
        || '|^cupyx_scipy_special|(^|[^a-z])([sdcz]?swap|rotm?g?|geam)_kernel', 'elementwise')
) AS r(priority, pattern, class);

COMMENT ON VIEW v1._kernel_rule IS 'Shipped rules from kernel name to class; lowest priority wins. Grain: rule.';
COMMENT ON COLUMN v1._kernel_rule.priority IS 'Place in the order; the lowest that matches wins.';
COMMENT ON COLUMN v1._kernel_rule.pattern IS 'RE2 pattern, searched in the lower-case subject of the name (see v1._kernel_class).';
COMMENT ON COLUMN v1._kernel_rule.class IS 'Class that it gives.';
