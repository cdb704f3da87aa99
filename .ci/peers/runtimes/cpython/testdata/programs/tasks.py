# SPDX-License-Identifier: Apache-2.0
import asyncio

import truth


async def waiter(event, depth):
    if depth:
        await waiter(event, depth - 1)
    else:
        await event.wait()


async def stop():
    await asyncio.sleep(0.05)
    truth.end()


async def main():
    event = asyncio.Event()
    children = [asyncio.ensure_future(waiter(event, n)) for n in range(3)]
    await asyncio.gather(stop(), *children)


asyncio.run(main())
