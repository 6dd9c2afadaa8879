"""One session that is alive here: what it says goes to its transcript at once and to the loop soon."""

import asyncio
from collections.abc import Callable

from remuda.agents import (
    Asked,
    Ended,
    Hook,
    Listen,
    ModelCall,
    Retry,
    Session,
    Text,
    Thought,
    ToolCall,
    Update,
    Wire,
)
from remuda.domain.commands import (
    Report,
    ReportError,
    ReportOutput,
    ReportQuestion,
    ReportSessionEnded,
    ReportToolCall,
    ReportUsage,
)
from remuda.domain.failure import Failure
from remuda.effects.questions import Questions
from remuda.effects.steps import Steps
from remuda.store.output import Entry, Kind, OutputRing
from remuda.store.transcript import Transcript

REPORT_OUTPUT_AFTER = 0.1  # seconds; the transcript has it at once, the log hears of it in bunches
EVIDENCE_LINES = 3  # of what a silent agent said last
LONGEST_EVIDENCE = 500  # characters of it
LONGEST_TOOL_TEXT = 2000  # characters of a tool's arguments or result in the readable transcript; the wire has all


Tell = Callable[[Report], None]
Clock = Callable[[], float]


class Live:
    def __init__(self, agent: str, epoch: int, *, transcript: Transcript, tell: Tell, clock: Clock) -> None:
        self.agent, self.epoch = agent, epoch
        self.folder = ""  # where it works, from the project's root
        self.steps = Steps(None, tell)  # whoever knows where it works says so
        self.token = ""  # by which its process is known at every door: the agent's name, and a secret
        self.metered = False  # its calls to a model go through the meter
        self.turn = 0
        self.fault: tuple[str, Failure] | None = None  # why we gave up on it, if we did
        self.session: Session | None = None
        self.questions: Questions | None = None
        self.recorder: Listen | None = None  # hears all of a turn that is being recorded
        self.heard_at = asyncio.get_running_loop().time()
        self.in_turn = asyncio.Lock()  # its death is told after the turn that it cut off has been put away
        self._transcript, self._tell, self._clock = transcript, tell, clock
        self._reported = transcript.size
        self._reported_lines = 0
        self._reporting: asyncio.TimerHandle | None = None
        self._watching: asyncio.Task[None] | None = None
        self._tools: dict[str, float] = {}  # in use -> since when, on the loop's clock
        self._asked: dict[str, str] = {}  # the arguments of those tools; some programs tell them only at first
        self._closed = False
        self.ending = False  # somebody has asked for its end
        self.over = asyncio.Event()

    @property
    def ring(self) -> OutputRing:
        return self._transcript.ring

    @property
    def waits(self) -> bool:
        """For a tool or for a person: then its silence means nothing."""
        return bool(self._tools) or (self.questions is not None and self.questions.open)

    # --- what it says ---

    def listen(self, update: Update) -> None:
        if self._closed:
            return
        self.heard_at = asyncio.get_running_loop().time()
        if self.recorder is not None:
            self.recorder(update)
        match update:
            case Wire():
                self._heard(update)
            case Text():
                self.say("text", update.text)
                self.steps.say(update.text)
            case Thought():
                self.say("thought", update.text)
            case ToolCall():
                self._tool(update)
            case ModelCall():
                self._tell(ReportUsage(self.agent, self.epoch, self.turn, update.number, update.usage))
            case Retry():
                what = f"the model's service failed and is tried again (try {update.attempt}): {update.detail}"
                self._tell(ReportError(self.agent, self.epoch, self.turn, what, update.failure))

            case Hook() if update.text or update.status != "passed":  # else it had nothing to say
                self.say("note", f"hook {update.name} {update.status}: {update.text[:LONGEST_TOOL_TEXT]}")

    def _heard(self, wire: Wire) -> None:
        self._transcript.wire(self._clock(), wire.side, wire.line)
        if wire.side == "stderr":
            self.say("stderr", wire.line)

    def _tool(self, call: ToolCall) -> None:
        text = call.arguments if call.status == "started" else call.result
        self.say("tool", text[:LONGEST_TOOL_TEXT], name=call.name, status=call.status)
        now = asyncio.get_running_loop().time()
        if call.status == "started":
            self.steps.end_message()
            self._tools.setdefault(call.id, now)  # it may tell more than once that it is at it
            self._asked[call.id] = call.arguments or self._asked.get(call.id, "")
            return
        seconds = now - self._tools.pop(call.id, now)
        ok = call.status == "completed"
        place = (self.agent, self.epoch, self.turn)
        arguments = call.arguments or self._asked.pop(call.id, "")
        self._asked.pop(call.id, None)
        self.steps.add(ReportToolCall(*place, call.id, call.name, ok, seconds, arguments, call.result))

    def put_question(self, question_id: str, asked: Asked) -> bool:
        """Whether it could be put: only a turn can wait for an answer."""
        if self._closed or not self.turn:
            return False
        self.say("note", f"may it use {asked.tool}? question {question_id} waits for an answer")
        place = (self.agent, self.epoch, self.turn)
        self._tell(ReportQuestion(*place, question_id, asked.tool, asked.arguments, asked.paths, asked.title))
        return True

    def give_answer(self, question_id: str, *, allow: bool, why: str) -> None:
        """It was somebody else's silence until now; its own begins here."""
        self.heard_at = asyncio.get_running_loop().time()
        if self.questions is not None:
            self.questions.settle(question_id, allow=allow, why=why)

    def say(self, kind: Kind, text: str, *, name: str = "", status: str = "") -> None:
        self._transcript.add(Entry(self._clock(), self.turn, kind, text, name, status))
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
            self._tell(ReportOutput(self.agent, self.epoch, self.turn, start, size, count))

    def busy(self) -> None:
        """It says nothing, but its processes are at work: that is a sign of life too."""
        self.heard_at = asyncio.get_running_loop().time()

    # --- its turns ---

    def begin_turn(self, turn: int) -> None:
        self.turn = turn
        self.steps.place = (self.agent, self.epoch, turn)
        self.heard_at = asyncio.get_running_loop().time()

    async def end_turn(self) -> None:
        """All that was said in the turn is on the disk and told before the turn is told to have ended."""
        self._tools.clear()
        self._asked.clear()
        self._transcript.end_line()
        self.steps.end_message()
        await self.steps.settle()
        await asyncio.to_thread(self._transcript.sync)
        self.report_output()
        self.turn = 0

    def leave_no_question(self) -> None:
        """The agent has ended its turn all the same: nobody is to be asked any more, nor is it to be waited for."""
        if self.questions is not None:
            self.questions.settle_all("the turn has ended")

    def evidence(self) -> str:
        """The last of what it said and did."""
        self._transcript.end_line()
        last = "\n".join(self.ring.last(EVIDENCE_LINES))
        return f"; the last of its output:\n{last[-LONGEST_EVIDENCE:]}" if last else "; it never said anything"

    # --- its end ---

    def watch(self, session: Session, forget: Callable[["Live"], None]) -> None:
        """From now on its death is noticed, whenever it comes."""
        self.session = session
        self._watching = asyncio.ensure_future(self._report_death(session, forget))

    async def _report_death(self, session: Session, forget: Callable[["Live"], None]) -> None:
        await session.gone()
        ended = await session.end(gentle=False)  # what it started may have outlived it
        async with self.in_turn:
            forget(self)
            self.close()
        detail, failure = self.fault or (describe(ended), Failure.CRASHED)
        if failure is Failure.MALFORMED and (ended.returncode or 0) > 0:
            # It had died by itself; what nobody could read came out after that.
            detail, failure = f"{describe(ended)}; {detail}", Failure.CRASHED
        self._tell(ReportSessionEnded(self.agent, self.epoch, detail, ended.returncode, failure))

    async def end(self, *, gentle: bool) -> Ended:
        self.ending = True
        if self._watching is not None:
            self._watching.cancel()
        if self.session is None:
            ended = Ended(None, "it never started")
        else:
            ended = await self.session.end(gentle=gentle)
        self.close()
        return ended

    def close(self) -> None:
        if not self._closed:
            self.report_output()
            self._closed = True
            self.over.set()
            if self.questions is not None:
                self.questions.drop()
            self._transcript.close()


def describe(ended: Ended) -> str:
    tail = ended.stderr_tail.strip()
    return f"{ended.detail}; it last said: {tail[-500:]}" if tail else ended.detail
