"""What an agent leaves behind. It is kept whenever the agent has no process any more and may get none for long: what
others change in the meantime must not be taken for its work."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Begun:
    """What the agent found where it works, when its first session there had started."""

    folder: str  # from the project's root
    errand: int  # of the agent; another place is another beginning
    tree: str  # git's name for all that was there; empty: nobody could tell


@dataclass(frozen=True, slots=True)
class Left:
    """What there was when its last session was over."""

    epoch: int  # of that session
    commit: str  # one of ours, whose parent is what the agent began from; empty: see the note
    note: str  # why there is no diff, in words
    size: int  # bytes of its transcripts
