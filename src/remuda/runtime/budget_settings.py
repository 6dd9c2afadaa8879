"""The settings of budgets and of the meter."""

import math
from collections.abc import Mapping
from decimal import Decimal

import msgspec

from remuda.domain.errors import Invalid
from remuda.domain.ledger import Limits

NANOS = 1_000_000_000


class BudgetSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """For each agent that you spawn yourself and give no other; what an agent spawns draws on its own. 0: no limit."""

    tokens: int = 0
    usd: float = 0.0
    turns: int = 0
    minutes: float = 0.0  # in turns

    def limits(self) -> Limits:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise Invalid(f"budget.{name} must be 0 (no limit) or more, not {value}")
        nanousd = int(Decimal(str(self.usd)) * NANOS)
        return Limits(self.tokens or None, nanousd or None, self.turns or None, int(self.minutes * 60_000) or None)


class UpstreamSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    url: str
    key: str = ""  # the name of the variable that has the key; empty for a service that wants none


class MeterSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    on: bool = True
    skip: tuple[str, ...] = ()  # agent programs that are left to go to their models themselves
    upstreams: dict[str, UpstreamSettings] = {}

    def services(self, environ: Mapping[str, str]) -> Mapping[str, UpstreamSettings]:
        """By API: the user's own before those that everybody uses, which are where the variables of their programs
        say that they are."""
        for name in self.upstreams:
            if name not in UPSTREAMS:
                raise Invalid(f"meter.upstreams.{name} is of no API that the meter speaks", possible=UPSTREAMS)
        usual = {api: _where(environ, api, each) for api, each in UPSTREAMS.items()}
        return {**usual, **self.upstreams}


UPSTREAMS: Mapping[str, UpstreamSettings] = {
    "anthropic": UpstreamSettings("https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    "openai-responses": UpstreamSettings("https://api.openai.com", "OPENAI_API_KEY"),
    "openai-chat": UpstreamSettings("https://api.openai.com", "OPENAI_API_KEY"),
    "gemini": UpstreamSettings("https://generativelanguage.googleapis.com", "GEMINI_API_KEY"),
}

_VARIABLES = {
    "anthropic": "ANTHROPIC_BASE_URL",
    "openai-responses": "OPENAI_BASE_URL",
    "openai-chat": "OPENAI_BASE_URL",
    "gemini": "GOOGLE_GEMINI_BASE_URL",
}


def _where(environ: Mapping[str, str], api: str, usual: UpstreamSettings) -> UpstreamSettings:
    """Some programs want the version at the end of the address; the meter puts it there itself."""
    url = environ.get(_VARIABLES[api], "").rstrip("/").removesuffix("/v1")
    return UpstreamSettings(url, usual.key) if url else usual
