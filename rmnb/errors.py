"""The one exception that a user's mistake raises."""


class InputError(ValueError):
    """Something the user gave, or the machine lacks, stops the work.

    The message is one line that names what was wrong and what to do. The command line prints it and exits with 2.
    """
