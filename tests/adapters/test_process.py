"""The supervisor of child processes, with real children."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import uvloop

from adapters.agent_kit import WITHIN, Recorder, alive, fresh_mark, launch_in
from remuda.agents import Ended
from remuda.agents.process import CANCEL, GRACE, LINE_LIMIT, TAIL, Child, environment, sweep
from remuda.agents.strays import MARK, PATIENCE, marked
from remuda.domain.errors import AgentFault, EffectFailed, Invalid, RemudaError
from waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

NESTED = "import subprocess,sys; p=subprocess.Popen(['sleep','600'],start_new_session={}); print(p.pid,flush=True);{}"


class Ears:
    """A `hear` that keeps lines and the fault at their end."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.faults: list[RemudaError] = []

    def __call__(self, heard: str | RemudaError) -> None:
        if isinstance(heard, str):
            self.lines.append(heard)
        else:
            self.faults.append(heard)


async def start(folder: Path, *argv: str, ears: Ears, heard: Recorder | None = None, **fields: object) -> Child:
    return await Child.start(argv, launch_in(folder, **fields), heard or Recorder(), ears)


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", code)


def test_lines_go_both_ways_and_each_is_on_the_wire_log(tmp_path: Path) -> None:
    async def story() -> None:
        ears, heard = Ears(), Recorder()
        child = await start(tmp_path, "cat", ears=ears, heard=heard)
        child.send("grüß dich")
        await until(lambda: ears.lines == ["grüß dich"])
        assert heard.lines("remuda") == heard.lines("agent") == ["grüß dich"]
        assert (await child.end(gentle=True)).returncode is not None

    asyncio.run(story())


def test_a_child_does_not_see_the_parents_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "do not leak")

    async def story() -> Ears:
        ears = Ears()
        child = await start(tmp_path, "env", ears=ears, env={"DECLARED": "yes"}, mark="mark-of-env")
        await child.gone()
        await child.end(gentle=False)
        return ears

    seen = dict(line.split("=", 1) for line in asyncio.run(story()).lines)
    assert "SECRET_TOKEN" not in seen
    assert (seen["DECLARED"], seen[MARK], seen["PATH"]) == ("yes", "mark-of-env", os.environ["PATH"])


def test_the_mark_cannot_be_declared_away() -> None:
    assert environment({MARK: "another"}, "mine")[MARK] == "mine"


def test_a_child_that_ignores_sigterm_is_killed_after_the_grace(tmp_path: Path) -> None:
    async def story() -> Ended:
        ears = Ears()
        code = "import signal,time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
        child = await start(tmp_path, *python(code), ears=ears)
        await until(lambda: ears.lines == ["deaf"])
        async with asyncio.timeout(WITHIN):
            ended = await child.end(gentle=True, grace=0.1)
        assert not alive(child.pid)
        return ended

    assert asyncio.run(story()).returncode == -signal.SIGKILL


def test_a_gentle_end_lets_the_child_finish(tmp_path: Path) -> None:
    async def story() -> tuple[Ended, list[str]]:
        ears = Ears()
        code = (
            "import signal,sys; signal.signal(15, lambda *_: None); print('up', flush=True);"
            "sys.stdin.read(); print('saved', flush=True)"
        )
        child = await start(tmp_path, *python(code), ears=ears)
        await until(lambda: ears.lines == ["up"])
        return await child.end(gentle=True), ears.lines

    ended, lines = asyncio.run(story())
    assert (ended.returncode, ended.detail, lines) == (0, "exited with code 0", ["up", "saved"])


def test_a_hard_end_hurries_a_gentle_one(tmp_path: Path) -> None:
    async def story() -> Ended:
        ears = Ears()
        code = "import signal,time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
        child = await start(tmp_path, *python(code), ears=ears)
        await until(lambda: ears.lines == ["deaf"])
        patient = asyncio.create_task(child.end(gentle=True, grace=600))
        await asyncio.sleep(0)
        async with asyncio.timeout(WITHIN):
            await child.end(gentle=False)
            return await patient

    assert asyncio.run(story()).returncode == -signal.SIGKILL


def test_a_gentle_end_asks_in_the_protocol_before_it_signals(tmp_path: Path) -> None:
    async def story() -> list[str]:
        ears = Ears()
        code = (
            "import os, signal, sys, time\n"
            "signal.signal(15, lambda *_: (print('signalled', flush=True), os._exit(0)))\n"
            "for line in sys.stdin: print('heard', line.strip(), flush=True)\n"
            "time.sleep(600)\n"  # the end of its input comes in the same moment, and is no reason to leave
        )
        child = await start(tmp_path, *python(code), ears=ears)

        async def cancel() -> None:
            child.send("stop")
            await until(lambda: "heard stop" in ears.lines)

        await child.end(gentle=True, cancel=cancel)
        return ears.lines

    assert asyncio.run(story())[:2] == ["heard stop", "signalled"]


