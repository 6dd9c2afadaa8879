"""The table of tools, without a server."""

import json
import re
from typing import Any

import pytest

from remuda.domain.tools import ENDS_A_TURN, Tool
from remuda.tools_server.primer import primer
from remuda.tools_server.schema import schema
from remuda.tools_server.tools import COORDINATORS, EVERYONE, ROWS, WORKERS, tools_of


def test_every_tool_has_a_row_and_a_place() -> None:
    assert set(ROWS) == set(Tool)
    assert sorted([*EVERYONE, *WORKERS, *COORDINATORS]) == sorted(Tool)


def test_whatever_ends_a_turn_is_at_hand_to_the_worker_who_must_end_it() -> None:
    assert set(tools_of("worker")) >= ENDS_A_TURN


def test_a_worker_cannot_direct_others_and_a_role_of_ones_own_is_a_worker() -> None:
    assert not set(tools_of("worker")) & set(COORDINATORS)
    assert tools_of("gardener") == tools_of("worker")


def _parts(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value, *(part for each in inner for part in _parts(each))]


@pytest.mark.parametrize("tool", Tool)
def test_a_schema_stands_alone_and_refuses_what_it_does_not_know(tool: Tool) -> None:
    made = schema(ROWS[tool].takes)
    assert made["type"] == "object"
    assert "$ref" not in json.dumps(made)
    objects = [each for each in _parts(made) if isinstance(each, dict) and "properties" in each]
    assert objects
    assert all(each["additionalProperties"] is False for each in objects)


def test_a_property_called_title_is_not_taken_for_the_name_of_a_class() -> None:
    part = schema(ROWS[Tool.DECOMPOSE_TASK].takes)["properties"]["parts"]["items"]
    assert part["properties"]["title"]["type"] == "string"
    assert part["required"] == ["title"]
    assert "title" not in part


@pytest.mark.parametrize("role", ["worker", "coordinator", "gardener"])
def test_what_an_agent_is_told_names_its_tools_and_no_others(role: str) -> None:
    words = set(re.findall(r"[a-z]+(?:_[a-z]+)+", primer(role)))
    assert words == {str(tool) for tool in tools_of(role)} - {Tool.ESCALATE}
