"""Bearer tokens `ac_<id>_<secret>`: only the SHA-256 of a 256-bit secret is kept (trust.md S23)."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, get_args

import msgspec

from aftercheck_worker.errors import ConfigurationError

Scope = Literal["check", "feedback", "read", "erase", "ingest", "admin"]
SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
"""`admin` holds all others. `feedback` alone is what a browser may be given: it can write, and read nothing."""
_FORM: Final = re.compile(r"ac_([A-Za-z0-9-]{1,64})_([A-Za-z0-9_-]{43})")


class Token(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One token as it is kept.

    Attributes:
        id: public name, letters, digits and dashes.
        sha256: hex digest of the secret.
        expires: seconds since the epoch, 0 = never.
    """

    id: str
    sha256: str
    scopes: tuple[Scope, ...]
    tenant: str = "default"
    expires: float = 0

    def allows(self, scope: Scope) -> bool:
        """Whether the token may do what `scope` names."""
        return scope in self.scopes or "admin" in self.scopes


class TokenBook:
    """All tokens of a deployment, re-read when the file changes, so that a revoked token ends at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int] | None = None
        self._tokens: dict[str, Token] = {}
        self.refresh()

    @property
    def empty(self) -> bool:
        """True when nobody has made a token."""
        return not self._tokens

    def refresh(self) -> None:
        """Read the file if it changed.

        Raises:
            ConfigurationError: it is no token file.
        """
        try:
            about = self._path.stat()
        except FileNotFoundError:
            # An open book would be the worst answer to a file that vanished: tokens once known stay required.
            self._tokens = {name: msgspec.structs.replace(t, expires=1.0) for name, t in self._tokens.items()}
            return
        stamp = (about.st_mtime_ns, about.st_size)
        if stamp != self._stamp:
            self._tokens = {token.id: token for token in read(self._path)}
            self._stamp = stamp

    def find(self, word: str) -> Token | None:
        """Return the token that `word` proves, None when it is unknown, wrong or expired."""
        form = _FORM.fullmatch(word)
        if form is None:
            return None
        self.refresh()
        token = self._tokens.get(form[1])
        digest = hashlib.sha256(form[2].encode()).hexdigest()
        right = hmac.compare_digest(digest, token.sha256 if token else "0" * 64)
        return None if token is None or not right else _alive(token)

    def by_name(self, name: str) -> Token | None:
        """Return a token by its public name, None when it is unknown or expired; proves nothing."""
        return _alive(self._tokens.get(name))


def _alive(token: Token | None) -> Token | None:
    return None if token is None or (token.expires and token.expires < time.time()) else token


def read(path: Path) -> list[Token]:
    """Read a token file.

    Raises:
        ConfigurationError: it cannot be read.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Token])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigurationError(
            "The token file cannot be read", why=str(error)[:200], fix="make one with `aftercheck token add NAME`"
        ) from None


def add(path: Path, name: str, scopes: Sequence[Scope], *, tenant: str = "default", expires: float = 0) -> str:
    """Make a token, keep its hash, and return the only copy of the word.

    Raises:
        ConfigurationError: the name is taken or not usable.
    """
    if not re.fullmatch(r"[A-Za-z0-9-]{1,64}", name):
        raise ConfigurationError(
            f"{name[:40]!r} is no token name",
            why="the name goes into the token",
            fix="use letters, digits and dashes",
        )
    known = read(path)
    if any(token.id == name for token in known):
        raise ConfigurationError(f"There is a token {name!r}", why="names are unique", fix="choose another name")
    secret = secrets.token_urlsafe(32)
    digest = hashlib.sha256(secret.encode()).hexdigest()
    token = Token(id=name, sha256=digest, scopes=tuple(scopes), tenant=tenant, expires=expires)
    _write(path, [*known, token])
    return f"ac_{name}_{secret}"


def remove(path: Path, name: str) -> bool:
    """Revoke a token; False when there is none of that name."""
    known = read(path)
    kept = [token for token in known if token.id != name]
    if len(kept) == len(known):
        return False
    _write(path, kept)
    return True


def _write(path: Path, tokens: Sequence[Token]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".new")
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(tokens)) + b"\n")
    draft.chmod(0o600)
    draft.replace(path)
