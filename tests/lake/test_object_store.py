"""A lake in an object store: moto's server stands in for S3."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command import run

moto_server = pytest.importorskip("moto.server", reason="moto is not installed")
pytest.importorskip("s3fs", reason="s3fs is not installed")

RUN = Path(__file__).resolve().parents[2] / "examples" / "run" / "sweep_sample" / "256thread"


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """The address of an empty bucket."""
    import boto3
    import fsspec

    server = moto_server.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    settings = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    with pytest.MonkeyPatch.context() as patched:
        for name, value in settings.items():
            patched.setenv(name, value)
        boto3.client("s3", endpoint_url=endpoint).create_bucket(Bucket="traces")
        fsspec.filesystem("s3").clear_instance_cache()
        yield "s3://traces/some/lake"
        fsspec.filesystem("s3").clear_instance_cache()
    server.stop()


def test_a_lake_in_a_bucket(bucket: str, tmp_path: Path) -> None:
    first, second, *_ = sorted(RUN.rglob("*.json.gz"))
    assert run("ingest", first, second, "--lake", bucket, "--jobs", "1").exit_code == 0
    again = run("ingest", first, "--lake", bucket)
    assert again.exit_code == 0 and "0 captures loaded, 1 known before" in again.stderr
    local = tmp_path / "local"
    assert run("ingest", first, second, "--lake", local, "--jobs", "1").exit_code == 0
    for report in ("top-kernels", "collectives", "gpu-timeline"):
        theirs = run("--lake", bucket, "report", report, "--format", "json")
        ours = run("--lake", local, "report", report, "--format", "json")
        assert theirs.exit_code == ours.exit_code == 0, theirs.stderr
        assert json.loads(theirs.stdout)["rows"] == json.loads(ours.stdout)["rows"]
    verified = run("lake", "verify", bucket, "--format", "json")
    assert verified.exit_code == 0 and json.loads(verified.stdout)["rows"] == []
    assert run("lake", "compact", bucket).exit_code == 0
    assert json.loads(run("lake", "verify", bucket, "--format", "json").stdout)["rows"] == []
    counted = run("--lake", bucket, "sql", "SELECT count(*) AS n FROM capture", "--format", "csv")
    assert counted.stdout.split() == ["n", "2"]


def test_a_bucket_without_a_lake(bucket: str) -> None:
    done = run("--lake", "s3://traces/other", "report", "top-kernels")
    assert done.exit_code == 1 and "s3://traces/other: not a lake" in done.stderr and done.stderr.count("\n") == 1


def test_no_such_bucket(bucket: str) -> None:
    done = run("--lake", "s3://nowhere/other", "report", "top-kernels")
    assert done.exit_code == 1 and "s3://nowhere/other" in done.stderr and done.stderr.count("\n") == 1


def test_nothing_else_is_read(bucket: str) -> None:
    lake = "s3://traces/closed"
    assert run("ingest", min(RUN.rglob("*.json.gz")), "--lake", lake).exit_code == 0
    done = run("--lake", lake, "sql", "FROM read_csv('/etc/passwd')")
    assert done.exit_code == 1 and "disabled" in done.stderr