def test_one_that_heeds_neither_the_protocol_nor_sigterm_is_gone_in_five_seconds(tmp_path: Path) -> None:
    async def story() -> float:
        ears = Ears()
        code = "import signal,time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
        child = await start(tmp_path, *python(code), ears=ears)
        await until(lambda: ears.lines == ["deaf"])
        began = asyncio.get_running_loop().time()
        ended = await child.end(gentle=True, cancel=asyncio.Event().wait)
        assert (ended.returncode, ended.left) == (-signal.SIGKILL, ())
        return asyncio.get_running_loop().time() - began

    assert CANCEL + GRACE + PATIENCE < 5
    assert CANCEL + GRACE <= asyncio.run(story()) < 5


def test_ending_twice_is_ending_once(tmp_path: Path) -> None:
    async def story() -> None:
        child = await start(tmp_path, "cat", ears=Ears())
        first, second = await asyncio.gather(child.end(gentle=False), child.end(gentle=True))
        assert first == second == await child.end(gentle=False)

    asyncio.run(story())


@pytest.mark.parametrize("own_session", [False, True], ids=["in the group", "escaped by setsid"])
def test_what_the_child_started_dies_with_it(tmp_path: Path, own_session: bool) -> None:
    async def story() -> None:
        ears = Ears()
        child = await start(tmp_path, *python(NESTED.format(own_session, "p.wait()")), ears=ears)
        await until(lambda: bool(ears.lines))
        stray = int(ears.lines[0])
        assert alive(stray)
        ended = await child.end(gentle=False)
        await until(lambda: not alive(stray))
        assert ("stray" in ended.detail) == own_session

    asyncio.run(story())


def test_a_stray_is_killed_even_when_its_parent_is_long_gone(tmp_path: Path) -> None:
    async def story() -> None:
        ears = Ears()
        child = await start(tmp_path, *python(NESTED.format(True, "")), ears=ears)
        await child.gone()
        stray = int(ears.lines[0])
        assert alive(stray)
        await child.end(gentle=False)
        await until(lambda: not alive(stray))

    asyncio.run(story())


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_the_exit_is_known_while_a_grandchild_still_holds_the_pipes(tmp_path: Path, run: object) -> None:
    async def story() -> Ended:
        ears = Ears()
        child = await start(tmp_path, *python(NESTED.format(True, "sys.exit(7)")), ears=ears)
        async with asyncio.timeout(WITHIN):
            ended = await child.gone()
        assert alive(int(ears.lines[0]))
        await child.end(gentle=False)
        return ended

    assert callable(run)
    assert run(story()).returncode == 7


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_flood_on_stderr_does_not_block_the_child(tmp_path: Path, run: object) -> None:
    async def story() -> tuple[Ended, Ears, Recorder]:
        ears, heard = Ears(), Recorder()
        code = "import sys; [sys.stderr.write('x'*99+chr(10)) for _ in range(20000)]; print('done', flush=True)"
        child = await start(tmp_path, *python(code), ears=ears, heard=heard)
        async with asyncio.timeout(WITHIN):
            ended = await child.gone()
        await child.end(gentle=False)
        return ended, ears, heard

    assert callable(run)
    ended, ears, heard = run(story())
    assert ears.lines == ["done"]
    assert len(heard.lines("stderr")) == 20000
    assert len(ended.stderr_tail) == TAIL


def test_an_endless_line_on_stderr_is_logged_in_pieces(tmp_path: Path) -> None:
    async def story() -> Recorder:
        heard = Recorder()
        child = await start(tmp_path, *python("import sys; sys.stderr.write('x'*300000)"), ears=Ears(), heard=heard)
        await child.gone()
        await child.end(gentle=False)
        return heard

    pieces = asyncio.run(story()).lines("stderr")
    assert len(pieces) > 1
    assert "".join(pieces) == "x" * 300000


@pytest.mark.parametrize("newline", ["", "+b'\\n'"], ids=["without an end", "with an end"])
def test_an_over_long_line_is_a_fault_with_evidence(tmp_path: Path, newline: str) -> None:
    async def story() -> list[RemudaError]:
        ears = Ears()
        code = f"import os,time; f=open(1,'wb',0); f.write(b'y'*{LINE_LIMIT + 1}{newline}); time.sleep(600)"
        child = await start(tmp_path, *python(code), ears=ears)
        await until(lambda: bool(ears.faults))
        await child.end(gentle=False)
        return ears.faults

    (fault,) = asyncio.run(story())
    assert isinstance(fault, AgentFault)
    assert "yyyyyyyy" in fault.message


