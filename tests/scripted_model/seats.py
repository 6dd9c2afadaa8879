"""The seats: each is a client of its API's own SDK, which parses every answer with code that we did not write."""

import json
from typing import Any

import anthropic
import openai
from google import genai
from google.genai import errors, types

from scripted_model.kit import COMMAND, KEY, Failed, Seat, Seen


class Anthropic:
    def __init__(self, url: str, tools: bool = True) -> None:
        self.client = anthropic.AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0)
        self.history: list[Any] = []
        self.calls: list[str] = []
        self.tools: list[Any] = [{"name": "Bash", "input_schema": COMMAND}] if tools else []

    async def ask(self, prompt: str, *, stream: bool) -> Seen | Failed:
        self.history.append({"role": "user", "content": prompt})
        return await self._send(stream)

    async def give(self, *results: str, stream: bool) -> Seen | Failed:
        given = zip(self.calls, results, strict=True)
        content = [{"type": "tool_result", "tool_use_id": call, "content": text} for call, text in given]
        self.history.append({"role": "user", "content": content})
        return await self._send(stream)

    async def _send(self, stream: bool) -> Seen | Failed:
        asked: Any = {"model": "claude-any", "max_tokens": 1000, "messages": self.history, "tools": self.tools}
        pieces = 0
        try:
            if stream:
                async with self.client.messages.stream(**asked) as events:
                    async for event in events:
                        pieces += event.type == "content_block_delta"
                    message = await events.get_final_message()
            else:
                message = await self.client.messages.create(**asked)
        except anthropic.APIStatusError as error:
            return Failed(error.status_code, error.body, error.response.headers.get("retry-after"))
        except Exception as error:  # the SDKs let the errors of their transport and of JSON through
            return Failed(None, repr(error))
        self.history.append({"role": "assistant", "content": message.content})
        uses = [block for block in message.content if block.type == "tool_use"]
        self.calls = [block.id for block in uses]
        return Seen(
            text="".join(block.text for block in message.content if block.type == "text"),
            thoughts="".join(block.thinking for block in message.content if block.type == "thinking"),
            calls=tuple((block.name, dict(block.input)) for block in uses),
            stop=str(message.stop_reason),
            tokens=(
                message.usage.input_tokens,
                message.usage.cache_read_input_tokens or 0,
                message.usage.output_tokens,
            ),
            pieces=pieces,
            refusal=str(message.stop_details.explanation) if message.stop_details else "",
        )

    async def close(self) -> None:
        await self.client.close()


class Responses:
    def __init__(self, url: str, tools: bool = True) -> None:
        self.client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)
        self.history: list[Any] = []
        self.calls: list[str] = []
        function = {"type": "function", "name": "shell_command", "parameters": COMMAND, "strict": False}
        self.tools: list[Any] = [function] if tools else []

    async def ask(self, prompt: str, *, stream: bool) -> Seen | Failed:
        self.history.append({"role": "user", "content": prompt})
        return await self._send(stream)

    async def give(self, *results: str, stream: bool) -> Seen | Failed:
        for call, text in zip(self.calls, results, strict=True):
            self.history.append({"type": "function_call_output", "call_id": call, "output": text})
        return await self._send(stream)

    async def _send(self, stream: bool) -> Seen | Failed:
        asked: Any = {"model": "gpt-any", "input": self.history, "tools": self.tools}
        pieces = 0
        try:
            if stream:
                response: Any = None
                async for event in await self.client.responses.create(stream=True, **asked):
                    pieces += event.type.endswith(".delta")
                    response = getattr(event, "response", response)
            else:
                response = await self.client.responses.create(**asked)
        except openai.APIStatusError as error:
            return Failed(error.status_code, error.body, error.response.headers.get("retry-after"))
        except Exception as error:
            return Failed(None, repr(error))
        return self._seen(response, pieces)

    def _seen(self, response: Any, pieces: int) -> Seen | Failed:
        if response.status == "failed":
            return Failed(None, response.error.model_dump())
        if response.status == "in_progress":
            return Failed(None, "the stream ended early")
        self.history += [item.model_dump(exclude_none=True) for item in response.output]
        uses = [item for item in response.output if item.type == "function_call"]
        self.calls = [item.call_id for item in uses]
        said = [part for item in response.output if item.type == "message" for part in item.content]
        thoughts = [part.text for item in response.output if item.type == "reasoning" for part in item.summary]
        cached = response.usage.input_tokens_details.cached_tokens
        return Seen(
            text=response.output_text,
            thoughts="".join(thoughts),
            calls=tuple((item.name, json.loads(item.arguments)) for item in uses),
            stop=response.incomplete_details.reason if response.incomplete_details else response.status,
            tokens=(response.usage.input_tokens - cached, cached, response.usage.output_tokens),
            pieces=pieces,
            refusal="".join(part.refusal for part in said if part.type == "refusal"),
        )

    async def close(self) -> None:
        await self.client.close()


