# SPDX-License-Identifier: Apache-2.0
"""Run beside the modules: build.sh FOLDER DIRECTORY/, then python3 -m unittest there."""

import dataclasses
import queue
import threading
import time
import unittest
from collections.abc import Iterator, Sequence
from typing import Any

from unwindd_plugin import (
    NO_REGISTER, Architecture, Binding, CodeRange, Engine, FrameRules, Note, ObjectNotOpen, ReadError, Refusal, Return,
    ReturnSite, Row, Rule, Stop, TargetAnswer, TargetThread, Thread, Wave, kit, pack_rows, registers, unpack_rows,
)  # fmt: skip
from unwindd_plugin import arch_pb2 as pb
from unwindd_plugin import columns, errors
from unwindd_plugin.engine import Stream
from unwindd_plugin.wire import CALLS, served


def description() -> pb.Description:
    return pb.Description(
        name="test", version="1", address_bits=64, recognises=[pb.Recogniser(elf_machine=0xFE00, os_abi=-1)],
        registers=[registers(0, "r%d", 64, count=8), registers(8, ["pc"], 64, kind=pb.CLASS_PROGRAM_COUNTER)],
        pc=8, sp=7, fp=NO_REGISTER, return_address=8, call_distance=1, max_instruction=4, stack_align=8,
    )  # fmt: skip


class Good(Architecture):
    def describe(self) -> pb.Description:
        return description()

    def frame_rules(self, engine: Engine, handle: int, functions: Sequence[CodeRange]) -> Sequence[FrameRules]:
        row = [Row(f.start, f.start + len(f.code), 8, cfa_register=7, cfa_offset=8, rules=[Rule(8, pb.RULE_OFFSET, -8)]) for f in functions]
        return [FrameRules(rows=[r]) if r.start < r.end < 1 << 64 else FrameRules(reason="no code") for r in row]


class Columns(unittest.TestCase):
    def test_rows_come_back(self) -> None:
        rows = [
            Row(0, 4, 8, cfa_register=7, cfa_offset=-16, cfa_space=2, rules=[Rule(8, pb.RULE_OFFSET, -8), Rule(1, pb.RULE_EXPRESSION, expression=b"\x70\0")]),
            Row(4, 8, 8, cfa=b"\x77\x10", call_sites=[Rule(2, pb.RULE_REGISTER, register=3)], signal_frame=True),
            Row(1 << 63, (1 << 64) - 1, 8, window_save=True),
        ]
        self.assertEqual([_listed(r) for r in rows], [_listed(r) for r in unpack_rows(pack_rows(rows))])

    def test_columns_of_other_lengths_are_refused(self) -> None:
        for column in (pb.Blobs(lengths=[2], data=b"x"), pb.Blobs(lengths=[1], data=b"xy"), pb.Blobs(lengths=[], data=b"x")):
            self.assertRaises(Refusal, columns.split, column)
        self.assertRaises(Refusal, columns.split, columns.blobs([b"a"]), 2)
        self.assertRaises(Refusal, columns.split_registers, pb.RegistersColumn(counts=[2], numbers=[1], lengths=[0]), 1)
        self.assertRaises(Refusal, unpack_rows, pb.Rows(starts=[1]))

    def test_names_that_are_no_text_come_back(self) -> None:
        name = b"\xff\xc3(x"
        self.assertEqual([name], columns.split(columns.texts(columns.split_texts(columns.blobs([name])))))

    def test_registers_come_back(self) -> None:
        states: list[dict[int, bytes]] = [{3: b"\1\2", 1: b""}, {}, {7: b"x" * 128}]
        self.assertEqual(states, columns.split_registers(columns.pack_registers(states), 3))

    def test_a_large_column_takes_no_time(self) -> None:
        """Of 80,000 registers of 128 bytes: where each access copies all, it takes minutes."""
        column = columns.blobs([bytes(128)] * 80_000)
        begun = time.process_time()
        self.assertEqual(80_000, len(columns.split(column)))
        self.assertLess(time.process_time() - begun, 2)


