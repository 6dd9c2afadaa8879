"""Others to be measured against, each subject's in a virtual environment of its own: never in the project's."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def python_of(subject: str) -> Path:
    """The interpreter with the peers of `bench/locks/<subject>.lock`, installed the first time they are needed."""
    lock = ROOT / "bench" / "locks" / f"{subject}.lock"
    home = ROOT / ".bench" / subject
    python, ready = home / "bin" / "python", home / ".ready"
    if not ready.exists() or ready.read_bytes() != lock.read_bytes():
        print(f"{subject}: installing the peers to measure against ...", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        pip = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--require-hashes"]
        subprocess.run([*pip, "-r", str(lock)], check=True)
        ready.write_bytes(lock.read_bytes())
    return python
