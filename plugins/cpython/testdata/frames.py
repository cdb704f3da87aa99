# SPDX-License-Identifier: Apache-2.0

"""Frames of many kinds. The program writes the frames of its threads, as it sees them itself, to the file that its argument
names, and ends with a core. What is expected of its tasks is in frames_test.go."""

import asyncio
import functools
import json
import os
import sys
import threading
import time


def frames(frame):
    """The function, file and line of each frame, innermost first."""
    out = []
    while frame:
        code = frame.f_code
        out.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return out


def write(own):
    all = sys._current_frames()
    all[threading.get_ident()] = own
    names = {t.ident: t.name for t in threading.enumerate()}
    with open(sys.argv[1], "w") as f:
        json.dump([{"Name": names[i], "Frames": frames(f)} for i, f in all.items()], f)


class Ordered:
    def __init__(self, n):
        self.n = n
        if n == 3:
            self.generated()

    def generated(self):
        def values():
            yield from (self.recursive(
                n,
                20,
            ) for n in range(3))
        return list(values())

    def recursive(self, n, left):
        if left:
            return self.recursive(n, left - 1) + 1
        return functools.reduce(lambda a, b: self.stop(), [1, 2])

    def stop(self):
        with lock:
            write(sys._getframe()); os.abort()


def generator(n):
    for i in range(n):
        yield helper(i)


def helper(i):
    if i == 2:
        time.sleep(1000)
    return i


def waiter():
    def acquire():
        held.acquire()
    acquire()


async def leaf():
    await asyncio.sleep(1000)


class Entered:
    async def __aenter__(self):
        await leaf()

    async def __aexit__(self, *a):
        pass


async def middle():
    async with Entered():
        pass


async def numbers(task):
    for i in range(3):
        yield i
        if i == 1:
            await task


async def consume(task):
    async for i in numbers(task):
        pass


async def last():
    sorted([Ordered(n) for n in (1, 2, 3)], key=lambda o: o.n)


async def main():
    tasks = [asyncio.create_task(middle())]
    tasks.append(asyncio.create_task(consume(tasks[0])))
    tasks[0].set_name("the middle")
    await asyncio.sleep(0.2)
    asyncio.create_task(last())
    await asyncio.gather(*tasks)


lock, held = threading.Lock(), threading.Lock()
held.acquire()
threading.Thread(target=lambda: list(generator(5)), name="generates", daemon=True).start()
threading.Thread(target=waiter, name="w\u00e4its \u2026", daemon=True).start()
asyncio.run(main())
