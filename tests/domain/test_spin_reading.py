"""How today's agents are read: the names of their tools, what is said around an output, and what they look at."""

import pytest

from domain.test_spin import levels, shell, walk
from remuda.domain.spin import PLACES, Level, Rule, Sign, Trail, follow, sign_of
from remuda.domain.spin_output import bare, exit_code
from remuda.domain.spin_reading import LONGEST, Step, lines_of, read
from remuda.domain.spin_tools import Kind, kind_of

NAMES = (
    "handleAuth",
    "login_handler",
    "SessionAuth",
    "verifyToken",
    "JwtVerifier",
    "AuthManager",
    "useAuth",
    "sign_in",
)


def signs(*steps: Step) -> list[Sign]:
    trail, found = Trail(), []
    for step in steps:
        found.append(sign_of(trail, read(step)))
        trail = follow(trail, read(step))
    return found


# --- an editor that also looks ---


@pytest.mark.parametrize(
    ("tool", "arguments", "kind"),
    [
        ("str_replace_editor", '{"command": "view", "path": "/w/a.py"}', Kind.LOOK),
        ("str_replace_editor", "str_replace_editor view /w/a.py --view_range 1 9", Kind.LOOK),
        ("str_replace_editor", '{"command": "create", "file_text": "{\\"command\\": \\"view\\"}"}', Kind.WRITE),
        ("str_replace_editor", "str_replace_editor str_replace /w/a.py --old_str view", Kind.WRITE),
        ("developer__text_editor", '{"command":"view","path":"a"}', Kind.LOOK),
        ("str_replace_based_edit_tool", '{"command": "insert", "path": "a"}', Kind.WRITE),
        ("mcp__playwright__browser_snapshot", "{}", Kind.LOOK),
        ("replace_string_in_file", '{"filePath": "a"}', Kind.WRITE),
        ("get_terminal_output", '{"id": "1"}', Kind.WAIT),
        ("TodoWrite", '{"todos": []}', Kind.NOTE),
        ("update_plan", '{"plan": []}', Kind.NOTE),
    ],
)
def test_what_the_tools_of_todays_agents_are_for(tool: str, arguments: str, kind: Kind) -> None:
    assert kind_of(tool, arguments) is kind


def test_to_view_the_same_files_again_and_again_with_an_editor_is_no_change() -> None:
    looks = [Step("str_replace_editor", f'{{"command": "view", "path": "/w/{name}.py"}}', name) for name in "abc"]
    assert levels(walk(*looks * 5))[-1][1:] == (Level.FIRE, Rule.CYCLE)


# --- books ---


def test_to_keep_a_list_of_what_is_to_do_is_neither_work_nor_standing_still_until_it_is_the_same_list() -> None:
    lists = [Step("TodoWrite", f'{{"todos": ["{name}"]}}', "Todos have been modified") for name in NAMES]
    assert signs(*lists) == [Sign.NEITHER] * len(NAMES)
    assert levels(walk(*lists[:2] * 6))[-1][1:] == (Level.FIRE, Rule.CYCLE)


# --- reading on ---


@pytest.mark.parametrize(
    "form",
    [
        '{{"file_path": "/w/big.py", "offset": {0}, "limit": 100}}',
        '{{"command": "view", "path": "/w/big.py", "view_range": [{0}, {1}]}}',
        '{{"cmd": "sed -n \'{0},{1}p\' src/big.c"}}',
        '{{"filePath": "/w/big.py", "startLine": {0}, "endLine": {1}}}',
        "view /w/big.py --view_range {0} {1}",
    ],
)
def test_to_read_on_in_a_long_file_is_news_and_to_go_back_in_it_is_old_ground(form: str) -> None:
    parts = [
        Step("view", form.format(at, at + 99), f"part {name}") for at, name in zip((1, 101, 201), "abc", strict=True)
    ]
    assert signs(*parts) == [Sign.NEWS] * 3
    back = Step("view", form.format(50, 60), "a piece of it")
    assert signs(*parts, back)[-1] is Sign.OLD_GROUND


