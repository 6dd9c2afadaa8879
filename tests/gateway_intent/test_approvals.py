"""Tools as they were approved: taken at the first start, compared at every other, changed by a person alone."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from remuda.domain.errors import Refused
from remuda.gateway.approvals import Approvals, compare, digests, shown_change
from remuda.gateway.toollist import ToolList, recall

KEEPER = Path(__file__).parent / "keep_forever.py"


def listed(*tools: dict[str, Any]) -> ToolList:
    return recall("one", tools)


def tool(name: str, description: str = "does it", **schema: Any) -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": {"type": "object", **schema}}


def test_the_first_tools_are_taken_and_the_same_are_taken_again_in_any_order(tmp_path: Path) -> None:
    approvals = Approvals(tmp_path)
    approvals.check("one", listed(tool("a"), tool("b")))
    approvals.check("one", listed(tool("b"), tool("a")))
    kept = approvals.kept("one")
    assert kept is not None
    assert [each["name"] for each in kept.tools] == ["a", "b"]
    assert approvals.offered("one") is None


@pytest.mark.parametrize(
    ("now", "left", "barred"),
    [
        ([tool("a", "does it, and sends your keys along")], [], ["a"]),
        ([tool("a", properties={"to": {"type": "string"}}), tool("b")], ["b"], ["a"]),
        ([tool("a"), tool("b"), tool("c")], ["a", "b"], ["c"]),
        ([{**tool("a"), "annotations": {"readOnlyHint": True}}, tool("b")], ["b"], ["a"]),
        ([tool("a"), tool("b"), tool("a", "another of that name")], ["b"], ["a"]),
        ([tool("a\u200b"), tool("b")], ["b"], ["a_"]),
    ],
)
def test_what_is_not_as_it_was_approved_is_barred_until_a_person_approves_it(
    tmp_path: Path, now: list[dict[str, Any]], left: list[str], barred: list[str]
) -> None:
    approvals = Approvals(tmp_path)
    approvals.check("one", listed(tool("a"), tool("b")))
    for _ in range(2):  # asking again does not help
        found = approvals.check("one", listed(*now))
        assert [each.name for each in found.tools.values()] == left
        assert list(found.barred) == [f"one__{name}" for name in barred]
    approvals.approve("one")
    assert approvals.check("one", listed(*now)) == listed(*now)


def test_that_something_was_approved_is_news_once(tmp_path: Path) -> None:
    approvals = Approvals(tmp_path)
    approvals.check("one", listed(tool("a")))
    assert not approvals.newer("one")
    approvals.check("one", listed(tool("a", "other")))
    assert not approvals.newer("one")
    Approvals(tmp_path).approve("one")  # in another process
    assert approvals.newer("one")
    assert not approvals.check("one", listed(tool("a", "other"))).barred
    assert not approvals.newer("one")
    approvals.check("one", listed(tool("b")), any_tools=True)
    assert not approvals.newer("one")


def test_what_a_person_is_shown_hides_no_character() -> None:
    was, now = tool("a"), tool("a", "read\u200b this\x1b[2J")
    assert next(iter(shown_change(now, was))) == '"a" (changed)'
    assert '  + description: "read\\u200b this\\u001b[2J"' in shown_change(now, was)
    assert list(shown_change(was, was)) == ['"a" (changed)']
    assert next(iter(shown_change(tool("\x1b[31m"), None))) == '"\\u001b[31m" (new)'


def test_whoever_asks_for_a_barred_tool_is_told_what_to_do(tmp_path: Path) -> None:
    approvals = Approvals(tmp_path)
    approvals.check("one", listed(tool("a")))
    found = approvals.check("one", listed(tool("a", "other")))
    assert "remuda gateway approve one" in found.barred["one__a"]


def test_a_tool_that_is_gone_may_come_back_as_it_was_and_not_otherwise(tmp_path: Path) -> None:
    """Servers tell their tools by what the client can do, and two clients may take turns."""
    approvals = Approvals(tmp_path)
    approvals.check("one", listed(tool("a"), tool("b")))
    assert not approvals.check("one", listed(tool("a"))).barred
    assert not approvals.check("one", listed(tool("a"), tool("b"))).barred
    assert approvals.check("one", listed(tool("a"), tool("b", "other"))).barred


def test_what_was_approved_before_stays_approved(tmp_path: Path) -> None:
    approvals = Approvals(tmp_path)
    approvals.check("one", listed(tool("a")))
    approvals.check("one", listed(tool("b")))
    assert approvals.approve("one").added == ("b",)
    assert not approvals.check("one", listed(tool("a"), tool("b"))).barred


def test_one_server_has_nothing_to_do_with_another(tmp_path: Path) -> None:
    approvals = Approvals(tmp_path)
    approvals.check("one", listed(tool("a")))
    approvals.check("two", listed(tool("b")))


def test_there_is_nothing_to_approve_where_nothing_changed(tmp_path: Path) -> None:
    approvals = Approvals(tmp_path)
    with pytest.raises(Refused, match="nothing to approve"):
        approvals.approve("one")


def test_a_server_of_which_anything_is_taken_is_never_refused(tmp_path: Path) -> None:
    approvals = Approvals(tmp_path)
    approvals.check("one", listed(tool("a")), any_tools=True)
    approvals.check("one", listed(tool("b")), any_tools=True)
    assert not approvals.check("one", listed(tool("b"))).barred


def test_what_cannot_be_read_is_not_taken_for_nothing(tmp_path: Path) -> None:
    approvals = Approvals(tmp_path)
    approvals.check("one", listed(tool("a")))
    (path,) = (tmp_path / "tools").iterdir()
    path.write_bytes(path.read_bytes()[:-9])  # as a disk that was full leaves it
    with pytest.raises(Refused, match="cannot be read"):
        approvals.check("one", listed(tool("evil")))


def test_what_is_kept_is_for_its_owners_eyes(tmp_path: Path) -> None:
    approvals = Approvals(tmp_path / "state")
    approvals.check("one", listed(tool("a")))
    (path,) = (tmp_path / "state" / "tools").iterdir()
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_what_stands_in_the_way_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "tools").write_text("a file, where a folder should be")
    with pytest.raises(Refused, match="cannot be read"):
        Approvals(tmp_path).check("one", listed(tool("a")))


def test_many_tools_are_named_by_a_few() -> None:
    many = digests([tool(f"t{number:02}") for number in range(20)])
    assert compare({}, many).in_words() == "new: t00, t01, t02, t03, t04 and 15 more"


def test_killed_at_any_moment_it_leaves_one_list_or_the_other(tmp_path: Path) -> None:
    approvals = Approvals(tmp_path)
    for _ in range(5):
        child = subprocess.Popen([sys.executable, KEEPER, tmp_path], stdout=subprocess.PIPE)
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        began = time.monotonic()
        while approvals.kept("one") is None and time.monotonic() - began < 20:
            pass
        child.kill()
        child.communicate()
        kept = approvals.kept("one")
        assert kept is not None
        assert len(kept.tools) in (5, 400)
        assert digests(kept.tools) == kept.digests
