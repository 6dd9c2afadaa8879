"""Live tests need the agents that `make agents` installs. Where they are missing it is said aloud; in CI it fails."""

import pytest

from live.kit import NAMES
from live.native_kit import NOT_TESTED, find_cli
from remuda.agents.catalog import CATALOG


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    agent = str(request.param)
    find_cli(CATALOG[agent].program)
    return agent


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [each for each in terminalreporter.stats.get("skipped", []) if NOT_TESTED in str(each.longrepr)]
    if skipped:
        terminalreporter.section("LIVE TESTS SKIPPED", red=True, bold=True)
        terminalreporter.line(f"{len(skipped)} live tests did not run; `make agents` installs what they need", red=True)
