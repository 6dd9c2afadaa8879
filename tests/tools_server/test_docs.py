"""The page about the tools."""

import re
from pathlib import Path

from remuda.tools_server.tools import COORDINATORS, EVERYONE, WORKERS


def test_the_page_lists_every_tool_with_those_who_may_call_it() -> None:
    page = (Path(__file__).parents[2] / "docs" / "tools.md").read_text()
    rows = re.findall(r"^\| (everyone|workers|the coordinator) \| (.*) \|$", page, re.MULTILINE)
    listed = {who: set(re.findall(r"`(\w+)`", tools)) for who, tools in rows}
    assert listed == {"everyone": set(EVERYONE), "workers": set(WORKERS), "the coordinator": set(COORDINATORS)}
