# SPDX-License-Identifier: Apache-2.0
"""Run beside the modules: build.sh FOLDER DIRECTORY/, then python3 -m unittest there."""

import contextlib
import dataclasses
import io
import queue
import tempfile
import threading
import time
import unittest
from collections.abc import Iterator, Sequence
from typing import Any

import grpc

from unwindd_plugin import (
    FILE_SPACE, NO_REGISTER, Architecture, ArchitectureService, Binding, CodeRange, CodeRules, Engine, FrameRules, FunctionPlace, HostProcess,
    LaneState, ManagedException, ManagedFrame, ManagedFramesRequest, ManagedLock, ManagedRun, ManagedStack, ManagedThread, ManagedThreadsAnswer, ManagedVariable, MemberPlace, NativeFrame, NativeStack,
    Note, ObjectAnswer, ObjectNotOpen, ObjectRequest, OpenRuntimeAnswer, OpenRuntimeRequest, ReadError, Refusal, Return, ReturnSite, Row, Rule,
    Runtime, RuntimeCode, RuntimeConstants, RuntimeDescription, RuntimeEngine, RuntimeLock, RuntimeRecogniser, RuntimeSegment, RuntimeService, RuntimeThread,
    RuntimeType, Saved, SpaceMemory, Stop, Symbol, SymbolPlace, TargetAnswer, TargetFile, TargetThread, Thread, TypeLayout, Wave, kit, pack_rows, registers, unpack_rows,
)  # fmt: skip
from unwindd_plugin import arch_pb2 as pb
from unwindd_plugin import columns, errors, runtimewire, service
from unwindd_plugin import runtime_pb2 as rpb
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
            def open_target(self, engine: Engine, notes: Sequence[Note], file: TargetFile | None = None) -> TargetAnswer:
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

    def test_lanes_of_a_core_of_sections(self) -> None:
        class Core(Good):
            def open_target(self, engine: Engine, notes: Sequence[Note], file: TargetFile | None = None) -> TargetAnswer:
                assert file is not None
                lanes = [LaneState(i, {8: bytes(4)}, [Saved(9, 1, i, FILE_SPACE)], [SpaceMemory(6, 0, 8, i, FILE_SPACE)]) for i in (1, 3)]
                thread = TargetThread("w", lanes=4, callers=[1, 2], lane_states=lanes, lead=3, state="exited")
                memory = [SpaceMemory(0, 64, 8, file.size - 8, FILE_SPACE)]
                return TargetAnswer("core", threads=[thread], memory=memory, launch_functions=["f"], host_process=HostProcess(7))

        request = pb.OpenTargetRequest(file=pb.TargetFile(machine=190, size=100))
        head, part = CALLS["OpenTarget"].make(Core(), Engine(), request)
        self.assertEqual(([92], [FILE_SPACE], 7), (list(head.answer.memory.addresses), list(head.answer.memory.intos), head.answer.host_process.pid))
        lanes = part.threads.lane_states
        self.assertEqual(([2], [1, 3], [1, 3]), (list(lanes.counts), list(lanes.lanes), list(lanes.saved.addresses)))
        self.assertEqual(([2], [1, 2], [3]), (list(part.threads.caller_counts), list(part.threads.callers), list(part.threads.leads)))

    def test_symbols_may_have_less(self) -> None:
        seen: list[Symbol] = []

        class Objects(Good):
            def open_object(self, engine: Engine, request: ObjectRequest) -> ObjectAnswer:
                seen.extend(request.symbols)
                return ObjectAnswer()

        symbols = pb.Symbols(names=columns.blobs([b"f"]), addresses=[1], sizes=[2])
        self.ask(Objects(), "OpenObject", pb.OpenObjectRequest(symbols=symbols))
        symbols.others.append(0x60)
        symbols.sections.append(4)
        self.ask(Objects(), "OpenObject", pb.OpenObjectRequest(symbols=symbols))
        self.assertEqual([Symbol("f", 1, 2), Symbol("f", 1, 2, 0x60, 4)], seen)

    def test_an_answer_of_another_length_is_a_fault(self) -> None:
        class Short(Good):
            def classify_return(self, sites: Sequence[ReturnSite]) -> Sequence[Return]:
                return []

        self.assertRaisesRegex(ValueError, "0 entries, expected 2", self.ask, Short(), "ClassifyReturn", returns(2))


