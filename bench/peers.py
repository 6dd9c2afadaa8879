"""Others to be measured against, each subject's in a place of its own: never in the project's environment."""

import shutil
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


def programs_of(subject: str) -> Path:
    """The folder with the programs of `bench/locks/<subject>-npm`, installed the first time they are needed."""
    locks = ROOT / "bench" / "locks" / f"{subject}-npm"
    home = ROOT / ".bench" / f"{subject}-npm"
    lock, ready = (locks / "package-lock.json").read_bytes(), home / ".ready"
    if not ready.exists() or ready.read_bytes() != lock:
        print(f"{subject}: installing the peers from npm to measure against ...", file=sys.stderr, flush=True)
        home.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copyfile(locks / name, home / name)
        npm = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(npm, cwd=home, check=True)
        ready.write_bytes(lock)
    return home / "node_modules" / ".bin"
