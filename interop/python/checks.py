"""What both clients in Python are put through; see ../checks.ts for the checks and the lines that they print."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

ANSWERS: dict[str, dict[str, Any]] = {
    "What is your name?": {"name": "Ada"},
    "Which colour?": {"choice": "red"},
    "Really red?": {"confirm": True},
}

NAMES = ["echo", "fail", "steps", "slow", "ask", "ask_twice"]

WORDS = "Grüße, 世界 🌍\u2028next\u2029last"

OnProgress = Callable[[float, float | None, str | None], Awaitable[None]]


class Driven(Protocol):
    """A connected client. `call` gives the text of a result, and whether it is an error."""

    @property
    def version(self) -> str: ...
    async def names(self) -> list[str]: ...
    async def call(
        self, name: str, arguments: dict[str, Any], on_progress: OnProgress | None = None
    ) -> tuple[str, bool]: ...


@dataclass
class Started:
    """What the driver was started with."""

    transport: str
    era: str
    label: str
    target: Sequence[str]

    @property
    def mode(self) -> str:
        """The era as both clients name it."""
        return "legacy" if self.era < "2026-07-28" else self.era

    @property
    def version(self) -> str:
        """The revision that has to come of it."""
        return "2026-07-28" if self.era == "auto" else self.era


@dataclass
class User:
    """Answers questions, and remembers them."""

    asked: list[str] = field(default_factory=list)

    def answer(self, message: str, properties: Sequence[str]) -> dict[str, Any]:
        self.asked.append(message)
        content = ANSWERS[message]
        equal("the form", list(properties), list(content))
        return content


def read_target() -> Started:
    if len(sys.argv) < 5 or sys.argv[1] not in ("stdio", "http"):
        sys.exit("usage: DRIVER stdio|http ERA LABEL TARGET...")
    return Started(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])


def equal(what: str, seen: object, expected: object) -> None:
    if seen != expected:
        raise AssertionError(f"{what}: {seen!r} instead of {expected!r}")


async def check(name: str, body: Callable[[], Awaitable[None]]) -> None:
    ok, detail = True, ""
    try:
        async with asyncio.timeout(20):
            await body()
    except Exception as error:
        ok, detail = False, f"{type(error).__name__}: {error}"
    print(json.dumps({"check": name, "ok": ok, "detail": detail}), flush=True)


def text_of(content: Sequence[Any]) -> str:
    return "".join(block.text if block.type == "text" else f"({block.type})" for block in content)


async def drive(started: Started, user: User, client: Driven) -> None:
    async def connected() -> None:
        equal("the version", client.version, started.version)

    async def listed() -> None:
        equal("the tools", await client.names(), NAMES)

    async def called() -> None:
        equal("the result", await client.call("echo", {"text": WORDS}), (WORDS, False))

    async def failed() -> None:
        equal("the result", await client.call("fail", {}), ("disk sda is full", True))

    async def progressed() -> None:
        seen: list[tuple[float, float | None, str | None]] = []

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            seen.append((progress, total, message))

        equal("the result", await client.call("steps", {}, on_progress), ("took 10 steps", False))
        expected = [(float(step), 10.0, f"step {step}") for step in range(1, 11)]
        # Callbacks are tasks beside the call: the last one may still be on its way.
        for _ in range(200):
            if len(seen) == len(expected):
                break
            await asyncio.sleep(0.01)
        equal("the progress", seen, expected)

    async def cancelled() -> None:
        holding = asyncio.Event()

        async def on_progress(_progress: float, _total: float | None, _message: str | None) -> None:
            holding.set()

        call = asyncio.create_task(client.call("slow", {"label": started.label}, on_progress))
        await holding.wait()
        call.cancel("enough")
        ended = await asyncio.gather(call, return_exceptions=True)
        equal("the call", [type(end) for end in ended], [asyncio.CancelledError])
        equal("a call after it", await client.call("echo", {"text": "on"}), ("on", False))

    async def asked() -> None:
        user.asked.clear()
        equal("the result", await client.call("ask", {}), ("Hello, Ada.", False))
        equal("the questions", user.asked, ["What is your name?"])

    async def asked_twice() -> None:
        user.asked.clear()
        equal("the result", await client.call("ask_twice", {}), ("red: true", False))
        equal("the questions", user.asked, ["Which colour?", "Really red?"])

    await check("connect", connected)
    await check("list", listed)
    await check("call", called)
    await check("error", failed)
    await check("progress", progressed)
    await check("cancel", cancelled)
    await check("ask", asked)
    await check("ask_twice", asked_twice)
