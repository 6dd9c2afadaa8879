"""ed25519 keys in the form that ssh keeps them. A signature is over DSSE's encoding, so that any DSSE verifier that is
given the public key can check it; `ssh-keygen -Y sign` would wrap it in a form that only ssh reads.

`cryptography` is imported late: only who signs or verifies a signature waits for it.
"""

import base64
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

from remuda.domain.errors import Invalid
from remuda.records.manifest import Signer

ED25519 = "ssh-ed25519"
Sign = Callable[[bytes], bytes]


def load_key(path: Path) -> tuple[Signer, Sign]:
    """A private key for unattended use: OpenSSH or PEM, ed25519, without a passphrase."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        data = path.read_bytes()
    except OSError as error:
        raise Invalid(f"the signing key {path} cannot be read: {error.strerror}") from error
    load = serialization.load_ssh_private_key if b"OPENSSH" in data[:60] else serialization.load_pem_private_key
    try:
        key = load(data, password=None)
    except (ValueError, TypeError) as error:
        raise Invalid(
            f"the signing key {path} cannot be used ({error}); make one of its own, without a passphrase: "
            f"ssh-keygen -t ed25519 -N '' -f {path}"
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise Invalid(f"the signing key {path} is not ed25519; make one: ssh-keygen -t ed25519 -N '' -f {path}")
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()
    return Signer(keyid=fingerprint(public), public_key=public), key.sign


def fingerprint(public: str) -> str:
    """As ssh shows it: SHA256:… of the key's wire form."""
    blob = base64.b64decode(public.split()[1])
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def holds(public: str, signature: bytes, data: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key

    try:
        key = load_ssh_public_key(public.encode())
        if not isinstance(key, Ed25519PublicKey):
            return False
        key.verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


def allowed_signers(path: Path) -> Mapping[str, str]:
    """Key id -> public key, of every ed25519 key in a file as ssh and git have them (allowed_signers, or *.pub)."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"the allowed signers {path} cannot be read: {error}") from error
    found: dict[str, str] = {}
    for line in lines:
        words = line.split()
        if ED25519 in words[:-1] and not line.startswith("#"):
            public = f"{ED25519} {words[words.index(ED25519) + 1]}"
            try:
                found[fingerprint(public)] = public
            except ValueError as error:
                raise Invalid(f"{path} holds a key that cannot be read: {line[:80]!r}") from error
    if not found:
        raise Invalid(f"{path} names no {ED25519} key; a line is `NAME ssh-ed25519 AAAA…`")
    return found
