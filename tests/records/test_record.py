"""One turn, whole: what is recorded, where, and that it is true."""

import csv
import hashlib
import io
import json
import os
import stat
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest

from records.kit import all_valid, git, record, repository, verified, write
from remuda.records import manifest as manifests
from remuda.records.begin import Asked, begin, end, use_tool
from remuda.records.facts import RULES, Decision
from remuda.records.journal import Already, OpenTurn, open_turns
from remuda.records.keeping import BadKeeping, Keeping
from remuda.records.manifest import UUID7
from remuda.records.publish import publish
from remuda.records.repository import find_repository
from remuda.records.say import give_decision, give_summary

SCHEMA = Path(manifests.__file__).with_name("manifest.schema.json")
PLACE = "ai/agentic-pipeline/turns/turn-1"


def manifest_of(top: Path, number: int = 1) -> dict[str, object]:
    found = json.loads(git(top, "show", f"turn/{number}:ai/agentic-pipeline/turns/turn-{number}/manifest.json"))
    assert isinstance(found, dict)
    return found


def test_a_turn_is_in_git_and_the_work_tree_the_index_and_the_branch_are_untouched(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    write(top, "staged.txt", "staged\n")
    git(top, "add", "staged.txt")
    before = (git(top, "rev-parse", "HEAD"), git(top, "ls-files", "--stage"), (top / ".git/index").read_bytes())
    record(top)
    assert (git(top, "rev-parse", "HEAD"), git(top, "ls-files", "--stage"), (top / ".git/index").read_bytes()) == before
    assert git(top, "status", "--short") == "A  staged.txt\n?? work.txt"
    assert not (top / "ai").exists()
    names = git(top, "ls-tree", "-r", "--name-only", "turn/1").split("\n")
    assert [name for name in names if name.startswith("ai/")] == [
        "ai/agentic-pipeline/.gitattributes",
        *(f"{PLACE}/{name}" for name in ("adr.md", "attestation.json", "manifest.json", "pull_request.md")),
        f"{PLACE}/session_context.md",
        "ai/agentic-pipeline/turns_index.csv",
    ]
    assert git(top, "show", "turn/1:work.txt") == "of turn 1"
    assert all_valid(top) == 1


def test_files_are_in_the_work_tree_where_the_project_wants_them_there(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    record(top, keeping=Keeping("files"))
    record(top, keeping=Keeping("files"))
    for number in (1, 2):
        folder = top / f"ai/agentic-pipeline/turns/turn-{number}"
        for path in folder.iterdir():
            there = git(top, "hash-object", str(path))
            assert there == git(top, "rev-parse", f"turn/{number}:{path.relative_to(top)}")
    rows = list(csv.reader(io.StringIO((top / "ai/agentic-pipeline/turns_index.csv").read_text())))
    assert [row[0] for row in rows] == ["turn_id", "1", "2"]
    assert git(top, "log", "--oneline").count("\n") == 0
    assert all_valid(top) == 2


def test_on_the_branch_work_and_records_are_committed_and_nothing_is_left_over(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    first = record(top, keeping=Keeping("branch"))
    second = record(top, keeping=Keeping("branch"))
    assert git(top, "rev-parse", "HEAD") == second.commit
    assert git(top, "rev-list", "--first-parent", "HEAD").split()[:2] == [second.commit, first.commit]
    assert git(top, "status", "--short") == ""
    assert git(top, "show", "HEAD:ai/agentic-pipeline/turns_index.csv").count("\n") == 2
    assert all_valid(top) == 2
    assert [each.binding for each in verified(top)] == ["bound", "bound"]


def test_the_tag_is_annotated_carries_the_digest_and_is_on_the_commit_with_work_and_records(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    made = record(top)
    assert git(top, "cat-file", "-t", "turn/1") == "tag"
    assert git(top, "rev-parse", "turn/1^{commit}") == made.commit
    data = (git(top, "show", f"turn/1:{PLACE}/manifest.json") + "\n").encode()
    assert f"Manifest-SHA256: {hashlib.sha256(data).hexdigest()}" in git(
        top, "tag", "-l", "--format=%(contents)", "turn/1"
    )
    trailers = git(
        top, "log", "-1", "--format=%(trailers:key=Turn-Id,valueonly)%(trailers:key=Assisted-by,valueonly)", "turn/1"
    )
    assert trailers.split("\n") == [made.manifest.turn_uuid, "claude:m-1"]
    assert made.manifest.turn_uuid in git(top, "notes", "--ref=remuda", "show", made.commit)


def test_edits_by_any_means_are_told_added_modified_deleted_renamed_and_mode(tmp_path: Path) -> None:
    body = "".join(f"line {number}\n" for number in range(30))
    top = repository(
        tmp_path / "r",
        {"a": "a\n", "gone": "gone\n", "old/name": body, "run.sh": "#!/bin/sh\n", ".gitignore": "*.log\n"},
    )

    def work(_: OpenTurn) -> None:
        write(top, "a", "b\n")
        write(top, "new file", "new\n")
        write(top, "noise.log", "not told\n")
        (top / "gone").unlink()
        (top / "old/name").rename(top / "moved")
        (top / "run.sh").chmod(0o755)
        (top / "link").symlink_to("a")

    made = record(top, work)
    told = {each.path: (each.change, each.mode, each.previous_path) for each in made.manifest.outputs}
    assert told == {
        "a": ("modified", "100644", ""),
        "new file": ("added", "100644", ""),
        "moved": ("renamed", "100644", "old/name"),
        "run.sh": ("mode", "100755", ""),
        "link": ("added", "120000", ""),
    }
    assert [each.path for each in made.manifest.deletions] == ["gone"]
    sums = {each.path: each.sha256 for each in made.manifest.outputs}
    assert sums["a"] == hashlib.sha256(b"b\n").hexdigest()
    assert sums["link"] == hashlib.sha256(b"a").hexdigest()
    assert all_valid(top) == 1


def test_what_was_in_the_work_tree_before_the_turn_is_not_the_turns(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    write(top, "mine.txt", "I was here\n")
    write(top, "readme.txt", "changed by hand\n")
    made = record(top)
    assert [each.path for each in made.manifest.outputs] == ["work.txt"]
    assert git(top, "show", "turn/1:mine.txt") == "I was here"
    assert all_valid(top) == 1


def test_the_shipped_schema_is_the_one_of_the_types_and_accepts_what_is_written(tmp_path: Path) -> None:
    shipped = json.loads(SCHEMA.read_text())
    assert shipped == manifests.schema()
    top = repository(tmp_path / "r")
    record(top)
    jsonschema.Draft202012Validator.check_schema(shipped)
    jsonschema.Draft202012Validator(shipped).validate(manifest_of(top))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda m: m.update(extra=1),
        lambda m: m.update(turnId=0),
        lambda m: m["provenance"].update(promptHash=""),
        lambda m: m["provenance"].update(startedAt="yesterday"),
        lambda m: m["outputs"][0].update(path="../../etc/passwd"),
        lambda m: m["outputs"][0].update(path="/etc/passwd"),
        lambda m: m["outputs"][0].update(path="a/../../b"),
        lambda m: m["outputs"][0].update(sha256="pending"),
        lambda m: m["tasks"][0]["validations"].append({"rule": "x", "status": "ok", "detailsPath": ""}),
        lambda m: m.pop("deletions"),
        lambda m: m.update(schemaVersion=2),
    ],
)
def test_what_the_schema_refuses_the_reader_refuses(tmp_path: Path, spoil: object) -> None:
    top = repository(tmp_path / "r")
    record(top)
    found = manifest_of(top)
    assert callable(spoil)
    spoil(found)
    assert not jsonschema.Draft202012Validator(manifests.schema()).is_valid(found)
    with pytest.raises(Exception, match=r"manifest\.json is not a turn manifest"):
        manifests.read_manifest(json.dumps(found).encode())


def test_a_key_that_stands_twice_is_refused() -> None:
    with pytest.raises(Exception, match="twice"):
        manifests.read_manifest(b'{"turnId": 1, "turnId": 2}')


def test_the_protocols_sections_and_variables_are_there(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    record(top)
    context = git(top, "show", f"turn/1:{PLACE}/session_context.md")
    for name in (
        "TURN_ID", "TURN_START_TIME", "TARGET_PROJECT", "CURRENT_TURN_DIRECTORY", "CODING_AGENT", "Active branch",
        "Loaded context files", "Loaded skills", "Task description",
    ):  # fmt: skip
        assert f"| {name} | " in context
    request = git(top, "show", f"turn/1:{PLACE}/pull_request.md")
    for section in (
        "Turn summary", "Turn duration", "Input prompt summary", "Tasks executed", "Files added under ./ai/",
        "Files added outside ./ai/", "Files modified outside ./ai/", "Compliance checklist",
    ):  # fmt: skip
        assert f"\n## {section}\n" in request
    assert "TURN_ELAPSED_TIME" in request
    assert git(top, "show", f"turn/1:{PLACE}/adr.md") == "No architectural decision made this turn — did it."


def test_a_decision_that_the_agent_gives_becomes_a_full_adr_and_its_summary_the_summary(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")

    def work(turn: OpenTurn) -> None:
        here = find_repository(str(top))
        lists = {"rationale": ["small", "known"], "alternatives": ["a queue"], "consequences": ["one file"]}
        assert give_decision(here, Decision("Use SQLite", "We need a store.\n# Not a heading", "SQLite", **lists)) == 1
        assert give_summary(here, "Chose the store") == 1

    record(top, work, summary="ignored")
    adr = git(top, "show", f"turn/1:{PLACE}/adr.md")
    for heading in (
        "## 1. Use SQLite",
        "### Context",
        "### Decision",
        "### Rationale",
        "### Alternatives considered",
        "### Consequences",
    ):
        assert heading in adr
    assert "\n# Not" not in adr
    assert "Chose the store" in git(top, "tag", "-l", "--format=%(*contents:subject)", "turn/1")
    assert all_valid(top) == 1


def test_execution_that_failed_still_gets_every_step(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    made = record(top, outcome="failed", error="the model refused")
    assert (made.manifest.status, made.manifest.error) == ("failed", "the model refused")
    assert all_valid(top) == 1


def test_a_prompt_told_twice_is_one_turn(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    here = find_repository(str(top))
    first = begin(here, Keeping(), Asked("Do it.", "claude", session="s", key="p-1"))
    with pytest.raises(Already):
        begin(here, Keeping(), Asked("Do it.", "claude", session="s", key="p-1"))
    end(first, "completed")
    publish(first)
    with pytest.raises(Already):
        begin(here, Keeping(), Asked("Do it.", "claude", session="s", key="p-1"))
    assert begin(here, Keeping(), Asked("Do it.", "claude", session="s", key="p-2")).number == 2


def test_a_second_end_changes_nothing(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    turn = begin(find_repository(str(top)), Keeping(), Asked("Do it.", "claude"))
    assert end(turn, "completed", summary="first")
    assert not end(turn, "failed", summary="second")
    made = publish(turn)
    assert made is not None
    assert made.manifest.summary == "first"
    assert publish(turn) is None
    assert open_turns(find_repository(str(top))) == []


def test_a_pre_step_that_fails_aborts_the_turn_and_leaves_nothing(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    write(top, "ai", "a file is in the way of the folder\n")
    here = find_repository(str(top))
    with pytest.raises(OSError, match="ai"):
        begin(here, Keeping("files"), Asked("Do it.", "claude"))
    assert open_turns(here) == []


def test_a_post_step_that_fails_is_written_down_the_rest_go_on_and_recovery_ends_it(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    turn = begin(find_repository(str(top)), Keeping("files"), Asked("Do it.", "claude"))
    folder = top / PLACE
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    write(top, PLACE, "somebody put a file here\n")
    end(turn, "completed")
    made = publish(turn)
    assert made is not None
    assert [each.split(":")[0] for each in made.failed] == ["files"]
    assert git(top, "rev-parse", "turn/1^{commit}") == made.commit
    assert turn.lines("errors")[0]["step"] == "files"
    folder.unlink()
    again = publish(turn)
    assert again is not None
    assert (again.failed, again.commit) == ([], made.commit)
    assert stat.S_ISREG(os.stat(folder / "manifest.json").st_mode)
    assert all_valid(top) == 1


def test_ids_are_version_7_and_sort_by_time(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    ids = [record(top).manifest.turn_uuid for _ in range(3)]
    assert all(UUID7.fullmatch(each) for each in ids)
    assert ids == sorted(ids)


@pytest.mark.parametrize(
    "bad",
    [
        {"records": "maybe"}, {"folder": "../out"}, {"folder": "/abs"}, {"folder": ".git/x"}, {"folder": ""},
        {"directory": "turn"}, {"directory": "../{number}"}, {"directory": "a/{number}"},
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be_kept_to_is_refused(bad: dict[str, str]) -> None:
    with pytest.raises(BadKeeping, match=r"turns\."):
        Keeping(**bad)


def test_tools_that_read_are_inputs_and_failures_are_counted(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")

    def work(turn: OpenTurn) -> None:
        use_tool(turn, "Read", reads="readme.txt")
        use_tool(turn, "Bash", ok=False, argument="false")

    made = record(top, work)
    assert made.manifest.tasks[0].inputs == ["readme.txt"]
    assert [(each.tool, each.calls, each.failed) for each in made.manifest.execution.tools] == [
        ("Bash", 1, 1),
        ("Read", 1, 0),
        ("Write", 1, 0),
    ]


@pytest.mark.long
def test_many_records_are_not_many_packs_and_stay_verifiable(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    for _ in range(70):
        record(top, lambda _: None)
    packs = [name for name in os.listdir(top / ".git/objects/pack") if name.endswith(".pack")]
    assert len(packs) < 65
    git(top, "fsck", "--strict")
    assert all_valid(top) == 70


def test_every_rule_stands_in_the_record_also_of_a_turn_that_nobody_checked(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    made = record(top)
    assert [(each.rule, each.status) for each in made.manifest.tasks[0].validations] == [
        (rule, "skipped") for rule in RULES
    ]
    assert "- [ ] tests-pass: skipped" in made.files["pull_request.md"].decode()
