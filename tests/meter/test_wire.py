"""HTTP as hostile programs and odd services write it: all see the same borders, and nothing is without a bound."""

import asyncio
import random

import pytest

from meter.kit import EMPTY, Purse, meter_of, run, service_of
from remuda.meter.wire import LARGEST_REQUEST, LONGEST_HEAD, Headers, Order, Request, Requests, Response

HEAD = b"POST /v1/messages HTTP/1.1\r\nhost: x\r\n"
WHOLE = HEAD + b"content-length: 2\r\n\r\n{}"


def fed(data: bytes, piece: int = 0) -> tuple[list[Request], int | None]:
    requests, whole = Requests(lambda: None), []
    for start in range(0, len(data), piece or len(data)):
        whole += requests.feed(data[start : start + (piece or len(data))])
    return whole, requests.broken


def nothing() -> None: ...


# --- requests ---

SMUGGLED = {
    "two lengths": (b"content-length: 2\r\ncontent-length: 5\r\n\r\n{}", 400),
    "the same length twice": (b"content-length: 2\r\ncontent-length: 2\r\n\r\n{}", 400),
    "a list of lengths": (b"content-length: 2, 2\r\n\r\n{}", 400),
    "a length with a sign": (b"content-length: +2\r\n\r\n{}", 400),
    "a length in hex": (b"content-length: 0x2\r\n\r\n{}", 400),
    "no length in the length": (b"content-length: \r\n\r\n{}", 400),
    "a length past all numbers": (b"content-length: 99999999999999999999\r\n\r\n{}", 400),
    "a length, then chunks": (b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "chunks, then a length": (b"transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n0\r\n\r\n", 400),
    "something like chunks": (b"transfer-encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
    "chunks of something": (b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    "chunks in chunks": (b"transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "chunks after another coding": (b"transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 501),
    "chunks behind a tab of old": (b"transfer-encoding: \x0bchunked\r\n\r\n0\r\n\r\n", 400),
    "a folded header": (b"x-a: b\r\n transfer-encoding: chunked\r\n\r\n", 400),
    "a space before the colon": (b"content-length : 2\r\n\r\n{}", 400),
    "a line that ends in CR alone": (b"x-a: b\rcontent-length: 2\r\n\r\n{}", 400),
    "a line that ends in LF alone": (b"content-length: 2\n\n{}", 400),
    "a zero byte": (b"x-a: b\x00c\r\n\r\n", 400),
    "a header without a name": (b": b\r\n\r\n", 400),
    "another host": (b"host: y\r\n\r\n", 400),
    "a chunk's size with a sign": (b"transfer-encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n", 400),
    "a chunk's size past all numbers": (b"transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}", 400),
    "a chunk that ends in LF alone": (b"transfer-encoding: chunked\r\n\r\n2\n{}\n0\n\n", 400),
    "a body behind another protocol": (
        b"connection: upgrade\r\nupgrade: h2c\r\ncontent-length: 2\r\n\r\n{}" + WHOLE,
        400,
    ),
    "more than may be sent": (b"content-length: %d\r\n\r\n" % (LARGEST_REQUEST + 1), 413),
}


@pytest.mark.parametrize("piece", [0, 1], ids=["at once", "byte by byte"])
@pytest.mark.parametrize("case", SMUGGLED)
def test_what_two_could_cut_differently_is_refused(case: str, piece: int) -> None:
    rest, status = SMUGGLED[case]
    assert fed(HEAD + rest, piece) == ([], status)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"POST /v1/messages HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}", 400),
        (b"POST /v1/messages HTTP/2.0\r\nhost: x\r\n\r\n", 505),
        (b"POST /v1/messages HTTP/1.7\r\nhost: x\r\n\r\n", 400),
        (b"POST /v1/messages\r\n\r\n", 505),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00", 400),
        ("POST /v1/é HTTP/1.1\r\nhost: x\r\n\r\n".encode(), 400),
        (b"POST /v1\x01 HTTP/1.1\r\nhost: x\r\n\r\n", 400),
    ],
)
def test_what_is_no_request_of_this_protocol_is_refused(data: bytes, status: int) -> None:
    assert fed(data) == ([], status)


