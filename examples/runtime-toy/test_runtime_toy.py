# SPDX-License-Identifier: Apache-2.0
"""Run beside the modules: ../python/build.sh plugin DIRECTORY/, then python3 -m unittest there."""

import struct
import unittest
from collections.abc import Sequence

from frames import ITEMS
from memory import TYPES
from runtime_toy import ToyRuntime
from unwindd_plugin import (
    ManagedFramesRequest, MemberPlace, NativeFrame, NativeStack, ObjectNotOpen, OpenRuntimeRequest, ReadError, Refusal, RuntimeEngine, RuntimeThread,
    ManagedVariable, SymbolPlace, TypeLayout,
)  # fmt: skip


class Memory(RuntimeEngine):
    """An engine with words of 8 bytes; what was not put there is not there."""

    def __init__(self) -> None:
        super().__init__()
        self.words: dict[int, bytes] = {}
        self.requests = 0

    def put(self, address: int, *words: int | bytes) -> None:
        for i, word in enumerate(words):
            self.words[address + 8 * i] = struct.pack("<Q", word) if isinstance(word, int) else word.ljust(8, b"\0")

    def read_memory(self, address: int, size: int, *, space: int = 0, thread: int = 0, lane: int = -1) -> bytes:
        (data,) = self.read_many([address], size)
        if data is None:
            raise ReadError("nothing is there")
        return data

    def read_many(self, addresses: Sequence[int], size: int) -> list[bytes | None]:
        self.requests += 1
        parts = [[self.words.get(a + at) for at in range(0, size, 8)] for a in addresses]
        return [b"".join(w for w in p if w) if all(p) else None for p in parts]


def request() -> OpenRuntimeRequest:
    """An interpreter whose structures have a word for each member, in order."""
    types = {}
    for name, members in TYPES.items():
        types[name] = TypeLayout(8 * len(members), {m: MemberPlace(8 * i, 8) for i, m in enumerate(members)})
    # Arrays of one item: a value is two words.
    types["toy_frame"] = TypeLayout(48, {**types["toy_frame"].members, "locals": MemberPlace(32, 16)})
    types["toy_list"] = TypeLayout(24, {"count": MemberPlace(0, 8), "items": MemberPlace(8, 16)})
    constants = {"TOY_KIND_UNSET": 0, "TOY_KIND_NUMBER": 1, "TOY_KIND_TEXT": 2, "TOY_KIND_LIST": 3, "TOY_STATE_READY": 0, "TOY_STATE_DONE": 3}
    symbols = {"toy_runtime": SymbolPlace(0x1000)}
    return OpenRuntimeRequest(1, machine=62, fp=6, sp=7, return_address=16, symbols=symbols, types=types, constants=constants, threads=[RuntimeThread(9, "77")])


def memory() -> Memory:
    """A thread with two frames in two activations, and a task."""
    m = Memory()
    m.put(0x1000, b"a.toy", 0x2000, 0x3000, 0x4000, 1, 0x8000, 32)
    m.put(0x2000, 0, 77, 0x5000, 0)  # the thread
    m.put(0x3000, 0, 1, 0, 2, 0, 0, 0x6000, 0x5100)  # the task
    m.put(0x4000, b"peek")
    m.put(0x5000, 0x5100, 0x6000, 0, 0x7008, 3, 0x6800)  # the inner frame: its local is a list
    m.put(0x5100, 0, 0x6000, 0, 0x7028, 1, -1 % (1 << 64))
    m.put(0x6000, b"main", b"x", 1, 1, 1, 12)
    m.put(0x6800, 1, 3, 0x6800)  # a list that has itself
    return m


NATIVE = [NativeFrame(1, 0x7000), NativeFrame(2, 0x7010, True, "toy_run"), NativeFrame(3, 0x7020), NativeFrame(4, 0x7030, True, "toy_run")]


