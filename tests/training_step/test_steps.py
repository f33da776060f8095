"""Whole training steps: configuration, composition, schedule and predicted time."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from support import recordings
from support.small_step import SMALL, step
from tracedb.errors import TracedbError
from tracedb.training_step import composition, configuration, pipeline_schedule, prediction
from tracedb.training_step.composition import Part
from tracedb.training_step.pipeline_schedule import Work
from tracedb.training_step.price import Price

THEIRS = recordings.DATA / "regressor" / "estimate-train-time"


class TestConfiguration:
    """Both kinds of file, and words for what is wrong in them."""

    def test_a_list_of_sizes(self, tmp_path: Path) -> None:
        path = tmp_path / "steps.json"
        path.write_text(json.dumps([{**SMALL, "dtype": "fp16", "step_us_median": 12.5, "trace": "a.json.gz"}, SMALL]))
        first, second = configuration.read(path)
        assert (first.layers, first.length, first.batch, first.key, first.measured_ns) == (4, 1024, 4, 7, 12_500.0)
        assert (first.operands, second.operands, second.measured_ns, second.schedule) == ("nan", "finite", None, "1f1b")

    def test_a_file_of_estimate_train_time(self, tmp_path: Path) -> None:
        path = tmp_path / "llm.yml"
        path.write_text(
            """{"gpu_name": "NVIDIAA100-SXM4-80GB", "operator_data_folder": "./x", "encoders": 32,
            # pp, mp, dp, b, h, l, dim, steps_per_update, gpus_per_node
            "training_config": [4, 2, 2, 4, 32, 4096, 4096, 8, 4], "comm_bucket": 1260000000,
            "encoder_function_list":['RMSlayernorm', 'linear1'], "layernorm_name":'RMSlayernorm',
            "fwd_syncs":2, "bwd_syncs":2, }"""
        )
        (found,) = configuration.read(path)
        assert (found.pp, found.mp, found.dp, found.batch, found.heads, found.length, found.dim) == (
            4,
            2,
            2,
            4,
            32,
            4096,
            4096,
        )
        assert (found.micro_batches, found.gpus_per_node, found.layer) == (8, 4, ("RMSlayernorm", "linear1"))
        assert (found.recompute, found.zero1, found.schedule, found.key) == (True, True, "lockstep", "llm")

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"layers": None}, "layers is None, expected a whole number"),
            ({"dim": 0}, "dim is 0, expected a whole number of at least 1"),
            ({"heads": 3}, "do not divide dim 2048"),
            ({"mp": 3}, "mp 3 does not divide 16 heads"),
            ({"schedule": "zigzag"}, "schedule is 'zigzag', expected one of afab, 1f1b, lockstep"),
            ({"recompute": 1}, "recompute is 1, expected true or false"),
            ({"operands": "zero"}, "operands is 'zero', expected finite or nan"),
            ({"layer": []}, "layer is [], expected a list of operators"),
            ({"pp": 8}, "4 layers do not fill 8 pipeline stages"),
            ({"step_us_median": "12"}, "step_us_median is '12', expected a number above 0"),
            ({"sm_clock_mhz": 0}, "sm_clock_mhz is 0, expected a number above 0"),
            ({"product_speedup": 1.2}, "product_speedup is no key any more; leave it out, and sample again"),
            ({"gpu": 1}, "gpu is 1, expected a text"),
            ({"dim": None, "hidden": 64}, "of at least 1; unknown: key 'hidden' (did you mean 'dim'?)"),
        ],
    )
    def test_what_is_wrong_is_named(self, tmp_path: Path, change: dict[str, object], words: str) -> None:
        path = tmp_path / "steps.json"
        path.write_text(json.dumps([{**SMALL, **change}]))
        with pytest.raises(TracedbError) as caught:
            configuration.read(path)
        assert words in str(caught.value)

    def test_unknown_keys_are_said(self, tmp_path: Path) -> None:
        path = tmp_path / "steps.json"
        path.write_text(
            json.dumps([{**SMALL, "config": 7, "head": 16, "gpus": 3, "params": 1, "steps_us": [1.5]}, SMALL])
        )
        first, second = configuration.read(path)
        assert first.remarks[0] == "step 7: key 'head' (did you mean 'heads'?) is not used"
        assert first.remarks[1].startswith("step 7: key 'gpus'") and len(first.remarks) == 2
        assert second.remarks == ()

    @pytest.mark.parametrize(
        ("name", "text", "words"),
        [
            ("a.json", "[1", "is not valid JSON"),
            ("a.json", "[1]", "step 0 is int, expected an object"),
            ("a.yml", "training_config: [1, 2]", "expected nine sizes: pp, mp, dp"),
            ("a.yml", "layers: 4", "dim is None"),
        ],
    )
    def test_no_configuration(self, tmp_path: Path, name: str, text: str, words: str) -> None:
        (tmp_path / name).write_text(text)
        with pytest.raises(TracedbError, match=words):
            configuration.read(tmp_path / name)
        with pytest.raises(TracedbError, match="cannot be read"):
            configuration.read(tmp_path / f"no-{name}")

    def test_layers_of_the_stages(self) -> None:
        assert step(layers=32, pp=4).stage_layers() == [8, 9, 9, 6]
        assert step(layers=32, pp=2).stage_layers() == [17, 15]
        assert step(layers=32).stage_layers() == [32]
        assert sum(step(layers=45, pp=7).stage_layers()) == 45


class TestComposition:
    """What stages run."""

    def test_one_stage_has_it_all(self) -> None:
        (stage,) = composition.stages(step())
        assert stage.forward == {
            Part("embedding", "fwd"): 1, Part("layernorm", "fwd"): 9, Part("linear1", "fwd"): 4,
            Part("flash_atten", "fwd"): 4, Part("linear2", "fwd"): 4, Part("res_add", "fwd"): 8,
            Part("linear3", "fwd"): 4, Part("gelu", "fwd"): 4, Part("linear4", "fwd"): 4,
            Part("linear_final", "fwd"): 1, Part("parallel_cross_entropy_128", "fwd"): 1,
        }  # fmt: skip
        assert stage.backward[Part("qkv_gradients", "bwd")] == 4
        assert stage.weights == 4 * (12 * 2048**2 + 4 * 2048) + 2 * 50_304 * 2048 + 2 * 2048

    def test_stages_of_a_pipeline_with_model_parallel_ranks(self) -> None:
        first, middle, last = composition.stages(step(layers=10, pp=3, mp=2, recompute=True))
        assert [first.layers, middle.layers, last.layers] == [3, 5, 2]
        assert first.forward[Part("mp_allreduce", "comm")] == 2 * 3 + 1
        assert middle.backward[Part("mp_allreduce", "comm")] == (2 + 1) * 5  # not again after the last product
        assert middle.backward[Part("linear1", "fwd")] == 5
        assert Part("embedding", "fwd") not in middle.forward and Part("linear_final", "fwd") in last.forward


class TestSchedule:
    """The end of the last backward."""

    @pytest.mark.parametrize("name", ["afab", "1f1b", "lockstep"])
    def test_like_stages_take_a_slot_for_each_micro_batch_and_neighbour(self, name: str) -> None:
        assert pipeline_schedule.makespan(name, [Work(2, 4)] * 4, 8, 0.0) == (8 + 4 - 1) * 6

    def test_one_stage_has_no_bubble(self) -> None:
        for name in configuration.SCHEDULES:
            assert pipeline_schedule.makespan(name, [Work(2, 3)], 5, 0.0) == 25

    def test_two_stages_by_hand(self) -> None:
        """Stage 1 is the slow one: it starts when the first forward arrives, and its last backward goes back."""
        stages = [Work(1, 2), Work(3, 4)]
        assert pipeline_schedule.makespan("1f1b", stages, 2, 0.5) == 1 + 0.5 + 3 + 4 + 3 + 4 + 0.5 + 2
        assert pipeline_schedule.makespan("afab", stages, 2, 0.5) == 1 + 0.5 + 3 + 3 + 4 + 4 + 0.5 + 2
        assert pipeline_schedule.makespan("lockstep", stages, 2, 0.5) == 3 * (3 + 4.5)

    def test_fewer_micro_batches_than_stages(self) -> None:
        assert pipeline_schedule.makespan("1f1b", [Work(1, 1)] * 4, 1, 0.0) == 8


@pytest.mark.shared
class TestTheirs:
    """estimate-train-time's own prediction of its example, from its operators' times."""

    class Prices:
        """The times that it wrote out, in µs; its list has none of a layout of gradients."""

        def __init__(self, times: Mapping[str, list[float]]) -> None:
            self.times = times
            self.stage = 0

        def one(self, name: str, place: int = 0) -> Price:
            value = self.times[name][place]
            return Price(value, value, value, "model")

        def part(self, part: Part) -> Price:
            return Price(0, 0, 0, "model") if part.operator == "qkv_gradients" else self.one(part.name)

        def optimizer(self, weights: int, layer_weights: int, layers: int) -> Price:
            place = {8: 0, 9: 1, 6: 2}[layers]
            return self.one("optimizer", place).times(2)  # it does not share the optimizer out over the two replicas

        def collective(self, what: str, elements: int) -> Price:
            if what.startswith("pp"):
                return self.one("pp_p2p")
            given = [908_869_632, 906_283_008, 707_481_600]
            factor = 2 if what == "dp_allgather" else 1
            return self.one(what, min(range(3), key=lambda place: abs(given[place] - factor * elements)))

        def moved(self, elements: float) -> Price:
            raise AssertionError("lockstep moves no gradients")

    def test_nine_and_a_half_seconds(self) -> None:
        path = THEIRS / "llemma_7b_4_2_2_P.csv"
        if not path.exists():
            pytest.skip(f"{path} is not there")
        times = {row[0]: json.loads(row[2]) for row in csv.reader(path.open(newline="")) if row[0] != "module"}
        listed = {name: value if isinstance(value, list) else [value] for name, value in times.items()}
        (found,) = configuration.read(THEIRS / "examples" / "llemma_7b_4_2_2_P.yml")
        predicted = prediction.assemble(found, self.Prices(listed), gap_ns=0)
        assert predicted.ns == pytest.approx(9_465_235.013, abs=0.01)
        assert sum(predicted.parts.values()) == pytest.approx(predicted.ns)
        assert [stage.forward for stage in predicted.stages][::3] == pytest.approx([179_054.905, 149_611.298], abs=0.01)
        assert predicted.stages[1].backward == pytest.approx(609_930.428, abs=0.01)
