"""`python -m remuda.records.finish FOLDER`: what a hook leaves for later. It says nothing; what fails stays in the
journal, where `remuda turn list` shows it."""

import sys
from pathlib import Path

from remuda.records.project import wanted
from remuda.records.recover import dead, recover
from remuda.records.repository import find_repository


def main(folder: str) -> None:
    repository = find_repository(folder)
    recover(repository, dead, wanted(Path(repository.top)).key)


if __name__ == "__main__":
    main(sys.argv[1])
