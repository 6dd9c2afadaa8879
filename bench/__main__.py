"""Run the benchmarks, print a table, write bench/results.json."""

import importlib
import json
import pkgutil
import platform
import sys
from dataclasses import asdict
from pathlib import Path

import bench
from bench.figure import Figure, table

NOT_SUBJECTS = {"agents_turns", "bare", "figure", "gateway_intent", "peers", "__main__"}
RESULTS = Path(__file__).parent / "results.json"


def main(only: list[str]) -> int:
    subjects = sorted({each.name for each in pkgutil.iter_modules(bench.__path__)} - NOT_SUBJECTS)
    unknown = set(only) - set(subjects)
    if unknown:
        print(f"no such benchmark: {', '.join(sorted(unknown))}; there are: {', '.join(subjects)}", file=sys.stderr)
        return 2
    figures: list[Figure] = []
    for subject in only or subjects:
        print(f"{subject}: measuring ...", file=sys.stderr, flush=True)
        figures += importlib.import_module(f"bench.{subject}").figures()
    print(table(figures))
    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    results = {"machine": machine, "figures": [asdict(figure) for figure in figures]}
    RESULTS.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n")
    return 0 if all(figure.ok for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
