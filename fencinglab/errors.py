"""The errors a user can cause. Each message is one sentence: the thing, its value, what is allowed,
the likeliest cause. The command line prints it without a traceback and exits with `exit_code`.
"""


class FencinglabError(Exception):
    """Base of every error that a user can mend."""

    exit_code = 2


class InputError(FencinglabError):
    """A file, a format or a field cannot be used; nothing was judged."""


class UsageError(FencinglabError):
    """An option or a parameter cannot be used; nothing was read."""
