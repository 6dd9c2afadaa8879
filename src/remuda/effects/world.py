"""What performers share: the sessions that are alive in this process, and how to tell the loop what they do."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from remuda.agents import Backend, Ended, ModelCall, Session, Text, Thought, ToolCall, Update, Wire
from remuda.domain.commands import Report, ReportOutput, ReportSessionEnded, ReportUsage
from remuda.store.output import DEFAULT_LINES, Entry, OutputRing
from remuda.store.transcript import Transcript, session_path

REPORT_OUTPUT_AFTER = 0.1  # seconds; the transcript has it at once, the log hears of it in bunches
LONGEST_TOOL_TEXT = 2000  # characters of a tool's arguments or result in the readable transcript; the wire has all


@dataclass(slots=True)
class World:
    root: Path
    transcripts: Path
    mark: str  # begins the mark of every child of this project
    backend: Callable[[str], Backend]
    tell: Callable[[Report], None]
    clock: Callable[[], float]
    environment: Callable[[str, str], dict[str, str]]  # (agent, token) -> variables for its process
    output_lines: int = DEFAULT_LINES
    live: dict[str, "Live"] = field(default_factory=dict)

    async def close(self) -> None:
        """End every session, all at once, gently."""
        await asyncio.gather(*(live.end(gentle=True) for live in self.live.values()), return_exceptions=True)
        self.live.clear()


class Live:
    """One session that is alive here: what it says goes to its transcript at once and to the loop soon."""

    def __init__(self, world: World, agent: str, epoch: int, token: str) -> None:
        self.agent, self.epoch, self.token = agent, epoch, token
        self.turn = 0
        self.fault = ""  # why we gave up on it, if we did
        self.session: Session | None = None
        self._world = world
        self._transcript = Transcript(session_path(world.transcripts, agent, epoch), OutputRing(world.output_lines))
        self._reported = self._transcript.size
        self._reported_lines = 0
        self._reporting: asyncio.TimerHandle | None = None
        self._watching: asyncio.Task[None] | None = None
        self._closed = False
        self.in_turn = asyncio.Lock()  # its death is told after the turn that it cut off has been put away

    @property
    def ring(self) -> OutputRing:
        return self._transcript.ring

    def listen(self, update: Update) -> None:
        if self._closed:
            return
        match update:
            case Wire():
                self._transcript.wire(self._world.clock(), update.side, update.line)
                if update.side == "stderr":
                    self.say("stderr", update.line)
            case Text():
                self.say("text", update.text)
            case Thought():
                self.say("thought", update.text)
            case ToolCall():
                text = update.arguments if update.status == "started" else update.result
                self.say("tool", text[:LONGEST_TOOL_TEXT], name=update.name, status=update.status)
            case ModelCall():
                self._world.tell(ReportUsage(self.agent, self.epoch, self.turn, update.number, update.usage))

    def say(self, kind: str, text: str, *, name: str = "", status: str = "") -> None:
        self._transcript.add(Entry(self._world.clock(), self.turn, kind, text, name, status))  # type: ignore[arg-type]
        if self._reporting is None:
            self._reporting = asyncio.get_running_loop().call_later(REPORT_OUTPUT_AFTER, self.report_output)

    def report_output(self) -> None:
        """Tell the loop where the new output stands."""
        if self._reporting is not None:
            self._reporting.cancel()
            self._reporting = None
        start, lines = self._reported, self._reported_lines
        self._reported, self._reported_lines = self._transcript.size, self._transcript.line_count
        if self._reported > start:
            size, count = self._reported - start, self._reported_lines - lines
            self._world.tell(ReportOutput(self.agent, self.epoch, self.turn, start, size, count))

    async def end_turn(self) -> None:
        """All that was said in the turn is on the disk and told before the turn is told to have ended."""
        self._transcript.end_line()
        await asyncio.to_thread(self._transcript.sync)
        self.report_output()
        self.turn = 0

    def watch(self, session: Session) -> None:
        """From now on its death is noticed, whenever it comes."""
        self.session = session
        self._watching = asyncio.ensure_future(self._report_death(session))

    async def _report_death(self, session: Session) -> None:
        await session.gone()
        ended = await session.end(gentle=False)  # what it started may have outlived it
        async with self.in_turn:
            if self._world.live.get(self.agent) is self:
                del self._world.live[self.agent]
            self.close()
        detail = self.fault or describe(ended)
        self._world.tell(ReportSessionEnded(self.agent, self.epoch, detail, ended.returncode))

    async def end(self, *, gentle: bool) -> Ended:
        if self._watching is not None:
            self._watching.cancel()
        ended = await self.session.end(gentle=gentle) if self.session is not None else Ended(None, "it never started")
        self.close()
        return ended

    def close(self) -> None:
        if not self._closed:
            self.report_output()
            self._closed = True
            self._transcript.close()


def describe(ended: Ended) -> str:
    tail = ended.stderr_tail.strip()
    return f"{ended.detail}; it last said: {tail[-500:]}" if tail else ended.detail