def test_how_far_it_has_read_is_remembered_of_so_many_files() -> None:
    trail = Trail()
    for number in range(PLACES + 9):
        trail = follow(
            trail, read(Step("view", f'{{"path": "/w/{number}.py", "view_range": [1, 9]}}', f"file {number}"))
        )
    assert len(trail.reach) == PLACES


@pytest.mark.parametrize(
    "arguments", ['{"offset": -5}', '{"view_range": [9, -1]}', '{"view_range": []}', "sed -n 5p a"]
)
def test_lines_that_nobody_can_name_are_none_or_one(arguments: str) -> None:
    assert lines_of(arguments) in ((0, 0), (9, 9))


def test_numbers_without_end_are_read_all_the_same() -> None:
    assert lines_of('{"offset": ' + "9" * 100_000 + "}")[0] > 0
    assert exit_code("Exit code: " + "9" * 100_000) is None


# --- what is said around an output ---


@pytest.mark.parametrize(
    ("told", "said", "code"),
    [
        ("Tool ran without output", "", None),
        ("(Bash completed with no output)", "", None),
        ("Exit code: 1\nWall time: 0.1 seconds\nOutput:\n", "", 1),
        (
            "Chunk ID: 3fa\nWall time: 0 seconds\nProcess exited with code 101\nOriginal token count: 3\nOutput:\nred",
            "red",
            101,
        ),
        ("red\n[The command completed with exit code 2.]\n[Current working directory: /w]", "red", 2),
        ("Output: (empty)\nError: (none)\nExit Code: 0\nSignal: 0\nProcess Group PGID: 4242", "", 0),
        ('{"output":"red","metadata":{"exit_code":1}}', '{"output":"red","metadata":{"exit_code":1}}', 1),
        ("red\n<system-reminder>\nMind the list.\n</system-reminder>", "red", None),
        ("status code: 200", "status code: 200", None),
        ("", "", None),
    ],
)
def test_what_a_command_said_is_told_from_what_is_said_around_it(told: str, said: str, code: int | None) -> None:
    assert (bare(told), exit_code(told)) == (said, code)


def test_the_number_of_a_process_group_does_not_make_two_runs_differ() -> None:
    runs = [
        shell("npm test", f"Output: 3 failing\nError: (none)\nExit Code: 1\nProcess Group PGID: {number}")
        for number in range(4000, 4006)
    ]
    assert levels(walk(*runs))[-1][1:] == (Level.FIRE, Rule.CYCLE)


def test_an_exit_code_tells_a_failure_that_has_no_words_and_a_success_that_speaks_of_errors() -> None:
    assert read(shell("rg foo", "Exit code: 1\nWall time: 0 seconds\nOutput:\n")).failed
    assert not read(shell("make", "0 errors, no failure\n[The command completed with exit code 0.]")).failed


def test_of_a_very_long_output_both_ends_are_kept() -> None:
    assert len(bare("x" * 100_000)) < 10_000
    assert exit_code("x" * 100_000 + "\nExit code: 3") == 3


# --- the same search in other words ---


def test_searches_for_other_words_that_all_find_nothing_are_one_loop_though_the_answer_repeats_the_words() -> None:
    looks = [
        Step(
            "search_file_content",
            f'{{"pattern": "{name}"}}',
            f'No matches found for pattern "{name}" in the workspace.',
        )
        for name in NAMES * 2
    ]
    assert levels(walk(*looks))[0] == (7, Level.NUDGE, Rule.SAME_ERROR)


def test_of_a_very_long_call_only_a_part_is_looked_for_in_the_answer() -> None:
    assert read(Step("grep", "x" * LONGEST + " needle", "no matches for needle")).failed


# --- waiting ---


@pytest.mark.parametrize(
    "poll",
    [
        shell("kubectl get pods", "web-1  0/1  ContainerCreating  0  40s"),
        Step(
            "execute_bash",
            '{"command": ""}',
            "[The command has no new output after 10 seconds. You may " + "wait " * 99,
        ),
        Step("exec_command", '{"cmd": "cargo build"}', "Process running with session ID 5"),
    ],
)
def test_to_wait_for_what_is_under_way_is_no_spin(poll: Step) -> None:
    assert walk(*[poll] * 20) == []
