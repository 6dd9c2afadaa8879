"""Settings of tool servers: what is read, what is refused and in which words, and that secrets stay secret."""

from pathlib import Path

import pytest

from remuda.domain.errors import Invalid
from remuda.gateway.config import Configured, find_config, load_config, problems, state_folder
from remuda.gateway.references import MASK, MissingSecret, read_env_file
from remuda.runtime.tool_servers import AuthSettings, ServerSettings

LOCAL = ServerSettings(command=("server",))


def written(folder: Path, text: str, name: str = "gateway.toml") -> Configured:
    path = folder / name
    path.write_text(text)
    return load_config(path)


def test_servers_stand_in_remuda_toml_beside_other_settings_and_in_a_file_of_their_own(tmp_path: Path) -> None:
    section = '[gateway]\nidle_turns = 3\n[gateway.servers.git]\ncommand = ["uvx", "mcp-server-git"]\n'
    alone = written(tmp_path, section)
    beside = written(tmp_path, f'[project]\nbackend = "claude"\n{section}', "remuda.toml")
    assert alone.gateway == beside.gateway
    assert alone.gateway.idle_turns == 3
    assert beside.servers == {"git": ServerSettings(command=("uvx", "mcp-server-git"))}
    assert beside.servers["git"].kind == "stdio"


def test_without_a_file_there_are_no_servers(tmp_path: Path) -> None:
    assert load_config(tmp_path / "gateway.toml").servers == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[gateway.servers.git]\ncomand = ["x"]', "did you mean 'gateway.servers.git.command'?"),
        ("[gateway]\nidle_turn = 3", "did you mean 'gateway.idle_turns'?"),
        ("[gatway]\nidle_turns = 3", "did you mean 'gateway'?"),
        ('[gateway.servers.git.auth]\ntokn = "x"', "did you mean 'gateway.servers.git.auth.token'?"),
        ("[gateway]\nidle_turns = 0", "must be 1 or more"),
        ("[gateway]\nidle_seconds = nan", "must be 0 or more"),
        ("[gateway]\noutput_bytes = 1", "must be 1000 or more"),
        ("[gateway]\ntoken_budget = -1", "must be 0 or more"),
        ('[gateway]\nlisting = "sometimes"', "listing"),
        ("[gateway", "gateway.toml"),
        ("\0", "gateway.toml"),
        ("#" * (2 << 20), "larger than 1 MiB"),
    ],
)
def test_what_cannot_be_meant_is_refused_whole_with_the_nearest_known(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(Invalid, match=r"gateway\.toml") as refused:
        written(tmp_path, text)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (ServerSettings(), "a command or a url"),
        (ServerSettings(command=("x",), url="https://a.b"), "a command or a url"),
        (ServerSettings(command=("x",), transport="http"), "needs a url"),
        (ServerSettings(url="https://a.b", transport="stdio"), "needs a command"),
        (ServerSettings(url="file:///etc/passwd"), "must begin with https://"),
        (ServerSettings(url="https://me:word@a.b"), "holds a password"),
        (ServerSettings(url="https://[::1"), "must begin with https://"),
        (ServerSettings(url="https://a.b", env={"A": "b"}), "cannot be given env"),
        (ServerSettings(command=("x",), headers={"A": "b"}), "use env"),
        (ServerSettings(command=("x", "--key=${env:KEY}")), "which others can read"),
        (ServerSettings(command=("x",), env={"A": "${env:}"}), "reference that cannot be read"),
        (ServerSettings(url="https://a.b", auth=AuthSettings()), "needs token"),
        (ServerSettings(url="https://a.b", auth=AuthSettings(type="basic", username="u")), "needs password"),
        (
            ServerSettings(
                url="https://a.b",
                auth=AuthSettings(
                    type="client_credentials", client_id="i", client_secret="s", token_url="http://far.example/t"
                ),
            ),
            "must be https",
        ),
        (ServerSettings(command=("x",), steering="s" * 5001), "at most 5000"),
        (ServerSettings(command=("x",), idle_turns=0), "pinned = true"),
        (ServerSettings(command=("x",), start_seconds=0), "more than 0"),
    ],
)
def test_a_server_that_cannot_work_says_why(server: ServerSettings, said: str) -> None:
    assert said in " | ".join(problems("odd", server))


@pytest.mark.parametrize("name", ["", "-a", "A", "a b", "a/b", "a__b", "ä", "a" * 33, "../up"])
def test_a_name_that_would_confuse_tools_is_not_taken(name: str) -> None:
    assert "name of a server" in next(problems(name, LOCAL))


