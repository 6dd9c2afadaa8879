"""What can go wrong, by whose fault it is.

    RemudaError
      Invalid          the caller wrote something that can never be right     exit 2, HTTP 400
      Refused          the caller asked what the state does not allow         exit 3, HTTP 409
        UnknownAgent   ... of an agent that does not exist                    exit 3, HTTP 404
        UnknownTask    ... of a task that does not exist                      exit 3, HTTP 404
      Conflict         two at once; the same call may go through later        exit 3, HTTP 409
      AgentFault       the agent's process broke its word                     exit 1, HTTP 502
      EffectFailed     the world would not do what was owed                   exit 1, HTTP 500
      StoreFailed      the log could not be read or written                   exit 1, HTTP 500
        StoreTooNew    ... because a newer Remuda wrote it
        StoreCorrupt   ... because the file is damaged

Each message says what is wrong and what to do next, in words for the person who reads it: the edges (command line,
HTTP, tools for agents) print it as it is and take the exit code or the HTTP status from the type.
"""

from collections.abc import Iterable
from typing import ClassVar

from remuda.domain.failure import Failure


class RemudaError(Exception):
    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500

    def __init__(self, message: str, *, possible: Iterable[str] = ()) -> None:
        self.message = message
        self.possible = tuple(str(each) for each in possible)
        super().__init__(message)

    def __str__(self) -> str:
        return f"{self.message}; possible: {', '.join(self.possible)}" if self.possible else self.message


class Invalid(RemudaError):
    exit_code = 2
    http_status = 400


class Refused(RemudaError):
    exit_code = 3
    http_status = 409


class UnknownAgent(Refused):
    http_status = 404


class UnknownTask(Refused):
    http_status = 404


class Conflict(RemudaError):
    exit_code = 3
    http_status = 409


class AgentFault(RemudaError):
    http_status = 502

    def __init__(self, message: str, failure: Failure = Failure.CRASHED) -> None:
        super().__init__(message)
        self.failure = failure


class EffectFailed(RemudaError):
    pass


class StoreFailed(RemudaError):
    pass


class StoreTooNew(StoreFailed):
    pass


class StoreCorrupt(StoreFailed):
    pass
