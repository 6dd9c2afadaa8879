"""`remuda dev spin`: recorded runs through the detector that watches live agents."""

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import click
import msgspec

from remuda.domain.spin import Finding, Level, Limits, Trail, follow, judge, told
from remuda.domain.spin_reading import Step, read

# What one recorder puts around the output of a command; it is not the command that said it.
WRAPPING = re.compile(
    r"\A\s*<returncode>-?\d+</returncode>\s*|</?(?:output|output_head|output_tail|warning|elided_chars)>"
)


class RecordedStep(msgspec.Struct):
    tool: str | None = None
    args: Any = None  # a text, or the arguments as an object
    output: Any = None
    error: bool | None = None
    args_sha: str | None = None
    text: str | None = None
    tree: str | None = None

    def step(self) -> Step:
        output = WRAPPING.sub("", _text(self.output))
        marks = (self.text or "", self.tree or "", self.args_sha or "")
        return Step(self.tool or "", _text(self.args), output, not self.error, *marks)


class RecordedRun(msgspec.Struct):
    id: str
    steps: list[RecordedStep]
    model: str | None = None
    exit: str | None = None


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--nudge", type=float, default=Limits().nudge, show_default=True, help="Points that lead to a nudge.")
@click.option("--fire", type=float, default=Limits().fire, show_default=True, help="Points that fire the trigger.")
@click.option("--rounds", type=int, default=Limits().fire_rounds, show_default=True, help="Rounds that fire it.")
def spin(file: Path, nudge: float, fire: float, rounds: int) -> None:
    """Replay recorded runs (JSON lines, maybe gzipped) through the spin detector: one line of JSON a run.

    Steps are counted from 0. A run has `id` and `steps`, each with `tool`, `args`, `output`, `error`, and where they
    are known `args_sha` (of the whole arguments), `tree` (a fingerprint of the files after it) or `text` (a message).
    """
    limits = Limits(nudge=nudge, fire=fire, fire_rounds=rounds)
    for run in recorded_runs(file):
        click.echo(json.dumps(verdict(run, limits), ensure_ascii=False))


def recorded_runs(file: Path) -> Iterator[RecordedRun]:
    decoder = msgspec.json.Decoder(RecordedRun)
    number = 0
    try:
        with _opened(file) as lines:
            for line in lines:
                number += 1
                if line.strip():
                    yield decoder.decode(line)
    except msgspec.DecodeError as error:
        raise click.ClickException(f"{file}, line {number}: {error}") from None
    except (OSError, EOFError) as error:
        raise click.ClickException(f"{file} cannot be read after line {number}: {error}") from None


def _opened(file: Path) -> IO[bytes] | gzip.GzipFile:
    return gzip.open(file) if file.suffix == ".gz" else file.open("rb")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) if value is not None else ""


def verdict(run: RecordedRun, limits: Limits) -> dict[str, Any]:
    found = findings([each.step() for each in run.steps], limits)
    nudge, fire = found.get(Level.NUDGE), found.get(Level.FIRE)
    last = (fire or nudge or (None, None))[1]
    return {
        "id": run.id,
        "nudge": nudge[0] if nudge else None,
        "fire": fire[0] if fire else None,
        "rule": last.rule if last else None,
        "evidence": last.evidence if last else None,
        "numbers": dict(last.numbers) if last else None,
    }


def findings(steps: Sequence[Step], limits: Limits) -> dict[Level, tuple[int, Finding]]:
    """The first finding of each level, with the step at which it was made."""
    trail, found = Trail(), dict[Level, tuple[int, Finding]]()
    for index, step in enumerate(steps):
        trail = follow(trail, read(step))
        finding = judge(trail, limits)
        if finding:
            trail = told(trail, finding.level)
            found.setdefault(finding.level, (index, finding))
    return found
