"""``tracedb export samples-csv``: the files of estimate-train-time, which ingest reads again."""

from __future__ import annotations

from pathlib import Path

from support.command import run
from support.loading import ask, ingest

LINEAR = "mp,b,l,F_dur(us),B_dur(us)\n1,2,1024,200.5,88.345\n1,4,1024,300,100\n2,2,1536,17,30.001\n"
OPTIMIZER = "mp,dim,encoders,dur(us)\n1,2048,4,5000\n"
ALLREDUCE = "shape,nodes,GPUsPerNode,dur(us)\n1048576,2,4,80\n1048576,1,4,40\n"
ALL = "SELECT gpu, operator, dtype, pass, shape, time_ns FROM operator_sample ORDER BY ALL"


def test_files_are_written_and_read_again(tmp_path: Path) -> None:
    given, out = tmp_path / "in", tmp_path / "out"
    given.mkdir()
    (given / "NVIDIAX_linear1_fp16_1_1.csv").write_text(LINEAR)
    (given / "NVIDIAX_firstStage_optimizer_fp16.csv").write_text(OPTIMIZER)
    (given / "NVIDIAX_allreduce_fp16_2_4.csv").write_text(ALLREDUCE)
    db = tmp_path / "db.duckdb"
    assert ingest(given, db=db).exit_code == 0
    done = run("export", "samples-csv", "--db", db, "-o", out, "--parts", "2")
    assert done.exit_code == 0, done.stderr
    texts = {path.name: path.read_text() for path in out.iterdir()}
    assert texts == {
        "NVIDIAX_allreduce_fp16_1_4.csv": "shape,nodes,GPUsPerNode,dur(us)\n1048576,1,4,40.0\n",
        "NVIDIAX_allreduce_fp16_2_4.csv": "shape,nodes,GPUsPerNode,dur(us)\n1048576,2,4,80.0\n",
        "NVIDIAX_firstStage_optimizer_fp16_2_1.csv": "mp,dim,encoders,dur(us)\n",
        "NVIDIAX_firstStage_optimizer_fp16_2_2.csv": "mp,dim,encoders,dur(us)\n1,2048,4,5000.0\n",
        "NVIDIAX_linear1_fp16_2_1.csv": "mp,b,l,F_dur(us),B_dur(us)\n1,4,1024,300.0,100.0\n",
        "NVIDIAX_linear1_fp16_2_2.csv": "mp,b,l,F_dur(us),B_dur(us)\n1,2,1024,200.5,88.345\n2,2,1536,17.0,30.001\n",
    }
    again = tmp_path / "again.duckdb"
    assert ingest(out, db=again).exit_code == 0
    assert ask(again, ALL) == ask(db, ALL)


def test_without_samples_there_is_no_answer(tmp_path: Path) -> None:
    db = tmp_path / "db.duckdb"
    (tmp_path / "times.csv").write_text("range,mean_ms\nforward,1\n")
    assert ingest(tmp_path / "times.csv", db=db).exit_code == 0
    done = run("export", "samples-csv", "--db", db, "-o", tmp_path / "out")
    assert done.exit_code == 3 and "`tracedb sample` records some" in done.stderr
    done = run("export", "samples-csv", "--db", db)
    assert done.exit_code == 2