def returns(n: int) -> pb.ClassifyReturnRequest:
    return pb.ClassifyReturnRequest(pcs=range(n), code=columns.blobs([b"\0"] * n))


class Script(Runtime):
    """A runtime that answers with what it was asked, and with all that answers can have."""

    opened: OpenRuntimeRequest
    asked: ManagedFramesRequest

    def describe(self) -> RuntimeDescription:
        return RuntimeDescription(
            "script", "1", [RuntimeRecogniser(section=".s", symbol="run", build_id=b"\1")], ["run", "gone"],
            [RuntimeType("frame", ["pc", "gone"], unit="a.c"), RuntimeType("gone", ["x"])], [RuntimeConstants("K_", unit="a.c")], "task",
        )  # fmt: skip

    def open_runtime(self, engine: RuntimeEngine, request: OpenRuntimeRequest) -> OpenRuntimeAnswer:
        self.opened = request
        locks = [RuntimeLock(16, "the lock", 7, [7, 8]), RuntimeLock(17, "another")]
        return OpenRuntimeAnswer("3", [RuntimeCode(1, 2, "heap")], True, [7], True, ["a problem"], locks, "Fatal error: no")

    def code_rules(self, engine: RuntimeEngine, runtime: int, pcs: Sequence[int]) -> Sequence[CodeRules]:
        rows = [Row(1, 2, 8, cfa_register=7, cfa_offset=8)]
        return [CodeRules(1, 2, rows, [ManagedFrame("f")]) if pc == 1 else CodeRules(reason=f"{runtime}") for pc in pcs]

    def managed_frames(self, engine: RuntimeEngine, request: ManagedFramesRequest) -> Sequence[ManagedStack]:
        self.asked = request
        tree = ManagedVariable("v", "list", is_param=True, children=[ManagedVariable("a", children=[ManagedVariable("b")]), ManagedVariable("c", more=3)])
        frame = ManagedFrame("f", "f.s", 4, 5, rpb.MANAGED_INTERPRETED, [tree, ManagedVariable("w", text="1", status=rpb.VALUE_UNSET)])
        stacks = [ManagedStack([ManagedRun(0, 1, [frame, ManagedFrame("g")])], "cut") for _ in request.threads]
        stacks[0].name, stacks[0].locks = "worker", [ManagedLock(16, "the lock"), ManagedLock(17, "another", True)]
        stacks[-1].state, stacks[-1].exception = "idle", ManagedException("Error", "no", [ManagedFrame("g", line=3)])
        return stacks

    def managed_threads(self, engine: RuntimeEngine, runtime: int, frames: bool) -> ManagedThreadsAnswer:
        return ManagedThreadsAnswer([ManagedThread(i + 1, waits_for=[i] * (i % 2), registers={8: b"\1"}) for i in range(1500)], ["short"])


