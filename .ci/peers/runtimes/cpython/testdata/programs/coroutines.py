# SPDX-License-Identifier: Apache-2.0
import asyncio

import truth


async def leaf():
    await asyncio.sleep(0)
    truth.end()


async def middle():
    async with asyncio.Lock():
        await leaf()


async def main():
    await middle()


asyncio.run(main())
