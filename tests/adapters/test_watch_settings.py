"""The settings of the watches: what makes no sense is refused, and a role's verdict is its own."""

from pathlib import Path

import pytest

from remuda.domain.errors import Invalid
from remuda.domain.spin import Limits
from remuda.domain.trigger import Course
from remuda.runtime.config import load_settings


@pytest.mark.parametrize(
    "text",
    [
        "[watch.spin]\nnudge = 0.0",
        "[watch.spin]\nnudge = 20.0",
        "[watch.spin]\nfire = nan",
        "[watch.spin]\nnudge_rounds = 1",
        "[watch.spin]\nfire_rounds = 3",
        "[watch.stall]\nsilences = 0",
        "[watch.gang]\nshare = 0.0",
        "[watch.verdict]\nseconds = -1.0",
        "[watch.verdict]\nrestarts = -1",
        "[watch.verdict]\nrestart_seconds = inf",
        "[watch.spinn]\nnudge = 3.0",
        "[bodies]\ndays = -1.0",
        "[bodies]\ndays = nan",
        "[bodies]\nat_most = -1",
        "[bodies]\nmegabytes = inf",
        '[roles.worker]\nverdict = "forgive"',
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "remuda.toml"
    file.write_text(text)
    with pytest.raises(Invalid):
        load_settings(file)


def test_the_defaults_are_those_of_the_detector_and_a_role_may_have_its_own_verdict(tmp_path: Path) -> None:
    file = tmp_path / "remuda.toml"
    file.write_text('[roles.crew]\nverdict = "wait"\n')
    settings = load_settings(file)
    assert settings.watch.limits == Limits()
    assert not settings.bodies.room.limited
    assert settings.roles["crew"].verdict is Course.WAIT
    assert settings.watch.patience(Course.RESTART).otherwise is Course.RESTART
