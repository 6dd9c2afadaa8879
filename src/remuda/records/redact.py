"""Secrets are taken out before anything is written. What stands in their place says of what kind they were.

A pattern is compiled only when the text holds one of its hints: a prompt rarely holds any, and a hook waits for us.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Mapping

SHORTEST_VALUE = 8  # characters; a shorter value of a variable would take ordinary words out of the text
SECRET_NAME = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "PASSPHRASE")

# (kind, hints, pattern). Where the pattern has a group named `keep`, that part stays.
PATTERNS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "private key",
        ("PRIVATE KEY",),
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----|\Z)",
    ),
    ("url password", ("://",), r"(?P<keep>\b[a-z][a-z0-9+.-]*://)[^\s/@'\"<>]+@"),
    ("token", ("sk-", "sk_", "rk_", "pk_"), r"\b(?:sk|rk|pk)[-_](?:ant-|proj-|live_|test_|or-)?[A-Za-z0-9_-]{16,}"),
    ("token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"\bgh[pousr]_[A-Za-z0-9]{20,}"),
    ("token", ("github_pat_", "glpat-", "npm_", "hf_", "pypi-", "dop_v1_"),
     r"\b(?:github_pat_|glpat-|npm_|hf_|pypi-|dop_v1_)[A-Za-z0-9_-]{16,}"),
    ("token", ("xox", "xapp-"), r"\b(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}"),
    ("access key", ("AKIA", "ASIA"), r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    ("api key", ("AIza",), r"\bAIza[A-Za-z0-9_-]{30,}"),
    ("web token", ("eyJ",), r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),
    ("authorization", ("uthorization", "UTHORIZATION", "earer ", "EARER "),
     r"(?i)(?P<keep>\b(?:authorization\s*[:=]\s*[\"']?(?:bearer|basic|token)?|bearer)\s+)[A-Za-z0-9._~+/=-]{8,}"),
    ("value", ("key", "token", "secret", "passw", "credential", "KEY", "TOKEN", "SECRET", "PASSW", "Key", "Token",
               "Secret", "Passw"),
     r"(?i)(?P<keep>\b[\w.-]*(?:api[_-]?key|access[_-]?key|private[_-]?key|token|secret|passw(?:or)?d|credential)s?"
     r"[\"']?\s*[:=]\s*[\"']?)[^\s\"',;]{6,}"),
)  # fmt: skip


def redactor(environment: "Mapping[str, str]") -> "Callable[[str], str]":
    """Also takes out the values of this process's own secret variables, wherever they turn up, and halves of
    characters, which no file could hold."""
    values = sorted(
        {
            value
            for name, value in environment.items()
            if len(value) >= SHORTEST_VALUE and any(word in name.upper() for word in SECRET_NAME)
        },
        key=len,
        reverse=True,
    )

    def redact(text: str) -> str:
        text = text.encode(errors="replace").decode()
        for value in values:
            if value in text:
                text = text.replace(value, "[redacted: variable]")
        return without_secrets(text)

    return redact


def without_secrets(text: str) -> str:
    for kind, hints, pattern in PATTERNS:
        if any(hint in text for hint in hints):
            import re

            text = re.sub(pattern, _stand_in(kind), text, flags=re.DOTALL)
    return text


def _stand_in(kind: str) -> "Callable[[re.Match[str]], str]":
    def stand_in(found: "re.Match[str]") -> str:
        kept = found.groupdict().get("keep") or ""
        return f"{kept}[redacted: {kind}]" + ("@" if kind == "url password" else "")

    return stand_in
