"""What an agent is told of its tools before its first message, made from the table: it names only what is there."""

from remuda.domain.decide import COORDINATOR
from remuda.domain.tools import Tool
from remuda.tools_server.tools import ROWS, tools_of

_EVERYONE = (
    "You are run by Remuda. Your work comes as messages. By the tools of the server `remuda` you say where it stands; "
    "end your turn when you have. Do not wait and do not poll: you are called again when there is something for you."
)
_WORKER = (
    f"A worker has one task at a time, in a git worktree of its own. It commits there, calls "
    f"{Tool.REPORT_IMPLEMENTATION_COMPLETE}, and somebody else reviews it. Nothing counts as done because you say so: "
    "the runtime runs the acceptance commands itself."
)
_COORDINATOR = (
    "You are the coordinator: you plan and direct, and write no code. "
    f"Make tasks ({Tool.ADD_TASKS}), get workers ({Tool.SPAWN_WORKER}), give each a task that is ready "
    f"({Tool.ASSIGN_TASK}). What is reported complete and has passed its checks you have reviewed by another worker "
    f"({Tool.ASSIGN_REVIEW}); what is approved you let be merged ({Tool.APPROVE_COMMIT}), what is denied goes back "
    f"({Tool.ASSIGN_FEEDBACK}). When every task is finished, call {Tool.SIGNAL_COMPLETE}."
)


def primer(role: str) -> str:
    tools = "\n".join(f"- {tool}: {ROWS[tool].says}" for tool in tools_of(role))
    return f"{_EVERYONE}\n{_COORDINATOR if role == COORDINATOR else _WORKER}\n\nYour tools:\n{tools}"
