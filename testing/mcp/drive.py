"""Drives a campaign through `karve mcp` with the official Python client.

drive.py KARVE PROJECT stdio|http: three rounds on the toy of testing/toy (one kept, one dropped for a
wrong result, one attempt on the harness refused), then the end. Prints "driven" if all went as it must.
"""

import json
import os
import re
import subprocess
import sys

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

KARVE, PROJECT, WAY = sys.argv[1:4]
TOKEN = "a-token-of-the-test-0123456789"
IDEA = {"mechanism": "half of it is not needed", "expected_ratio": 2.0}


async def call(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    text = result.content[0].text
    return (text, True) if result.is_error else (json.loads(text), False)


async def refused(client, tool, **arguments):
    """What is to be handed in again: an error, with the turn in its text."""
    value, failed = await call(client, tool, **arguments)
    assert failed, value
    return json.loads(value)


async def turn(client, tool, **arguments):
    value, failed = await call(client, tool, **arguments)
    assert not failed, value
    return value


def change(workspace, name, pattern, to):
    path = os.path.join(workspace, name)
    text = open(path).read()
    new = re.sub(pattern, to, text, flags=re.M)
    assert new != text, (name, pattern)
    open(path, "w").write(new)


async def drive(client):
    tools = {tool.name for tool in (await client.list_tools()).tools}
    assert {"next", "propose", "submit", "verdict", "knowledge", "report"} <= tools, tools
    now = await turn(client, "next")
    assert now["turn"] == "propose", now
    text, failed = await call(client, "submit", diff="x")
    assert failed and "waiting for a proposal" in text, text

    now = await turn(client, "propose", title="halve the work", **IDEA)
    change(now["workspace"], "kernel.sh", "^TIME=.*", "TIME=50")
    now = await turn(client, "submit", summary="half of it")
    assert now["last"]["verdict"] == "keep", now

    now = await turn(client, "propose", title="answer without looking", **IDEA)
    change(now["workspace"], "kernel.sh", "^result=.*", "result=8")
    now = await refused(client, "submit")
    assert now["turn"] == "implement", now
    now = await turn(client, "submit")
    assert now["last"]["verdict"] == "drop" and "mismatch" in now["last"]["why"], now

    now = await turn(client, "propose", title="skip the test", **IDEA)
    change(now["workspace"], "kernel.sh", "^TIME=.*", "TIME=20")
    change(now["workspace"], "test.sh", "exit 1", "exit 0")
    now = await refused(client, "submit")
    assert "read-only files changed: test.sh" in now["brief"], now
    now = await turn(client, "submit", give_up="it is not allowed")
    assert now["last"]["verdict"] == "drop", now

    rounds = await turn(client, "trend")
    assert [one["kept"] for one in rounds] == [True, False, False], rounds
    now = await turn(client, "propose", exhausted="nothing is left")
    assert now["turn"] == "finished", now
    print("driven", WAY, f"{now['speedup_over_original']:.2f}x")


async def over_stdio():
    server = StdioServerParameters(command=KARVE, args=["-C", PROJECT, "mcp", "--yes"])
    async with Client(stdio_client(server)) as client:
        await drive(client)


async def over_http():
    command = [KARVE, "-C", PROJECT, "mcp", "--yes", "--http", "127.0.0.1:0"]
    environment = {**os.environ, "KARVE_MCP_TOKEN": TOKEN}
    server = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        address = server.stderr.readline().split()[-1]
        refused = httpx2.post(address, json={}, headers={"Authorization": "Bearer wrong"})
        assert refused.status_code == 401, refused
        headers = {"Authorization": f"Bearer {TOKEN}"}
        elsewhere = {**headers, "Origin": "http://evil.example"}
        foreign = httpx2.post(address, json={}, headers=elsewhere)
        assert foreign.status_code == 403, foreign
        async with httpx2.AsyncClient(headers=headers, timeout=600) as http:
            async with Client(streamable_http_client(address, http_client=http)) as client:
                await drive(client)
    finally:
        server.kill()


anyio.run(over_stdio if WAY == "stdio" else over_http)
