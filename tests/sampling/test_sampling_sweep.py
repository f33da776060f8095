"""From a configuration to the shapes of a sweep; no PyTorch is needed for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tracedb.errors import TracedbError
from tracedb.sampling import configuration, runner, sweep, sweep_status
from tracedb.sampling.configuration import Axis

LINEAR = {
    "module_name": "target_functions",
    "kernel_name": "linear1",
    "function_name": "linear1",
    "columns_name": ["mp", "b", "l", "dim", "F_dur(us)", "B_dur(us)"],
    "targets": [["aten::linear"], ["AddmmBackward0"]],
    "first_n_column": 4,
    "starts": [1, 2, 1024, 2048],
    "steps": [2, 2, 512, 512],
    "ends": [16, 8, 5120, 8192],
    "operators": ["mul", "mul", "add", "add"],
    "warmup_shapes": [1, 32, 4096, 4096],
    "wait": 4,
    "warmup": 6,
    "active": 10,
    "shapes": [1, 16, 2048, 1024],
    "run": "get_all",
}


def written(folder: Path, content: Mapping[str, object]) -> Path:
    """Write a configuration, as JSON, which YAML holds."""
    path = folder / "config.yml"
    path.write_text(json.dumps(content))
    return path


class TestConfiguration:
    """A file's keys, and words for what is wrong in it."""

    def test_flow_style_with_comments_and_single_quotes(self, tmp_path: Path) -> None:
        """The style of estimate-train-time's files: comments, single quotes, a comma at the end."""
        path = tmp_path / "gelu.yml"
        path.write_text(
            """{
            "kernel_name": "gelu", # mp, b, l, dim
            "columns_name": ['mp', 'b', 'l', 'dim', 'F_dur(us)', 'B_dur(us)'],
            "starts":[1, 2, 1024, 2048], "steps":[2, 2, 512, 512], "ends":[16, 8, 5120, 8192],
            "operators":['mul', 'mul', 'add', 'add'],
            # must > 5
            "active": 10,
            }"""
        )
        found = configuration.read(path)
        assert (found.operator, found.columns, found.run) == ("gelu", ("mp", "b", "l", "dim"), "get_all")
        assert (found.wait, found.warmup, found.active) == (1, 2, 10)
        assert found.axes[3] == Axis("dim", 2048, 512, 8192, "add")

    def test_all_keys(self, tmp_path: Path) -> None:
        found = configuration.read(written(tmp_path, LINEAR))
        assert found.shape == {"mp": 1, "b": 16, "l": 2048, "dim": 1024}
        assert (found.wait, found.warmup, found.active, found.module) == (4, 6, 10, "target_functions")

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"kernel_name": None, "function_name": None}, "has no kernel_name"),
            ({"columns_name": None}, "columns_name is None"),
            ({"columns_name": ["b", "b", "l", "dim"]}, "names a shape parameter twice"),
            ({"first_n_column": 5}, "first_n_column is 5, but columns_name has 4"),
            ({"starts": [1, 2]}, "starts has 2 values, expected 4"),
            ({"steps": [2, 2, 512, "x"]}, "steps holds 'x', expected whole numbers"),
            ({"operators": ["mul", "mul", "add", "plus"]}, "operators has 'plus' for dim, expected add or mul"),
            ({"operators": ["mul"]}, "operators must list add or mul for each of mp, b, l, dim"),
            ({"steps": [1, 2, 512, 512]}, "mp starts at 1 and steps by mul 1, which never ends"),
            ({"steps": [2, 2, 0, 512]}, "l starts at 1024 and steps by add 0, which never ends"),
            ({"starts": [0, 2, 512, 512]}, "mp starts at 0"),
            ({"run": "get_some"}, "run is 'get_some', expected one of get_all, get_one"),
            ({"active": 0}, "active is 0, expected a whole number of at least 1"),
            ({"run": "get_one", "shapes": None}, "run get_one needs shapes"),
            ({"starts": None, "steps": None, "ends": None, "operators": None}, "run get_all needs starts"),
            ({"kernel_name": 7}, "kernel_name is 7, expected a text"),
        ],
    )
    def test_what_is_wrong_is_named(self, tmp_path: Path, change: dict[str, object], words: str) -> None:
        path = written(tmp_path, {**LINEAR, **change})
        with pytest.raises(TracedbError, match=r"config\.yml: ") as caught:
            configuration.read(path)
        assert words in str(caught.value)

    @pytest.mark.parametrize(
        ("text", "words"),
        [("a: [1", "is not valid YAML"), ("- 1", "holds list, expected a mapping"), ("\x00", "is not valid YAML")],
    )
    def test_no_configuration(self, tmp_path: Path, text: str, words: str) -> None:
        (tmp_path / "config.yml").write_text(text)
        with pytest.raises(TracedbError, match=words):
            configuration.read(tmp_path / "config.yml")

    def test_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(TracedbError, match="cannot be read"):
            configuration.read(tmp_path / "none.yml")


