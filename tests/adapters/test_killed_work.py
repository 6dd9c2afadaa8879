"""Whatever is killed, at whichever command of git's, and however full the disk was: done again, it comes out once."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


@pytest.mark.timeout(400)
@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("way", ["before", "full"])
@pytest.mark.parametrize("step", ["prepare", "check", "merge", "refuse", "clear"])
def test_a_step_that_went_wrong_anywhere_comes_out_as_if_nothing_had_been(step: str, way: str, tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "adapters.killed_work", step, way, str(tmp_path)]
    done = subprocess.run(argv, cwd=TESTS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) >= 5
