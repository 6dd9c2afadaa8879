"""The catalog of backends."""

import asyncio
from pathlib import Path

import pytest

from adapters.agent_kit import Recorder, launch_in
from remuda.agents.catalog import CATALOG, backend
from remuda.domain.errors import Invalid


def test_an_unknown_backend_is_refused_with_the_known_ones() -> None:
    with pytest.raises(Invalid) as caught:
        backend("scriptd")
    assert caught.value.possible[0] == "scripted"
    assert set(caught.value.possible) == set(CATALOG)


def test_an_unknown_option_is_refused_before_anything_starts(tmp_path: Path) -> None:
    heard = Recorder()
    with pytest.raises(Invalid, match="playbok") as caught:
        asyncio.run(_start(tmp_path, heard))
    assert caught.value.possible[0] == "playbook"
    assert heard.updates == []


def test_the_scripted_agent_never_passes_for_a_model() -> None:
    title = CATALOG["scripted"].title.lower()
    assert "scripted" in title
    assert "not a model" in title


async def _start(folder: Path, heard: Recorder) -> None:
    await backend("scripted")(launch_in(folder, options=(("playbok", "x"),)), heard)
