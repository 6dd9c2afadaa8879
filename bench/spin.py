"""Spin: how many runs that used up their budget the detector cuts, how many good runs it would have cut, and how soon.

The data are recorded runs (`remuda dev spin --help` tells the format) in the folder that REMUDA_SPIN_DATA names:
`multi-swe-bench-java.jsonl.gz`, in which an `exit` with `exit_cost` means that the budget was used up, and
`mini-swe-agent-verified.jsonl.gz`, whose runs all ended by submitting. The first is a stand-in for spinning, not a
label: a run may use up its budget by honest work. A fire is called hasty when the run later made a clean edit that it
had not made before.

The peers are restatements of published rules, written from their description and run on the same data; errors in them
are ours. Left out are rules for which the data have nothing to look at: thoughts, condensed histories, read tools.
"""

import os
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.figure import Figure
from remuda.cli.dev_spin import RecordedRun, recorded_runs
from remuda.domain.spin import Level, Limits, Trail, follow, judge, told
from remuda.domain.spin_reading import Reading, read

EXHAUSTED, SUBMITTED = "multi-swe-bench-java.jsonl.gz", "mini-swe-agent-verified.jsonl.gz"
MOST_ALARMS = 0.01
MOST_HASTY = 0.10
LEAST_RECALL = 0.60

Fire = Callable[["Run"], int | None]


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    exhausted: bool
    calls: tuple[tuple[str, str], ...]  # (tool, what was called), exactly
    outputs: tuple[str, ...]
    errors: tuple[bool, ...]
    readings: tuple[Reading, ...]
    last_clean_edit: int  # the step of the last edit that was clean and new; -1 for none


def figures() -> list[Figure]:
    folder = os.environ.get("REMUDA_SPIN_DATA", "")
    if not folder:
        print("spin: set REMUDA_SPIN_DATA to the folder with the recorded runs; nothing was measured")
        return []
    java, mini = _load(Path(folder) / EXHAUSTED), _load(Path(folder) / SUBMITTED)
    measured = {name: Score.of(fire, java, mini) for name, fire in {"remuda": fires(Limits()), **PEERS}.items()}
    print(f"\n{'rule':24} {'exhausted':>10} {'submitted':>10} {'hasty':>8} {'at step':>8} {'run left':>9}")
    for name, score in measured.items():
        print(f"{name:24} {score}")
    print(f"{'remuda, the nudge':24} {Score.of(fires(Limits(), Level.NUDGE), java, mini)}")
    _frontier(java, mini)
    crossed = _crossed(java, mini)
    shares = ", ".join(f"{steps} steps {_without_an_edit(java, steps):.0%}" for steps in (6, 8, 10, 14))
    print(f"of the exhausted runs, those that ended with so many steps and no clean edit: {shares}")
    halves = [Score.of(fires(Limits()), half, mini) for half in _halves(java)]
    return _figures(measured, halves, crossed, _without_an_edit(java, 8))


def _figures(
    measured: dict[str, "Score"], halves: Sequence["Score"], crossed: Sequence["Score"], limit: float
) -> list[Figure]:
    ours = measured["remuda"]
    peers = {name: score for name, score in measured.items() if name != "remuda"}
    fair = {name: score for name, score in peers.items() if score.alarms <= MOST_ALARMS and score.hasty <= ours.hasty}
    best = max(fair, key=lambda name: fair[name].recall, default="none")
    against = f"{best} {fair[best].recall:.0%}, the best peer with no more false alarms or haste" if fair else "no peer"
    against += (
        f"; {limit:.0%} ended with 8 steps and no clean edit, the most that 8 steps of patience cut without haste"
    )

    def told_of(which: Callable[["Score"], float]) -> str:
        return ", ".join(f"{name} {which(score):.0%}" for name, score in peers.items())

    def over(which: Callable[["Score"], float]) -> str:
        return f"halves {', '.join(f'{which(each):.0%}' for each in halves)}"

    return [
        Figure(
            "spin.exhausted_cut", 100 * ours.recall, "%", over(lambda each: each.recall), against, "≥ 60 %",
            ours.recall >= LEAST_RECALL,
        ),
        Figure(
            "spin.submitted_cut", 100 * ours.alarms, "%", "-", told_of(lambda each: each.alarms), "≤ 1 %",
            ours.alarms <= MOST_ALARMS,
        ),
        Figure(
            "spin.hasty", 100 * ours.hasty, "%", over(lambda each: each.hasty), told_of(lambda each: each.hasty),
            "≤ 10 %", ours.hasty <= MOST_HASTY,
        ),
        Figure(
            "spin.crossed", 100 * statistics.mean(each.recall for each in crossed), "%",
            ", ".join(str(each.short) for each in crossed), "threshold set on one half, measured on the other",
            "as good as above", all(each.alarms <= 2 * MOST_ALARMS for each in crossed),
        ),
    ]  # fmt: skip


# --- the runs ---


def _load(file: Path) -> list[Run]:
    return [_run(each) for each in recorded_runs(file)]


def _run(recorded: RecordedRun) -> Run:
    last, seen = -1, set[str]()
    steps = [each.step() for each in recorded.steps]
    for index, each in enumerate(steps):
        if each.tool in ("edit", "create") and each.ok and each.digest not in seen:
            last = index
        seen.add(each.digest)
    return Run(
        exhausted="exit_cost" in (recorded.exit or ""),
        calls=tuple((each.tool, each.digest or each.arguments) for each in steps),
        outputs=tuple(each.result for each in steps),
        errors=tuple(not each.ok for each in steps),
        readings=tuple(read(each) for each in steps),
        last_clean_edit=last,
    )


