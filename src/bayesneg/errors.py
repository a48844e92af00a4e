"""The errors a user can cause, each a sentence that names what is wrong and the way out."""


class BayesnegError(Exception):
    """Anything this library raises on purpose."""


class InputError(BayesnegError, ValueError):
    """The caller's input is wrong: an argument, a file, a column. The command line exits with code 2."""


class DataError(InputError):
    """A file or frame cannot be read as interactions; the message names the file and the line."""


class StorageError(BayesnegError):
    """A store outside this process, such as a database, cannot be reached. The command line exits with code 1."""


class DivergedError(BayesnegError, ArithmeticError):
    """Training left the finite numbers; the message names the epoch and what to lower."""
