"""The errors a user can cause. Each message is one sentence: the thing, its value, what is allowed,
the likeliest cause. The command line prints it without a traceback and exits with `exit_code`.
"""

from collections.abc import Iterable
from difflib import SequenceMatcher


class FencinglabError(Exception):
    """Base of every error that a user can mend."""

    exit_code = 2


class InputError(FencinglabError):
    """A file, a format or a field cannot be used; nothing was judged."""


class UsageError(FencinglabError):
    """An option or a parameter cannot be used; nothing was read."""


def nearest(word: str, names: Iterable[str], most: int = 3) -> list[str]:
    """The names that the word resembles most, as a whole or in how they begin; the best first and at least one."""

    def alike(name: str) -> float:
        return max(SequenceMatcher(None, word, part).ratio() for part in (name, name[: len(word)]))

    best = sorted(names, key=alike, reverse=True)[:most]
    return [name for name in best if alike(name) > alike(best[0]) - 0.15]