@pytest.mark.parametrize("piece", [0, 1, 7])
def test_a_request_is_the_same_in_whatever_pieces_it_comes(piece: int) -> None:
    chunked = HEAD + b"X-A:  b \t\r\nempty:\r\ntransfer-encoding: Chunked\r\n\r\n1;a=b\r\n{\r\n1\r\n}\r\n0\r\n"
    whole, broken = fed(chunked + b"x-api-key: late\r\nhost: late\r\n\r\n" + WHOLE, piece)
    assert broken is None
    assert [each.body for each in whole] == [b"{}", b"{}"]
    assert whole[0].headers == [(b"host", b"x"), (b"x-a", b"b"), (b"empty", b""), (b"transfer-encoding", b"Chunked")]
    assert whole[0].header(b"x-api-key") == "", "a trailer is no header"
    assert (whole[1].method, whole[1].target, whole[1].keeps) == ("POST", "/v1/messages", True)


def test_a_request_before_one_that_is_broken_is_whole() -> None:
    whole, broken = fed(WHOLE + b"nonsense\r\n\r\n")
    assert ([each.body for each in whole], broken) == ([b"{}"], 400)
    last, broken = fed(HEAD + b"connection: close\r\n\r\n" + WHOLE)
    assert ([each.keeps for each in last], broken) == ([False], 400)


@pytest.mark.parametrize(
    "data", [b"GET /v1/responses HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n\x81\x05"]
)
def test_another_protocol_is_not_spoken_and_the_request_for_it_is_the_last(data: bytes) -> None:
    whole, broken = fed(data)
    assert ([each.keeps for each in whole], broken) == ([False], 400)


@pytest.mark.parametrize(
    "endless",
    [b"x-a: b\r\n", b"a", b"x-a: " + b"b" * 60_000 + b"\r\n", b"\r\n"],
    ids=["many headers", "a name", "large headers", "empty lines"],
)
def test_a_head_has_its_bound(endless: bytes) -> None:
    requests, size = Requests(nothing), 0
    requests.feed(b"" if endless == b"\r\n" else HEAD)
    while requests.broken is None:
        assert size < 4 * LONGEST_HEAD
        requests.feed(endless * 10)
        size += len(endless) * 10
    assert requests.broken in (400, 431)
    assert requests.feed(WHOLE) == []


