"""The classifier assigns real kernel names the class that a person assigned."""

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from support.rows import insert
from tracedb.storage import views

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
SAMPLE = Path(__file__).parent / "kernel_names_sample.tsv"
LABELLED = SHARED / "data" / "kernel_names.tsv"
CS336 = SHARED / "data" / "cs336" / "cs336-shibukizero"

CLASSES = {
    "matmul", "attention", "convolution", "collective", "normalization", "softmax", "optimizer",
    "reduction", "embedding_index", "copy", "elementwise", "random", "other",
}  # fmt: skip


@dataclass(frozen=True)
class Answer:
    kernel_class: str
    rule_source: str
    priority: int | None
    shipped_class: str


EVENT = "capture_id event_id kind name"
RULE = "priority pattern class"


@pytest.fixture(scope="module")
def classifier() -> Iterator[duckdb.DuckDBPyConnection]:
    """The classifier over tables that have what it reads and nothing else."""
    with duckdb.connect() as connection:
        connection.execute(
            """
            CREATE SCHEMA v1;
            CREATE TABLE main.kernel_event (
                capture_id INTEGER, event_id BIGINT, kind VARCHAR, name VARCHAR
            );
            CREATE TABLE main.kernel_rule (priority INTEGER, pattern VARCHAR, class VARCHAR);
            """
        )
        for view in needed("_kernel_class"):
            connection.execute(view.text)
        yield connection