class TestToy(unittest.TestCase):
    def opened(self, m: Memory) -> ToyRuntime:
        toy = ToyRuntime()
        answer = toy.open_runtime(m, request())
        self.assertEqual((True, [9], True, []), (answer.has_frames, answer.threads, answer.has_threads, list(answer.problems)))
        self.assertEqual([(0x8000, 0x8020)], [(c.start, c.end) for c in answer.code])
        return toy

    def test_activations_stand_for_their_native_frames(self) -> None:
        m = memory()
        toy = self.opened(m)
        asked = [NativeStack(9, NATIVE)] * 50
        before = m.requests
        stacks = toy.managed_frames(m, ManagedFramesRequest(1, asked, True, 2, 8))
        self.assertLess(m.requests - before, 12)  # for any number of stacks
        self.assertEqual([stacks[0]] * 50, stacks)
        inner, outer = stacks[0].runs
        self.assertEqual((1, 3, ""), (inner.first, outer.first, stacks[0].problem))
        (frame,) = inner.frames
        self.assertEqual(("main", "a.toy", 12), (frame.function, frame.file, frame.line))
        self.assertEqual("-1", outer.frames[0].variables[0].text)
        (variable,) = frame.variables
        (child,) = variable.children
        (deepest,) = child.children
        self.assertEqual((0, 1), (len(deepest.children), deepest.more))
        cut = toy.managed_frames(m, ManagedFramesRequest(1, [NativeStack(9, NATIVE[:2], True)]))
        self.assertEqual(([1], ""), ([r.first for r in cut[0].runs], cut[0].problem))
        self.assertEqual("", stacks[0].state)
        m.put(0x2000, 0, 77, 0x5000, 0x3000)
        (stack,) = toy.managed_frames(m, ManagedFramesRequest(1, [NativeStack(9, NATIVE)]))
        self.assertEqual("executes task 1", stack.state)
        other = [NativeFrame(1, 0x7000), NativeFrame(2, 0x7010)]
        self.assertRegex(toy.managed_frames(m, ManagedFramesRequest(1, [NativeStack(9, other)]))[0].problem, "not the interpreter's")

    def test_frames_in_a_circle_end(self) -> None:
        m = memory()
        m.put(0x5100, 0x5000)
        (stack,) = self.opened(m).managed_frames(m, ManagedFramesRequest(1, [NativeStack(9, NATIVE)]))
        self.assertEqual((2, "its frames break off at 0x5000"), (len(stack.runs), stack.problem))
        del m.words[0x5100]
        (stack,) = self.opened(m).managed_frames(m, ManagedFramesRequest(1, [NativeStack(9, NATIVE)]))
        self.assertEqual((1, "its frames break off at 0x5100"), (len(stack.runs), stack.problem))

    def test_lists_that_have_themselves_end(self) -> None:
        m, opened = memory(), request()
        opened.types["toy_list"].members["items"].size = 48
        opened.types["toy_list"].size = 56
        m.put(0x6800, 3, *[3, 0x6800] * 3)
        toy = ToyRuntime()
        toy.open_runtime(m, opened)
        (stack,) = toy.managed_frames(m, ManagedFramesRequest(1, [NativeStack(9, NATIVE)], True, 64, 100))

        def count(variables: Sequence[ManagedVariable]) -> int:
            return len(variables) + sum(count(v.children) for v in variables)

        self.assertEqual(ITEMS + 2, sum(count(f.variables) for r in stack.runs for f in r.frames))

    def test_tasks(self) -> None:
        m = memory()
        m.put(0x3000, 0x3100)
        m.put(0x3100, 0, 1, 0, 2, 0, 0, 0, 0)
        answer = self.opened(m).managed_threads(m, 1, True)
        (task,) = answer.threads
        self.assertEqual((1, "main", "ready", [2], 1), (task.number, task.name, task.state, task.waits_for, len(task.frames)))
        self.assertEqual(["1 tasks have the numbers of others: they are left out"], answer.problems)

    def test_thunks(self) -> None:
        toy = self.opened(memory())
        inside, outside = toy.code_rules(RuntimeEngine(), 1, [0x8010, 0x8020])
        self.assertEqual(("thunk of peek", 0x8000, 0x8020), (inside.frames[0].function, inside.start, inside.end))
        self.assertEqual([(0x8000, 7, 8), (0x8001, 7, 16), (0x8004, 6, 16), (0x8011, 7, 8)], [(r.start, r.cfa_register, r.cfa_offset) for r in inside.rows])
        self.assertEqual((0, "no thunk is there"), (outside.end, outside.reason))

    def test_what_is_not_known(self) -> None:
        self.assertRaises(ObjectNotOpen, ToyRuntime().code_rules, RuntimeEngine(), 1, [])
        bare = request()
        bare.types = {}
        self.assertRaisesRegex(Refusal, "struct toy_runtime is not known: the interpreter has no debug", ToyRuntime().open_runtime, memory(), bare)
        self.assertEqual(["the state of the interpreter: nothing is there"], ToyRuntime().open_runtime(Memory(), request()).problems)


if __name__ == "__main__":
    unittest.main()