def _without_an_edit(runs: Sequence[Run], steps: int) -> float:
    """Of the exhausted runs, those that ended with so many steps and no clean edit: a rule that knew the future and
    waited as long would cut just these without haste."""
    exhausted = [run for run in runs if run.exhausted]
    return sum(len(run.calls) - 1 - run.last_clean_edit >= steps for run in exhausted) / len(exhausted)


def _halves(runs: Sequence[Run]) -> tuple[list[Run], list[Run]]:
    return list(runs[::2]), list(runs[1::2])


@dataclass(frozen=True, slots=True)
class Score:
    recall: float  # of the runs that used up their budget, those cut
    alarms: float  # of the submitted runs, those cut
    hasty: float  # of the fires, those that a new clean edit followed
    step: float  # at which it fired, median
    left: float  # of the run, median

    @classmethod
    def of(cls, fire: Fire, java: Sequence[Run], mini: Sequence[Run]) -> "Score":
        exhausted = [run for run in java if run.exhausted]
        cut = [(run, step) for run in java if (step := fire(run)) is not None]
        of_exhausted = [(run, step) for run, step in cut if run.exhausted]
        return cls(
            recall=len(of_exhausted) / len(exhausted),
            alarms=sum(fire(run) is not None for run in mini) / len(mini),
            hasty=sum(run.last_clean_edit > step for run, step in cut) / max(1, len(cut)),
            step=statistics.median([step for _, step in of_exhausted] or [0]),
            left=statistics.median([1 - (step + 1) / len(run.calls) for run, step in of_exhausted] or [0]),
        )

    @property
    def short(self) -> str:
        return f"{self.recall:.0%}/{self.alarms:.1%}/{self.hasty:.0%}"

    def __str__(self) -> str:
        return f"{self.recall:>10.1%} {self.alarms:>10.1%} {self.hasty:>8.1%} {self.step:>8.0f} {self.left:>9.0%}"


# --- ours ---


def fires(limits: Limits, level: Level = Level.FIRE) -> Fire:
    def fire(run: Run) -> int | None:
        trail = Trail()
        for index, reading in enumerate(run.readings):
            trail = follow(trail, reading)
            finding = judge(trail, limits)
            if finding:
                trail = told(trail, finding.level)
                if finding.level is level:
                    return index
        return None

    return fire


def _frontier(java: Sequence[Run], mini: Sequence[Run]) -> None:
    """What another threshold would buy, and cost."""
    for points in (5.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0):
        print(f"{f'remuda at {points:.0f} points':24} {Score.of(fires(Limits(points - 1, points)), java, mini)}")


def _crossed(java: Sequence[Run], mini: Sequence[Run]) -> list[Score]:
    """The lowest threshold that holds the bounds on one half of both sets, tried on the other halves."""
    (one, other), (good, better) = _halves(java), _halves(mini)
    return [
        Score.of(fires(Limits(points / 2, points)), there, fine)
        for here, honest, there, fine in ((one, good, other, better), (other, better, one, good))
        for points in [_lowest(here, honest)]
    ]


def _lowest(java: Sequence[Run], mini: Sequence[Run]) -> float:
    for points in range(5, 20):
        score = Score.of(fires(Limits(points / 2, points)), java, mini)
        if score.alarms <= MOST_ALARMS and score.hasty <= MOST_HASTY + 0.01:
            return points
    return 20


# --- the peers, restated ---


def opencode(run: Run) -> int | None:
    return _in_a_row(run.calls, 3)


def _in_a_row(calls: Sequence[object], times: int) -> int | None:
    for index in range(times - 1, len(calls)):
        if len(set(calls[index - times + 1 : index + 1])) == 1:
            return index
    return None


def openhands(run: Run) -> int | None:
    """The same action and observation 4 times, the same action in error 3 times, two actions in turn 6 times."""
    pairs = [(*call, output) for call, output in zip(run.calls, run.outputs, strict=True)]
    for index in range(len(pairs)):
        if index >= 3 and len(set(pairs[index - 3 : index + 1])) == 1:
            return index
        if index >= 2 and len(set(run.calls[index - 2 : index + 1])) == 1 and all(run.errors[index - 2 : index + 1]):
            return index
        if index >= 5 and _cycle(pairs[index - 5 : index + 1], 2):
            return index
    return None


def _cycle(calls: Sequence[object], length: int) -> bool:
    return all(calls[index] == calls[index - length] for index in range(length, len(calls)))


def gemini(run: Run) -> int | None:
    """Any cycle of 1 to 5 calls, 5 times."""
    for index in range(len(run.calls)):
        for length in range(1, 6):
            start = index + 1 - 5 * length
            if start >= 0 and _cycle(run.calls[start : index + 1], length):
                return index
    return None


def qwen(run: Run) -> int | None:
    """5 in a row, 6 anywhere, two in turn 6 times, one tool 8 times in a row."""
    seen: Counter[tuple[str, str]] = Counter()
    for index, call in enumerate(run.calls):
        seen[call] += 1
        if (
            seen[call] >= 6
            or (index >= 4 and len(set(run.calls[index - 4 : index + 1])) == 1)
            or (index >= 5 and _cycle(run.calls[index - 5 : index + 1], 2))
            or (index >= 7 and len({tool for tool, _ in run.calls[index - 7 : index + 1]}) == 1)
        ):
            return index
    return None


PEERS: dict[str, Fire] = {
    "opencode": cache(opencode),
    "OpenHands": cache(openhands),
    "Gemini CLI": cache(gemini),
    "Qwen Code": cache(qwen),
}
