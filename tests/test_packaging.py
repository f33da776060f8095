"""What is shipped: the content of wheel and sdist, entry points, and that an installed wheel works."""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

import build_native
from support.shipped import INGESTERS, PACKAGES, folder

ROOT = Path(__file__).resolve().parents[1]
SITE_PACKAGES = [path for path in sys.path if Path(path).name == "site-packages"]
ROOMS = re.compile(
    r"tracedb/sql/(README\.md|RELEASED|ENGINES\.toml|(derive|compare|distribute|export|nsys|page|plot|predict|replay)/\w+\.sql|v\d+/\w+/\w+\.(sql|toml))"
    r"|tracedb/schemas/(README\.md|RELEASED|v\d+/\w+\.sql|v\d+_to_v\d+\.sql)"
)
MODULES = re.compile(
    rf"({'|'.join(PACKAGES)})/([a-z_0-9]+/)*([a-z_0-9]+\.py|py\.typed)"
    r"|tracedb/page/page\.(css|js|html\.jinja)|tracedb/training_step/recorded_effects\.toml"
    r"|(tracedb_(torch/scan|nsys/export|rocprof/csv)|tracedb/intervals)/native/([a-z]+\.[ch]|libtracedb_[a-z]+\.so)"
)
LIBRARIES = (
    "tracedb/intervals/native/libtracedb_nest.so",
    "tracedb_nsys/export/native/libtracedb_pages.so",
    "tracedb_rocprof/csv/native/libtracedb_csv.so",
    "tracedb_torch/scan/native/libtracedb_scan.so",
)
HAS_COMPILER = build_native.compiler() is not None
CORE = {"duckdb", "pyarrow", "numpy", "click", "rich", "sqlglot", "msgspec", "isal", "zstandard"}


def run(*command: str | Path, **environment: str) -> str:
    """Run a command and return its stdout; what it said is in the failure where it fails."""
    kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "TRACEDB")}
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        env={**kept, **environment},
        stdin=subprocess.DEVNULL,
        cwd=environment.get("CWD"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("from_sdist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> zipfile.ZipFile:
    (path,) = built.glob("*.whl")
    return zipfile.ZipFile(path)


def info(wheel: zipfile.ZipFile, name: str) -> str:
    (path,) = (item for item in wheel.namelist() if item.endswith(f".dist-info/{name}"))
    return wheel.read(path).decode()


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    return Parser().parsestr(info(wheel, "METADATA"))


def test_the_wheel_holds_the_packages_and_rooms_only(wheel: zipfile.ZipFile) -> None:
    strange = [
        name
        for name in wheel.namelist()
        if not ROOMS.fullmatch(name) and not MODULES.fullmatch(name) and ".dist-info/" not in name
    ]
    assert strange == []


def test_the_wheel_holds_every_file_of_the_checkout(wheel: zipfile.ZipFile) -> None:
    """Editable = wheel: what a checkout runs with is what is shipped, byte for byte."""
    there = {name: wheel.read(name) for name in wheel.namelist() if ".dist-info/" not in name}
    wanted = {}
    sources = {package: folder(package) for package in PACKAGES}
    sources |= {"tracedb/sql": ROOT / "sql", "tracedb/schemas": ROOT / "schemas"}
    for target, source in sources.items():
        for path in source.rglob("*"):
            name = path.relative_to(source).as_posix()
            is_built = name.endswith(".so") and not HAS_COMPILER
            if path.is_file() and not is_built and not re.search(r"(^|/)(\.|__pycache__)", name):
                wanted[f"{target}/{name}"] = path.read_bytes()
    assert sorted(there) == sorted(wanted)
    assert there == wanted


def test_the_wheel_is_the_same_without_the_detour_over_the_sdist(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, ROOT)
    (path,) = tmp_path.glob("*.whl")
    direct = zipfile.ZipFile(path)
    assert [(item.filename, item.CRC) for item in direct.infolist()] == [
        (item.filename, item.CRC) for item in wheel.infolist()
    ]


@pytest.mark.skipif(not HAS_COMPILER, reason="there is no C compiler")
def test_the_wheel_holds_the_compiled_reader_and_says_for_which_platform(built: Path, wheel: zipfile.ZipFile) -> None:
    (path,) = built.glob("*.whl")
    assert path.name.endswith(f"-py3-none-{build_native.platform_tag()}.whl")
    assert f"Tag: py3-none-{build_native.platform_tag()}" in info(wheel, "WHEEL")
    assert "Root-Is-Purelib: false" in info(wheel, "WHEEL")
    assert set(LIBRARIES) <= set(wheel.namelist())


@pytest.mark.skipif(sys.platform != "linux" or not HAS_COMPILER, reason="there is no C compiler, or no glibc")
@pytest.mark.skipif(shutil.which("objdump") is None, reason="there is no objdump")
def test_the_libraries_need_nothing_that_a_manylinux_machine_lacks(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    """The rules of auditwheel: no library but libc, and no symbol newer than the glibc of manylinux2014 (2.17)."""
    for name in LIBRARIES:
        said = run("objdump", "-p", "-T", wheel.extract(name, tmp_path))
        assert set(re.findall(r"NEEDED +(\S+)", said)) == {"libc.so.6"}
        versions = {tuple(map(int, found.split("."))) for found in re.findall(r"\(?GLIBC_([\d.]+)", said)}
        assert versions
        assert max(versions) <= (2, 17), name


def test_without_a_compiler_the_wheel_is_pure_and_says_why(tmp_path: Path) -> None:
    """In a copy, since the build takes the library of a checkout away where it cannot make one."""
    copy = tmp_path / "checkout"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "tests", "docs", "*.so", "*.duckdb"))
    command = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, copy)
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "CC": "/no/such/compiler"},
    )
    (path,) = tmp_path.glob("*.whl")
    assert path.name.endswith("-py3-none-any.whl")
    assert not [name for name in zipfile.ZipFile(path).namelist() if name.endswith(".so")]
    assert (done.stdout + done.stderr).count("the C compiler /no/such/compiler does not run") == 1


