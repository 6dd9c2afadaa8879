"""What can go wrong with a tool server, told so that the model or the user knows what to do next."""

from remuda.domain.errors import RemudaError


class ServerFault(RemudaError):
    """The server broke its word: it did not start, did not answer, or answered what nobody understands."""

    http_status = 502


class Unreachable(ServerFault):
    """It is elsewhere, and nobody is there."""


class NoAnswer(ServerFault):
    """It may still be at it, but nobody waits any longer."""
