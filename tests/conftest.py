"""Options for all tests."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, action="append", default=[], help="simulate this seed only; may be repeated")
