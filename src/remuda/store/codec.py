"""Events and states to bytes and back. Each kind of event has its own typed decoder, chosen by the kind's name."""

import hashlib
from typing import get_args

import msgspec

from remuda.domain.errors import StoreCorrupt, StoreTooNew
from remuda.domain.events import Event
from remuda.domain.ledger import Account, Limits, Reservation, Spend
from remuda.domain.spin import Print, Trail
from remuda.domain.state import Agent, Metrics, Session, State
from remuda.domain.task import Task

_ENCODER = msgspec.json.Encoder()
_DECODERS: dict[str, msgspec.json.Decoder[Event]] = {
    kind.__name__: msgspec.json.Decoder(kind) for kind in get_args(Event)
}
_STATE = msgspec.json.Decoder(State)


def shape() -> str:
    """Two programs with the same shape understand each other's snapshots; any change of a type in the state changes
    it. Named tuples are written as lists, so the schema leaves out their names: they are added, or two fields could
    change places unnoticed."""
    names = [
        each._fields for each in (Agent, Session, Metrics, Task, Account, Limits, Reservation, Spend, Trail, Print)
    ]
    return hashlib.sha256(msgspec.json.encode((msgspec.json.schema(State), names), order="sorted")).hexdigest()[:16]


SHAPE = shape()


def encode_event(event: Event) -> bytes:
    return _ENCODER.encode(event)


def decode_event(seq: int, kind: str, data: bytes) -> Event:
    decoder = _DECODERS.get(kind)
    if decoder is None:
        raise StoreTooNew(f"event {seq} is a {kind!r}, which this version does not know; install a newer Remuda")
    try:
        return decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise StoreCorrupt(f"event {seq} ({kind}) cannot be read: {error}") from error


def encode_state(state: State) -> bytes:
    return _ENCODER.encode(state)


def decode_state(data: bytes) -> State:
    return _STATE.decode(data)