class Chat:
    def __init__(self, url: str, tools: bool = True) -> None:
        self.client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)
        self.history: list[Any] = []
        self.calls: list[str] = []
        function = {"type": "function", "function": {"name": "bash", "parameters": COMMAND}}
        self.tools: list[Any] = [function] if tools else []

    async def ask(self, prompt: str, *, stream: bool) -> Seen | Failed:
        self.history.append({"role": "user", "content": prompt})
        return await self._send(stream)

    async def give(self, *results: str, stream: bool) -> Seen | Failed:
        for call, text in zip(self.calls, results, strict=True):
            self.history.append({"role": "tool", "tool_call_id": call, "content": text})
        return await self._send(stream)

    async def _send(self, stream: bool) -> Seen | Failed:
        asked: Any = {"model": "gpt-any", "messages": self.history}
        if self.tools:
            asked["tools"] = self.tools
        pieces = 0
        try:
            if stream:
                async with self.client.chat.completions.stream(
                    stream_options={"include_usage": True}, **asked
                ) as events:
                    async for event in events:
                        pieces += event.type == "chunk" and bool(event.chunk.choices)
                    completion: Any = await events.get_final_completion()
            else:
                completion = await self.client.chat.completions.create(**asked)
        except openai.APIStatusError as error:
            return Failed(error.status_code, error.body, error.response.headers.get("retry-after"))
        except openai.ContentFilterFinishReasonError:
            return Seen(stop="content_filter")
        except Exception as error:
            return Failed(None, repr(error))
        return self._seen(completion, pieces)

    def _seen(self, completion: Any, pieces: int) -> Seen | Failed:
        choice = completion.choices[0]
        if choice.finish_reason is None:
            return Failed(None, "the stream ended early")
        self.history.append(choice.message.model_dump(exclude_none=True, exclude={"parsed"}))
        uses = choice.message.tool_calls or []
        self.calls = [call.id for call in uses]
        cached = completion.usage.prompt_tokens_details.cached_tokens
        return Seen(
            text=choice.message.content or "",
            thoughts=(choice.message.model_extra or {}).get("reasoning_content", ""),
            calls=tuple((call.function.name, json.loads(call.function.arguments)) for call in uses),
            stop=choice.finish_reason,
            tokens=(completion.usage.prompt_tokens - cached, cached, completion.usage.completion_tokens),
            pieces=pieces,
            refusal=choice.message.refusal or "",
        )

    async def close(self) -> None:
        await self.client.close()


class Gemini:
    def __init__(self, url: str, tools: bool = True) -> None:
        options = types.HttpOptions(base_url=url, retry_options=types.HttpRetryOptions(attempts=1))
        self.client = genai.Client(api_key=KEY, http_options=options)
        self.history: list[Any] = []
        self.calls: list[tuple[str | None, str]] = []
        declared = types.FunctionDeclaration(name="run_shell_command", parameters_json_schema=COMMAND)
        self.config = types.GenerateContentConfig(
            tools=[types.Tool(function_declarations=[declared])] if tools else [],
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )

    async def ask(self, prompt: str, *, stream: bool) -> Seen | Failed:
        self.history.append(types.UserContent(prompt))
        return await self._send(stream)

    async def give(self, *results: str, stream: bool) -> Seen | Failed:
        parts = [
            types.Part(function_response=types.FunctionResponse(id=call, name=name, response={"output": text}))
            for (call, name), text in zip(self.calls, results, strict=True)
        ]
        self.history.append(types.Content(role="user", parts=parts))
        return await self._send(stream)

    async def _send(self, stream: bool) -> Seen | Failed:
        asked: Any = {"model": "gemini-any", "contents": self.history, "config": self.config}
        try:
            if stream:
                answers = [each async for each in await self.client.aio.models.generate_content_stream(**asked)]
            else:
                answers = [await self.client.aio.models.generate_content(**asked)]
        except errors.APIError as error:
            return Failed(error.code, error.details)
        except Exception as error:
            return Failed(None, repr(error))
        return self._seen(answers)

    def _seen(self, answers: list[Any]) -> Seen | Failed:
        last = answers[-1].candidates[0] if answers else None
        if last is None or last.finish_reason is None:
            return Failed(None, "the stream ended early")
        parts = [part for each in answers for part in each.candidates[0].content.parts or []]
        self.history.append(types.Content(role="model", parts=parts))
        uses = [part.function_call for part in parts if part.function_call]
        self.calls = [(call.id, call.name) for call in uses]
        usage = answers[-1].usage_metadata
        cached = usage.cached_content_token_count
        return Seen(
            text="".join(part.text for part in parts if part.text and not part.thought),
            thoughts="".join(part.text for part in parts if part.text and part.thought),
            calls=tuple((call.name, call.args) for call in uses),
            stop=last.finish_reason.value,
            tokens=(usage.prompt_token_count - cached, cached, usage.candidates_token_count),
            pieces=len(answers),
            refusal=last.finish_message or "",
        )

    async def close(self) -> None:
        await self.client.aio.aclose()


SEATS: dict[str, type[Anthropic] | type[Responses] | type[Chat] | type[Gemini]] = {
    "anthropic": Anthropic,
    "responses": Responses,
    "chat": Chat,
    "gemini": Gemini,
}


def seat(api: str, url: str, *, tools: bool = True) -> Seat:
    return SEATS[api](url, tools)
