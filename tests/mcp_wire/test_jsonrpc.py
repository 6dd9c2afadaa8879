"""Messages as values: what we do not read stays as it came, and nothing that comes can break the reader."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from remuda.mcp import eras
from remuda.mcp.jsonrpc import (
    INVALID_REQUEST,
    PARSE_ERROR,
    Failure,
    Malformed,
    Notification,
    Request,
    Result,
    RpcError,
    decode,
    failure,
    fault,
    members,
    notification,
    raw,
    request,
    result,
    together,
)

ODD = rb'{ "b" : 1e400 , "a":[ 1.0,  12345678901234567890123, "\u00e9\/" ],"b" : null }'
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def test_what_is_not_ours_to_read_passes_byte_for_byte() -> None:
    line = b'{"jsonrpc":"2.0","id":7,"result":' + ODD + b"}"
    message = decode(line)
    assert message == Result(7, Raw(ODD))
    assert result(7, message.result) == line
    assert decode(b'{"id":"x","method":"m","params":' + ODD + b"}") == Request("x", "m", Raw(ODD))
    assert bytes(members(Raw(b'{"arguments":' + ODD + b"}"))["arguments"]) == ODD
    assert bytes(together({"a": Raw(ODD)})) == b'{"a":' + ODD + b"}"


def test_a_message_is_always_one_line() -> None:
    pretty = Raw(json.dumps({"text": "two\nlines", "more": [1]}, indent=2).encode().replace(b"\n", b"\r\n"))
    for line in (result(1, pretty), request(1, "m", pretty), notification("m", pretty), failure(1, pretty)):
        assert b"\n" not in line
        assert b"\r" not in line
        assert json.loads(line)["jsonrpc"] == "2.0"
    assert json.loads(result(1, pretty))["result"] == json.loads(bytes(pretty))


@given(JSON, st.integers() | st.text(), st.text(min_size=1))
def test_whatever_is_written_is_read_again(value: object, number: int | str, method: str) -> None:
    written = raw(value)
    if isinstance(number, int) and not -(2**63) <= number < 2**64:
        return
    assert decode(request(number, method, written)) == Request(number, method, written)
    assert decode(notification(method, written)) == Notification(method, written)
    assert decode(result(number, written)) == Result(number, written)
    assert decode(failure(number, written)) == Failure(number, written)


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_nothing_that_comes_breaks_the_reader(data: bytes) -> None:
    decode(data)


@pytest.mark.parametrize(
    ("line", "number", "code"),
    [
        (b"", None, PARSE_ERROR),
        (b"server listening on 8080", None, PARSE_ERROR),
        (b'{"id":1,"method":"m"', None, PARSE_ERROR),
        (b"[" * 100_000, None, PARSE_ERROR),
        (b"[]", None, INVALID_REQUEST),
        (b"17", None, INVALID_REQUEST),
        (b'{"id":1}', 1, INVALID_REQUEST),
        (b'{"id":1,"method":5}', 1, INVALID_REQUEST),
        (b'{"id":null,"method":"m"}', None, INVALID_REQUEST),
        (b'{"id":1.5,"method":"m"}', None, INVALID_REQUEST),
        (b'{"id":true,"method":"m"}', None, INVALID_REQUEST),
    ],
)
def test_its_sender_is_told_what_is_wrong_with_a_message(line: bytes, number: int | None, code: int) -> None:
    message = decode(line)
    assert isinstance(message, Malformed)
    assert (message.id, message.code) == (number, code)


def test_an_error_that_cannot_be_read_is_an_error_all_the_same() -> None:
    assert fault(raw({"code": 5, "message": "no", "data": [1]})).data == raw([1])
    assert "cannot be read" in fault(raw("broken")).message
    assert json.loads(bytes(RpcError(1, "why").body)) == {"code": 1, "message": "why"}


@pytest.mark.parametrize(
    ("came", "told"),
    [
        ({}, {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}),
        ({"tools": []}, {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": []}),
        ({"ttlMs": 5, "resultType": "complete"}, {"ttlMs": 5, "resultType": "complete"}),
        ({"resultType": "input_required"}, {"ttlMs": 0, "cacheScope": "private", "resultType": "input_required"}),
    ],
)
def test_a_result_of_the_newer_era_says_what_it_is(came: object, told: object) -> None:
    assert json.loads(bytes(eras.stamped("tools/list", raw(came)))) == told


def test_a_result_that_is_no_object_is_left_alone() -> None:
    assert eras.stamped("tools/call", raw([1])) == raw([1])


def test_an_unknown_version_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(RpcError) as refused:
        eras.envelope(raw({"_meta": {eras.VERSION: "2031-01-01"}}))
    assert refused.value.code == eras.UNSUPPORTED_VERSION
    assert json.loads(bytes(refused.value.data or b"{}"))["supported"][0] == "2026-07-28"
