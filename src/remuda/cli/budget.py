"""What agents may spend: look at it, set it, grant more."""

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

import click

from remuda.cli import look
from remuda.cli.project import project, write
from remuda.cli.say import json_option, out_json
from remuda.cli.words import text_of
from remuda.domain.errors import Invalid

NONE = "none"
NANOS = 1_000_000_000
TIMES = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
SIZES = {"": 1, "k": 1000, "m": 1_000_000, "g": 1_000_000_000}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def budget() -> None:
    """What agents may spend: tokens, dollars, turns and time.

    A budget stands over an agent with all that it spawns, and is taken out of what its parent has left.
    """


def limit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--time", "milliseconds", metavar="N[s|m|h]", help="In turns, as in 90m."),
        click.option("--turns", metavar="N"),
        click.option("--usd", "nanousd", metavar="AMOUNT", help="US dollars, as in 2.50."),
        click.option("--tokens", metavar="N[k|M]", help="All of them: input, output, from the cache and into it."),
    ):
        command = option(command)
    return command


def _scope_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.argument("agent", default=""),
        click.option("--own", is_flag=True, help="Only what AGENT spends itself, without those that it spawns."),
        click.option("--task", default="", metavar="TASK", help="Instead of an agent: a task with all its parts."),
        click.option("--project", "whole", is_flag=True, help="Instead of an agent: everything."),
        click.option("--why", default="", help="Kept in the log."),
        json_option,
    ):
        command = option(command)
    return command


@budget.command()
@click.argument("agent", default="")
@json_option
def show(agent: str, as_json: bool) -> None:
    """Show all budgets, or those that stand over one AGENT."""
    look.show("/v1/budget", {"agent": text_of("an agent", agent)}, as_json=as_json)


@budget.command("set")
@_scope_options
@limit_options
def set_(as_json: bool, **given: Any) -> None:
    """Set what AGENT may spend, with all that it spawns. What you do not name stays as it is; `none` lifts a limit."""
    lift = [name for name in MEASURES if given[name] == NONE]
    _change("set", {**_body(given), "lift": lift}, as_json)


@budget.command()
@_scope_options
@limit_options
def grant(as_json: bool, **given: Any) -> None:
    """Give AGENT more of what is limited already. One that waits for it goes on."""
    _change("grant", _body(given), as_json)


def _change(verb: str, body: dict[str, Any], as_json: bool) -> None:
    answer = write(project(), f"/v1/budget/{verb}", body)
    if as_json:
        out_json(answer)
        return
    look.show("/v1/budget", as_json=False)


def _body(given: dict[str, Any]) -> dict[str, Any]:
    limits = limits_of(given)
    if not limits and NONE not in [given[name] for name in MEASURES]:
        raise Invalid("say how much: --tokens, --usd, --turns or --time")
    return {"scope": _scope(given), "why": text_of("the reason", given["why"]), **limits}


def _scope(given: dict[str, Any]) -> str:
    named = [given["whole"], bool(given["task"]), bool(given["agent"])]
    if sum(named) != 1:
        raise Invalid("name one: an AGENT, --task TASK, or --project")
    if given["own"] and not given["agent"]:
        raise Invalid("--own is of what an AGENT spends itself: name one")
    if given["whole"]:
        return "project"
    if given["task"]:
        return f"task:{text_of('a task', given['task'])}"
    return f"{'own' if given['own'] else 'agent'}:{text_of('an agent', given['agent'])}"


# --- amounts, as people write them ---


def limits_of(given: dict[str, Any]) -> dict[str, int]:
    return {name: MEASURES[name](given[name]) for name in MEASURES if given.get(name) and given[name] != NONE}


def _tokens(text: str) -> int:
    return _scaled("--tokens", text, SIZES)


def _time(text: str) -> int:
    return _scaled("--time", text, TIMES)


def _turns(text: str) -> int:
    return _scaled("--turns", text, {"": 1})


def _nanousd(text: str) -> int:
    return _exact("--usd", text.removeprefix("$"), NANOS)


def _scaled(option: str, text: str, units: dict[str, int]) -> int:
    found = re.fullmatch(r"(-?[\d_.]+)\s*([a-zA-Z]*)", text)
    unit = found[2] if found and found[2] in units else found[2].lower() if found else ""
    if found is None or unit not in units:
        known = ", ".join(each for each in units if each)
        raise Invalid(f"{option} {text[:40]!r} is no amount: write a number" + (f" and {known}" if known else ""))
    return _exact(option, found[1], units[unit])


def _exact(option: str, number: str, factor: int) -> int:
    try:
        amount = Decimal(number) * factor
    except InvalidOperation as error:
        raise Invalid(f"{option} {number[:40]!r} is no number") from error
    if not amount.is_finite() or amount != amount.to_integral_value() or abs(amount) > 10**18:
        raise Invalid(f"{option} {number[:40]!r} cannot be counted: it is too fine or too large")
    return int(amount)


MEASURES: dict[str, Callable[[str], int]] = {
    "tokens": _tokens,
    "nanousd": _nanousd,
    "turns": _turns,
    "milliseconds": _time,
}
