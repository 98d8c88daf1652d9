"""An HTTP proxy for CONNECT: http_proxy.py PORT FROM TO LOG.  It connects FROM to TO, both host:port,
refuses everything else with 403, and writes a line for each request to LOG."""
import asyncio
import sys

port, known, to, log = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]


async def copy(reader, writer):
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.close()


async def serve(reader, writer):
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"{head[0]}\n")
    if head[0] != f"CONNECT {known} HTTP/1.1" or head[1] != f"Host: {known}":
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        writer.close()
        return
    there, back = await asyncio.open_connection(*to.rsplit(":", 1))
    writer.write(b"HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n")
    try:
        await asyncio.gather(copy(reader, back), copy(there, writer))
    except OSError:
        pass


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


asyncio.run(main())