@pytest.mark.parametrize("around", [b";" + b"x" * 1000, b""], ids=["what stands around chunks", "trailers"])
def test_a_body_has_its_bound_with_all_that_stands_around_it(around: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remuda.meter.wire.LARGEST_REQUEST", 100_000)
    requests, size = Requests(nothing), 0
    requests.feed(HEAD + b"transfer-encoding: chunked\r\n\r\n" + (b"" if around else b"0\r\n"))
    piece = b"1%s\r\n{\r\n" % around if around else b"x-a: " + b"b" * 1000 + b"\r\n"
    while requests.broken is None:
        assert size < 4 * (100_000 + LONGEST_HEAD)
        requests.feed(piece)
        size += len(piece)
    assert requests.broken == 413


def test_who_waits_for_a_word_before_its_body_gets_it_and_not_in_the_middle_of_other_answers() -> None:
    told: list[int] = []
    requests = Requests(lambda: told.append(1))
    assert requests.feed(HEAD + b"expect: 100-continue\r\ncontent-length: 2\r\n\r\n") == []
    assert told == [1]
    assert [each.body for each in requests.feed(b"{}")] == [b"{}"]
    assert len(requests.feed(WHOLE + HEAD + b"expect: 100-continue\r\ncontent-length: 2\r\n\r\n")) == 1
    assert told == [1]


def test_noise_is_survived() -> None:
    dice = random.Random(7)
    for _ in range(400):
        data = bytearray(WHOLE * 2)
        for _ in range(dice.randrange(1, 6)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        whole, broken = fed(bytes(data), dice.choice([0, 1, 13]))
        assert len(whole) <= 2
        assert broken is None or 400 <= broken < 600


# --- answers ---


def answered(data: bytes, *, method: str = "POST", ends: bool = False, piece: int = 0) -> tuple[Response, int, bytes]:
    heads: list[int] = []
    body = bytearray()

    def head(status: int, headers: Headers) -> None:
        assert headers == [] or headers[0][0] == headers[0][0].lower()
        heads.append(status)

    response = Response(method, head, body.extend)
    for start in range(0, len(data), piece or len(data)):
        response.feed(data[start : start + (piece or len(data))])
    if ends:
        response.end()
    assert len(heads) <= 1
    return response, heads[0] if heads else 0, bytes(body)


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize("piece", [0, 1])
@pytest.mark.parametrize(
    ("data", "ends", "complete", "keeps", "body"),
    [
        (OK + b"content-length: 2\r\n\r\n{}", False, True, True, b"{}"),
        (OK + b"content-length: 3\r\n\r\n{}", True, False, True, b"{}"),
        (OK + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", False, True, True, b"{}"),
        (OK + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n", True, False, True, b"{}"),
        (OK + b"\r\n{}", False, False, False, b"{}"),
        (OK + b"\r\n{}", True, True, False, b"{}"),
        (OK + b"connection: close\r\ncontent-length: 2\r\n\r\n{}", False, True, False, b"{}"),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}", False, True, False, b"{}"),
        (b"HTTP/1.1 204 None\r\n\r\n", False, True, True, b""),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nlink: x\r\n\r\n", True, False, False, b""),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"content-length: 2\r\n\r\n{}", False, True, True, b"{}"),
    ],
)
def test_an_answer_ends_where_it_says(
    data: bytes, ends: bool, complete: bool, keeps: bool, body: bytes, piece: int
) -> None:
    response, _, read = answered(data, ends=ends, piece=piece)
    assert (response.complete, response.keeps, read) == (complete, keeps, body)
    assert not response.broken


def test_an_answer_to_a_question_for_the_head_alone_has_no_body() -> None:
    response, status, _ = answered(OK + b"content-length: 500\r\n\r\n", method="HEAD")
    assert (response.complete, status) == (True, 200)


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.9\r\n",
        OK + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        OK + b"x-a: " + b"b" * (LONGEST_HEAD + 1),
        OK + b"content-length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\n\r\n",
        OK + b"content-length: 2\r\n\r\n{}junk",
    ],
)
def test_an_answer_that_cannot_be_read_or_brings_more_than_was_asked_for_is_known(data: bytes) -> None:
    assert answered(data)[0].broken


# --- orders ---


def test_an_order_is_what_its_parts_say() -> None:
    order = Order("POST", "/v1/messages?a=b", [(b"x-a", b"b\xe9")], b"{}")
    assert order.head("api.example.com", "/base") == (
        b"POST /base/v1/messages?a=b HTTP/1.1\r\nhost: api.example.com\r\nx-a: b\xe9\r\ncontent-length: 2\r\n\r\n"
    )
    assert Order("GET", "/v1/models", [], b"").head("x", "") == b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n"


# --- and at the meter's own door ---


@pytest.mark.parametrize("case", SMUGGLED)
def test_a_hostile_request_is_answered_once_and_hung_up_on_and_nothing_of_it_is_passed_on(case: str) -> None:
    rest, status = SMUGGLED[case]

    async def story() -> None:
        async with service_of([EMPTY]) as service, meter_of(service.url, Purse()) as meter:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(meter.url.rpartition(":")[2]))
            writer.write(HEAD + b"x-api-key: sk-secret-of-the-test\r\n" + rest)
            answer = await reader.read()
            assert answer.startswith(b"HTTP/1.1 %d " % status)
            assert answer.count(b"HTTP/1.1") == 1
            assert service.connections == 0
            writer.close()

    run(story)
