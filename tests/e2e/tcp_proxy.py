"""A TCP proxy that cuts its connections: tcp_proxy.py LISTEN CONNECT FILE.  It writes the number of
cuts to FILE after each."""
import asyncio
import random
import sys

listen, connect, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
draw = random.Random(1)
cuts = 0


async def copy(reader, writer):
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()


async def serve(reader, writer):
    global cuts
    there, back = await asyncio.open_connection("127.0.0.1", connect)
    try:
        both = asyncio.gather(copy(reader, back), copy(there, writer))
        await asyncio.wait_for(both, draw.uniform(0.03, 0.2))
    except asyncio.TimeoutError:
        cuts += 1
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"{cuts}\n")
    except OSError:
        pass
    writer.transport.abort()
    back.transport.abort()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", listen)
    async with server:
        await server.serve_forever()


asyncio.run(main())
