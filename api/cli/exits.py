"""What does the exit code of a command mean to a script?"""

from typing import Final

FAILED: Final = 1
USAGE: Final = 2
UNAVAILABLE: Final = 3
REFUSED: Final = 4
ABSENT: Final = 5
INTERRUPTED: Final = 130

EXITS: Final = {
    0: "done",
    FAILED: "it failed, or what was checked does not hold; the message says what to do",
    USAGE: "the command was not understood",
    UNAVAILABLE: "no server answers, or it cannot now: the same may succeed later",
    REFUSED: "not allowed: a token or a capability is missing",
    ABSENT: "there is no such thing, or it is gone",
    INTERRUPTED: "interrupted",
}
