"""Where an agent's program is found."""

from pathlib import Path

import pytest

from remuda.agents.find import find

NAME, PACKAGE, INSIDE = "horse-of-the-tests", "stable_of_the_tests", "bin/horse"
STABLE = ((PACKAGE, INSIDE),)


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_program_on_the_path_that_the_agent_sees_goes_before_a_bundled_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundled = executable(tmp_path / "site" / PACKAGE / INSIDE)
    (tmp_path / "site" / PACKAGE / "__init__.py").write_text("raise SystemExit('nobody asked to run this')\n")
    own = executable(tmp_path / "bin" / NAME)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert find(NAME, STABLE, {"PATH": str(own.parent)}) == str(own)
    assert find(NAME, STABLE, {"PATH": "/nowhere"}) == str(bundled)
    assert find(NAME, STABLE, {}) == str(bundled)


def test_a_program_that_is_nowhere_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find(NAME, STABLE, {}) is None
    (tmp_path / PACKAGE).mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert find(NAME, STABLE, {}) is None, "a package without its program is none"
