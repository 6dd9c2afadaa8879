"""Live tests need the agents that `make agents` installs. Where they are missing it is said aloud; in CI it fails."""

import os

import pytest

from live.kit import NAMES, is_installed

MISSING = "the real agent is not installed; `make agents` installs it"


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    agent = str(request.param)
    if not is_installed(agent):
        if os.environ.get("CI") == "true":
            pytest.fail(f"{agent}: {MISSING}")
        pytest.skip(f"{agent}: {MISSING}")
    return agent


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [each for each in terminalreporter.stats.get("skipped", []) if MISSING in str(each.longrepr)]
    if skipped:
        terminalreporter.section("LIVE TESTS SKIPPED", red=True, bold=True)
        terminalreporter.line(f"{len(skipped)} live tests did not run: {MISSING}", red=True)
