"""What a tool call is for, by its name and its arguments: agents call the same things by many names."""

import re
from collections.abc import Mapping
from enum import StrEnum


class Kind(StrEnum):
    LOOK = "look"  # it can only tell something
    WRITE = "write"  # it means to change files
    RUN = "run"  # it may do anything
    WAIT = "wait"  # it waits for something that is under way
    NOTE = "note"  # it keeps its own books: a plan, a list of what is to do, a thought
    SAY = "say"  # a message
    CHANT = "chant"  # a message that says the same thing over and over


# Their names in small letters, and only letters; what stands before a last "__" is the server's.
_TOOLS: Mapping[Kind, frozenset[str]] = {
    kind: frozenset(names.split())
    for kind, names in {
        Kind.WRITE: """edit create write insert append applypatch strreplace searchreplace editfile writefile createfile
            multiedit notebookedit patch replace replacefile fswritetextfile applydiff replaceinfile writetofile
            insertcontent searchandreplace inserteditintofile replacestringinfile replacefilecontent editnotebook
            createnewfile deletefile movefile undoedit""",
        Kind.LOOK: """open goto scroll scrollup scrolldown findfile searchdir searchfile read readfile readmanyfiles
            view viewfile cat ls list listdir listdirectory grep glob search searchfiles searchfilecontent find
            websearch webfetch fetch fsreadtextfile lsp todoread grepsearch filesearch codebasesearch semanticsearch
            findbyname globsearch listfiles listdirectorytree directorytree readtextfile readmultiplefiles getfileinfo
            viewcodeitem listcodedefinitionnames geterrors googlewebsearch viewimage browsersnapshot
            browsertakescreenshot browserconsolemessages browsernetworkrequests takesnapshot takescreenshot
            screenshot listconsolemessages getpagetext readpage""",
        Kind.WAIT: """wait sleep bashoutput taskoutput agentoutput poll await writestdin commandstatus monitor
            terminaloutput getterminaloutput awaitterminal readbash waitfor browserwaitfor""",
        Kind.NOTE: """todowrite updateplan writetodos managetodolist tasktracker taskcreate taskupdate think
            sequentialthinking savememory reportintent""",
    }.items()
}
# One tool that looks or writes, as its first argument says.
_EDITORS = frozenset(["strreplaceeditor", "strreplacebasededittool", "texteditor", "fileeditor", "editor"])
_VIEW = re.compile(r'"command"\s*:\s*"view"|\A\s*\w+\s+view\b')
_READ = "open read readfile readmanyfiles view viewfile fsreadtextfile webfetch fetch todoread readtextfile viewimage"
_READS = frozenset(_READ.split())
_LOOKS = re.compile(
    r"(open|view|goto|scroll_\w+|find_file|search_\w+|ls|cat|head|tail|nl|grep|egrep|rg|ag|fd|find|which|whereis|locate|pwd"
    r"|wc|tree|printenv|env|less|more|file|stat|du|jq|sed -n|awk|type)\b"
    r"|git (log|show|diff|status|grep|blame|branch|ls-files)\b"
)
_WRITES = re.compile(
    r"(edit|create|insert|append|apply_patch|str_replace\w*|patch|mv|cp|touch)\b"
    r"|git (checkout|stash|restore|apply|revert|reset|am)\b"
    r"|\bsed\s+(-\w+\s+)*-i|\bperl\s+-p?i|(?<![-=2&])>>?\s*[\w~./-]+\.\w+|\btee\b"
)
_WAITS = re.compile(r"(sleep|wait|watch)\b|\bsleep \d|\bgh run watch\b|--wait\b|\bkubectl (wait|rollout status)\b")
_BEFORE = re.compile(
    r"\s*((\S*/)?(ba|z)?sh -l?c ['\"]?|(cd|pushd) [^\s;&|]+\s*(&&|;)\s*"
    r"|sudo\s+|time\s+|timeout \S+\s+|env\s+|\w+=\S*\s+)*"
)
_PROSE = re.compile(r"[A-Z][\w']*[\s,:.]")  # no command begins like a sentence
_COMMAND = re.compile(r'"(?:command|cmd|script)"\s*:\s*(?:\[\s*(?:"(?:ba|z)?sh",\s*"-\w+",\s*)?)?"((?:[^"\\]|\\.)*)')


def kind_of(tool: str, arguments: str) -> Kind:
    name = _letters(tool)
    if name in _EDITORS:
        return Kind.LOOK if _VIEW.search(arguments) else Kind.WRITE
    for kind, names in _TOOLS.items():
        if name in names and not arguments.startswith(tool):  # else it is the first word of a command
            return kind
    command = command_of(arguments)
    if _PROSE.match(command):
        return Kind.RUN
    if _WRITES.search(command) and (_WRITES.match(command) or not _LOOKS.match(command) or ">" in command):
        return Kind.WRITE
    if _WAITS.match(command):
        return Kind.WAIT
    return Kind.LOOK if _LOOKS.match(command) else Kind.RUN


def reads(tool: str) -> bool:
    """Whether it shows a file, so that silence means that its program does not tell what was seen."""
    return _letters(tool) in _READS


def _letters(tool: str) -> str:
    return re.sub(r"[^a-z]", "", tool.rsplit("__", 1)[-1].lower())


def command_of(arguments: str) -> str:
    """The shell command in a tool's arguments, without what only prepares it."""
    found = _COMMAND.search(arguments)
    command = found[1].replace('\\"', '"').replace("\\n", "\n") if found else arguments
    before = _BEFORE.match(command)
    return command[before.end() :] if before else command