class Runtimes(unittest.TestCase):
    def ask(self, runtime: Runtime, name: str, request: Any) -> Any:
        return next(runtimewire.CALLS[name].make(runtime, RuntimeEngine(), request))

    def test_only_what_is_written_is_served(self) -> None:
        class Bare(Runtime):
            def describe(self) -> RuntimeDescription:
                return RuntimeDescription("bare", "1", [RuntimeRecogniser(symbol="bare")])

        self.assertEqual(["Describe"], list(runtimewire.served(Bare())))
        self.assertEqual(5, len(runtimewire.served(Script())))
        self.assertEqual(["the runtime makes no code"], [c.reason for c in Bare().code_rules(RuntimeEngine(), 1, [2])])

    def test_description(self) -> None:
        d = self.ask(Script(), "Describe", pb.DescribeRequest())
        want = rpb.RuntimeDescription(
            name="script", version="1", recognises=[rpb.RuntimeRecogniser(section=".s", symbol="run", build_id=b"\1")], symbols=["run", "gone"],
            types=[rpb.RuntimeType(unit="a.c", name="frame", members=["pc", "gone"]), rpb.RuntimeType(name="gone", members=["x"])],
            constants=[rpb.RuntimeConstants(unit="a.c", prefix="K_")], thread_kind="task", feature=3,
        )  # fmt: skip
        self.assertEqual(want, d)

    def test_modules_have_what_the_description_asks_for(self) -> None:
        request = rpb.OpenRuntimeRequest(
            runtime=5, path=b"/s", machine=62, segments=rpb.RuntimeSegments(addresses=[0x10], sizes=[8], starts=[0x1010]),
            symbols=rpb.SymbolPlaces(known=[True, False], addresses=[0x1012, 0], sizes=[2, 0]),
            types=rpb.TypeLayouts(
                sizes=[16, 0], problems=columns.blobs([b"no gone", b"none"]), member_counts=[2, 0], offsets=[8, 0], member_sizes=[4, 0]
            ),
            constants=rpb.NamedConstants(names=columns.blobs([b"K_A"]), values=[-1]),
            threads=rpb.RuntimeThreads(threads=[7], ids=columns.blobs([b"11"]), names=columns.blobs([b"n"])),
        )  # fmt: skip
        script = Script()
        answer = self.ask(script, "OpenRuntime", request)
        self.assertEqual(([1], [2], [b"heap"], [7]), (list(answer.code.starts), list(answer.code.ends), columns.split(answer.code.names), list(answer.threads)))
        self.assertEqual((True, True, [b"a problem"], "3"), (answer.has_frames, answer.has_threads, columns.split(answer.problems), answer.version))
        k = answer.locks
        self.assertEqual(([16, 17], [b"the lock", b"another"], [7, 0]), (list(k.addresses), columns.split(k.names), list(k.holders)))
        self.assertEqual(([True, False], [2, 0], [7, 8]), (list(k.has_holder), list(k.waiter_counts), list(k.waiters)))
        self.assertEqual(b"Fatal error: no", answer.fatal)
        r = script.opened
        self.assertEqual({"run": SymbolPlace(0x1012, 2)}, r.symbols)
        self.assertEqual({"frame": TypeLayout(16, {"pc": MemberPlace(8, 4)}, "no gone"), "gone": TypeLayout(0, {}, "none")}, r.types)
        self.assertEqual(({"K_A": -1}, [RuntimeThread(7, "11", "n")], [RuntimeSegment(0x10, 8, 0x1010)]), (r.constants, r.threads, r.segments))
        self.assertEqual((0x1017, None, None), (r.memory_address(0x17), r.memory_address(0x18), r.memory_address(0xF)))
        request.types.member_counts[0] = 1
        self.assertRaises(Refusal, self.ask, script, "OpenRuntime", request)

    def test_code(self) -> None:
        answer = self.ask(Script(), "CodeRules", rpb.CodeRulesRequest(runtime=5, pcs=[1, 9]))
        self.assertEqual(([1, 0], [1, 0], [1, 0]), (list(answer.starts), list(answer.row_counts), list(answer.frame_counts)))
        self.assertEqual(([b"", b"5"], 8), (columns.split(answer.reasons), unpack_rows(answer.rows)[0].cfa_offset))

    def test_frames_and_trees(self) -> None:
        frames = rpb.NativeFrames(pcs=[1, 2], cfas=[16, 0], has_cfa=[True, False], in_module=[False, True], functions=columns.blobs([b"", b"run"]))
        request = rpb.ManagedFramesRequest(runtime=5, variables=True, depth=2, elements=3, threads=[7, 8], frame_counts=[2, 0], frames=frames, cut=[True, False])
        script = Script()
        answer = self.ask(script, "ManagedFrames", request)
        native = [NativeFrame(1, 16), NativeFrame(2, None, True, "run")]
        self.assertEqual(ManagedFramesRequest(5, [NativeStack(7, native, True), NativeStack(8, [])], True, 2, 3), script.asked)
        self.assertEqual(([1, 1], [2, 2], [b"cut"] * 2), (list(answer.run_counts), list(answer.frame_counts), columns.split(answer.problems)))
        s, x = answer.states, answer.states.exceptions
        self.assertEqual(([b"worker", b""], [b"", b"idle"], [2, 0]), (columns.split(s.names), columns.split(s.states), list(s.lock_counts)))
        self.assertEqual(([16, 17], [False, True]), (list(s.locks.addresses), list(s.locks.waited)))
        self.assertEqual(([False, True], [b"Error"], [b"no"], [1]), (list(s.has_exception), columns.split(x.types), columns.split(x.texts), list(x.frame_counts)))
        self.assertEqual([3], list(x.frames.lines))
        v = answer.frames.variables
        self.assertEqual([b"v", b"a", b"b", b"c", b"w"] * 2, columns.split(v.names))
        self.assertEqual(([2, 1, 0, 0, 0] * 2, [0, 0, 0, 3, 0] * 2), (list(v.child_counts), list(v.more)))
        self.assertEqual([2, 0, 2, 0], list(answer.frames.variable_counts))
        request.frames.cfas.append(1)
        self.assertRaises(Refusal, self.ask, script, "ManagedFrames", request)
        self.assertFalse(runtimewire.pack_frames([ManagedFrame("f")]).HasField("variables"))

    def test_threads_come_in_parts(self) -> None:
        head, *parts = runtimewire.CALLS["ManagedThreads"].make(Script(), RuntimeEngine(), rpb.ManagedThreadsRequest(runtime=5, frames=True))
        self.assertEqual([b"short"], columns.split(head.answer_problems))
        self.assertEqual([1024, 476], [len(p.numbers) for p in parts])
        self.assertEqual(([1, 3], 2), (list(parts[0].waits_for[:2]), parts[0].numbers[1]))
        self.assertEqual({8: b"\1"}, columns.split_registers(parts[1].registers, 476)[0])

    def test_the_service(self) -> None:
        s = RuntimeService(Script())
        self.assertEqual(("unwindd-runtime-", "runtime", "unwindd.arch.v2.Runtime"), (s.prefix, s.kind, s.name))
        self.assertEqual([*runtimewire.CALLS, "ServeEngine"], list(s.handlers()))
        self.assertIsInstance(s._connection.engine(1), RuntimeEngine)
        self.assertIsInstance(service._service(Script()), RuntimeService)


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


