"""The runtime is killed with SIGKILL in the middle of work, again and again, and nothing is lost or done twice."""

import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from remuda.agents.strays import marked
from remuda.cli.call import Broken, NotUp, exchange
from remuda.domain.events import MessageQueued, Recorded, RuntimeStarted, TurnEnded, TurnStarted, UsageRecorded
from remuda.domain.evolve import add, evolve
from remuda.domain.lifecycle import Status
from remuda.domain.state import Metrics, State
from remuda.runtime.place import Place
from remuda.store.file import open_log
from remuda.store.sqlite import read_records, restore
from waiting import until_true

KILLS = 50
AGENTS = ("ada", "ben", "cy")
REMUDA = (sys.executable, "-m", "remuda.cli.entry")
WORK = json.dumps(
    [
        {"say": "I begin.\n"},
        {"use": {"input": 100, "output": 10, "cost_usd": 0.001}},
        {"run": ["git", "status", "--short"]},
        {"use": {"input": 200, "output": 20, "cost_usd": 0.002}},
        {"say": "I am done.\n"},
    ]
)


@dataclass
class Project:
    place: Place
    log: list[Recorded] = field(default_factory=list)
    state: State = field(default_factory=State)
    runtime: subprocess.Popen[bytes] | None = None

    def read(self) -> None:
        """The log as anyone may read it, from where we were."""
        db = open_log(self.place.database, readonly=True)
        try:
            for record in read_records(db, self.state.seq):
                self.log.append(record)
                evolve(self.state, record)
        finally:
            db.close()

    def start(self) -> None:
        before = self.starts()
        output = (self.place.root / "runtime.txt").open("ab")
        with output:
            self.runtime = subprocess.Popen([*REMUDA, "up"], cwd=self.place.root, stdout=output, stderr=output)
        until_true(lambda: self._answers() and self.starts() > before)

    def starts(self) -> int:
        if self.place.database.exists():
            self.read()
        return sum(isinstance(record.event, RuntimeStarted) for record in self.log)

    def _answers(self) -> bool:
        try:
            return exchange(str(self.place.state), "GET", "/v1/health")[0] == 200
        except (NotUp, Broken, OSError):
            return False

    def kill(self) -> None:
        assert self.runtime is not None
        self.runtime.kill()
        self.runtime.wait()

    def post(self, path: str, order: str, body: dict[str, object]) -> bool:
        """Whether it was acknowledged."""
        headers = {"Idempotency-Key": order, "Content-Type": "application/json"}
        try:
            status, _ = exchange(str(self.place.state), "POST", path, headers, json.dumps(body).encode())
        except (NotUp, Broken, OSError):
            return False
        return status in (200, 201, 202)

    def grown_by(self, count: int) -> Callable[[], bool]:
        goal = self.state.seq + count

        def check() -> bool:
            self.read()
            return self.state.seq >= goal or self.at_rest()

        return check

    def at_rest(self) -> bool:
        self.read()
        return all(agent.status is Status.READY and not agent.queue for agent in self.state.agents.values())


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run([*REMUDA, "init"], cwd=tmp_path, check=True, capture_output=True)
    made = Project(Place(tmp_path))
    yield made
    if made.runtime is not None and made.runtime.poll() is None:
        made.kill()


@pytest.mark.long
@pytest.mark.timeout(400)
def test_fifty_hard_kills_in_the_middle_of_work_lose_nothing_and_double_nothing(project: Project) -> None:
    chance = random.Random(50)
    sent: dict[str, str] = {}
    unanswered: list[str] = []
    project.start()
    for name in AGENTS:
        assert project.post("/v1/agents", f"spawn-{name}", {"role": "worker", "name": name})
    for number in range(KILLS):
        for each in range(2):
            order = f"message-{number}-{each}"
            sent[order] = chance.choice(AGENTS)
            if not project.post(f"/v1/agents/{sent[order]}/messages", order, {"text": f"{order}\nplaybook: {WORK}"}):
                unanswered.append(order)
        until_true(project.grown_by(chance.randrange(1, 25)))
        project.kill()
        project.start()
        for order in list(unanswered):
            assert project.post(f"/v1/agents/{sent[order]}/messages", order, {"text": f"{order}\nplaybook: {WORK}"})
            unanswered.remove(order)
    until_true(project.at_rest, 60)
    down = subprocess.run([*REMUDA, "down"], cwd=project.place.root, check=False, capture_output=True, text=True)
    assert down.returncode == 0, down.stderr
    project.read()
    check_nothing_lost(project, sent)
    check_nothing_doubled(project)
    check_the_log_is_the_state(project)
    assert [pid for pid, mark in marked() if mark.startswith(project.place.mark)] == []


def check_nothing_lost(project: Project, sent: dict[str, str]) -> None:
    queued = Counter(record.event.message.id for record in project.log if isinstance(record.event, MessageQueued))
    answered = [
        record.event for record in project.log if isinstance(record.event, TurnEnded) and record.event.outcome.answered
    ]
    assert queued == Counter(dict.fromkeys(sent, 1))
    assert Counter(event.message_id for event in answered) == queued
    for name in AGENTS:
        in_order = [order for order, agent in sent.items() if agent == name]
        assert [event.message_id for event in answered if event.agent == name] == in_order


def check_nothing_doubled(project: Project) -> None:
    given = Counter(
        (record.event.agent, record.event.epoch, record.event.message_id)
        for record in project.log
        if isinstance(record.event, TurnStarted)
    )
    assert max(given.values()) == 1, "a message was given twice in one session"
    turns = [record.event.turn for record in project.log if isinstance(record.event, TurnStarted)]
    assert turns == list(range(1, len(turns) + 1))
    calls = Counter(
        (record.event.agent, record.event.epoch, record.event.call)
        for record in project.log
        if isinstance(record.event, UsageRecorded)
    )
    assert max(calls.values()) == 1, "a model call was counted twice"
    # Something was really cut off, or this test has shown nothing.
    cut = [r for r in project.log if isinstance(r.event, TurnEnded) and not r.event.outcome.answered]
    assert len(cut) >= KILLS // 5


def check_the_log_is_the_state(project: Project) -> None:
    assert [record.seq for record in project.log] == list(range(1, len(project.log) + 1))
    db = open_log(project.place.database, readonly=True)
    assert restore(db, project.place.database) == project.state
    db.close()
    for name in AGENTS:
        total = Metrics()
        for record in project.log:
            if isinstance(record.event, UsageRecorded) and record.event.agent == name:
                total = add(total, record.event.usage, record.at)
        metrics = project.state.agents[name].metrics
        assert metrics.input_tokens == total.input_tokens > 0
        assert metrics.output_tokens == total.output_tokens
        assert metrics.cumulative_cost_nanousd == total.cumulative_cost_nanousd
