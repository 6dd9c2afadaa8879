"""Options for all tests."""

import os
import signal
import sys

import pytest

# The tests start hundreds of interpreters. Where the environment forbids them to keep what they compiled, each would
# compile all of us anew, which takes as long as everything else that a start does.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell that runs us in the background has us and all that we start ignore Ctrl-C, which some tests press.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, action="append", default=[], help="simulate this seed only; may be repeated")