def test_one_bad_server_does_not_disturb_the_others(tmp_path: Path) -> None:
    found = written(tmp_path, '[gateway.servers.bad]\n[gateway.servers.good]\ncommand = ["x"]\n')
    assert list(found.servers) == ["good"]
    assert "a command or a url" in found.faults["bad"]


# --- secrets ---

SECRETIVE = """
[gateway.servers.github]
command = ["x"]
env = { TOKEN = "${env:GH}", BOTH = "a-${env:GH}-${file:key.txt}" }
[gateway.servers.other]
command = ["y"]
[gateway.servers.far]
url = "https://far.example/mcp"
headers = { X-Key = "${file:key.txt}" }
auth = { type = "basic", username = "ada", password = "${env:GH}" }
"""


def test_secrets_are_looked_up_when_a_server_is_started_and_shown_nowhere(tmp_path: Path) -> None:
    found = written(tmp_path, SECRETIVE)
    (tmp_path / "key.txt").write_text("from-file\n")
    given = found.resolve("github", {"GH": "s3cret"})
    assert given.env == {"TOKEN": "s3cret", "BOTH": "a-s3cret-from-file"}
    far = found.resolve("far", {"GH": "s3cret"})
    assert far.headers == {"X-Key": "from-file", "Authorization": "Basic YWRhOnMzY3JldA=="}
    for each in (given, far):
        assert "s3cret" not in repr(each)
        assert "from-file" not in repr(each)
    said = "failed with s3cret and YWRhOnMzY3JldA=="
    assert far.masked(said) == f"failed with {MASK} and {MASK}"


def test_a_missing_secret_is_the_fault_of_that_server_alone_and_all_are_named_at_once(tmp_path: Path) -> None:
    found = written(tmp_path, SECRETIVE)
    with pytest.raises(MissingSecret) as missing:
        found.resolve("github", {})
    assert "GH, which is not set" in str(missing.value)
    assert "the file key.txt" in str(missing.value)
    assert found.resolve("other", {}).env == {}


def test_an_env_file_stands_behind_the_environment(tmp_path: Path) -> None:
    (tmp_path / "my.env").write_text("# mine\nexport GH='from the file'\n\nB=2\n")
    found = written(tmp_path, '[gateway]\nenv_file = "my.env"\n' + SECRETIVE.replace("-${file:key.txt}", ""))
    assert found.resolve("github", {}).env["TOKEN"] == "from the file"
    assert found.resolve("github", {"GH": "from outside"}).env["TOKEN"] == "from outside"


def test_a_bad_line_of_an_env_file_is_named_by_its_number_and_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "my.env"
    path.write_text("A=1\nhunter2\n")
    with pytest.raises(Invalid, match="line 2") as refused:
        read_env_file(path)
    assert "hunter2" not in str(refused.value)


# --- where ---


def test_the_nearest_file_is_meant_then_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    project = tmp_path / "project"
    deep = project / "a" / "b"
    deep.mkdir(parents=True)
    assert find_config(deep) == tmp_path / "config" / "remuda" / "gateway.toml"
    (project / "remuda.toml").write_text("")
    assert find_config(deep) == project / "remuda.toml"
    (project / "a" / "gateway.toml").write_text("")
    assert find_config(deep) == project / "a" / "gateway.toml"
    assert find_config(deep, project / "other.toml") == project / "other.toml"


def test_what_is_learnt_is_kept_where_git_does_not_carry_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert state_folder(tmp_path / "remuda.toml") == tmp_path / ".remuda" / "gateway"
    kept = {state_folder(tmp_path / name / "gateway.toml") for name in ("a", "b")}
    assert len(kept) == 2
    assert {each.parent for each in kept} == {tmp_path / "state" / "remuda" / "gateway"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('command = "npx -y x"', '`$.gateway.servers.bad.command`; write it as a list: ["npx",'),
        ('comand = ["x"]', "no setting 'gateway.servers.bad.comand'; did you mean 'gateway.servers.bad.command'?"),
        ('command = ["x"]\npinned = 1', "`$.gateway.servers.bad.pinned`"),
    ],
)
def test_what_is_wrong_with_a_server_is_told_with_its_name(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text(f'[gateway.servers.good]\ncommand = ["x"]\n[gateway.servers.bad]\n{text}\n')
    with pytest.raises(Invalid) as told:
        load_config(path)
    assert said in str(told.value)
