"""Questions over HTTP: their answers."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from remuda.domain.commands import AnswerQuestion
from remuda.domain.errors import Refused
from remuda.domain.state import Sender
from remuda.views.pages import Questions
from remuda.views.questions import open_questions
from remuda.web.door import answer, body_of, caller_of, order_of, runtime_of


class AnswerBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    allow: bool
    why: str = ""


async def answer_question(request: Request) -> Response:
    caller, order, runtime = caller_of(request), order_of(request), runtime_of(request)
    if caller.sender not in (Sender.USER, Sender.COORDINATOR):
        raise Refused(f"{caller.author} may not answer questions; the user and the coordinator may")
    body = await body_of(request, AnswerBody)
    name, which = request.path_params["name"], request.path_params["question"]
    await runtime.submit(AnswerQuestion(name, which, body.allow, caller.author, body.why), order=order)
    return answer(Questions(open_questions(runtime.loop.shown.agents)))


ROUTES = [
    Route("/v1/agents/{name}/questions/{question}", answer_question, methods=["POST"]),
]
