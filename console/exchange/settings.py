"""Git as the grader has it: identity, signing, hooks and ways to reach a host, read in their own repository."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from console.exchange.location import Location, ask
from console.exchange.text import decode_words, git_words, visible

HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-push")
"""The hooks of ``git commit`` and ``git push``, in the order in which they run."""

_PASSED_ON = ("user.", "author.", "committer.", "commit.", "gpg.", "credential.", "url.", "http.", "ssh.", "protocol.")
_PASSED_ON_KEYS = frozenset(
    {"core.sshcommand", "core.askpass", "core.gitproxy", "push.gpgsign", "push.pushoption"}
    | {f"remote.origin.{key}" for key in ("pushurl", "proxy", "proxyauthmethod", "uploadpack", "receivepack", "vcs")}
)
# Nothing that outlives the process, and no program that git would start in our own work tree for its own sake.
_QUIET = (
    ("core.fsmonitor", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("protocol.ext.allow", "never"),
    ("submodule.recurse", "false"),
    ("push.recurseSubmodules", "no"),
    ("push.followTags", "false"),
    ("fetch.prune", "false"),
)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the grader's repository says about who they are and how they commit and push."""

    passed_on: tuple[tuple[str, str], ...]
    source: str
    hooks_dir: Path
    name: str = ""
    email: str = ""
    identity_problem: str = ""
    """Why git knows no identity, in its words."""
    signs: bool = False
    signing: str = "none"

    def reach(self) -> tuple[tuple[str, str], ...]:
        """Settings to read and fetch with: no hooks."""
        return (*self._common(), ("core.hooksPath", os.devnull))

    def commit(self) -> tuple[tuple[str, str], ...]:
        """Settings to commit and push with: the grader's hooks."""
        return (*self._common(), ("core.hooksPath", str(self.hooks_dir)), ("commit.template", ""))

    def rebase(self) -> tuple[tuple[str, str], ...]:
        """Settings to move a commit that exists: signed like the first time, but its hooks have run."""
        return (*self.reach(), ("rebase.autoStash", "false"), ("rebase.updateRefs", "false"))

    def _common(self) -> tuple[tuple[str, str], ...]:
        return (*self.passed_on, ("remote.origin.url", self.source), *_QUIET)

    @property
    def hooks(self) -> tuple[str, ...]:
        """Hooks that will run."""
        return tuple(name for name in HOOKS if os.access(self.hooks_dir / name, os.X_OK))


def read_settings(location: Location, private: Path) -> Settings:
    """Read the effective settings in the grader's repository; for an address, in the private clone."""
    folder = location.folder or private
    listed = ask(folder, "config", "--null", "--list")
    values: dict[str, str] = {}
    passed_on = []
    for entry in listed.out.decode("utf-8", "surrogateescape").split("\0"):
        key, newline, value = entry.partition("\n")
        if not key:
            continue
        # A key without "=" means true.
        value = value if newline else "true"
        values[key] = value
        if key.startswith(_PASSED_ON) or key in _PASSED_ON_KEYS:
            passed_on.append((key, value))
    hooks = ask(folder, "rev-parse", "--path-format=absolute", "--git-path", "hooks")
    name, email, identity_problem = read_identity(location, private)
    signs = values.get("commit.gpgsign", "false").lower() in ("true", "yes", "on", "1")
    return Settings(
        passed_on=tuple(passed_on),
        source=location.source,
        hooks_dir=Path(os.fsdecode(hooks.out.rstrip(b"\n"))) if hooks.code == 0 else Path(os.devnull),
        name=name,
        email=email,
        identity_problem=identity_problem,
        signs=signs,
        signing=_signing(values) if signs else "none",
    )


def read_identity(location: Location, private: Path) -> tuple[str, str, str]:
    """The grader's name and email there, and in git's words why it knows none."""
    ident = ask(location.folder or private, "var", "GIT_AUTHOR_IDENT")
    if ident.code != 0:
        return "", "", git_words(ident.err)
    name, _, rest = decode_words(ident.out).rpartition(" <")
    return name, rest.partition(">")[0], ""


def _signing(values: dict[str, str]) -> str:
    key = values.get("user.signingkey", "")
    return visible(f"{values.get('gpg.format', 'openpgp')}, {key or 'the default key'}")
