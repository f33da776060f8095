"""``short_name``: a kernel's name without return type, namespaces, template arguments and parameters."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from tracedb.storage import views

NSYS = Path(__file__).parents[2].parent / "shared" / "data" / "nsys"
LAMBDA = "at::native::gpu_kernel_impl<at::native::f(at::TensorIteratorBase&)::{lambda()#3}::operator()() const"

NAMES = {
    # demanglers of CUPTI (Kineto) and of nsys
    f"void at::native::elementwise_kernel<128, 2, {LAMBDA}>(int, {LAMBDA}>)": "elementwise_kernel",
    "void at::native::elementwise_kernel<(int)128, void f<T>(T &)::[lambda(int) (instance 1)]>(int, T3)": (
        "elementwise_kernel"
    ),
    "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, 3>(float*)": "CatArrayBatchedCopy",
    "void <unnamed>::elementwise_kernel_with_index<int, f(const c10::Scalar &)::[lambda() (instance 4)]>(T1)": (
        "elementwise_kernel_with_index"
    ),
    "std::enable_if<(!((Dim)1 > (Dim)0)), void>::type internal::gemvx::kernel<int, float2>(T13)": "kernel",
    "decltype(auto) ns::f<int>(int)": "f",
    "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "ncclDevKernel_AllGather_RING_LL",
    "void k<(a > b), a::b<c<d<e<f<g<h<i>>>>>>>>(float (&)[4])": "k",
    "void ns::S<int>::operator()<float>(int) const": "operator()",
    "void thrust::binary_operator<float>(int)": "binary_operator",
    "void f(int)::local<4>(float) const &": "local",
    # AMD
    "void laplacian_kernel<double>(double*, double const*) [clone .kd]": "laplacian_kernel",
    "plain.kd": "plain",
    "_ZN7ck_tile6kentryILi1ENS_17BatchedGemmKernelINS_13TileGemmShapeEEEEEvDpT2_": "kentry",
    "_ZN2ck16tensor_operation6device12_GLOBAL__N_113kernel_gemm_vINS_4GemmEEEvT_": "kernel_gemm_v",
    "_Z35batched_matrix_multiplication_naiveiiiiPKDF16bS0_PDF16b.kd": "batched_matrix_multiplication_naive",
    "_ZL7my_kernPf": "my_kern",
    "Cijk_Ailk_Bjlk_BBS_BH_Bias_MT128x64x64_MI32x1": "Cijk_Ailk_Bjlk_BBS_BH_Bias_MT128x64x64_MI32x1",
    # no C++ at all
    "triton_poi_fused_add_0d1d2de": "triton_poi_fused_add_0d1d2de",
    "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNN": "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNN",
    "Memcpy HtoD (Pinned -> Device)": "Memcpy HtoD (Pinned -> Device)",
    "[CUDA memset]": "[CUDA memset]",
    # cut, or no name
    "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128": "flash_fwd_kernel",
    "_Z": "_Z",
    "_ZN99999999x": "_ZN99999999x",
    "<<<<": "<<<<",
    "": "",
}  # fmt: skip


@pytest.fixture(scope="module")
def macros() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    views.create(connection, "_short_name")
    return connection


def test_names_of_every_kind(macros: duckdb.DuckDBPyConnection) -> None:
    rows = macros.execute("SELECT name, v1._short_name(name) FROM (SELECT unnest(?) AS name)", [list(NAMES)]).fetchall()
    assert dict(rows) == NAMES


def test_a_hostile_name_costs_little(macros: duckdb.DuckDBPyConnection) -> None:
    """Brackets that are never closed, or deeper than any compiler nests them, neither hang nor fail."""
    for name in ("x" * 10_000 + "<" * 10_000, "(" * 10_000, "f" + "<" * 500 + ">" * 500, "_Z" + "1a" * 5_000):
        assert macros.execute("SELECT v1._short_name(?)", [name]).fetchone() is not None


@pytest.mark.shared
@pytest.mark.skipif(not NSYS.is_dir(), reason="the real traces are not beside the repository")
def test_as_nsys_names_them(macros: duckdb.DuckDBPyConnection) -> None:
    pairs: set[tuple[str, str]] = set()
    for path in sorted(NSYS.rglob("*.sqlite")):
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as export:
            tables = {name for (name,) in export.execute("SELECT name FROM sqlite_master")}
            if "CUPTI_ACTIVITY_KIND_KERNEL" in tables:
                pairs |= set(
                    export.execute(
                        """SELECT DISTINCT d.value, s.value FROM CUPTI_ACTIVITY_KIND_KERNEL AS k
                           JOIN StringIds AS d ON d.id = k.demangledName JOIN StringIds AS s ON s.id = k.shortName"""
                    )
                )
    assert len(pairs) > 100
    found = macros.execute(
        "SELECT name, v1._short_name(name) FROM (SELECT unnest(?) AS name)", [[name for name, _ in pairs]]
    ).fetchall()
    assert set(found) == pairs
