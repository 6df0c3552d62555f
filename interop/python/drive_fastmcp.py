"""The client of FastMCP, pinned to the era that it is given, or left to find one."""

import asyncio
from dataclasses import dataclass
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

from checks import OnProgress, User, drive, read_target, text_of


@dataclass
class Connected:
    client: Client[Any]

    @property
    def version(self) -> str:
        return str(self.client.session.protocol_version)

    async def names(self) -> list[str]:
        return [tool.name for tool in await self.client.list_tools()]

    async def call(
        self, name: str, arguments: dict[str, Any], on_progress: OnProgress | None = None
    ) -> tuple[str, bool]:
        result = await self.client.call_tool_mcp(name, arguments, progress_handler=on_progress)
        return text_of(result.content), bool(result.is_error)


async def main() -> None:
    started = read_target()
    user = User()

    async def answer(message: str, _type: Any, params: Any, _context: Any) -> dict[str, Any]:
        return user.answer(message, list(params.requested_schema.get("properties", {})))

    command, *args = started.target
    transport = (
        StreamableHttpTransport(command)
        if started.transport == "http"
        else StdioTransport(command, args, keep_alive=False)
    )
    async with Client(transport, mode=started.mode, elicitation_handler=answer) as client:
        await drive(started, user, Connected(client))


asyncio.run(main())
