"""Bad input and a bad world: one sentence, the right exit code, nothing lost."""

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cli_kit import REMUDA, Project, Ran, environment, repository, running


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    with running(tmp_path_factory.mktemp("faults")) as project:
        project.ok("spawn", "--name", "ada", "--hold")
        project.ok("spawn", "--name", "dead")
        project.until_idle("dead", 0)
        project.ok("retire", "dead")
        yield project


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["send", "nobody", "hi"], 3, ["no agent 'nobody'", "ada"]),
        (["show", "nobody"], 3, ["no agent 'nobody'"]),
        (["logs", "nobody"], 3, ["no agent 'nobody'"]),
        (["logs", "-f", "nobody"], 3, ["no agent 'nobody'"]),
        (["events", "nobody"], 3, ["no agent 'nobody'"]),
        (["pause", "No/Body"], 3, ["no agent 'No/Body'"]),
        (["pause", ""], 3, ["no agent ''"]),
        (["show", "../../etc"], 3, ["no agent"]),
        (["show", b"\xff\xfe"], 3, ["no agent"]),
        (["send", "dead", "hi"], 3, ["dead is retired", "successor"]),
        (["resume", "dead"], 3, ["dead is retired"]),
        (["pause", "ada"], 3, ["ada is pending", "possible: starting"]),
        (["spawn", "--name", "ada"], 3, ["already an agent 'ada'"]),
        (["spawn", "--name", "Bad Name"], 2, ["not a good name", "lower-case"]),
        (["spawn", "--name", "a" * 41], 2, ["not a good name"]),
        (["spawn", "Bad Role"], 2, ["not a good role"]),
        (["spawn", "--backend", "nothing"], 2, ["no backend 'nothing'", "possible: ", "scripted"]),
        (["spawn", "--option", "novalue"], 2, ["KEY=VALUE"]),
        (["spawn", "--parent", "nobody"], 3, ["no agent 'nobody'"]),
        (["spawn", "--instructions", "@no-such-file"], 2, ["no-such-file"]),
        (["spawn", "--name", b"\xff"], 2, ["UTF-8"]),
        (["send", "ada", ""], 2, ["cannot be empty"]),
        (["send", "ada", b"caf\xe9"], 2, ["not valid UTF-8"]),
        (["pause", "ada", "--why", "x" * 2001], 2, ["too long"]),
        (["send", "ada"], 2, ["TEXT", "--help"]),
        (["send"], 2, ["--help"]),
        (["dance"], 2, ["dance"]),
        (["ps", "--colour"], 2, ["--colour"]),
        (["logs", "ada", "-n", "many"], 2, ["many"]),
        (["completion", "tcsh"], 2, ["tcsh"]),
    ],
)
def test_wrong_input_is_one_sentence_and_its_exit_code(
    project: Project, arguments: list[str], code: int, words: list[str]
) -> None:
    before = project("events", "-n", "1", "--json").json["events"]
    project(*arguments).fails(code, *words)
    assert project("events", "-n", "1", "--json").json["events"] == before


@pytest.mark.parametrize(
    ("data", "word"),
    [(b"caf\xe9", "UTF-8"), (b"x" * ((1 << 20) + 1), "too long"), (b"x" * (9 << 20), "too long"), (b" \n", "empty")],
)
def test_a_bad_message_on_standard_input_is_refused(project: Project, data: bytes, word: str) -> None:
    project("send", "ada", "-", stdin=data).fails(2, word)


def test_a_message_as_long_as_allowed_is_taken_whole(project: Project) -> None:
    text = "ü" * (1 << 20)
    project.ok("send", "ada", "-", stdin=text.encode())
    assert project.agent("ada")["queue"][-1]["text"] == text


