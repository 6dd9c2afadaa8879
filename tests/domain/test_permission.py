"""What a role may do: deny over ask over allow over the default, and nothing outside unless a rule names it."""

from posixpath import normpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.domain.permission import Judgement, Policy, Ruling, judge

HOME = "/project"
ALLOW, ASK, DENY = Ruling.ALLOW, Ruling.ASK, Ruling.DENY
STRICTNESS = {ALLOW: 0, ASK: 1, DENY: 2}

tools = st.sampled_from(["bash", "write", "read", "Edit"])
parts = st.sampled_from(["work", "work-evil", "src", "etc", "..", ".", "a.py", "", "secret"])
paths = st.lists(parts, max_size=6).map(lambda names: "/" + "/".join(names))
rules = st.sampled_from(
    [
        "*",
        "bash",
        "write",
        "WRITE",
        "w*",
        "write:/project/*",
        "write:/project/secret/*",
        "write:/etc/*",
        "*:/*",
        "write:",
        "x",
    ]
)
rulings = st.sampled_from(Ruling)
policies = st.builds(
    Policy,
    allow=st.lists(rules, max_size=3).map(tuple),
    ask=st.lists(rules, max_size=2).map(tuple),
    deny=st.lists(rules, max_size=2).map(tuple),
    default=rulings,
    outside=rulings,
)


def ruling(policy: Policy, tool: str, *paths: str) -> Ruling:
    return judge(policy, tool, paths, [HOME]).ruling


def inside(path: str) -> bool:
    """Worked out anew, part by part, and not with the code that is tested."""
    return normpath(path).lstrip("/").split("/")[0] == "work"


# --- one rule at a time ---


@pytest.mark.parametrize("default", list(Ruling))
def test_without_a_rule_the_default_holds(default: Ruling) -> None:
    policy = Policy(default=default)
    assert judge(policy, "bash", (), [HOME]) == Judgement(default, "the role's default")
    assert judge(policy, "write", (f"{HOME}/a.py",), [HOME]) == Judgement(default, "the role's default")


def test_deny_is_stronger_than_ask_and_ask_than_allow() -> None:
    assert judge(Policy(("bash",), ("bash",), ("bash",)), "bash", (), []) == Judgement(DENY, "the rule 'bash'")
    assert ruling(Policy(("bash",), ("b*",)), "bash") is ASK
    assert ruling(Policy(("bash",), default=DENY), "bash") is ALLOW


def test_the_case_of_a_tools_name_does_not_matter_and_that_of_a_path_does() -> None:
    assert ruling(Policy(deny=("bash",)), "Bash") is DENY
    assert ruling(Policy(deny=(f"write:{HOME}/Secret",)), "write", f"{HOME}/secret") is ALLOW


def test_a_rule_with_a_path_says_nothing_of_a_wish_without_one() -> None:
    assert ruling(Policy(deny=("bash:*",), default=ALLOW), "bash") is ALLOW
    assert ruling(Policy(allow=("bash:*",), default=DENY), "bash") is DENY


def test_a_star_crosses_folders() -> None:
    policy = Policy(deny=(f"write:{HOME}/*.lock",))
    assert ruling(policy, "write", f"{HOME}/deep/down/uv.lock") is DENY


# --- outside ---


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/project-evil/x",
        "/projectshop",
        "/",
        "/project/../etc/passwd",
        "/project/a/../../etc",
        "//etc/x",
        "relative",
    ],
)
def test_what_is_not_in_the_folder_is_outside_however_it_is_written(path: str) -> None:
    assert ruling(Policy(), "write", path) is DENY
    assert ruling(Policy(allow=("write", "*", "write:")), "write", path) is DENY
    assert ruling(Policy(outside=ASK), "write", path) is ASK


@pytest.mark.parametrize(
    "path",
    ["/project", "/project/", "/project/a.py", "/project/./b", "/project/a/../b", "//project//a", "/x/../project/a"],
)
def test_what_is_in_the_folder_is_inside_however_it_is_written(path: str) -> None:
    assert ruling(Policy(), "write", path) is ALLOW


def test_a_folder_may_be_written_in_any_way_and_be_the_root() -> None:
    for folder in ("/project/", "/x/../project", "//project"):
        assert judge(Policy(), "write", ("/project/a",), [folder]).ruling is ALLOW
    assert judge(Policy(), "write", ("/anywhere",), ["/"]).ruling is ALLOW
    assert judge(Policy(), "write", ("/project/a",), []).ruling is DENY


def test_an_allow_rule_that_names_the_path_reaches_outside_wherever_it_stands_in_the_list() -> None:
    for rules_in_order in (("write:/tmp/*", "write"), ("write", "write:/tmp/*")):
        assert ruling(Policy(allow=rules_in_order), "write", "/tmp/x") is ALLOW
        assert ruling(Policy(allow=rules_in_order), "write", "/tmp/../etc/x") is DENY


