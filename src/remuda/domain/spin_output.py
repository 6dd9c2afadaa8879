"""What a command said, without what the program around it puts before and after: exit codes, times, process groups,
reminders. Two runs of one command differ in these, and a silent one is not silent any more."""

import re

_AROUND = re.compile(
    r"<system-reminder>.*?</system-reminder>"
    r"|^\[(?:the command (?:completed|finished) with exit code -?\d+\.?|current working directory: [^\n]*"
    r"|python interpreter: [^\n]*|command (?:completed|finished) with exit code -?\d+)\]$"
    r"|^(?:chunk id|wall time|original token count|total output lines|exit code|signal|background pids"
    r"|process group pgid|directory): [^\n]*$"
    r"|^process exited with code -?\d+$|^error: \(none\)$|^(?:output|stdout|stderr): ?(?:\((?:empty|none)\)$)?"
    r"|\A\s*(?:tool ran without output|\(?bash completed with no output\)?|\((?:no output|empty)\)|<no output>"
    r"|\[no output\]|command (?:executed|completed) successfully(?: with no output)?)\.?\s*\Z",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_CODE = re.compile(
    r"^\[?(?:the )?(?:command |process )?(?:(?:completed|finished|exited) with (?:exit )?|exit )code:? (-?\d{1,9})"
    r"\.?\]?$"
    r'|"exit_code": ?(-?\d{1,9})\b',
    re.IGNORECASE | re.MULTILINE,
)
LONGEST = 8000  # characters that are looked at: of what is longer, the two ends


def bare(result: str) -> str:
    if len(result) > LONGEST:
        result = result[: LONGEST // 2] + result[-LONGEST // 2 :]
    return _AROUND.sub("", result).strip("\n")


def exit_code(result: str) -> int | None:
    """As it is told around the output; None where it is not."""
    found = _CODE.search(result[:LONGEST]) or _CODE.search(result[-LONGEST:])
    return int(found[1] or found[2]) if found else None