class TestSweep:
    """The order of shapes and the shares."""

    def test_the_last_parameter_turns_fastest(self) -> None:
        axes = [Axis("mp", 1, 2, 4, "mul"), Axis("l", 10, 5, 20, "add")]
        found = [tuple(shape.values()) for shape in sweep.shapes(axes)]
        assert found == [(1, 10), (1, 15), (1, 20), (2, 10), (2, 15), (2, 20), (4, 10), (4, 15), (4, 20)]

    def test_multiplying_reaches_its_end_exactly(self) -> None:
        """By logarithms of floats, 1000 is not in a sweep by ten: log(1000, 10) is 2.9999999999999996."""
        assert sweep.values(Axis("b", 1, 10, 1000, "mul")) == [1, 10, 100, 1000]
        assert sweep.values(Axis("b", 3, 3, 80, "mul")) == [3, 9, 27]

    def test_adding_stops_before_its_end_where_no_step_meets_it(self) -> None:
        assert sweep.values(Axis("h", 16, 8, 35, "add")) == [16, 24, 32]
        assert sweep.values(Axis("h", 16, 8, 15, "add")) == []

    def test_grid_sizes_of_estimate_train_time(self, tmp_path: Path) -> None:
        axes = configuration.read(written(tmp_path, LINEAR)).axes
        assert len(list(sweep.shapes(axes))) == 1755

    def test_shares_are_round_robin_from_the_first(self) -> None:
        everything = [{"b": number} for number in range(1, 8)]
        shares = [[shape["b"] for shape in sweep.share(everything, 3, part)] for part in (1, 2, 3)]
        assert shares == [[1, 4, 7], [2, 5], [3, 6]]

    def test_a_random_choice_keeps_the_order_and_is_shared_out(self, tmp_path: Path) -> None:
        read = configuration.read(written(tmp_path, LINEAR))
        request = runner.Request(tmp_path / "none.duckdb", "fp16", random=20, seed=3)
        drawn = runner.chosen(read, request)
        places = {sweep_status.key(shape): place for place, shape in enumerate(sweep.shapes(read.axes))}
        assert len(drawn) == 20
        assert [places[sweep_status.key(shape)] for shape in drawn] == sorted(
            places[sweep_status.key(shape)] for shape in drawn
        )
        assert runner.chosen(read, request) == drawn
        halves = [
            runner.chosen(read, runner.Request(request.database, "fp16", parts=2, part=part, random=20, seed=3))
            for part in (1, 2)
        ]
        assert [shape for pair in zip(*halves, strict=True) for shape in pair] == drawn

    def test_text_is_what_annotations_say(self) -> None:
        assert sweep.text("linear1", {"mp": 8, "b": 8, "l": 2048}) == "linear1|mp=8|b=8|l=2048"


def test_progress_tells_rate_and_remaining_time() -> None:
    series = sweep_status.Series("linear1", "fp16", "cpu")
    assert str(runner.Progress(series, 40, 400, 100.0)) == (
        "linear1 fp16: 40 of 400 shapes (10.0 %), 2.50 s a shape, 0 h 15 min 0 s left"
    )
