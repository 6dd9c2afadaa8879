"""A minimal agent on the official SDK, to hold our client against. Run as a program by test_acp_sdk.py."""

# ruff: noqa: ARG002 - the signatures are the SDK's

import asyncio
from typing import Any, cast

import acp
from acp.schema import (
    AgentCapabilities,
    AllowedOutcome,
    Cost,
    Implementation,
    PermissionOption,
    ToolCallUpdate,
    Usage,
    UsageUpdate,
)


class Parrot:
    """Only what a turn needs of the SDK's `Agent`; the SDK answers the rest as unknown."""

    def __init__(self) -> None:
        self._cancelled = asyncio.Event()

    def on_connect(self, conn: acp.Client) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **kwargs: Any) -> acp.InitializeResponse:
        return acp.InitializeResponse(
            protocol_version=protocol_version,
            agent_capabilities=AgentCapabilities(load_session=True),
            agent_info=Implementation(name="parrot", version="1"),
        )

    async def new_session(self, cwd: str, **kwargs: Any) -> acp.NewSessionResponse:
        return acp.NewSessionResponse(session_id="parrot-1")

    async def load_session(self, cwd: str, session_id: str, **kwargs: Any) -> acp.LoadSessionResponse:
        await self._client.session_update(session_id, acp.update_user_message_text("hello from before"))
        await self._client.session_update(session_id, acp.update_agent_message_text("answer from before"))
        return acp.LoadSessionResponse()

    async def prompt(self, prompt: list[Any], session_id: str, **kwargs: Any) -> acp.PromptResponse:
        text = prompt[-1].text
        if text == "fail":
            raise acp.RequestError(-32603, "the parrot is asleep")
        await self._client.session_update(session_id, acp.update_agent_thought_text("hm"))
        await self._client.session_update(session_id, acp.update_agent_message_text(text))
        if text == "wait":
            await self._cancelled.wait()
            return acp.PromptResponse(stop_reason="cancelled")
        if text == "tool":
            await self._use_tool(session_id)
        await self._client.session_update(
            session_id,
            UsageUpdate(session_update="usage_update", used=70, size=100, cost=Cost(amount=0.25, currency="USD")),
        )
        usage = Usage(total_tokens=7, input_tokens=4, output_tokens=2, cached_read_tokens=1)
        return acp.PromptResponse(stop_reason="end_turn", usage=usage)

    async def _use_tool(self, session_id: str) -> None:
        await self._client.session_update(
            session_id, acp.start_tool_call("t1", "peck", kind="execute", status="pending", raw_input={"seed": 1})
        )
        asked = await self._client.request_permission(
            session_id,
            ToolCallUpdate(tool_call_id="t1"),
            [
                PermissionOption(option_id="no", name="No", kind="reject_once"),
                PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
            ],
        )
        allowed = isinstance(asked.outcome, AllowedOutcome) and asked.outcome.option_id == "yes"
        block = acp.tool_content(acp.text_block("pecked"))
        await self._client.session_update(
            session_id,
            acp.update_tool_call("t1", status="completed" if allowed else "failed", content=[block]),
        )

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        self._cancelled.set()


if __name__ == "__main__":
    asyncio.run(acp.run_agent(cast(Any, Parrot()), use_unstable_protocol=True))
