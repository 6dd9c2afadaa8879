"""The page about the scripted model tells of every step and of every client as it is."""

import json
from pathlib import Path

from remuda.scripted_model.clients import CLIENTS
from remuda.scripted_model.steps import KINDS

PAGE = (Path(__file__).parents[2] / "docs" / "scripted-model.md").read_text()


def test_every_step_has_its_place_in_the_table() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| `{")]
    assert [kind for kind in KINDS if not any(f'{{"{kind}":' in row for row in rows)] == []


def test_every_setting_and_argument_of_every_client_is_told() -> None:
    for client in CLIENTS:
        settings = [f"{name}={value}" for name, value in client.env.items() if not value.startswith('{"')]
        quoted = [value for value in client.env.values() if value.startswith('{"')]
        files = [*client.files, *(json.dumps(json.loads(each)) for each in client.files.values())]
        for told in (*settings, *quoted, *files, *client.argv):
            shown = told.replace("{url}", "URL").replace("{prompt}", "PROMPT").replace("model=gpt-5.5", "model=MODEL")
            assert shown in PAGE, f"{client.name}: {shown}"
