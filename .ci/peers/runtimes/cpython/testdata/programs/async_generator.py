# SPDX-License-Identifier: Apache-2.0
import asyncio
import contextlib

import truth


async def numbers():
    for n in range(3):
        if n == 2:
            truth.end()
        yield n
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def opened():
    yield numbers()


async def main():
    async with opened() as source:
        return [n async for n in source]


asyncio.run(main())
