"""Steps whose GPU waits for the host: operators on two timelines."""

from __future__ import annotations

import pytest

from tracedb.regress.launching import Launch
from tracedb.training_step import composition, host_path
from tracedb.training_step.composition import Part
from tracedb.training_step.configuration import Step
from tracedb.training_step.host_path import Task, replayed, waiting


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
