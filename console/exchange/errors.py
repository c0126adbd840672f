"""What can go wrong with an exchange, as two exceptions with words for people."""

from __future__ import annotations


class ExchangeError(Exception):
    """Wrong use: no such place, no repository, a name or path that cannot be."""


class GitRefused(Exception):
    """Git, a hook or the other side said no. ``words`` are theirs, safe to show, bounded."""

    def __init__(self, what: str, words: str, *, pending: str | None = None, retry: bool = False) -> None:
        super().__init__(f"{what}: {words}" if words else what)
        self.what = what
        self.words = words
        self.pending = pending
        """The kept local commit, when there is one: :meth:`Exchange.retry_pending` tries it again."""
        self.retry = retry
        """True when nothing but other writers stood in the way, so that trying again is the natural choice."""