def test_a_file_of_instructions_is_read_and_one_that_is_not_text_refused(project: Project, tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text("be kind\n")
    (tmp_path / "bad.md").write_bytes(b"\xff")
    project.ok("spawn", "--name", "kind", "--hold", "--instructions", f"@{tmp_path}/good.md")
    assert project.agent("kind")["instructions"] == "be kind\n"
    project("spawn", "--hold", "--instructions", f"@{tmp_path}/bad.md").fails(2, "UTF-8")


def test_a_token_of_no_session_is_refused(project: Project) -> None:
    project("send", "ada", "hi", REMUDA_TOKEN="stolen").fails(3, "token")


def test_outside_a_project_every_command_says_how_to_make_one(tmp_path: Path) -> None:
    lost = Project(tmp_path, {"GIT_CEILING_DIRECTORIES": str(tmp_path.parent)})
    for command in ("ps", "up", "up -d", "down", "spawn", "show x", "logs x", "events", "send x y", "doctor --repair"):
        lost(*command.split()).fails(2, "no Remuda project", "remuda init")
    assert "remuda init" in lost("doctor").out


def test_without_git_on_the_path_a_sentence_says_to_install_it(tmp_path: Path) -> None:
    repository(tmp_path)
    bare = tmp_path / "bin"
    bare.mkdir()
    without = Project(tmp_path, {"PATH": str(bare)})
    without("init").fails(1, "install git")
    ran = without("doctor")
    assert ran.code == 1
    assert "git was not found" in ran.out


def test_bad_settings_are_named_with_the_nearest_good_ones(tmp_path: Path) -> None:
    project = repository(tmp_path)
    project.ok("init")
    (tmp_path / "remuda.toml").write_text("[project]\nbackand = 'x'\n")
    project("up").fails(2, "project.backend")
    project("up", "-d").fails(2, "project.backend")
    assert project("doctor").code == 1


# --- the log ---


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a log that has agents in it, and no runtime."""
    folder = tmp_path_factory.mktemp("pristine")
    with running(folder) as project:
        for _ in range(3):
            project.ok("spawn", "--hold", "--message", "hello " * 300)
        (folder / ".remuda/transcripts/worker-1").mkdir()
    return folder


@pytest.fixture
def log_with_agents(pristine: Path, tmp_path: Path) -> Project:
    return Project(shutil.copytree(pristine, tmp_path, dirs_exist_ok=True, symlinks=True))


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def scramble(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for index in range(4096, len(data), 64):
        data[index] ^= 0xFF
    path.write_bytes(data)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def overwrite(path: Path) -> None:
    path.write_text("dear diary, " * 500)


@pytest.mark.parametrize("damage", [truncate, scramble, empty, overwrite])
def test_a_damaged_log_is_told_by_every_command_and_repaired_by_doctor(
    log_with_agents: Project, tmp_path: Path, damage: object
) -> None:
    project = log_with_agents
    database = tmp_path / ".remuda/remuda.db"
    assert callable(damage)
    damage(database)
    damaged = database.read_bytes()
    for command in ("ps", "show worker-1", "events", "up", "up -d"):
        ran = project(*command.split())
        ran.fails(1, "remuda.db", "doctor --repair")
    found = project("doctor", "--json")
    assert found.code == 1
    assert [each["check"] for each in found.json["findings"] if each["level"] == "bad"] == ["log"]
    mended = project("doctor", "--repair", "--json").json
    assert mended["repaired"]
    assert Path(mended["kept"]).read_bytes() == damaged
    assert project("doctor").code == 0
    project.ok("up", "-d")
    try:
        project.ok("spawn", "--hold")
        assert "sound" not in project("doctor", "--repair").out  # never under a runtime
        project("doctor", "--repair").fails(3, "remuda down")
    finally:
        project.ok("down")
    assert "nothing to repair" in project.ok("doctor", "--repair")


def test_a_log_of_a_newer_version_is_refused_and_left_alone(log_with_agents: Project, tmp_path: Path) -> None:
    import apsw

    project = log_with_agents
    database = tmp_path / ".remuda/remuda.db"
    with apsw.Connection(str(database)) as db:
        db.pragma("user_version", 999)
    db.close()
    before = database.read_bytes()
    for command in ("ps", "up"):
        project(*command.split()).fails(1, "newer Remuda")
    assert database.read_bytes() == before


# --- the disk ---


def test_in_a_directory_that_cannot_be_written_reads_work_and_writes_say_why(
    log_with_agents: Project, tmp_path: Path
) -> None:
    project = log_with_agents
    shutil.rmtree(tmp_path / ".git")
    assert "worker-3" in readonly(project, "ps").out
    assert "spawned" in readonly(project, "events").out
    assert "worker-1" in readonly(project, "show worker-1").out
    readonly(project, "up").fails(1, "may you write")
    readonly(project, "up -d").fails(1, "may you write")
    readonly(project, "doctor --repair").fails(1, "may you write")
    assert readonly(project, "doctor").code == 1
    (tmp_path / "new").mkdir()
    readonly(project, f"init {tmp_path}/new").fails(1, "may you write")
    assert not (tmp_path / "new/.remuda").exists()


def readonly(project: Project, command: str) -> Ran:
    """Run a command while the project's folder cannot be written. Root is not stopped by permissions, so the folder
    is mounted read-only where only this one command sees it."""
    script = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && cd "$1" && shift && exec "$@"'
    argv = ["sh", "-c", script, "sh", str(project.root), str(REMUDA), *command.split()]
    for unshare in (["unshare", "--mount"], ["unshare", "--mount", "--map-root-user"]):
        try:
            subprocess.run([*unshare, "sh", "-c", script, "sh", str(project.root), "true"], check=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        done = subprocess.run(
            [*unshare, *argv], env=environment(), capture_output=True, text=True, timeout=60, check=False
        )
        return Ran(done.returncode, done.stdout, done.stderr)
    pytest.skip("NOT TESTED: this machine allows no private mount, so no directory could be made read-only for root")


def test_a_full_disk_stops_the_runtime_with_a_sentence_and_loses_nothing_acknowledged(tmp_path: Path) -> None:
    inside = "\n".join(
        (
            'mount -t tmpfs -o size=2m tmpfs "$1" || exit 99',
            'cd "$1" && git init -q . && "$2" init >/dev/null || exit 98',
            '"$2" up >up.out 2>up.err & up=$!',
            'until "$2" spawn --hold --name ada >/dev/null 2>&1; do kill -0 $up || exit 97; done',
            'head -c 100000 /dev/zero | tr "\\0" x >text',
            'sent=0; while "$2" send ada - <text >/dev/null 2>send.err; do sent=$((sent+1)); done',
            'wait $up; echo "$? $sent"; cat up.err send.err; rm text',
            '"$2" show ada --json 2>/dev/null',
        )
    )
    argv = ["unshare", "--mount", "sh", "-c", inside, "sh", str(tmp_path), str(REMUDA)]
    try:
        done = subprocess.run(argv, env=environment(), capture_output=True, text=True, timeout=110, check=False)
    except OSError:
        pytest.skip("NOT TESTED: no unshare on this machine, so no small disk could be made")
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip("NOT TESTED: this machine allows no private mount, so no small disk could be made")
    head, *rest = done.stdout.splitlines()
    code, sent = map(int, head.split())
    assert code == 1, done
    assert "the disk is full" in done.stdout
    assert "Traceback" not in done.stdout
    waiting = len(json.loads(rest[-1])["queue"])
    assert waiting >= sent > 3


# --- the socket ---


def test_a_socket_that_nobody_listens_on_is_no_runtime(tmp_path: Path) -> None:
    project = repository(tmp_path)
    project.ok("init")
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(str(tmp_path / ".remuda/remuda.sock"))
    assert project("ps").code == 0
    project("spawn").fails(3, "no runtime is up")
    assert "leftover" in project("doctor").out
    project.ok("up", "-d")
    assert "ok    runtime" in project.ok("doctor")
    project.ok("down")


def test_a_path_too_long_for_a_socket_just_works(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 120) / ("e" * 120)
    with running(deep) as project:
        assert project.ok("spawn", "--hold").strip() == "worker-1"
        assert "worker-1" in project.ok("ps")
        assert project("doctor").code == 0