def test_an_ask_rule_reaches_outside_only_when_it_names_the_path() -> None:
    assert ruling(Policy(ask=("write:/tmp/*",)), "write", "/tmp/x") is ASK
    assert ruling(Policy(ask=("write",)), "write", "/tmp/x") is DENY


def test_what_is_outside_is_never_ruled_more_mildly_than_inside() -> None:
    policy = Policy(default=DENY, outside=ALLOW)
    assert ruling(policy, "write", "/etc/x") is DENY
    assert judge(Policy(), "write", ("/etc/x",), [HOME]).why == "/etc/x is outside the agent's own folders"


def test_a_deny_rule_is_not_slipped_past_by_another_way_to_write_the_path() -> None:
    policy = Policy(deny=(f"write:{HOME}/secret/*",), outside=ALLOW)
    for path in ("/project/secret/a", "/project/src/../secret/a", "//project/secret/a", "/project//secret/./a"):
        assert ruling(policy, "write", path) is DENY


# --- several paths ---


def test_one_forbidden_path_forbids_all() -> None:
    policy = Policy(deny=(f"write:{HOME}/secret/*",))
    assert ruling(policy, "write", f"{HOME}/a", f"{HOME}/secret/b") is DENY
    assert ruling(Policy(), "write", f"{HOME}/a", "/etc/b") is DENY


def test_each_path_may_be_allowed_by_a_rule_of_its_own() -> None:
    policy = Policy(allow=("write:/a/*", "write:/b/*"), default=DENY)
    assert ruling(policy, "write", "/a/x", "/b/y") is ALLOW
    assert ruling(policy, "write", "/a/x", "/c/y") is DENY


# --- whatever the policy ---


@given(policies, tools, st.lists(paths, max_size=3))
def test_a_matching_deny_rule_always_denies(policy: Policy, tool: str, wanted: list[str]) -> None:
    denied = Policy(policy.allow, policy.ask, (*policy.deny, tool), policy.default, policy.outside)
    assert ruling(denied, tool, *wanted) is DENY


@given(policies, tools, st.lists(paths, max_size=3))
def test_an_ask_rule_never_lets_anything_through_unasked(policy: Policy, tool: str, wanted: list[str]) -> None:
    asked = Policy(policy.allow, (*policy.ask, tool), policy.deny, policy.default, policy.outside)
    assert ruling(asked, tool, *wanted) is not ALLOW


@given(policies, tools, paths)
def test_outside_is_never_allowed_unless_a_rule_with_a_path_allows_it(policy: Policy, tool: str, path: str) -> None:
    strict = Policy(policy.allow, policy.ask, policy.deny, policy.default, DENY)
    if not inside(path) and ruling(strict, tool, path) is ALLOW:
        assert any(
            rule in ("*:/*", "write:/etc/*", "write:/project/*", "write:/project/secret/*") for rule in policy.allow
        )
        without = tuple(rule for rule in policy.allow if not rule.partition(":")[2])
        assert ruling(Policy(without, policy.ask, policy.deny, policy.default, DENY), tool, path) is not ALLOW


@given(policies, tools, st.lists(paths, min_size=1, max_size=4))
def test_several_paths_get_the_strictest_of_their_rulings(policy: Policy, tool: str, wanted: list[str]) -> None:
    alone = [ruling(policy, tool, path) for path in wanted]
    assert ruling(policy, tool, *wanted) is max(alone, key=STRICTNESS.__getitem__)


@given(policies, tools, paths)
def test_another_way_to_write_a_path_is_ruled_the_same(policy: Policy, tool: str, path: str) -> None:
    assert ruling(policy, tool, path) is ruling(policy, tool, "/" + normpath(path).lstrip("/"))


@given(policies, tools, paths, rules)
def test_one_more_deny_rule_never_permits_more(policy: Policy, tool: str, path: str, rule: str) -> None:
    stricter = Policy(policy.allow, policy.ask, (*policy.deny, rule), policy.default, policy.outside)
    assert STRICTNESS[ruling(stricter, tool, path)] >= STRICTNESS[ruling(policy, tool, path)]


def test_remudas_own_folder_is_nobodys_but_a_worktree_in_it_is_its_workers() -> None:
    policy = Policy(allow=("*:/p/.remuda/*",), off_limits=("/p/.remuda", "/p/remuda.toml"))
    mine, root = "/p/.remuda/worktrees/t-1", "/p"
    for path in ("/p/.remuda", "/p/.remuda/remuda.db", "/p/remuda.toml", "/p/.remuda/worktrees/t-2/a", f"{mine}/../x"):
        assert judge(policy, "edit", [path], [mine]).ruling is Ruling.DENY
        assert judge(policy, "edit", [path], [root]).ruling is Ruling.DENY
    assert judge(policy, "edit", [f"{mine}/a"], [mine]).ruling is Ruling.ALLOW
    assert judge(policy, "edit", [f"{mine}/a"], [root]).ruling is Ruling.DENY
    assert judge(policy, "edit", ["/p/a"], [root]).ruling is Ruling.ALLOW
    assert judge(policy, "edit", ["/p/a"], [mine]).ruling is Ruling.DENY