def test_each_package_is_typed(wheel: zipfile.ZipFile) -> None:
    packages = {name.split("/")[0] for name in wheel.namelist() if name.endswith(".py")}
    assert packages == set(PACKAGES) >= {"tracedb", "tracedb_torch"}
    assert {f"{package}/py.typed" for package in packages} <= set(wheel.namelist())


def test_entry_points(wheel: zipfile.ZipFile) -> None:
    points = configparser.ConfigParser()
    points.read_string(info(wheel, "entry_points.txt"))
    assert {section: dict(points[section]) for section in points.sections()} == {
        "console_scripts": {"tracedb": "tracedb.cli.main:main", "tracedb-gpu": "tracedb.cli.main:main"},
        "tracedb.ingesters": INGESTERS,
    }


def test_metadata(metadata: Message) -> None:
    assert metadata["Name"] == "tracedb-gpu"
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Requires-Python"] == ">=3.11"
    required = [str(line) for line in metadata.get_all("Requires-Dist", [])]
    core = {re.split(r"[<>=\[ ;]", line)[0].lower() for line in required if "extra ==" not in line}
    assert core >= CORE
    assert not core & {"torch", "polars", "pandas", "matplotlib", "xlsxwriter"}
    assert any(re.match(r"duckdb>=1\.4$", line) for line in required)


def test_the_sdist_holds_what_is_needed_to_test_it(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "Makefile", "constraints.txt"):
        assert name in names
    for name in (
        "schemas/v1/captures.sql",
        "sql/v1/kernels/kernels.sql",
        "tests/test_packaging.py",
        "examples/shell.sql",
        "docs/generate.py",
    ):
        assert name in names
    for name in ("nsys/export/native/pages.c", "rocprof/csv/native/csv.c", "torch/scan/native/scan.c"):
        assert f"ingest/tracedb_{name}" in names
    assert "ingest/build_native.py" in names
    assert not [name for name in names if "__pycache__" in name or name.endswith((".duckdb", ".pyc", ".so"))]
    assert sum(name.startswith("examples/run/") and name.endswith(".json.gz") for name in names) == 8


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` of a fresh environment with the wheel in it.

    What tracedb needs is borrowed from this environment; its .pth files, and so an editable install, are not.
    """
    home = tmp_path_factory.mktemp("fresh") / "venv"
    venv.create(home, with_pip=False)
    bin_folder = home / "bin"
    (wheel,) = built.glob("*.whl")
    python = bin_folder / "python"
    pip = (sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "install")
    run(*pip, "--no-deps", "--no-index", wheel)
    (library,) = (home / "lib").glob("python*/site-packages")
    (library / "borrowed.pth").write_text("".join(f"{path}\n" for path in SITE_PACKAGES))
    return bin_folder


def test_an_installed_wheel_works(installed: Path, tmp_path: Path, sample: Path) -> None:
    where = run(installed / "python", "-c", "import tracedb, tracedb_torch; print(tracedb.__file__)")
    assert Path(where.strip()).is_relative_to(installed.parent)
    shipped = json.loads(run(installed / "tracedb", "views", "--format", "json", CWD=str(tmp_path)))
    assert len(shipped["rows"]) >= 9
    here = json.loads(run(sys.executable, "-m", "tracedb", "views", "--format", "json", CWD=str(tmp_path)))
    assert shipped == here
    run(installed / "tracedb", "views", "verify", "--db", sample)
    assert "torch" in run(installed / "tracedb", "ingesters", "--format", "csv")


def test_an_installed_wheel_loads_traces_with_its_compiled_libraries(installed: Path, tmp_path: Path) -> None:
    """The script fails unless every library is in use; wheels are released only if it succeeds with them."""
    script = ROOT / "tests" / "support" / "installed_wheel.py"
    command = (installed / "python", "-P", script, ROOT / "examples" / "run")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("2,400 kernels loaded; "), done.stderr
    assert done.stdout.count(": compiled") == (len(LIBRARIES) if HAS_COMPILER else 0)
    assert (done.returncode == 0) == HAS_COMPILER


def test_the_module_runs_as_the_command_does(installed: Path) -> None:
    assert run(installed / "python", "-m", "tracedb", "--version") == run(installed / "tracedb", "--version")
