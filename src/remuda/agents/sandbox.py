"""An optional sandbox around an agent's program, by bubblewrap: it may read the machine and write only where it works.

Pure: a command line in, a command line out. The program sees its own processes only, and they die with it.

Two things to know. Without the network there is no loopback either: a model, meter or tool server on 127.0.0.1 is out
of reach, and only Unix sockets in folders that it sees are left. And SIGTERM ends bubblewrap at once, which ends the
program hard: who stops one gently must ask in its own protocol first.
"""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

PROGRAM = "bwrap"


def sandboxed(argv: Sequence[str], root: Path, *, network: bool, writable: Sequence[Path] = ()) -> tuple[str, ...]:
    """`argv` in a sandbox: read-only but for `root`, where it starts, the `writable` paths and a /tmp of its own."""
    wrapped = [PROGRAM, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]  # noqa: S108
    for path in (*writable, root):  # after the /tmp of its own, in which they may lie
        wrapped += ["--bind", str(path), str(path)]
    wrapped += ["--unshare-pid", "--unshare-ipc", "--die-with-parent"]
    if not network:
        wrapped.append("--unshare-net")
    return (*wrapped, "--chdir", str(root), "--", *argv)


def why_not() -> str:
    """Why there is no sandbox on this machine, tried out with a program that does nothing; or nothing. Blocks."""
    if shutil.which(PROGRAM) is None:
        return "there is no `bwrap`; install bubblewrap"
    trial = sandboxed(["true"], Path("/"), network=False)
    try:
        done = subprocess.run(trial, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bwrap cannot be run: {error}"
    return "" if done.returncode == 0 else f"bwrap refuses: {done.stderr.strip()[:200]}"
