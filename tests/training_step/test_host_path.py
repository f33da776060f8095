"""Steps whose GPU waits for the host: operators on two timelines."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tracedb.regress.host_steps import PASSES, HostStep
from tracedb.regress.launching import Launch
from tracedb.sampling.layer_kinds import ROPE_LAYER
from tracedb.training_step import composition, host_path
from tracedb.training_step.composition import Part
from tracedb.training_step.configuration import Step
from tracedb.training_step.host_path import Task, replayed, waiting
from tracedb.training_step.host_wait import Wait
from tracedb.training_step.predicted_step import Prediction


def test_the_slower_of_host_and_device_sets_the_time() -> None:
    slow_host, slow_device = [Task(100.0, 20.0)] * 10, [Task(20.0, 100.0)] * 10
    assert replayed(slow_host, 0.0) == (1000.0, 1020.0)
    assert waiting(slow_host, 0.0) == 820.0
    assert replayed(slow_device, 0.0) == (200.0, 1020.0)
    assert waiting(slow_device, 0.0) == 20.0  # only for the first


def test_a_lead_that_long_work_gives_is_used_up_later() -> None:
    assert waiting([Task(10.0, 500.0), *[Task(100.0, 20.0)] * 4], 0.0) == 10.0
    assert waiting([Task(10.0, 500.0), *[Task(100.0, 20.0)] * 6], 0.0) == pytest.approx(630.0 - 620.0)
    assert waiting([Task(10.0, 500.0), *[Task(100.0, 20.0)] * 10], 0.0) == pytest.approx(1030.0 - 700.0)


def test_an_operator_that_waits_for_the_device_ends_the_lead() -> None:
    after = [Task(100.0, 20.0)] * 4
    assert waiting([Task(10.0, 500.0), Task(10.0, 10.0, is_synchronous=True), *after], 0.0) == pytest.approx(
        510 + 10 + 400 + 20 - 590
    )


def test_launches_of_an_operator_are_spread_over_its_time_on_the_host() -> None:
    assert replayed([Task(100.0, 40.0, launches=4)], 0.0) == (100.0, 110.0)
    assert replayed([Task(4.0, 40.0, launches=4)], 5.0) == (4.0, 5.0 + 4 * 10.0 + 3 * 5.0)


def test_a_host_that_does_not_wait_at_the_end_of_a_step_keeps_its_lead() -> None:
    step = [Task(100.0, 20.0)] * 5 + [Task(10.0, 1000.0)]
    assert waiting(step, 0.0) == pytest.approx(1520 - 1100)
    assert waiting(step, 0.0, ends_in_step=False) == 0.0
    slow = [Task(100.0, 20.0)] * 5
    assert waiting(slow, 0.0, ends_in_step=False) == pytest.approx(400.0)


@pytest.mark.parametrize("recompute", [False, True])
def test_all_work_of_a_stage_is_on_the_timelines_in_order(recompute: bool) -> None:
    layer = ("layernorm", "linear1", "flash_atten", "linear2", "res_add", "linear3", "linear3", "swiglu", "res_add")
    step = Step("s", "", "bf16", 2, 64, 4, 8, 1, layer=layer, recompute=recompute)
    (stage,) = composition.stages(step)
    prices = {part: 10.0 + number for number, part in enumerate(sorted({*stage.forward, *stage.backward}))}
    found = host_path.tasks(step, stage, prices, {}, {("linear1", "fwd"): Launch(7.0, True)})
    whole = sum(prices[part] * count for counts in (stage.forward, stage.backward) for part, count in counts.items())
    assert sum(task.device_ns for task in found) == pytest.approx(whole)
    assert sum(task.host_ns for task in found) == 7.0 * stage.forward[Part("linear1", "fwd")] * (2 if recompute else 1)
    assert [task.is_synchronous for task in found[:4]] == [False, False, True, False]


def _whole(**values: float) -> HostStep:
    """A host that takes 10 ns a layer and 4 ns a step in each pass."""
    step, layer = values.pop("step", 4.0), values.pop("layer", 10.0)
    given = {"low": 0.9, "high": 1.2, "lead": 0.25, **values}
    return HostStep(dict.fromkeys(PASSES, step), dict.fromkeys(PASSES, layer), **given)


@pytest.mark.parametrize("recompute", [False, True])
def test_operators_share_out_the_host_s_time_of_a_layer_and_of_a_step(recompute: bool) -> None:
    step = Step("s", "", "bf16", 3, 64, 4, 8, 1, recompute=recompute)
    (stage,) = composition.stages(step)
    device = {part: 1.0 for part in {*stage.forward, *stage.backward}}
    known = {("linear1", "fwd"): Launch(6.0, False), ("gelu", "fwd"): Launch(2.0, False)}
    found = host_path.tasks(step, stage, device, {}, known, _whole())
    assert sum(task.host_ns for task in found) == pytest.approx(2 * (4.0 + 3 * 10.0))
    # In order: embedding, then the first layer, whose first product takes three times as long as GELU.
    embedding, norm, product = found[:3]
    gelu = found[1 + host_path.forward_layer(step.layer).index(Part("gelu", "fwd"))]
    assert product.host_ns == pytest.approx(3 * gelu.host_ns)
    # What was not timed alone counts as the mean of what was.
    assert norm.host_ns == pytest.approx(2 * gelu.host_ns) and embedding.host_ns == pytest.approx(1.0)
    assert found[3] == Task(norm.host_ns, 0.0, 0)  # splitting query, key and value launches nothing


def test_python_of_the_optimizer_comes_before_its_first_launch() -> None:
    (stage,) = composition.stages(Step("s", "", "bf16", 4, 64, 4, 8, 1))
    assert host_path.update(stage, 100.0, 2, Launch(5.0, False), None) == [Task(20.0, 100.0, 2)]
    found = host_path.update(stage, 100.0, 2, None, _whole())
    assert found == [Task(11.0, 0.0, 0), Task(33.0, 100.0, 2)]
    # The device has nothing to do meanwhile, though it was ahead: 11 ns, and half of the other 33 before the first.
    assert replayed(found, 0.0) == (44.0, 11.0 + 16.5 + 100.0)


def test_a_list_of_operators_without_samples_lies_between_the_sampled_kinds() -> None:
    known = {(name, pass_): Launch(1.0, False) for name in ("linear1", "gelu", "RoPE") for pass_ in ("fwd", "bwd")}
    sampled = {("host_gpt", False): _whole(), ("host_rope", False): _whole(step=8.0, high=1.5)}
    of = Step("s", "", "bf16", 4, 64, 4, 8, 1)
    assert host_path.whole_step(of, known, {}) is None
    assert host_path.whole_step(of, known, sampled) == _whole()
    again = host_path.whole_step(replace(of, recompute=True), known, sampled)
    assert again is not None and again.per_layer == {**_whole().per_layer, "backward": 20.0}
    assert host_path.whole_step(
        replace(of, recompute=True), known, {**sampled, ("host_gpt", True): _whole(lead=0.5)}
    ) == (_whole(lead=0.5))
    # Another kind's recomputation tells what a checkpoint takes: 20 ns for its 13 operators with the split, not 11.
    other = {**sampled, ("host_rope", True): _whole(layer=20.0)}
    found = host_path.whole_step(replace(of, recompute=True), known, other)
    assert found is not None and found.per_layer["backward"] == pytest.approx(20 * 11 / 13)
    # 15 operators with the split, where a layer of the GPT has 11 and one of the other kind 13, at 1 ns each.
    longer = host_path.whole_step(replace(of, layer=(*ROPE_LAYER, "gelu", "gelu")), known, sampled)
    assert longer is not None and longer.per_layer["forward"] == pytest.approx((10 / 11 + 10 / 13) / 2 * 15)
    assert longer.per_step["forward"] == 6.0 and (longer.low, longer.high) == (0.9, 1.5)


def test_a_step_between_both_bounds_takes_longer_than_either() -> None:
    """The forward waits for the host, the backward for the device, and the lead of one does not help the other."""
    forward, backward = [Task(100.0, 20.0)] * 5, [Task(20.0, 100.0)] * 5
    host, device = replayed([*forward, *backward], 0.0)
    assert (host, device) == (600.0, 520.0 + 500.0)
    assert device > max(600.0, 5 * 20.0 + 5 * 100.0)
    assert waiting([task.scaled(2.0, 1.0) for task in (*forward, *backward)], 0.0) == pytest.approx(1540.0 - 600.0)


@pytest.mark.parametrize(
    ("is_whole", "words"),
    [(True, "for launches$"), (False, "or longer: Python between operators was not timed")],
)
def test_a_step_says_that_its_host_bounds_it(is_whole: bool, words: str) -> None:
    found = Prediction(Step("small", "", "bf16", 1, 64, 4, 8, 1), 8e6, 7e6, 9e6, {}, [])
    found.wait(Wait(1e5, 1e5, 1e5))
    assert not found.is_host_bound and not found.remarks
    found.wait(Wait(2e6, 1e6, 4e6, is_whole))
    assert (found.ns, found.low, found.high) == (10.1e6, 8.1e6, 13.1e6)
    (said,) = found.remarks
    assert said.startswith("step small is bound by its host: the GPU waits 2.0 of 10.1 ms") and re.search(words, said)
