# SPDX-License-Identifier: Apache-2.0
import asyncio
import concurrent.futures
import threading

import truth

gate = threading.Event()


def blocked(n):
    gate.wait()
    return n


def stop():
    truth.end()


async def main():
    loop = asyncio.get_running_loop()
    with concurrent.futures.ThreadPoolExecutor(4, thread_name_prefix="worker") as pool:
        waiting = [loop.run_in_executor(pool, blocked, n) for n in range(3)]
        await asyncio.sleep(0.2)
        await loop.run_in_executor(pool, stop)
        await asyncio.gather(*waiting)


asyncio.run(main())
