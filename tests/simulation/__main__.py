"""Replay seeds: `python -m tests.simulation SEED [SEED …]`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from simulation.run import tell

if __name__ == "__main__":
    for seed in map(int, sys.argv[1:]):
        sys.stdout.write(f"seed {seed}: ")
        sys.stdout.flush()
        sys.stdout.write(f"{tell(seed)}\n")