def test_a_line_just_within_the_limit_arrives_whole(tmp_path: Path) -> None:
    async def story() -> list[str]:
        ears = Ears()
        code = f"import sys; sys.stdout.buffer.write(b'z'*{LINE_LIMIT}+b'\\n')"
        child = await start(tmp_path, *python(code), ears=ears)
        await child.gone()
        await child.end(gentle=False)
        return ears.lines

    assert [len(line) for line in asyncio.run(story())] == [LINE_LIMIT]


def test_the_fault_of_a_dead_child_tells_how_it_died(tmp_path: Path) -> None:
    async def story() -> list[RemudaError]:
        ears = Ears()
        child = await start(tmp_path, "sh", "-c", "echo no licence >&2; printf half; exit 3", ears=ears)
        await child.gone()
        await child.end(gentle=False)
        assert ears.lines == []
        return ears.faults

    (fault,) = asyncio.run(story())
    assert "exited with code 3" in fault.message
    assert "no licence" in fault.message


def test_a_listener_that_fails_is_not_blamed_on_the_agent(tmp_path: Path) -> None:
    async def story() -> list[RemudaError]:
        ears = Ears()

        def full_disk(_: object) -> None:
            raise OSError("no space left")

        child = await Child.start(["echo", "hello"], launch_in(tmp_path), full_disk, ears)
        await child.gone()
        await child.end(gentle=False)
        return ears.faults

    (fault,) = asyncio.run(story())
    assert isinstance(fault, EffectFailed)
    assert "no space left" in fault.message


def test_a_missing_program_or_folder_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(AgentFault, match="no program 'no-such-agent'"):
        asyncio.run(start(tmp_path, "no-such-agent", ears=Ears()))
    with pytest.raises(AgentFault, match="nowhere"):
        asyncio.run(start(tmp_path / "nowhere", "cat", ears=Ears()))


def test_no_zombie_is_left_behind(tmp_path: Path) -> None:
    async def story() -> list[int]:
        children = [await start(tmp_path, "cat", ears=Ears()) for _ in range(5)]
        await asyncio.gather(*(child.end(gentle=True) for child in children))
        return [child.pid for child in children]

    assert not any(Path(f"/proc/{pid}").exists() for pid in asyncio.run(story()))


def test_a_sweep_finds_the_marked_and_spares_the_others() -> None:
    prefix = fresh_mark()
    ours = [_sleeper(f"{prefix}/ada/1"), _sleeper(f"{prefix}/bob/2")]
    other = _sleeper("another-project/ada/1")
    try:
        assert sorted(sweep(prefix)) == sorted(process.pid for process in ours)
        assert [process.wait(WITHIN) for process in ours] == [-signal.SIGKILL] * 2
        assert other.poll() is None
        assert sweep(prefix) == []
    finally:
        other.kill()
        other.wait()


def test_a_sweep_of_everything_is_refused() -> None:
    with pytest.raises(Invalid):
        sweep("")


def test_a_sweep_spares_the_process_that_asks() -> None:
    """A runtime that was started by an agent carries a mark itself."""
    mark = fresh_mark()
    code = f"from remuda.agents.process import sweep; print(sweep({mark!r}))"
    done = subprocess.run([sys.executable, "-c", code], env={MARK: mark}, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_only_a_variable_of_that_very_name_is_a_mark() -> None:
    process = _sleeper(fresh_mark(), name=f"NOT_{MARK}")
    try:
        assert process.pid not in dict(marked())
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="without setpriv only a sweep helps")
def test_the_child_dies_with_its_supervisor(tmp_path: Path) -> None:
    """Killed hard, the supervisor can do nothing more; the kernel does it."""
    mark = fresh_mark()
    code = (
        "import asyncio, pathlib\n"
        "from remuda.agents import Launch\n"
        "from remuda.agents.process import Child\n"
        "async def main():\n"
        f"    launch = Launch('ada', 1, 'x', pathlib.Path('.'), {mark!r})\n"
        "    child = await Child.start(['sleep', '600'], launch, lambda _: None, lambda _: None)\n"
        "    print(child.pid, flush=True)\n"
        "    await child.gone()\n"
        "asyncio.run(main())\n"
    )
    supervisor = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    assert supervisor.stdout
    child = int(supervisor.stdout.readline())
    # The launcher asks the kernel first and becomes the program then; killed in between, only a sweep would help.
    asyncio.run(until(lambda: Path(f"/proc/{child}/comm").read_text().strip() == "sleep"))
    supervisor.kill()
    supervisor.wait()
    supervisor.stdout.close()
    asyncio.run(until(lambda: not alive(child)))
    assert sweep(mark) == []


def _sleeper(mark: str, name: str = MARK) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sleep", "600"], env={name: mark, "PATH": os.environ["PATH"]}, start_new_session=True)
