"""A git repository of tasks, submissions and reviews: read through a private clone, written by ``git commit``."""

from console.exchange.errors import ExchangeError, GitRefused
from console.exchange.repository import Exchange

__all__ = ["Exchange", "ExchangeError", "GitRefused"]
