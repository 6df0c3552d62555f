"""The client of the official Python SDK, pinned to the era that it is given, or left to find one."""

import asyncio
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from checks import OnProgress, User, drive, read_target, text_of


@dataclass
class Connected:
    client: Client

    @property
    def version(self) -> str:
        return self.client.protocol_version

    async def names(self) -> list[str]:
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(
        self, name: str, arguments: dict[str, Any], on_progress: OnProgress | None = None
    ) -> tuple[str, bool]:
        result = await self.client.call_tool(name, arguments, progress_callback=on_progress)
        return text_of(result.content), bool(result.is_error)


async def main() -> None:
    started = read_target()
    user = User()

    async def answer(_context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        properties = getattr(params, "requested_schema", {}).get("properties", {})
        return types.ElicitResult(action="accept", content=user.answer(params.message, list(properties)))

    command, *args = started.target
    server = command if started.transport == "http" else StdioServerParameters(command=command, args=args)
    async with Client(server, mode=started.mode, elicitation_callback=answer) as client:
        await drive(started, user, Connected(client))


asyncio.run(main())
