"""The one exception that a user's mistake raises, and what its one line is made of."""

from collections.abc import Iterable


class InputError(ValueError):
    """Something the user gave, or the machine lacks, stops the work.

    The message is one line that names what was wrong and what to do. The command line prints it and exits with 2.

    Attributes
    ----------
    about : str
        The file, tensor or option that is wrong, where there is one; else empty.
    """

    def __init__(self, message: str, about: object = ""):
        super().__init__(message)
        self.about = str(about)


class TooFewError(InputError):
    """There are too few words, models or other units for what was to be estimated."""


class UnreachableError(InputError):
    """A file of others is in neither the cache nor the mirror, and cannot be downloaded."""


class LackError(InputError):
    """A panel lacks what a chapter needs; a book is made without that chapter."""


def list_some(names: Iterable[object]) -> str:
    """Some names in one line: the first five in order, and how many more there are."""
    listed = sorted(map(str, names))
    return ", ".join(listed[:5]) + (f" and {len(listed) - 5} more" if len(listed) > 5 else "")


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or all where that line only opens a list, or the error's kind."""
    first, *more = (str(error).strip() or type(error).__name__).splitlines()
    return " ".join([first, *more]) if first.rstrip().endswith(":") else first
