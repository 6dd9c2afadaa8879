"""Words for a terminal."""

import pytest

from remuda.views.text import age, columns, count, cut, first_line, neutral, pad, usd


def test_what_could_play_tricks_on_a_terminal_is_spelled_out() -> None:
    assert neutral("red \x1b[31m bell \x07 back \x08") == r"red \x1b[31m bell \x07 back \x08"
    assert neutral("turned \u202e round") == r"turned \u202e round"
    assert neutral("half \ud800 a pair") == r"half \ud800 a pair"
    assert neutral("\x9b31m") == r"\x9b31m"


def test_ordinary_text_of_any_script_stays_as_it_is() -> None:
    for text in ("plain", "grüße", "日本語", "tab\there", "✓ done"):
        assert neutral(text) == text


def test_east_asian_characters_take_two_columns_and_accents_none() -> None:
    assert columns("日本") == 4
    assert columns("e\u0301") == 1
    assert pad("日本", 6) == "日本  "
    assert pad("日本", 6, right=True) == "  日本"


@pytest.mark.parametrize("room", range(12))
def test_a_cut_text_never_takes_more_than_its_room(room: int) -> None:
    for text in ("a plain long text", "日本語の長いテキスト", "mixed 日本 text"):
        assert columns(cut(text, room)) <= room


def test_a_text_that_fits_is_not_cut() -> None:
    assert cut("日本", 4) == "日本"
    assert cut("abcde", 4) == "abc…"


def test_the_first_line_tells_that_there_is_more() -> None:
    assert first_line("\n\n hello \nworld") == "hello…"
    assert first_line("hello") == "hello"
    assert first_line(" \n ") == ""
    assert first_line("x" * 10, longest=4) == "xxxx…"


def test_numbers_are_short_and_say_when_nobody_knows() -> None:
    assert [age(each) for each in (-3, 0, 119, 120, 7200, 172800)] == ["0s", "0s", "119s", "2m", "2h", "2d"]
    assert [count(each) for each in (0, 9999, 12_345, 1_500_000, 2_000_000_000)] == [
        "0",
        "9999",
        "12k",
        "1.5M",
        "2.0G",
    ]
    assert usd(None) == "?"
    assert usd(1.5) == "$1.50"
    assert usd(1.5, complete=False) == "$1.50+"
    assert usd(0.0123) == "$0.0123"
    assert usd(0.0) == "$0.00"
