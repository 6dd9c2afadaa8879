"""The page of the lifecycle is what the tables draw, and says every move of them."""

from collections.abc import Mapping
from pathlib import Path

from remuda.domain.lifecycle import PHASE, STAGE, STATUS, TASK, WORK
from remuda.views.diagrams import lifecycle_page

TABLES: tuple[Mapping[str, tuple[str, ...]], ...] = (STATUS, PHASE, STAGE, TASK, WORK)  # type: ignore[assignment]
PAGE = Path(__file__).parents[2] / "docs" / "lifecycle.md"


def test_the_page_in_the_docs_is_drawn_from_the_tables_of_today() -> None:
    assert PAGE.read_text() == lifecycle_page(), "run `make docs`"


def test_every_move_of_the_tables_is_an_arrow_and_no_other_is() -> None:
    moves = {f"{was} --> {now}" for table in TABLES for was, after in table.items() for now in after}
    drawn = {line.strip() for line in lifecycle_page().splitlines() if "-->" in line and "[*]" not in line}
    assert drawn == moves