class Server(unittest.TestCase):
    def test_errors_over_grpc(self) -> None:
        class Faulty(Good):
            def bind_threads(self, engine: Engine, threads: Sequence[Thread]) -> Sequence[Binding]:
                return [Binding(pc=1 // len(threads))]

        with tempfile.TemporaryDirectory() as folder:
            listening = service._listen((ArchitectureService(Faulty()),), folder, None)
            with grpc.insecure_channel("unix:" + listening.path) as channel:
                for name, code, text, detail in (
                    ("ClassifyReturn", grpc.StatusCode.UNIMPLEMENTED, "", b""),
                    ("BindThreads", grpc.StatusCode.INTERNAL, "ZeroDivisionError: ", b"bind_threads (test_unwindd_plugin.py:"),
                    ("FrameRules", grpc.StatusCode.UNKNOWN, "FrameRulesRequest.starts: 0 entries, expected 1", b"ArchitectureError"),
                ):
                    request = CALLS[name].request()
                    if name == "FrameRules":
                        request.pcs.append(1)
                    call = channel.unary_unary(f"/{ArchitectureService.name}/{name}", lambda m: m.SerializeToString())
                    with self.subTest(name), self.assertRaises(grpc.RpcError) as caught, contextlib.redirect_stderr(io.StringIO()):
                        call(request)
                    trailer = dict(caught.exception.trailing_metadata()).get("grpc-status-details-bin", b"")
                    self.assertEqual(code, caught.exception.code())
                    self.assertIn(text, caught.exception.details())
                    self.assertIn(detail, trailer)
                    self.assertEqual(bool(detail), bool(trailer))
            listening.server.stop(None).wait()


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


    def test_functions_at_addresses(self) -> None:
        def answer(p: pb.EngineRequest) -> Iterator[pb.EngineAnswer]:
            n = len(p.find_functions.addresses)
            names = columns.blobs([b"f"] + [b""] * (n - 1))
            found = pb.FindFunctionsAnswer(names=names, starts=[0x10] * n, has_start=[True] + [False] * (n - 1))
            yield pb.EngineAnswer(id=p.id, find_functions=found)

        class Functions(Answered, RuntimeEngine):
            pass

        found = Functions(answer).find_functions(range((1 << 16) + 1))
        self.assertEqual((65537, FunctionPlace("f", 0x10), FunctionPlace()), (len(found), found[65536], found[65535]))
        short = Functions(lambda p: iter([pb.EngineAnswer(find_functions=pb.FindFunctionsAnswer(starts=[1]))]))
        self.assertRaises(Refusal, short.find_functions, [1])


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
