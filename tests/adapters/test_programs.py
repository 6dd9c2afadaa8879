"""Where an agent's program is found, and what is said when it is nowhere."""

from pathlib import Path

import pytest

from remuda.agents import claude, codex
from remuda.agents.programs import Program, find
from remuda.domain.errors import AgentFault
from remuda.domain.failure import Failure

HORSE = Program("horse-of-the-tests", "stable_of_the_tests", "bin/horse", "pip install stable")


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_program_on_the_path_that_the_agent_sees_goes_before_a_bundled_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundled = executable(tmp_path / "site" / HORSE.package / HORSE.inside)
    (tmp_path / "site" / HORSE.package / "__init__.py").write_text("raise SystemExit('nobody asked to run this')\n")
    own = executable(tmp_path / "bin" / HORSE.name)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert find(HORSE, {"PATH": str(own.parent)}) == str(own)
    assert find(HORSE, {"PATH": "/nowhere"}) == str(bundled)
    assert find(HORSE, {}) == str(bundled)


def test_a_program_that_is_nowhere_is_not_installed_and_the_error_says_how_to_get_it() -> None:
    with pytest.raises(AgentFault, match="pip install stable") as caught:
        find(HORSE, {})
    assert caught.value.failure is Failure.NOT_INSTALLED


def test_a_package_without_its_program_is_not_installed_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / HORSE.package).mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(AgentFault, match="not installed"):
        find(HORSE, {})


@pytest.mark.parametrize("program", [claude.PROGRAM, codex.PROGRAM])
def test_the_native_programs_come_with_a_package_from_the_index(program: Program) -> None:
    assert program.install.startswith("pip install ")
    assert program.package.isidentifier()
