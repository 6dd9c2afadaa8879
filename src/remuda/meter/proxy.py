"""The meter itself: who calls, what it may cost, pass it on, what it did cost."""

import asyncio
import os
from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from remuda.domain.errors import Invalid
from remuda.domain.state import Usage
from remuda.meter import Ledger, Refusal, Seat
from remuda.meter.apis import Action, Api
from remuda.meter.caller import Caller
from remuda.meter.demand import Demand, Known, decode, glance, read
from remuda.meter.exchange import Answer
from remuda.meter.passage import Passage
from remuda.meter.route import Target, headers_of, order_of, target_of, token_of
from remuda.meter.tally import Tally
from remuda.meter.upstream import Upstream, lines_of
from remuda.meter.wire import Request

# What programs take as final: all that we drive do so at once, Codex after three quick tries.
# At 400 OpenCode and goose go on trying, at 429 and above all of them do, some for minutes.
REFUSED = 402
REMEMBERED = 4  # calls of a session that later ones may have grown out of; some programs lead two conversations


class Meter:
    """A server on loopback. `seat_of` knows the session that a token was given to."""

    def __init__(
        self, upstreams: Mapping[str, Upstream], ledger: Ledger, seat_of: Callable[[str], Seat | None]
    ) -> None:
        self._upstreams = upstreams
        self._lines = lines_of(upstreams)
        self._ledger = ledger
        self._seat_of = seat_of
        self._known: dict[str, tuple[Known, ...]] = {}  # by token
        self._callers: set[Caller] = set()
        self._server: asyncio.Server | None = None

    async def open(self, port: int = 0) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Caller(self._serve, self._callers), "127.0.0.1", port)

    @property
    def url(self) -> str:
        assert self._server is not None, "the meter was not opened"
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        """Cut every call. What is under way is settled, by all that was reserved for it where nobody knows better."""
        if self._server is not None:
            self._server.close()
        serving = [caller.serving for caller in self._callers if caller.serving is not None]
        for caller in list(self._callers):
            caller.cut()
        if serving:
            await asyncio.wait(serving)
        for lines in self._lines.values():
            lines.close()

    # --- one request; the answer is whether the connection may be used again ---

    async def _serve(self, caller: Caller, request: Request) -> bool:
        target = target_of(request)
        say = partial(_say, caller, target.api)
        seat = self._seat_of(token_of(request))
        if seat is None:
            return say(401, "this key is of no session that is alive, and Remuda's meter takes no other")
        if target.action is None:
            return say(
                404, f"Remuda's meter does not pass on {request.method} {target.path[:100]}: it cannot be counted"
            )
        upstream = self._upstreams.get(target.api.name)
        if upstream is None:
            return say(
                404, f"Remuda's meter has no service for {target.api.name}; see [meter.upstreams] in remuda.toml"
            )
        key = os.environ.get(upstream.key, "") if upstream.key else None
        if key == "":
            return say(401, f"there is no key for the model: {upstream.key} is not set where `remuda up` runs")
        if target.action is Action.SPEND:
            return await self._spend(caller, request, target, key, seat)
        order = order_of(request, target, headers_of(request, key, packed=True), request.body)
        return _reusable(await self._passage(caller, target.api).pass_on(order))

    async def _spend(self, caller: Caller, request: Request, target: Target, key: str | None, seat: Seat) -> bool:
        limited = self._ledger.limited(seat)
        try:
            demand = self._demand(request, target) if limited else _glance(request, target)
        except Invalid as error:
            return _say(caller, target.api, 400, str(error))
        grant = await self._ledger.reserve(seat, demand.estimate)
        if isinstance(grant, Refusal):
            return _say(caller, target.api, REFUSED, grant.why)
        body = demand.data if grant.output_tokens is None else demand.within(grant.output_tokens)
        order = order_of(request, target, headers_of(request, key, packed=demand.as_it_came), body)
        usage: Usage | None = None
        try:
            answer = await self._passage(caller, target.api, partial(Tally, target.api)).pass_on(order)
            usage = _used(answer)
            if usage is None and grant.output_tokens is None:
                usage = answer.tally.seen if answer.tally is not None else Usage()
        finally:
            self._ledger.settle(grant, usage)
        if usage is not None and not demand.as_it_came:
            self._remember(token_of(request), demand, usage)
        return _reusable(answer)

    def _demand(self, request: Request, target: Target) -> Demand:
        body = decode(request.body, request.header(b"content-encoding").lower())
        return read(target.api, target.path, body, self._known.get(token_of(request), ()))

    def _remember(self, token: str, demand: Demand, usage: Usage) -> None:
        counted = usage.input_tokens + usage.cache_read_tokens + usage.cache_creation_tokens
        if not counted:
            return
        if token not in self._known:  # with a new session the old ones go: what they sent is large
            self._known = {each: known for each, known in self._known.items() if self._seat_of(each) is not None}
        self._known[token] = (*self._known.get(token, ()), demand.known(counted))[-REMEMBERED:]

    def _passage(self, caller: Caller, api: Api, tally: Callable[[str, str], Tally] | None = None) -> Passage:
        return Passage(self._lines[api.name], caller, tally, partial(_say, caller, api))


def _glance(request: Request, target: Target) -> Demand:
    return glance(target.api, target.path, request.body, request.header(b"content-encoding").lower())


def _say(caller: Caller, api: Api, status: int, text: str) -> bool:
    """In the words of the API, so that the program shows it as it shows what its service says."""
    caller.answer(status, msgspec.json.encode(api.error(status, text)))
    return True


def _reusable(answer: Answer) -> bool:
    return not answer.began or (answer.complete and answer.keeps)


def _used(answer: Answer) -> Usage | None:
    """None: nobody will know. A service that refuses a call takes nothing for it."""
    if answer.complete and answer.status >= 400:
        return Usage()
    return answer.tally.usage if answer.tally is not None else None
