"""The original's `*.spell.yaml` files: one tool server each, in words of their own."""

import re
from pathlib import Path
from typing import Any

import msgspec

from remuda.domain.errors import Invalid
from remuda.runtime.nearest import in_words
from remuda.runtime.tool_servers import AuthKind, AuthSettings, ServerSettings, Transport

LARGEST_SPELL = 64 << 10
BARE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
KINDS: dict[str, AuthKind] = {
    "bearer": "bearer",
    "basic": "basic",
    "client_credentials": "client_credentials",
}


class SpellAuth(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    type: str = "none"
    token: str = ""
    client_id: str = ""
    client_secret: str = ""
    token_url: str = ""
    scope: str = ""
    username: str = ""
    password: str = ""
    private_key: str = ""
    algorithm: str = ""
    jwt_bearer_assertion: str = ""
    authorization_url: str = ""
    redirect_uri: str = ""


class SpellServer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    transport: Transport = "stdio"
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}
    auth: SpellAuth | None = None


class Spell(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    server: SpellServer
    version: str = ""
    description: str = ""
    keywords: tuple[str, ...] = ()
    steering: str = ""


def read_spell(path: Path) -> tuple[str, ServerSettings]:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_SPELL + 1)
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > LARGEST_SPELL:
        raise Invalid(f"{path} is larger than {LARGEST_SPELL >> 10} KiB; that cannot be a spell")
    try:
        spell = msgspec.convert(_yaml(data), Spell, strict=False)
        return spell.name, server_of(spell)
    except (msgspec.MsgspecError, ValueError) as error:
        raise Invalid(f"{path}: {in_words(str(error), Spell)}") from error


def _yaml(data: bytes) -> Any:
    import yaml  # late: it is slow to load, and most people have no spells

    class Plain(yaml.SafeLoader):
        """No aliases: a few hundred bytes of them unfold into gigabytes, and no spell needs one."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise ValueError("aliases (*name) are not read; write the value out")
            return super().compose_node(parent, index)

    try:
        return yaml.load(data, Loader=Plain)  # noqa: S506  (a SafeLoader, and stricter)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"this is not YAML: {' '.join(str(error).split())[:300]}") from error


def server_of(spell: Spell) -> ServerSettings:
    server = spell.server
    return ServerSettings(
        command=(server.command, *server.args) if server.command else (),
        url=server.url,
        transport=server.transport,
        env={key: _reference(value) for key, value in server.env.items()},
        headers={key: _reference(value) for key, value in server.headers.items()},
        auth=_auth(server.auth) if server.auth else None,
        description=spell.description,
        keywords=spell.keywords,
        steering=spell.steering,
    )


def _auth(auth: SpellAuth) -> AuthSettings | None:
    if auth.type == "none":
        return None
    kind = KINDS.get(auth.type)
    if kind is None:
        raise ValueError(f"auth of type {auth.type!r} is not spoken here; there are {', '.join(KINDS)} and none")
    return AuthSettings(
        type=kind,
        token=_reference(auth.token),
        username=_reference(auth.username),
        password=_reference(auth.password),
        client_id=_reference(auth.client_id),
        client_secret=_reference(auth.client_secret),
        token_url=auth.token_url,
        scope=auth.scope,
    )


def _reference(value: str) -> str:
    """`${NAME}` is the spells' way to say `${env:NAME}`."""
    return BARE.sub(r"${env:\1}", value)
