"""An agent that opens a session as it should and then, at its first prompt, goes wrong in the way it was told to.

Run by path, `faulty_agent.py NAME`: it is a program of its own and imports nothing of ours.
"""

import json
import os
import signal
import subprocess
import sys
import time


def tell(message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def answer(request: dict[str, object], result: object) -> None:
    tell({"jsonrpc": "2.0", "id": request["id"], "result": result})


def say(text: str) -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    tell({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}})


def garbage() -> None:
    sys.stdout.write("Segmentation fault (core dumped)\n")
    sys.stdout.flush()


def long_line() -> None:
    piece = b"L" * 1024 * 1024
    for _ in range(50):
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.write(b"\n")
    sys.stdout.flush()


def half_line() -> None:
    sys.stdout.write('{"jsonrpc": "2.0", "id": 3, "resu')
    sys.stdout.flush()
    os._exit(0)


def output_after_exit() -> None:
    code = "import os, time; time.sleep(0.1); print('said by one who stayed', flush=True); time.sleep(600)"
    stayed = subprocess.Popen([sys.executable, "-I", "-S", "-c", code], start_new_session=True)
    say(f"{stayed.pid}\n")
    os._exit(3)


def deaf() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    say(f"{os.getpid()}\n")
    time.sleep(600)


def double_fork() -> None:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            say(f"{os.getpid()}\n")
            devnull = os.open(os.devnull, os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(devnull, fd)
            os.execlp("sleep", "sleep", "600")  # noqa: S606
        os._exit(0)
    time.sleep(600)


def stderr_flood() -> None:
    line = b"warning: " + b"w" * 190 + b"\n"
    for _ in range(100):
        os.write(2, line * 500)


def zombies() -> None:
    dead = [subprocess.Popen(["true"], start_new_session=bool(number % 2)) for number in range(10)]
    say(" ".join(str(each.pid) for each in dead) + "\n")


def flood() -> None:
    """Ten thousand lines a second, for two seconds."""
    began = time.monotonic()
    for tick in range(200):
        for number in range(100):
            say(f"{tick * 100 + number} of a flood\n")
        time.sleep(max(0.0, began + (tick + 1) / 100 - time.monotonic()))


def endless_line() -> None:
    """A text without a line's end, in small pieces."""
    for _ in range(20_000):
        say("and so on and so forth ")


def serve(fault: str) -> None:
    for line in sys.stdin:
        request = json.loads(line)
        match request.get("method"):
            case "initialize":
                answer(request, {"protocolVersion": 1, "agentCapabilities": {}})
            case "session/new":
                answer(request, {"sessionId": "s"})
            case "session/prompt":
                globals()[fault]()
                answer(request, {"stopReason": "end_turn"})


if sys.argv[1] == "garbage_at_once":
    garbage()
    time.sleep(600)
serve(sys.argv[1])
