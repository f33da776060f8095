"""Faults that views must handle: time that must not count twice, classes of kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import run
from support.loading import ask, ingest
from support.traces import Event, annotation, kernel, memcpy, write

CLASSES = [
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "collective"),
    ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "collective"),
    ("void ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)", "collective"),
    ("ncclSymkDevKernel_AllGather_ST(ncclSymkDevWorkArgs)", "collective"),
    ("void vllm::cross_device_reduce_2stage<__half, 8>(vllm::RankData*)", "collective"),
    ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*)", "collective"),
    ("two_shot_all_reduce_kernel", "collective"),
    ("multimem_all_reduce_kernel<c10::BFloat16, 16>", "collective"),
    ("trtllm_allreduce_fusion_kernel_oneshot_lamport<8>", "collective"),
    ("void deep_ep::internode::dispatch<false, 8, false, 16384, 32>(int4*)", "collective"),
    ("__amd_rocclr_copyBuffer", "copy"),
    ("__amd_rocclr_fillBufferAligned", "copy"),
    ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNT", "matmul"),
    ("nvjet_tst_128x64_64x8_2x1_v_bz_TNT", "matmul"),
    (
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize2x1x1_execute_segment_k_off_kernel",
        "matmul",
    ),
    ("ampere_sgemm_128x64_nn", "matmul"),
    ("cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4", "matmul"),
    ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8>(Params)", "matmul"),
    ("void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<int> >(Params)", "matmul"),
    ("Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI16x16x16x1_SN", "matmul"),
    ("Custom_Cijk_Alik_Bljk_BBS_BH_MT256x256x64", "matmul"),
    ("void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false>(int)", "matmul"),
    ("void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float>(int)", "matmul"),
    ("triton_tem_fused_mm_0", "matmul"),
    ("void deep_gemm::fp8_gemm_kernel<4096u, 7168u>(float*)", "matmul"),
    ("void ck::kernel_gemm_xdl_cshuffle_v3<ck::GridwiseGemm>(Argument)", "matmul"),
    ("void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4> >(Flash_fwd_params)", "attention"),
    ("fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float>::Params)", "attention"),
    ("void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<int>(Flash_bwd_params)", "attention"),
    ("_ZN5aiter34fmha_fwd_hd128_bf16_causal_group_gfx950E.kd", "attention"),
    ("void (anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, Epilogue>(float*)", "softmax"),
    ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, false, false>(float*)", "softmax"),
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, gemm_t>(int)",
        "elementwise",
    ),
]


class TestAnswers:
    """Faults of which the right answer is a report's."""

    @pytest.fixture(scope="class")
    @classmethod
    def db(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("views")
        b028: list[Event] = [kernel(0, 10, "a"), kernel(10, 0, "b"), kernel(10, 10, "c"), memcpy(30, 10)]
        projection = annotation(9.999, 500, "forward", pid=0, tid=7, cat="gpu_user_annotation")
        write(folder / "in" / "b028" / "x.json", b028)
        write(folder / "in" / "b032" / "x.json", [projection, kernel(10, 20, "a"), kernel(40, 5, "a")])
        write(folder / "in" / "b025" / "x.json", [kernel(3, 3.776, "a"), kernel(5, 2, "b")])
        write(
            folder / "in" / "b035" / "x.json",
            [*(kernel(0, 1, "z") for _ in range(3)), *(kernel(10**12 + i, 1, "a") for i in range(9))],
        )
        streams = [kernel(100 * i, 86, f"d{device}", device=device, stream=17) for device in range(3) for i in range(2)]
        write(folder / "in" / "b048" / "x.json", streams)
        fmha = [kernel(0, 1_600_000, "fmha"), *(kernel(100 * i, 50, "fmha") for i in range(1, 80))]
        write(folder / "in" / "b027" / "x.json", fmha, header={"schemaVersion": 1, "roctracer_version": 4.1})
        names = [kernel(i, 1, name) for i, (name, _) in enumerate(CLASSES)]
        names.append(kernel(99, 1, "generic_comm_kernel", args={"Collective name": "allreduce"}))
        write(folder / "in" / "classes" / "x.json", names)
        assert ingest(folder / "in", db=folder / "db").exit_code == 0
        return folder / "db"

    @staticmethod
    def timeline(db: Path, case: str) -> list[tuple[int, ...]]:
        return ask(
            db,
            f"""SELECT t.computation_ns, t.exposed_copy_ns, t.busy_ns, t.idle_ns, t.total_ns
            FROM v1.gpu_timeline AS t INNER JOIN capture AS c ON t.capture_id = c.capture_id
            WHERE c.path LIKE '%/{case}/x.json' ORDER BY t.device_id""",
        )

    def test_kernels_of_no_duration_add_no_time(self, db: Path) -> None:
        assert self.timeline(db, "b028") == [(20_000, 10_000, 30_000, 10_000, 40_000)]

    def test_gpu_annotations_add_no_time(self, db: Path) -> None:
        assert self.timeline(db, "b032") == [(25_000, 0, 25_000, 10_000, 35_000)]

    def test_overlapping_kernels_count_once(self, db: Path) -> None:
        assert self.timeline(db, "b025") == [(4_000, 0, 4_000, 0, 4_000)]

    def test_events_clamped_to_zero_do_not_stretch_the_timeline(self, db: Path) -> None:
        assert self.timeline(db, "b035") == [(9_000, 0, 9_000, 0, 9_000)]

    def test_equal_stream_numbers_on_different_devices_are_timed_apart(self, db: Path) -> None:
        assert self.timeline(db, "b048") == [(172_000, 0, 172_000, 14_000, 186_000)] * 3

    def test_recorded_and_clipped_durations_are_both_given(self, db: Path) -> None:
        query = """SELECT sum(k.duration_ns)::BIGINT, sum(k.clipped_duration_ns)::BIGINT, any_value(k.vendor)
            FROM v1.kernels AS k INNER JOIN capture AS c ON k.capture_id = c.capture_id WHERE c.path LIKE '%/b027/%'"""
        assert ask(db, query) == [(1_600_000_000 + 79 * 50_000, 100_000 + 79 * 50_000, "AMD")]

    def test_every_kernel_has_its_class(self, db: Path) -> None:
        query = """SELECT k.name, k.class FROM v1.kernels AS k INNER JOIN capture AS c ON k.capture_id = c.capture_id
            WHERE c.path LIKE '%/classes/%' ORDER BY k.start_ns"""
        assert ask(db, query) == [*CLASSES, ("generic_comm_kernel", "collective")]


ROCM = {"schemaVersion": 1, "hip_runtime_version": 60443483, "deviceProperties": [{"id": 0, "name": "MI300X"}]}


class TestCopiesRecordedAsKernels:
    """Copies that ROCm up to 7.1 recorded as kernels, beside captures of later releases."""

    @staticmethod
    def captured(path: Path, *events: Event) -> None:
        write(path, [*events, kernel(5000, 100, "gemm", correlation=3)], header=ROCM)

    def notes(self, folder: Path, *options: str) -> str:
        db = folder.with_suffix(".duckdb")
        assert ingest(folder, db=db).exit_code == 0
        return run("report", "top-kernels", *options, "--db", db).stderr

    def test_copies_recorded_both_ways_are_noted(self, tmp_path: Path) -> None:
        self.captured(tmp_path / "in" / "rank0.json", kernel(1000, 50, "__amd_rocclr_copyBuffer", correlation=1))
        self.captured(tmp_path / "in" / "rank1.json", memcpy(1000, 50))
        self.captured(tmp_path / "in" / "rank2.json", memcpy(1000, 60))
        said = self.notes(tmp_path / "in")
        assert "recorded as kernels in 1 of the captures (ROCm up to 7.1) and as copies in 2" in said
        assert "recorded as kernels" not in self.notes(tmp_path / "in", "--rank", "1", "--rank", "2")

    def test_copies_recorded_one_way_are_not_noted(self, tmp_path: Path) -> None:
        for rank in range(2):
            name = tmp_path / "in" / f"rank{rank}.json"
            self.captured(name, kernel(1000, 50, "__amd_rocclr_fillBufferAligned", correlation=1))
        self.captured(tmp_path / "in" / "rank2.json")
        assert "recorded as kernels" not in self.notes(tmp_path / "in")


class TestFusedAttention:
    """Fused attention is a class of its own, and is counted as matrix products where that is asked for."""

    def shares(self, db: Path, *options: str) -> dict[str, list[str]]:
        done = run("report", "matmul-fraction", *options, "--db", db, "--format", "csv")
        assert done.exit_code == 0, done.stderr
        head, *lines = [line.split(",") for line in done.stdout.splitlines()]
        return {dict(zip(head, line, strict=True))["class"]: line for line in lines}

    def test_fused_attention_counts_as_matmul_where_asked_for(self, tmp_path: Path) -> None:
        names = ("nvjet_tst_128x64_TNT", "void flash_fwd_kernel<Flash_fwd_kernel_traits<64> >(Flash_fwd_params)", "add")
        ingest(
            write(tmp_path / "a.json", [kernel(100 * at, 10, name) for at, name in enumerate(names)]),
            db=tmp_path / "db",
        )
        assert {name: line[1] for name, line in self.shares(tmp_path / "db").items()} == {
            "matmul": "1", "attention": "1", "elementwise": "1"
        }  # fmt: skip
        asked = self.shares(tmp_path / "db", "--attention-as-matmul")
        assert {name: line[1] for name, line in asked.items()} == {"matmul": "2", "elementwise": "1"}
        shown = run("report", "matmul-fraction", "--attention-as-matmul", "--db", tmp_path / "db", "--show-sql").stdout
        assert "WHEN 'attention' THEN 'matmul'" in shown

    def test_other_reports_refuse_attention_as_matmul(self, tmp_path: Path) -> None:
        ingest(write(tmp_path / "a.json", [kernel(100, 10, "add")]), db=tmp_path / "db")
        done = run("report", "top-kernels", "--attention-as-matmul", "--db", tmp_path / "db")
        assert done.exit_code == 2
        assert "does not support --attention-as-matmul" in done.stderr
