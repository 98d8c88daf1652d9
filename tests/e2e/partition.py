"""HTTP proxies for CONNECT, one for each region, whose connections can be held: partition.py FILE
NAME=PROXY-PORT:REGION-PORT...  Each region dials through the proxy of its name.  FILE has lines
`FROM TO`: no byte of these directions passes, and no connection of such a pair is made, while the line
is there; connections do not break."""
import asyncio
import os
import sys

path = sys.argv[1]
regions = {name: tuple(map(int, ports.split(":"))) for name, ports in (word.split("=") for word in sys.argv[2:])}
at = {f"127.0.0.1:{port}": name for name, (_, port) in regions.items()}
held = set()


async def follow():
    while True:
        if os.path.exists(path):
            with open(path, encoding="ascii") as file:
                held.clear()
                held.update(tuple(line.split()) for line in file)
        await asyncio.sleep(0.02)


async def passes(*directions):
    while held.intersection(directions):
        await asyncio.sleep(0.02)


async def copy(reader, writer, direction):
    while data := await reader.read(1 << 16):
        await passes(direction)
        writer.write(data)
        await writer.drain()
    await passes(direction)
    writer.close()


def proxy_of(name):
    async def serve(reader, writer):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            to = head[0].split()[1]
            there, back = (name, at[to]), (at[to], name)
            await passes(there, back)
            from_region, to_region = await asyncio.open_connection(*to.split(":"))
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(copy(reader, to_region, there), copy(from_region, writer, back))
        except (OSError, asyncio.IncompleteReadError):
            writer.transport.abort()

    return serve


async def main():
    servers = [await asyncio.start_server(proxy_of(name), "127.0.0.1", port) for name, (port, _) in regions.items()]
    await asyncio.gather(follow(), *(server.serve_forever() for server in servers))


asyncio.run(main())
