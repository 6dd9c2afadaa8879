"""Real agents that go in circles: each is told once, is stopped when it does not listen, and leaves a body."""

from pathlib import Path

import pytest
import uvloop

from live.kit import script
from live.project_kit import BYPASS, MODELS, OPTIONS, Place, until_paused
from remuda.domain.commands import SpawnAgent
from remuda.domain.events import TriggerFired
from remuda.domain.trigger import Trigger
from remuda.domain.trigger_events import AgentNudged
from remuda.scripted_model import ScriptedModel

pytestmark = [pytest.mark.live, pytest.mark.timeout(330)]


@pytest.mark.parametrize("name", MODELS)
def test_a_real_agent_that_goes_in_circles_is_told_and_then_stopped(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path, monkeypatch, name)

    async def story() -> None:
        async with ScriptedModel() as model, place.up(model) as runtime:
            wishes = OPTIONS.get(name, BYPASS)
            ada = await runtime.spawn(SpawnAgent("crew", name, model=MODELS[name], options=wishes))
            await runtime.send(ada, script(*[{"shell": "cat nowhere.txt"}] * 40))
            await until_paused(runtime, ada)
            log = [record.event for record in await runtime.store.read(0, 10_000)]
            told = [event for event in log if isinstance(event, AgentNudged | TriggerFired)]
            assert [type(event) for event in told] == [AgentNudged, TriggerFired]
            assert isinstance(told[1], TriggerFired)
            assert told[1].trigger is Trigger.SPIN
            assert "cat nowhere.txt" in told[1].evidence
            assert len(model.calls) < 30  # of the forty that it would have made

    uvloop.run(story())
