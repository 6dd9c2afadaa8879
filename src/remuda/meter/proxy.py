"""The meter itself: who calls, what it may cost, pass it on, what it did cost."""

import asyncio
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import msgspec

from remuda.domain.errors import EffectFailed, Invalid
from remuda.domain.state import Usage
from remuda.meter import Estimate, Ledger, Refusal, Seat
from remuda.meter.apis import CHAT, Action, Api
from remuda.meter.caller import Caller, Headers, Request
from remuda.meter.demand import Demand, Known, decode, read
from remuda.meter.exchange import Answer, Exchange
from remuda.meter.route import Target, headers_of, target_of, token_of
from remuda.meter.tally import Tally
from remuda.meter.upstream import Upstream, lines_of

# What programs take as final: all that we drive do so at once, Codex after three quick tries.
# At 400 OpenCode and goose go on trying, at 429 and above all of them do, some for minutes.
REFUSED = 402
NOBODY = 499  # for want of a better number: there is nobody to answer
REMEMBERED = 4  # calls of a session that later ones may have grown out of; some programs lead two conversations


class Order(NamedTuple):
    """A request as it goes to the service."""

    method: str
    target: Target
    headers: Headers
    body: bytes


class Meter:
    """A server on loopback. `seat_of` knows the session that a token was given to."""

    def __init__(
        self, upstreams: Mapping[str, Upstream], ledger: Ledger, seat_of: Callable[[str], Seat | None]
    ) -> None:
        self._upstreams = upstreams
        self._lines = lines_of(upstreams)
        self._ledger = ledger
        self._seat_of = seat_of
        self._known: dict[Seat, tuple[Known, ...]] = {}
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

    def forget(self, seat: Seat) -> None:
        self._known.pop(seat, None)

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
        order = Order(request.method, target, headers_of(request, key, packed=True), request.body)
        return _reusable(await self._pass_on(caller, order, None))

    async def _spend(self, caller: Caller, request: Request, target: Target, key: str | None, seat: Seat) -> bool:
        try:
            demand = self._demand(request, target, seat)
        except Invalid as error:
            return _say(caller, target.api, 400, str(error))
        wanted = demand.estimate if demand else Estimate(_model(request.body), 0, 0)
        grant = await self._ledger.reserve(seat, wanted)
        if isinstance(grant, Refusal):
            return _say(caller, target.api, REFUSED, grant.why)
        body = request.body
        if demand is not None:
            body = demand.data if grant.output_tokens is None else demand.within(grant.output_tokens)
        order = Order(request.method, target, headers_of(request, key, packed=demand is None), body)
        usage: Usage | None = None
        try:
            answer = await self._pass_on(caller, order, partial(Tally, target.api))
            usage = _used(answer)
            if usage is None and grant.output_tokens is None:
                usage = answer.tally.seen if answer.tally is not None else Usage()
        finally:
            self._ledger.settle(grant, usage)
        if usage is not None and demand is not None:
            self._remember(seat, demand, usage)
        return _reusable(answer)

    def _demand(self, request: Request, target: Target, seat: Seat) -> Demand | None:
        """What the request wants. None where nobody need know: nothing limits the agent, and its calls are passed on as
        they are. Only in Chat Completions the usage has to be asked for."""
        if not self._ledger.limited(seat) and target.api is not CHAT:
            return None
        body = decode(request.body, request.header(b"content-encoding").lower())
        return read(target.api, target.path, body, self._known.get(seat, ()))

    def _remember(self, seat: Seat, demand: Demand, usage: Usage) -> None:
        counted = usage.input_tokens + usage.cache_read_tokens + usage.cache_creation_tokens
        if counted:
            known = Known(demand.estimate.model, demand.data, counted)
            self._known[seat] = (*self._known.get(seat, ()), known)[-REMEMBERED:]

    async def _pass_on(self, caller: Caller, order: Order, tally: Callable[[str, str], Tally] | None) -> Answer:
        lines = self._lines[order.target.api.name]
        where = lines.address.prefix + order.target.path + (f"?{order.target.query}" if order.target.query else "")
        length = [(b"content-length", b"%d" % len(order.body))] if order.body or order.method == "POST" else []
        headers = [(b"host", lines.address.authority.encode()), *order.headers, *length]
        answer = Answer()
        for fresh in (False, True):
            try:
                line = await lines.take(fresh=fresh)
            except EffectFailed as error:
                _say(caller, order.target.api, 502, str(error))
                return Answer(status=502, complete=True, keeps=True)
            except asyncio.CancelledError:
                return Answer(status=NOBODY, complete=True)  # the program has left, and nothing was sent yet
            stale = line.used
            answer = await Exchange(line, caller, tally).make(order.method, where, headers, order.body)
            if answer.complete and answer.keeps:
                lines.give_back(line)
            if answer.began or caller.gone or not stale:
                break
            # A connection that was kept open is closed without a word: the service had tired of it, not read it.
        if not answer.began and not caller.gone:
            _say(caller, order.target.api, 502, f"the model's service at {lines.address.authority} gave no answer")
        elif not answer.complete:
            caller.close()  # it broke off; so must the connection, else what was sent would pass for the whole
        return answer


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


class _Peek(msgspec.Struct):
    model: str = ""


def _model(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_Peek).model
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""
