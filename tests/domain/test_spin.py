"""Who goes in circles, and who only works hard."""

import pytest

from remuda.domain.spin import MEMORY, PLACES, Finding, Level, Limits, Rule, Sign, Trail, follow, judge, sign_of, told
from remuda.domain.spin_reading import Step, chants, failed, plain, read, shape
from remuda.domain.spin_tools import Kind, kind_of

LIMITS = Limits(nudge=6, fire=12, nudge_rounds=3, fire_rounds=5)


def walk(*steps: Step, limits: Limits = LIMITS) -> list[tuple[int, Finding]]:
    """Every finding, with the number of the step at which it was made, from 1."""
    trail, found = Trail(), []
    for number, step in enumerate(steps, 1):
        trail = follow(trail, read(step))
        finding = judge(trail, limits)
        if finding:
            trail = told(trail, finding.level)
            found.append((number, finding))
    return found


def shell(command: str, result: str = "", *, ok: bool = True, tree: str = "") -> Step:
    return Step("bash", f'{{"command": "{command}"}}', result, ok, tree=tree)


def levels(found: list[tuple[int, Finding]]) -> list[tuple[int, Level, Rule]]:
    return [(number, finding.level, finding.rule) for number, finding in found]


def test_the_same_call_with_the_same_outcome_is_nudged_at_the_third_time_and_fires_at_the_fifth() -> None:
    found = walk(*[shell("make", "all is up to date")] * 8)
    assert levels(found) == [(3, Level.NUDGE, Rule.CYCLE), (5, Level.FIRE, Rule.CYCLE)]
    assert "the same call with the same outcome, 5 times in a row" in found[1][1].evidence
    assert dict(found[1][1].numbers) == {"rounds": 5, "steps": 1}


@pytest.mark.parametrize("length", [2, 3, 4, 5])
def test_a_cycle_of_several_calls_is_known_as_one(length: int) -> None:
    cycle = [shell(f"run part-{letter}", f"part {letter}") for letter in "abcde"[:length]]
    found = walk(*cycle * 5, limits=Limits(nudge=98, fire=99, fire_rounds=5))
    assert levels(found) == [(3 * length, Level.NUDGE, Rule.CYCLE), (5 * length, Level.FIRE, Rule.CYCLE)]
    assert f"the same {length} calls" in found[0][1].evidence


def test_how_many_rounds_it_takes_can_be_set() -> None:
    assert levels(walk(*[shell("make", "done")] * 9, limits=Limits(nudge_rounds=5, fire_rounds=8))) == [
        (5, Level.NUDGE, Rule.CYCLE),
        (8, Level.FIRE, Rule.CYCLE),
    ]


@pytest.mark.parametrize(
    "results",
    [
        ["started at 12:04:51, took 1.2 s", "started at 12:05:33, took 14 ms"],
        ["object at 0x7f3a10", "object at 0x7f3b99"],
        ["wrote /tmp/tmpa1b2/out.log", "wrote /tmp/tmpzz91/out.log"],
        ["commit 3f9a1c07d2 by 2024-05-01T10:11:12Z", "commit 90ab1c0f77 by 2025-01-02T03:04:05Z"],
        ["\x1b[31mred\x1b[0m", "red"],
        ["id 123e4567-e89b-12d3-a456-426614174000", "id 00000000-e89b-12d3-a456-426614174999"],
        ["bash: line 12: mvn: gone", "bash: line 99: mvn: gone"],
    ],
)
def test_what_changes_by_itself_does_not_hide_a_loop(results: list[str]) -> None:
    found = walk(*[shell("make", result) for result in results * 3])
    assert [finding.level for _, finding in found] == [Level.NUDGE, Level.FIRE]


def test_tests_whose_result_changes_are_not_the_same_outcome() -> None:
    assert plain("3 failed, 5 passed in 0.1s") != plain("2 failed, 6 passed in 0.2s")
    assert shape("edit 12:14 x") == shape("edit 99:104 x")
    assert walk(*[shell("pytest", f"{20 - each} failed, {each} passed in 1.{each}s") for each in range(20)]) == []


def test_edits_with_tests_between_them_are_work_even_where_the_test_goes_on_failing() -> None:
    steps = []
    for each in range(30):
        steps += [Step("Edit", f'{{"new": "try {each}"}}', "ok"), shell("pytest", "1 failed", ok=False)]
    assert walk(*steps) == []


def test_the_same_edit_again_and_again_is_not() -> None:
    assert levels(walk(*[Step("Edit", '{"new": "try"}', "ok")] * 6))[-1][1] is Level.FIRE


def test_an_edit_is_told_from_another_by_the_digest_of_what_was_cut() -> None:
    assert walk(*[Step("Write", '{"content": "aaa', "ok", digest=str(each)) for each in range(20)]) == []


def test_a_tree_that_changes_is_progress_whatever_the_calls_look_like() -> None:
    assert walk(*[shell("make", "done", tree=f"tree {each}") for each in range(30)]) == []