def _listed(row: Row) -> list[Any]:
    members = [getattr(row, f.name) for f in dataclasses.fields(row)]
    return [list(m) if isinstance(m, (list, tuple)) else m for m in members]


class Calls(unittest.TestCase):
    def ask(self, arch: Architecture, name: str, request: Any) -> Any:
        return next(CALLS[name].make(arch, Engine(), request))

    def test_only_what_is_written_is_served(self) -> None:
        self.assertEqual(["Describe", "FrameRules"], list(served(Good())))

    def test_the_base_answers_as_go_does(self) -> None:
        self.assertEqual([0, 0], list(self.ask(Good(), "ClassifyReturn", returns(2)).classes))
        state = columns.pack_registers([{8: (0xBEEF).to_bytes(8, "little")}, {}])
        request = pb.BindThreadsRequest(threads=[1, 2], registers=state, processors=columns.blobs([b"", b""]), lanes=[0, 0], space_counts=[0, 0])
        answer = self.ask(Good(), "BindThreads", request)
        self.assertEqual(([0xBEEF, 0], [1, 1]), (list(answer.pcs), list(answer.lanes)))
        self.assertEqual([b"", b"the PC, register 8, is not among the thread's registers"], columns.split(answer.problems))

    def test_threads_of_a_core_come_in_parts(self) -> None:
        class Core(Good):
            def open_target(self, engine: Engine, notes: Sequence[Note]) -> TargetAnswer:
                wave = Wave("0", "1", "2", "k", (1, 2, 3), 0)
                stop = Stop("trap", ["S"], address=0, pc_exact=False)
                return TargetAnswer("core", threads=[TargetThread(str(i), {8: bytes(8)}, wave=wave, stop=stop) for i in range(2500)])

        request = pb.OpenTargetRequest(owners=columns.blobs([b"X"]), types=[1], data=columns.blobs([b""]))
        head, *parts = CALLS["OpenTarget"].make(Core(), Engine(), request)
        self.assertEqual([1024, 1024, 452], [len(p.threads.lanes) for p in parts])
        self.assertEqual((2500, "core"), (head.answer.threads, head.answer.kind))
        last = parts[2].threads
        self.assertEqual((b"2499", [1, 2, 3]), (columns.split(last.ids)[-1], list(last.waves.groups[-3:])))
        self.assertEqual((True, False, True), (last.stops.has_address[0], last.stops.has_trap_id[0], last.stops.has_pc_exact[0]))

    def test_an_answer_of_another_length_is_a_fault(self) -> None:
        class Short(Good):
            def classify_return(self, sites: Sequence[ReturnSite]) -> Sequence[Return]:
                return []

        self.assertRaisesRegex(ValueError, "0 entries, expected 2", self.ask, Short(), "ClassifyReturn", returns(2))


def returns(n: int) -> pb.ClassifyReturnRequest:
    return pb.ClassifyReturnRequest(pcs=range(n), code=columns.blobs([b"\0"] * n))


class Context:
    """What errors.fail uses of gRPC's."""

    def __init__(self) -> None:
        self.trailer = b""
        self.status: Any = None

    def set_trailing_metadata(self, metadata: Any) -> None:
        ((_, self.trailer),) = metadata

    def abort(self, code: Any, message: str) -> None:
        self.status = code.name, message


class Errors(unittest.TestCase):
    def test_status(self) -> None:
        for error, status in (
            (Refusal("no table"), ("UNKNOWN", "no table")),
            (ReadError("not there"), ("UNKNOWN", "not there")),
            (ObjectNotOpen("object 7"), ("FAILED_PRECONDITION", "object 7")),
        ):
            context = Context()
            errors.fail(context, "OpenObject", error)
            self.assertEqual(status, context.status)
            self.assertIn(pb.ArchitectureError(call="OpenObject").SerializeToString(), context.trailer)


