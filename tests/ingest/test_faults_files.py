"""Faults of files, ranks and metadata, and what the command says of faults: through ``tracedb ingest``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import duckdb
import pytest
from click.testing import Result

from command import run
from ingest.traces import (
    HEADER,
    Event,
    Raw,
    annotation,
    call,
    document,
    empty_database,
    frame,
    kernel,
    launched,
    memcpy,
    read,
    window_end,
    write,
)


def ingest(*paths: Path, db: Path, new: bool = False, **options: Any) -> Result:
    """Run the command on a database that has its tables and views already, or on none if it is to be ``new``."""
    if not new and not db.exists():
        db.write_bytes(empty_database())
    flags = [
        item for name, value in options.items() for item in (f"--{name}", *([] if value is True else [str(value)]))
    ]
    return run("ingest", *paths, "--db", db, "--jobs", "1", *flags)


def ask(db: Path, query: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(db), read_only=True) as connection:
        return connection.execute(query).fetchall()


KERNELS = "SELECT count(*) FROM kernel_event WHERE kind = 'kernel'"
BACKSLASH = Raw(r'"torch\cuda\__init__.py(219): f"')


class TestExitCodes:
    FAULTS = (
        ("event_repaired", {"events": [kernel(1), frame(2, 1, BACKSLASH), kernel(3)]}),
        ("event_unreadable", {"events": [kernel(1), b'{"ph": "X", oops}', kernel(3)]}),
        ("header_unreadable", {"events": [kernel(1), kernel(3)], "after": b'"INFO": ["a "b" c"]'}),
        ("duration_negative", {"events": [kernel(1), kernel(2, -1), kernel(3)]}),
    )

    @pytest.mark.parametrize(("code", "trace"), FAULTS, ids=[code for code, _ in FAULTS])
    def test_a_fault_is_a_warning_and_under_strict_an_error(
        self, tmp_path: Path, code: str, trace: dict[str, Any]
    ) -> None:
        path = write(tmp_path / "x.json", trace.pop("events"), **trace)
        done = ingest(path, db=tmp_path / "1.duckdb")
        assert (done.exit_code, done.stderr.count(f"warning: {path}: {code} (1)")) == (0, 1)
        strict = ingest(path, db=tmp_path / "2.duckdb", strict=True)
        assert strict.exit_code == 1
        assert strict.stderr.splitlines()[-1].startswith(
            "tracedb: error: --strict: events were skipped or repaired in 1 files"
        )
        for db in ("1.duckdb", "2.duckdb"):
            assert ask(tmp_path / db, KERNELS) == [(2,)]
            assert ask(tmp_path / db, "SELECT status FROM capture") == [("repaired",)]
            assert ask(tmp_path / db, f"SELECT severity, count FROM ingest_issue WHERE code = '{code}'") == [
                ("warning", 1)
            ]

    def test_strict_is_content_with_a_sound_file(self, tmp_path: Path) -> None:
        content = document([*launched(2), window_end()]).replace(b"]}", b",\n]}")
        assert ingest(write(tmp_path / "x.json", content), db=tmp_path / "db", strict=True).exit_code == 0

    def test_cut_file(self, tmp_path: Path) -> None:
        content = document(launched(3))
        path = write(tmp_path / "x.json", content[: len(content) - 200])
        done = ingest(path, db=tmp_path / "db")
        assert (done.exit_code, ask(tmp_path / "db", "SELECT status FROM capture")) == (0, [("truncated",)])
        assert f"warning: {path}: file_cut" in done.stderr
        assert ingest(path, db=tmp_path / "db2", strict=True).exit_code == 1

    def test_refused_file(self, tmp_path: Path) -> None:
        one, two = document(launched(3)), document(launched(4))
        path = write(tmp_path / "x.json", one + two)
        done = ingest(path, db=tmp_path / "db", new=True)
        assert done.exit_code == 1
        first, *_, last = [line for line in done.stderr.splitlines() if line.startswith("tracedb: error")]
        assert first.startswith(f"tracedb: error: {path}: a second traceEvents array follows the first: two traces")
        assert last.startswith("tracedb: error: 1 of 1 files could not be loaded")
        assert not (tmp_path / "db").exists()

    def test_b018_b054_no_kernels_are_said_and_never_shown_as_zeros(self, tmp_path: Path) -> None:
        path = write(tmp_path / "x.json", [call(1, 5, 9, "cudaGraphLaunch"), call(8, 5, 10, "cudaGraphLaunch")])
        done = ingest(path, db=tmp_path / "db")
        assert done.exit_code == 0
        assert (
            "no kernels were captured (2 graph launches but no kernels; record again with graph nodes traced)"
            in done.stderr
        )
        asked = run("report", "top-kernels", "--db", tmp_path / "db")
        assert (asked.exit_code, asked.stdout) == (3, "")


class TestRanks:
    NAMES = (
        ("rank0/trace.json", 0),
        ("run/rank3/host_123.1699.pt.trace.json", 3),
        ("dp0_tp3.rank[4].step10.json", 4),
        ("rank-5.json.gz", 5),
        ("rank_12.json", 12),
        ("RANK7.json", 7),
        ("trace_rank8_step3.json.gz", 8),
        ("iteration_10/rank9_trace.json.gz", 9),
        ("rank=10/x.json", 10),
        ("rank2/rank11.json", 11),
        ("x.rank13of16.json", 13),
        ("global_rank14_local_rank1.json", 14),
        ("rank-xxx.json.gz", None),
        ("frank3.json", None),
        ("local_rank1/x.json", None),
        ("node_rank1/x.json", None),
        ("host.4242.pt.trace.json", None),
        ("3.json", None),
    )

    def test_b065_b067_by_name_and_folder(self, tmp_path: Path) -> None:
        for place, (name, _) in enumerate(self.NAMES):
            write(tmp_path / "in" / name, [kernel(place)], header={"schemaVersion": 1})
        done = ingest(tmp_path / "in", db=tmp_path / "db")
        assert done.exit_code == 0
        found = {
            path.removeprefix(f"{tmp_path}/in/"): rank
            for path, rank in ask(tmp_path / "db", "SELECT path, rank FROM capture")
        }
        assert found == dict(self.NAMES)

    def test_b067_steps_of_a_rank_are_captures_of_their_own(self, tmp_path: Path) -> None:
        for step in (10, 20):
            write(tmp_path / "in" / f"dp0_tp3.rank[3].step{step}.json", [kernel(step)])
        ingest(tmp_path / "in", db=tmp_path / "db")
        query = "SELECT rank, labels['iteration'] FROM capture ORDER BY capture_id"
        assert ask(tmp_path / "db", query) == [(3, "10"), (3, "20")]

    def test_what_the_trace_says_wins(self, tmp_path: Path) -> None:
        header = {**HEADER, "distributedInfo": {"rank": 2, "world_size": 8}}
        ingest(write(tmp_path / "rank7.json", [kernel(1)], header=header), db=tmp_path / "db")
        assert ask(tmp_path / "db", "SELECT rank, world_size FROM capture") == [(2, 8)]
        issue = "SELECT code, detail FROM ingest_issue WHERE code = 'rank_conflict'"
        assert ask(tmp_path / "db", issue) == [
            ("rank_conflict", "the trace says rank 2, the path 7; the trace's is kept")
        ]

    def test_a_merged_file_has_no_rank_by_its_name(self, tmp_path: Path) -> None:
        events = [*launched(3, pid=1, device=0), *launched(3, pid=2, device=1)]
        ingest(write(tmp_path / "rank0.json", events), db=tmp_path / "db")
        assert ask(tmp_path / "db", "SELECT pid, rank, part FROM capture ORDER BY pid") == [(1, None, 0), (2, None, 1)]

    @pytest.mark.parametrize(
        ("info", "rank"),
        [
            ({"rank": 5}, 5),
            ({"rank": "5"}, 5),
            ({"rank": -1}, None),
            ({"rank": None}, None),
            ({"rank": 2**40}, None),
            ({"rank": 1.5}, None),
            ({}, None),
            ([], None),
            ("x", None),
            (None, None),
        ],
    )
    def test_distributed_info_of_any_shape(self, tmp_path: Path, info: Any, rank: int | None) -> None:
        around = {"schemaVersion": 1, "distributedInfo": info}
        found = read(write(tmp_path / "x.json", [kernel(1)], header={"schemaVersion": 1}, after=around))
        assert (found.capture["rank"], found.status) == (rank, "complete")


class TestMetadata:
    def test_b069_without_steps_all_kernels_are_kept(self, tmp_path: Path) -> None:
        ingest(write(tmp_path / "x.json", [annotation(0, 99, "forward"), *launched(3)]), db=tmp_path / "db")
        assert ask(tmp_path / "db", "SELECT name, step FROM v1.kernels ORDER BY name") == [
            ("k0", None),
            ("k1", None),
            ("k2", None),
        ]

    def test_steps(self, tmp_path: Path) -> None:
        steps = [annotation(100 * i, 90, f"ProfilerStep#{i + 5}") for i in range(3)]
        ingest(write(tmp_path / "x.json", [*steps, *launched(3)]), db=tmp_path / "db")
        assert ask(tmp_path / "db", "SELECT name, step FROM v1.kernels ORDER BY name") == [
            ("k0", 5),
            ("k1", 6),
            ("k2", 7),
        ]

    def test_b071_empty_devices_and_nested_groups(self, tmp_path: Path) -> None:
        groups = [
            {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": 2, "ranks": [0, 1]}
        ]
        info = {
            "backend": "nccl",
            "rank": 1,
            "world_size": 2,
            "pg_count": 1,
            "pg_config": groups,
            "nccl_version": "2.27.5",
        }
        header = {"schemaVersion": 1, "deviceProperties": [], "distributedInfo": info}
        found = read(write(tmp_path / "x.json", [kernel(1)], header=header))
        assert (found.capture["rank"], found.capture["world_size"], found.status) == (1, 2, "complete")
        assert json.loads(found.capture["metadata"])["pg_config"] == groups
        assert found.tables["device"] == [
            {"device_id": 0, "vendor": "NVIDIA", "is_used": True, "part": 0}
            | dict.fromkeys(("name", "sm_count", "memory_bytes", "uuid", "arch"))
        ]

    @pytest.mark.parametrize(
        "devices",
        [None, {}, "x", [None], [5], [{"id": "0"}], [{"id": 0, "name": 5, "numSms": "x", "totalGlobalMem": 1.5}]],
    )
    def test_devices_of_any_shape(self, tmp_path: Path, devices: Any) -> None:
        found = read(write(tmp_path / "x.json", [kernel(1)], header={"schemaVersion": 1, "deviceProperties": devices}))
        assert [row["device_id"] for row in found.tables["device"]] == [0]
        assert found.status == "complete"

    def test_nothing_private_is_kept(self, tmp_path: Path) -> None:
        secret = "s3cr3t"
        header = {**HEADER, "metadata": {"HOME": secret}, "username": secret, "cmdline": secret, "traceName": secret}
        found = read(write(tmp_path / "x.json", [kernel(1)], header=header, after={"env": [secret], "tw_job": secret}))
        assert secret not in str(found.tables)

    def test_text_that_is_no_text(self, tmp_path: Path) -> None:
        header = {
            **HEADER,
            "host_name": Raw(r'"h\ud800\u0001"'),
            "cupti_version": Raw(r'"\udfff"'),
            "trace_id": Raw(r'"\ud800"'),
        }
        found = read(write(tmp_path / "x.json", [kernel(1)], header=header))
        assert found.capture["host"] == "h\ufffd"
        assert "CUPTI \ufffd" in found.capture["tool_version"]


class TestB073Sniffing:
    OTHERS: ClassVar = {
        "hparams.json": b'{"lr": 0.1, "steps": [1, 2]}',
        "results.json": b'[{"loss": 1.5}, {"loss": 1.2}]',
        "events.json": b'{"events": [{"ph": "X"}]}',
        "log.txt": b"traceEvents: none",
        "empty.json": b"",
        "broken.json": b"{",
        "text.gz": b"\x1f\x8bgarbage",
        "numbers.bin": bytes(range(256)),
        "manifest.json": b'{"schemaVersion": 2, "mediaType": "x", "layers": [{"size": 1}]}',
        "notebook.ipynb": b'{"cells": [], "nbformat": 4}',
        "data.json.zst": b"\x28\xb5\x2f\xfdgarbage",
    }

    def test_content_counts_and_not_names(self, tmp_path: Path) -> None:
        folder = tmp_path / "in"
        names = [
            "fit-training_step_and_backward.1625863814669.pt.trace.json",
            "trace",
            "x.pftrace",
            "a b.JSON",
            "läufe/ß.json",
        ]
        for place, name in enumerate(names):
            write(folder / name, [kernel(place)])
        for name, content in self.OTHERS.items():
            (folder / name).write_bytes(content)
        done = ingest(folder, db=tmp_path / "db", verbose=True)
        assert done.exit_code == 0
        assert {
            Path(path).relative_to(folder).as_posix() for (path,) in ask(tmp_path / "db", "SELECT path FROM capture")
        } == set(names)
        for name, content in self.OTHERS.items():
            reason = "no ingester recognises its content" if content else "0 bytes"
            assert f"left aside: {folder / name} ({reason})" in done.stderr

    def test_nothing_to_load_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "hparams.json").write_bytes(b"{}")
        for paths in ([tmp_path / "in"], [tmp_path / "in" / "hparams.json"]):
            done = ingest(*paths, db=tmp_path / "db", new=True)
            assert done.exit_code == 1
            assert "no file that an ingester recognises" in done.stderr
        assert ingest(tmp_path / "none", db=tmp_path / "db", new=True).exit_code == 2
        assert not (tmp_path / "db").exists()


class TestB022ManySmallFiles:
    def test_known_files_are_skipped(self, tmp_path: Path) -> None:
        for rank in range(12):
            write(tmp_path / "in" / f"rank{rank}.json.gz", [kernel(rank), kernel(rank + 5)])
        done = ingest(tmp_path / "in", db=tmp_path / "db")
        assert done.exit_code == 0
        assert "12 captures loaded, 0 known before, 0 failed" in done.stderr
        again = ingest(tmp_path / "in", db=tmp_path / "db")
        assert again.exit_code == 0
        assert "0 captures loaded, 12 known before, 0 failed" in again.stderr
        assert ask(tmp_path / "db", "SELECT count(*), count(DISTINCT rank) FROM capture") == [(12, 12)]


class TestThroughTheViews:
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

    def test_b028_b029_empty_kernels_add_nothing(self, db: Path) -> None:
        assert self.timeline(db, "b028") == [(20_000, 10_000, 30_000, 10_000, 40_000)]

    def test_b032_projections_add_nothing(self, db: Path) -> None:
        assert self.timeline(db, "b032") == [(25_000, 0, 25_000, 10_000, 35_000)]

    def test_b025_overlap_counts_once(self, db: Path) -> None:
        assert self.timeline(db, "b025") == [(4_000, 0, 4_000, 0, 4_000)]

    def test_b035_span_is_not_of_years(self, db: Path) -> None:
        assert self.timeline(db, "b035") == [(9_000, 0, 9_000, 0, 9_000)]

    def test_b048_devices_apart(self, db: Path) -> None:
        assert self.timeline(db, "b048") == [(172_000, 0, 172_000, 14_000, 186_000)] * 3

    def test_b027_both_durations(self, db: Path) -> None:
        query = """SELECT sum(k.duration_ns)::BIGINT, sum(k.clipped_duration_ns)::BIGINT, any_value(k.vendor)
            FROM v1.kernels AS k INNER JOIN capture AS c ON k.capture_id = c.capture_id WHERE c.path LIKE '%/b027/%'"""
        assert ask(db, query) == [(1_600_000_000 + 79 * 50_000, 100_000 + 79 * 50_000, "AMD")]

    def test_classes(self, db: Path) -> None:
        query = """SELECT k.name, k.class FROM v1.kernels AS k INNER JOIN capture AS c ON k.capture_id = c.capture_id
            WHERE c.path LIKE '%/classes/%' ORDER BY k.start_ns"""
        assert ask(db, query) == [*CLASSES, ("generic_comm_kernel", "collective")]


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