def test_a_tree_that_was_there_before_is_none() -> None:
    found = walk(*[shell(f"toggle {each}", "done", tree=f"tree {each % 2}") for each in range(12)])
    assert levels(found)[0][1] is Level.NUDGE


def test_a_write_that_leaves_the_measured_tree_as_it_was_changes_nothing() -> None:
    trail = follow(Trail(), read(shell("ls", "a", tree="one")))
    assert sign_of(trail, read(Step("Edit", '{"new": "x"}', "ok", tree="one"))) is Sign.REDONE
    assert sign_of(trail, read(Step("Edit", '{"new": "x"}', "ok", tree="two"))) is Sign.CHANGE
    assert sign_of(trail, read(Step("Edit", '{"new": "x"}', "ok"))) is Sign.CHANGE
    assert sign_of(Trail(), read(Step("Edit", '{"new": "x"}', "ok", tree="one"))) is Sign.CHANGE


@pytest.mark.parametrize(
    "poll",
    [
        Step("BashOutput", '{"id": "1"}', ""),
        shell("sleep 30", ""),
        shell("curl -s localhost/job/7", "state: in progress"),
        Step("write_stdin", '{"chars": ""}', "building"),
    ],
)
def test_to_poll_a_job_that_is_running_is_not_spin(poll: Step) -> None:
    assert walk(*[poll] * 50) == []


def test_other_calls_that_fail_with_the_same_error_are_one_loop() -> None:
    tools = [shell(f"sudo apt-get install jdk-{letter}", "E: Unable to locate package") for letter in "abcdefghijklmno"]
    found = walk(*tools)
    assert levels(found) == [(7, Level.NUDGE, Rule.SAME_ERROR), (13, Level.FIRE, Rule.SAME_ERROR)]
    assert "12 that failed again" in found[1][1].evidence


def test_a_call_that_fails_again_in_another_way_counts_as_failed_again() -> None:
    trail = follow(Trail(), read(shell("make", "error: one", ok=False)))
    assert sign_of(trail, read(shell("make", "error: two", ok=False))) is Sign.FAILED_AGAIN
    assert sign_of(trail, read(shell("other", "error: two", ok=False))) is Sign.FAILURE


def test_a_failure_that_tells_something_new_at_length_counts_for_nothing() -> None:
    long = "assertion failed in the parser " * 20
    assert sign_of(Trail(), read(shell("pytest", long, ok=False))) is Sign.NEITHER
    trail = follow(Trail(), read(shell("pytest -x", long, ok=False)))
    assert sign_of(trail, read(shell("pytest -v", long, ok=False))) is Sign.FAILED_AGAIN
    assert sign_of(Trail(), read(Step("Edit", "{}", long, ok=False))) is Sign.FAILURE


def test_searches_that_find_nothing_and_old_ground_are_rereading() -> None:
    steps = [shell(f"find /opt/{letter * 3} -name jdk", "") for letter in "abcdefghijklmnop"]
    found = walk(*steps)
    assert levels(found) == [(6, Level.NUDGE, Rule.REREADING), (12, Level.FIRE, Rule.REREADING)]
    assert "12 searches that found nothing" in found[1][1].evidence


def test_to_read_new_files_is_no_spin_however_many() -> None:
    names = [f"src/{one}{two}.py" for one in "abcdefgh" for two in "abcdefgh"]
    assert walk(*[Step("Read", f'{{"path": "{name}"}}', f"content of {name}") for name in names]) == []


def test_to_page_through_one_file_is_old_ground_and_counts_half() -> None:
    words = [one + two for one in "abcdef" for two in "abcdef"]
    pages = [Step("Read", f'{{"path": "src/a.py", "from": "{word}"}}', f"page {word}") for word in words]
    found = walk(*pages)
    assert levels(found)[0] == (13, Level.NUDGE, Rule.REREADING)  # the first page was news


def test_a_look_that_shows_what_another_has_shown_is_an_echo() -> None:
    trail = follow(Trail(), read(Step("Read", '{"path": "a.py"}', "the same text")))
    assert sign_of(trail, read(Step("Read", '{"path": "b.py"}', "the same text"))) is Sign.ECHO


def test_a_command_that_says_nothing_counts_for_nothing_and_one_that_says_something_new_is_news() -> None:
    assert sign_of(Trail(), read(shell("mkdir build", ""))) is Sign.NEITHER
    assert sign_of(Trail(), read(shell("./configure", "checking for cc: yes"))) is Sign.NEWS


def test_the_same_message_over_and_over_is_a_looping_message() -> None:
    said = [Step(text=f"I will now look at attempt {each}.") for each in range(20)]
    assert levels(walk(*said, limits=Limits(fire=12, nudge_rounds=98, fire_rounds=99))) == [
        (7, Level.NUDGE, Rule.LOOPING_MESSAGE),
        (13, Level.FIRE, Rule.LOOPING_MESSAGE),
    ]
    assert walk(*[Step(text=f"I have found {word}.") for word in ("a bug", "its cause", "the test", "a fix")]) == []