class Streams(unittest.TestCase):
    def test_requests_are_answered_in_any_order(self) -> None:
        stream = Stream()
        inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        requests = stream.serve(iter(inbox.get, None))
        self.assertFalse(next(requests).id)  # ready
        read: dict[int, bytes] = {}

        def reader(address: int) -> None:
            read[address] = Engine(stream, 5).read_memory(address, 4)

        threads = [threading.Thread(target=reader, args=(a,)) for a in (1, 2)]
        for thread in threads:
            thread.start()
        asked = [next(requests), next(requests)]
        for request in reversed(asked):
            self.assertEqual(5, request.session)
            data = bytes([request.read_memory.address] * 4)
            inbox.put(pb.EngineAnswer(id=request.id, read_memory=pb.ReadMemoryAnswer(data=data)))
        for thread in threads:
            thread.join()
        self.assertEqual({1: b"\1\1\1\1", 2: b"\2\2\2\2"}, read)
        inbox.put(None)
        self.assertRaisesRegex(ReadError, "gone", lambda: _until_gone(stream))

    def test_parts_and_what_is_missing(self) -> None:
        def answer(p: pb.EngineRequest) -> Iterator[pb.EngineAnswer]:
            if p.HasField("read_section"):
                yield pb.EngineAnswer(id=p.id, partial=True, read_section=pb.SectionPart(data=b"ab", size=4))
                yield pb.EngineAnswer(id=p.id, read_section=pb.SectionPart(data=b"cd"))
            elif p.read_memory.more:
                yield pb.EngineAnswer(id=p.id, read_memory=pb.ReadMemoryAnswer(data=b"1\0", missing=[1]))
            else:
                yield pb.EngineAnswer(id=p.id, read_memory=pb.ReadMemoryAnswer(data=b"xy", error="the end"))

        engine = Answered(answer)
        self.assertEqual(b"abcd", engine.read_section(1))
        self.assertEqual([b"1", None], engine.read_many([16, 17], 1))
        self.assertEqual([b"xy"], engine.read_many([16], 2))
        self.assertEqual([None], engine.read_many([16], 3))
        self.assertEqual([], engine.read_many([], 3))
        with self.assertRaisesRegex(ReadError, "2 bytes of 9 at 0x10 were read: the end") as caught:
            engine.read_memory(16, 9)
        self.assertEqual(b"xy", caught.exception.data)


class Answered(Engine):
    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    def _ask(self, request: pb.EngineRequest) -> Any:
        return self.answer(request)


def _until_gone(stream: Stream) -> None:
    for _ in range(1000):  # the end is noticed by another thread
        if stream._is_over:
            break
        time.sleep(0.01)
    Engine(stream, 5).read_memory(1, 4)


class Kit(unittest.TestCase):
    def test_good(self) -> None:
        kit.check(self, Good())

    def test_faults_are_found(self) -> None:
        class Changing(Good):
            calls = 0

            def describe(self) -> pb.Description:
                self.calls += 1
                d = description()
                d.version = str(self.calls)
                return d

        class NoPC(Good):
            def describe(self) -> pb.Description:
                d = description()
                d.pc = 99
                return d

        class Trusting(Good):
            def bind_threads(self, engine: Engine, threads: Sequence[Thread]) -> Sequence[Binding]:
                return [Binding(pc=t.registers[8][0]) for t in threads]

        class Neighbours(Good):
            def classify_return(self, sites: Sequence[ReturnSite]) -> Sequence[Return]:
                return [Return(pb.RETURN_NOT_AFTER_CALL if len(sites) > 9 else pb.RETURN_UNKNOWN) for _ in sites]

        class Backwards(Good):
            def frame_rules(self, engine: Engine, handle: int, functions: Sequence[CodeRange]) -> Sequence[FrameRules]:
                return [FrameRules(rows=[Row(9, 5, 8)]) for _ in functions]

        for arch, check, detail in (
            (Changing(), "description", "two calls gave different"),
            (NoPC(), "description", "pc is 99"),
            (Trusting(), "garbage", "KeyError"),
            (Neighbours(), "batches", "ClassifyReturn: the first two entries have other classes"),
            (Backwards(), "rows", "from 0x9 to 0x5"),
            (Architecture(), "description", "no describe"),
        ):
            found = kit.verify(arch)
            self.assertTrue(any(f.check == check and detail in f.detail for f in found), f"{type(arch).__name__}: {found}")


if __name__ == "__main__":
    unittest.main()