@pytest.fixture
def con(classifier: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """The same; what a test inserts is undone."""
    classifier.execute("BEGIN")
    yield classifier
    classifier.execute("ROLLBACK")


def needed(name: str) -> list[views.View]:
    """Return a view and everything that it reads, in an order in which they can be created."""
    every = {view.name: view for view in views.by_dependency()}
    names, more = set[str](), {name}
    while more:
        names |= more
        more = {read for one in more for read in every[one].needs} - names
    return [view for view in every.values() if view.name in names]


def classify(con: duckdb.DuckDBPyConnection, names: Iterable[str]) -> dict[str, Answer]:
    con.execute("DELETE FROM main.kernel_event")
    con.execute(
        "INSERT INTO main.kernel_event SELECT 0, 0, 'kernel', n FROM (SELECT unnest(?) AS n)",
        [list(names)],
    )
    rows = con.execute("SELECT name, class, rule_source, priority, shipped_class FROM v1._kernel_class").fetchall()
    answers = {row[0]: Answer(*row[1:]) for row in rows}
    assert len(answers) == len(rows), "a name came out twice"
    return answers


def classify_one(con: duckdb.DuckDBPyConnection, name: str) -> Answer:
    return classify(con, [name])[name]


def read_tsv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def disagreements(rows: list[dict[str, str]], answers: dict[str, Answer]) -> list[str]:
    return [
        f"{row['class']} by hand, {answer.kernel_class} by rule {answer.priority}: {row['name']}"
        for row in rows
        if (answer := answers[row["name"]]).kernel_class != row["class"]
    ]


def test_every_name_of_the_sample(con: duckdb.DuckDBPyConnection) -> None:
    rows = read_tsv(SAMPLE)
    assert {row["class"] for row in rows} == CLASSES
    wrong = disagreements(rows, classify(con, [row["name"] for row in rows]))
    assert not wrong, "\n".join(wrong)


def test_the_installed_case_gives_the_first_rule_that_matches(con: duckdb.DuckDBPyConnection) -> None:
    """The file of the macro has a query over the rules; installing it writes a CASE with a branch for each."""
    classify(con, [row["name"] for row in read_tsv(SAMPLE)])
    ((rules,),) = con.execute("SELECT count(*) FROM v1._kernel_rule").fetchall()
    assert views.View("v1", "_shipped_priority").text.count("WHEN regexp_matches(subject, '") == rules > 70
    differing = con.execute(
        """
        SELECT s.subject, s.by_case, min(r.priority) AS by_query
        FROM (SELECT k.subject, v1._shipped_priority(k.subject) AS by_case FROM v1._kernel_subject AS k) AS s
        LEFT JOIN v1._kernel_rule AS r ON regexp_matches(s.subject, r.pattern)
        GROUP BY s.subject, s.by_case
        HAVING s.by_case IS DISTINCT FROM min(r.priority)
        """
    ).fetchall()
    assert differing == []


@pytest.mark.shared
@pytest.mark.skipif(not LABELLED.exists(), reason="no shared folder with the hand-labelled names")
def test_agreement_with_the_hand_labelled_names(con: duckdb.DuckDBPyConnection) -> None:
    rows = [row for row in read_tsv(LABELLED) if not row["ambiguous"]]
    answers = classify(con, [row["name"] for row in rows])
    wrong = disagreements(rows, answers)
    report = "\n".join(wrong)
    assert len(wrong) <= 0.02 * len(rows), report
    for kernel_class in ("matmul", "collective"):
        by_hand = {row["name"] for row in rows if row["class"] == kernel_class}
        by_rule = {name for name, answer in answers.items() if answer.kernel_class == kernel_class}
        assert len(by_rule - by_hand) <= 1, report
        assert len(by_hand - by_rule) <= 1, report


@pytest.mark.shared
@pytest.mark.skipif(not CS336.exists(), reason="no shared folder with the Nsight text reports")
@pytest.mark.parametrize(("kind", "share"), [("forward", 92.188), ("train_step", 84.026)])
def test_matmul_share_of_a_published_profile(con: duckdb.DuckDBPyConnection, kind: str, share: float) -> None:
    """The full name decides: by the short name (Kernel2), train_step would have 66 %."""
    report = CS336 / f"1_1_4b__2.7b_ctx512_{kind}_cuda_gpu_kern_sum.txt"
    lines = re.findall(r"^ +\d+\.\d+ +(\d+) +\d+(?: +[\d.]+){5} {2}(.+?) *$", report.read_text("utf-8"), re.MULTILINE)
    answers = classify(con, {name for _, name in lines})
    total = sum(int(ns) for ns, _ in lines)
    matmul = sum(int(ns) for ns, name in lines if answers[name].kernel_class == "matmul")
    assert round(100 * matmul / total, 3) == share


TRAPS = {
    # "gemm" in a word, a namespace or an argument type is no matmul.
    "acme_gemma3_full_attn_f32_kernel": "attention",
    "acme_gemma_rope_kernel": "elementwise",
    "acme_gemma_bf16_matmul_kernel": "matmul",
    "void fbgemm_gpu::jagged_to_padded_dense_kernel<long>(long const*)": "embedding_index",
    "void ck::kernel_batchnorm_forward_final<ck::tensor_layout::gemm::RowMajor>(float*)": "normalization",
    "_ZN2ck26kernel_reduce_threadwise_wINS_13tensor_layout4gemm8RowMajorEEEvPf": "reduction",
    "void at::native::vectorized_elementwise_kernel<4, "
    "acme::ScaleForGemm<cutlass::gemm::GemmShape<8, 8, 4> >, std::array<char*, 2ul> >(int)": "elementwise",
    "compute_gemm_pointers(double**, double const*, int, int)": "other",
    "void setBatchedGemmPtrsKernel<float>(float**, float*, long)": "other",
    "void acme::jagged_gemm_kernel<float>(float**)": "matmul",
    # cuDNN's namespace xmma holds normalizations and layouts of weights; cuBLASLt's names begin with it.
    "void xmma__5x_cudnn::ext::batchnorm::bn_stats::kernel_matmul<float>(int)": "normalization",
    "xmma::gemm::cuda_reorder_awq_weight(int)": "copy",
    "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x32x8_stage3_warpsize1x4x1_ffma_execute_kernel_cublas": "matmul",
    # Implicit GEMM is a convolution, a conversion is none, and cuDNN runs attention too.
    "cutlass3x_sm100_tensorop_s128x64x16implicit_gemm_wgrad_f16_f16_f32_128x64x64_align8": "convolution",
    "void te::gemm_wgrad_kernel<float>(int)": "matmul",
    "igemm_v4r1_dynamic": "convolution",
    "void op_generic_tensor_kernel<2, float, float, float, 256>(cudnnTensorStruct)": "elementwise",
    "void setTensor4d_kernel<float>(float*)": "copy",
    "lrnForward_evenC": "normalization",
    "sm86_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize64x64x64_cudnn": "convolution",
    "void convert_layout_kernel<float>(float const*, float*)": "copy",
    "cudnn_generated_fort_native_sdpa_sm100_flash_fprop_f16_kernel0_0": "attention",
    # Split-K tails belong to their product.
    "void cublasLt::splitKreduce_kernel<32, 16, long, double, double>(double*)": "matmul",
    "Cijk_Ailk_Bljk_DB_GA_PostGSU8_VW2": "matmul",
    # The lines of a trace that name no library: gemv, batched products, quantised ones.
    "nvjet_hsh_64x8_64x16_4x1_v_bz_TNT": "matmul",
    "bmm_Bfloat16_E2m1E2m1_Fp32_t128x64x256_s4_et128x64_m256x64x64_c2x1x1_swiGlu_sm100f": "matmul",
    "void mul_mat_q<(ggml_type)2, 64, true>(char const*, int const*)": "matmul",
    "quantize_mmq_q8_1_f32": "other",
    "_qkv_lora_b_kernel": "matmul",
    "_acme_sm12x_fp8_einsum_kernel": "matmul",
    "void symv_kernel_upper<float, 0, 2, 5>(cublasSymvParams<float>)": "matmul",
    "void rocblas_trmvn_kernel<512, float>(int)": "matmul",
    # What is done for a product, or for the library that names it, is none; nor a collective.
    "_silu_mul_fp8_quant_deep_gemm": "elementwise",
    "deepgemm_compute_src2dst_triton_kernel": "embedding_index",
    "deepep_permute_triton_kernel": "embedding_index",
    "void deep_ep::intranode::combine<__nv_bfloat16, 8, 768>(int)": "collective",
    "void deep_gemm::smxx_clean_logits<256u, 2048u, 1u>(unsigned int)": "copy",
    "void deep_gemm::sm100_fp8_gemm_1d1d_impl<0u, 4096u>(float*)": "matmul",
    # MIOpen's own.
    "MIOpenCvBwdWrW": "convolution",
    "MIOpenBatchNormActivFwdTrainSpatial": "normalization",
    # Inductor names what it fused, not what it is.
    "triton_poi_fused_addmm_convolution_mm_relu_0": "elementwise",
    "triton_poi_fused__to_copy_slice_view_3": "copy",
    "triton_poi_fused_copy__1": "copy",
    "triton_poi_fused_copy_add__1": "elementwise",
    "triton_poi_fused__to_copy_slice_view_3_0d1d2de": "copy",
    "triton_red_fused_mm_sum_2": "reduction",
    "triton_per_fused_all_reduce_native_layer_norm_1": "normalization",
    "triton_tem_fused_mm_0": "matmul",
    "triton_tem_fused_convolution_0": "convolution",
    "triton_tem_fused_flex_decoding_0": "attention",
    "triton_poi_fused_reflection_pad2d_1": "copy",
    "triton_poi_fused_lift_fresh_copy_0": "copy",
    # THC's loops of before ATen's; its reductions along a dimension, with the index.
    "void kernelPointwiseApply2<CopyOp<float, c10::Half>, float, c10::Half, unsigned int, -2, -2>(int)": "copy",
    "void kernelPointwiseApply2<TensorTakeOp<float, unsigned int, long>, float, long>(int)": "embedding_index",
    "void kernelPointwiseApply3<TensorAddCMulOp<float>, float, float, float>(int)": "elementwise",
    "void kernelTransformReduceInnermostDimIndex<float, long, MaxValuePair<float, long> >(float*)": "reduction",
    # "norm", "lamb", "embedding", "copy", "cast", "fill" and "reduce" where they mean something else.
    "void at::native::lpnorm_cleanup<double, (at::native::NormType)1>(double const*)": "reduction",
    "void rope_norm<false, true, __half>(__half const*, __half*)": "elementwise",
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
    "TensorListMetadata<2>, at::native::(anonymous namespace)::UnaryOpFunctor<double, 2, 1, 1>, "
    "at::native::{lambda(double)#1}>(at::native::{lambda(double)#1})": "elementwise",
    "void vllm::batched_rotary_embedding_kernel<c10::Half, true>(long const*)": "elementwise",
    "void at::native::(anonymous namespace)::CatArrayBatchedCopy_contig<double, int, 1>(int)": "copy",
    "void k_bin_bcast<&(op_sub(float, float)), float, float, float>(float const*)": "elementwise",
    "void acme::BatchPrefillWithRaggedKVCacheKernel<1>(int)": "attention",
    "void vllm::cross_device_reduce_1stage<float, 2>(vllm::RankData*)": "collective",
    "void at::native::unrolled_elementwise_kernel<at::native::FillFunctor<short>, 4>(int)": "copy",
    "void fbgemm_gpu::_float_to_bfloat16_cuda_kernel<float>(float const*)": "copy",
    "void acme::fill_normal_kernel<float>(float*)": "copy",
    "half2float_kernel": "copy",
    "half2_add_kernel": "elementwise",
    "cupy_max": "reduction",
    "cupy_maximum__float32_float32_float32": "elementwise",
    "void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<Eigen::TensorAssignOp<Eigen::TensorMap<Eigen::half>, "
    "Eigen::TensorConversionOp<Eigen::half, float> > >, int>(int)": "copy",
    "void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<Eigen::TensorAssignOp<Eigen::TensorMap<Eigen::half>, "
    "Eigen::TensorConversionOp<Eigen::half, Eigen::TensorCwiseBinaryOp<float> > > >, int>(int)": "elementwise",
    "loop_select_fusion": "elementwise",
    "void tensorflow::(anonymous namespace)::SplitOpKernel<float>(float const*)": "copy",
    "sqr_f32(float const*, float*, int)": "elementwise",
    "ggml_cuda_ar_kernel<float>(float*)": "collective",
    # Return type, clone suffix, mangled form: two numbers (mm) after a pointer are no product.
    "_Z9my_kernelPKfS0_mm.kd": "other",
    "_Z21compute_gemm_pointersPP6float2PKS_ii": "other",
    "_ZN2at6native55_GLOBAL__N__4b8e7a6c_12_attention_cu_4f6e8d2a13rescale_partsEPf": "other",
    "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_7NormOpsIfffEEjfLi4ELi4EEEEEvT1_.kd": "reduction",
    "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_10WelfordOpsIffiEEjfLi2EEEEEvT1_": "reduction",
    "std::enable_if<((8)>(0)), void>::type vllm::fused_add_rms_norm_kernel<float, 8>(int)": "normalization",
    "Cijk_Alik_Bljk_SB_MT32x32x16_SE.kd": "matmul",
    "triton_poi_fused_cat_0.kd": "copy",
    "_ZN5aiter31fmha_fwd_hd192_bf16_causal_groupE.kd": "attention",
    "void laplace_step<double>(double*, int) [clone .kd]": "other",
}


@pytest.mark.parametrize(("name", "kernel_class"), TRAPS.items(), ids=[name[:60] for name in TRAPS])
def test_trap(con: duckdb.DuckDBPyConnection, name: str, kernel_class: str) -> None:
    assert classify_one(con, name).kernel_class == kernel_class


def test_unknown_names_are_other_by_default(con: duckdb.DuckDBPyConnection) -> None:
    assert classify_one(con, "wobble_kernel") == Answer("other", "default", None, "other")


def test_a_shipped_rule_says_which_it_was(con: duckdb.DuckDBPyConnection) -> None:
    answer = classify_one(con, "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)")
    assert (answer.kernel_class, answer.rule_source) == ("collective", "shipped")
    row = con.execute("SELECT class FROM v1._kernel_rule WHERE priority = ?", [answer.priority]).fetchone()
    assert row == ("collective",)


def test_user_rules_win_in_their_order_over_the_name_as_recorded(con: duckdb.DuckDBPyConnection) -> None:
    insert(con, "kernel_rule", RULE, (200, "wobble", "reduction"), (100, r"^void Wobble<\w+>", "matmul"),
           (100, "nvjet", "other"))  # fmt: skip
    answers = classify(con, ["void Wobble<float>(int)", "wobble_kernel", "nvjet_tst_64x8", "ampere_sgemm_32x32_nn"])
    assert answers["void Wobble<float>(int)"] == Answer("matmul", "user", 100, "other")
    assert answers["wobble_kernel"] == Answer("reduction", "user", 200, "other")
    assert answers["nvjet_tst_64x8"] == Answer("other", "user", 100, "matmul")
    assert answers["ampere_sgemm_32x32_nn"].rule_source == "shipped"


def test_two_user_rules_of_one_priority_give_one_stable_answer(con: duckdb.DuckDBPyConnection) -> None:
    insert(con, "kernel_rule", RULE, (1, "b", "copy"), (1, "a", "random"))
    assert classify_one(con, "ab") == Answer("random", "user", 1, "other")


@pytest.mark.parametrize("pattern", ["(", "[z-a]", "(?=x)", "*", "x{100000}", r"\p{Nothing}"])
def test_an_invalid_user_rule_matches_nothing(con: duckdb.DuckDBPyConnection, pattern: str) -> None:
    insert(con, "kernel_rule", RULE, (1, pattern, "copy"), (2, "wobble", "matmul"))
    assert classify(con, ["wobble_kernel", "x"]) == {
        "wobble_kernel": Answer("matmul", "user", 2, "other"),
        "x": Answer("other", "default", None, "other"),
    }


def test_only_kernels_are_classified_and_each_name_once(con: duckdb.DuckDBPyConnection) -> None:
    insert(con, "kernel_event", EVENT, (0, 1, "kernel", "a"), (0, 2, "kernel", "a"), (1, 1, "kernel", "a"),
           (0, 3, "memcpy", "Memcpy HtoD"), (0, 4, "graph", "graph 7"))  # fmt: skip
    assert con.execute("SELECT name FROM v1._kernel_class").fetchall() == [("a",)]


def test_no_kernels_give_no_rows(con: duckdb.DuckDBPyConnection) -> None:
    assert classify(con, []) == {}


def test_names_with_line_breaks_and_empty_names_come_back_as_they_were(
    con: duckdb.DuckDBPyConnection,
) -> None:
    answers = classify(con, ["my\nsgemm_kernel", "", "(anonymous namespace)::", "plain"])
    assert answers["my\nsgemm_kernel"].kernel_class == "matmul"
    assert {answers[name].kernel_class for name in ("", "(anonymous namespace)::", "plain")} == {"other"}


def test_the_shipped_rules_are_well_formed(con: duckdb.DuckDBPyConnection) -> None:
    rules = con.execute("SELECT priority, pattern, class FROM v1._kernel_rule").fetchall()
    assert len({priority for priority, _, _ in rules}) == len(rules), "a priority is used twice"
    assert {kernel_class for _, _, kernel_class in rules} <= CLASSES
    for priority, pattern, _ in rules:
        assert pattern == pattern.lower(), f"rule {priority} is searched in lower case"
        first_match = con.execute("SELECT regexp_matches('', ?)", [pattern]).fetchone()
        assert first_match == (False,), f"rule {priority} matches everything"