def test_a_message_that_is_one_sentence_chanted_is_known() -> None:
    assert chants("I will try again now. " * 9)
    assert not chants("I will try again now. " * 7)
    assert not chants("\n".join(f"- item {word} of the list" for word in ("one", "two", "three")) + "\n---" * 20)
    assert read(Step(text="I will try again now. " * 9)).kind == Kind.CHANT
    assert sign_of(Trail(), read(Step(text="I will try again now. " * 9))) is Sign.SAID_AGAIN


def test_a_fresh_change_ends_the_count_and_a_later_loop_is_nudged_anew() -> None:
    loop, edit = shell("make", "nothing to do"), Step("Edit", '{"new": "x"}', "ok")
    assert [(number, finding.level) for number, finding in walk(*[loop] * 3, edit, *[loop] * 5)] == [
        (3, Level.NUDGE),
        (7, Level.NUDGE),
        (9, Level.FIRE),
    ]


def test_nothing_more_is_said_after_a_fire_until_the_agent_gets_on() -> None:
    assert len(walk(*[shell("make", "done")] * 40)) == 2


def test_a_trail_stays_small() -> None:
    trail = Trail()
    for each in range(1000):
        trail = follow(
            trail, read(shell(f"cat src/{each}a.py src/{each}b.py", f"text {each}", tree=f"tree {each % 700}"))
        )
    assert trail.steps == 1000
    assert len(trail.prints) <= MEMORY
    assert len(trail.since) <= MEMORY
    assert len(trail.trees) <= MEMORY
    assert len(trail.places) <= PLACES


@pytest.mark.parametrize(
    ("tool", "arguments", "kind"),
    [
        ("Read", '{"file_path": "a.py"}', Kind.LOOK),
        ("mcp__files__write_file", "{}", Kind.WRITE),
        ("apply_patch", "*** Begin Patch", Kind.WRITE),
        ("BashOutput", "{}", Kind.WAIT),
        ("Bash", '{"command": "cd src && sudo cat a.py"}', Kind.LOOK),
        ("shell", '{"command": ["bash", "-lc", "rg foo"]}', Kind.LOOK),
        ("shell", '{"command": ["rg", "foo"]}', Kind.LOOK),
        ("shell", """{"command":"/bin/bash -lc 'cat a.txt'"}""", Kind.LOOK),
        ("shell", """{"command":"/bin/bash -lc 'make test'"}""", Kind.RUN),
        ("run_shell_command", "cat a.txt", Kind.LOOK),
        ("Bash", '{"command": "PYTHONPATH=. pytest -q"}', Kind.RUN),
        ("Bash", '{"command": "sed -i s/a/b/ a.py"}', Kind.WRITE),
        ("Bash", '{"command": "sed -n 1,20p a.py"}', Kind.LOOK),
        ("Bash", '{"command": "grep -n tee a.py"}', Kind.LOOK),
        ("cat", "cat <<EOF > a.py\\nx\\nEOF", Kind.WRITE),
        ("cat", "cat a.py", Kind.LOOK),
        ("sleep", "sleep 20", Kind.WAIT),
        ("python", "python a.py 2>&1", Kind.RUN),
        ("The", "The problem is in create > x.py", Kind.RUN),
    ],
)
def test_what_a_call_is_for(tool: str, arguments: str, kind: Kind) -> None:
    assert kind_of(tool, arguments) is kind


def test_a_tool_may_call_a_success_what_came_to_nothing() -> None:
    assert failed(Kind.LOOK, 'No matches found for "x"')
    assert failed(Kind.RUN, "Reading package lists...\n" * 40 + "E: Unable to locate package")
    assert not failed(Kind.WRITE, "def fail():\n" * 40 + "    raise ValueError('failed')")
    assert not failed(Kind.RUN, "")
    assert not failed(Kind.RUN, "all good")


def test_what_tells_of_its_success_did_not_fail() -> None:
    told = "Command: ls\nOutput: a.txt\nError: (none)\nExit Code: {}\nSignal: (none)"
    assert not failed(Kind.LOOK, told.format(0))
    assert failed(Kind.RUN, told.format(2).replace("(none)", "no such file"))


def test_files_that_are_read_without_a_word_of_what_they_hold_are_news_until_they_are_read_again() -> None:
    files = [Step("read_file", f"src/part_{letter}.py") for letter in "abcdefghijklmnopqrstuvwxyz"]
    assert walk(*files) == []
    assert [level for _, level, _ in levels(walk(*[files[0]] * 5))] == [Level.NUDGE, Level.FIRE]


def test_another_word_about_the_same_command_does_not_make_it_another() -> None:
    said = [
        f'{{"command":"make","description":"{words}","timeout":{9_000 + len(words)}}}' for words in ("a", "by", "c d")
    ]
    assert len({read(Step("Bash", each, "done")).exact for each in said}) == 1


def test_of_a_very_long_text_both_ends_are_looked_at() -> None:
    assert plain("a" + "x" * 10_000 + "b").endswith("b")
    assert len(plain("x" * 10_000)) < 10_000


def test_what_is_no_text_at_all_is_read_all_the_same() -> None:
    assert read(Step("\udcff", "\udcff\x00", "\udcff")).shown
    assert read(Step()).shown == ""
