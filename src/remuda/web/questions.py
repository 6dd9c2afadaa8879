"""Questions over HTTP: which wait, and their answers."""

import time

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from remuda.domain.commands import AnswerQuestion
from remuda.domain.errors import Refused
from remuda.domain.state import Sender
from remuda.views.questions import QuestionRow, open_questions, questions_text
from remuda.web.door import answer, body_of, caller_of, number_of, order_of, runtime_of, text_answer


class AnswerBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    allow: bool
    why: str = ""


class QuestionsAnswer(msgspec.Struct, frozen=True):
    questions: list[QuestionRow]


async def list_questions(request: Request) -> Response:
    caller_of(request)
    rows = open_questions(runtime_of(request).loop.shown.agents)
    if request.query_params.get("format") == "text":
        width = number_of(request, "width", 0, most=10_000) or None
        return text_answer(questions_text(rows, time.time(), width=width))
    return answer(QuestionsAnswer(rows))


async def answer_question(request: Request) -> Response:
    caller, order, runtime = caller_of(request), order_of(request), runtime_of(request)
    if caller.sender not in (Sender.USER, Sender.COORDINATOR):
        raise Refused(f"{caller.author} may not answer questions; the user and the coordinator may")
    body = await body_of(request, AnswerBody)
    name, which = request.path_params["name"], request.path_params["question"]
    await runtime.submit(AnswerQuestion(name, which, body.allow, caller.author, body.why), order=order)
    return answer(QuestionsAnswer(open_questions(runtime.loop.shown.agents)))


ROUTES = [
    Route("/v1/questions", list_questions, methods=["GET"]),
    Route("/v1/agents/{name}/questions/{question}", answer_question, methods=["POST"]),
]
