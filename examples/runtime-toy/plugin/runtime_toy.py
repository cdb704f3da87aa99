# SPDX-License-Identifier: Apache-2.0
"""The runtime of the toy language of toy.c."""

import bisect
import threading
from collections.abc import Sequence

from frames import Activation, FrameReader, Limits, activations
from memory import TYPES, Layouts, Structure
from unwindd_plugin import (
    CodeRules, ManagedFrame, ManagedFramesRequest, ManagedRun, ManagedStack, ManagedThread, ManagedThreadsAnswer, NativeStack,
    ObjectNotOpen, OpenRuntimeAnswer, OpenRuntimeRequest, ReadError, Row, Rule, Runtime, RuntimeCode, RuntimeConstants,
    RuntimeDescription, RuntimeEngine, RuntimeRecogniser, RuntimeType,
)  # fmt: skip
from unwindd_plugin import arch_pb2 as pb
from unwindd_plugin import runtime_pb2 as rpb

KEPT = 64  # interpreters; those that are forgotten are opened again
MOST_THUNKS = 4096
X86_64 = 62  # e_machine


class Interpreter:
    """An interpreter in a target."""

    def __init__(self, engine: RuntimeEngine, request: OpenRuntimeRequest) -> None:
        self.layouts = Layouts(request)
        self.request = request
        self.handles = {t.id: t.thread for t in request.threads}
        self.ids = {t.thread: t.id for t in request.threads}
        self.kinds = self._names("TOY_KIND_")
        self.states = self._names("TOY_STATE_")
        place = request.symbols["toy_runtime"]
        self.state = self.layouts.parse("toy_runtime", engine.read_memory(place.address, self.layouts.size("toy_runtime")))
        self.thunks = self._thunks(engine)

    def _names(self, prefix: str) -> dict[int, str]:
        constants = self.request.constants.items()
        return {value: name.removeprefix(prefix).lower() for name, value in constants if name.startswith(prefix)}

    def _thunks(self, engine: RuntimeEngine) -> list[str]:
        """The names of the builtins that have a thunk."""
        first, count, size = (self.state.number(m) for m in ("thunks", "builtin_count", "thunk_size"))
        if self.request.machine != X86_64 or not first or not size or not 0 < count <= MOST_THUNKS:
            return []
        if first + count * size >= 1 << 64:
            return []
        step, table = self.layouts.size("toy_builtin"), self.state.number("builtins")
        addresses = [(table + i * step) % (1 << 64) for i in range(count)]
        found = self.layouts.read(engine, "toy_builtin", addresses)
        return [found[a].text("name") if a in found else "" for a in addresses]

    def code(self) -> list[RuntimeCode]:
        start = self.state.number("thunks")
        return [RuntimeCode(start, start + len(self.thunks) * self.state.number("thunk_size"), "thunks")] if self.thunks else []

    def rules(self, pc: int) -> CodeRules:
        """A thunk: push the frame pointer, set it, call, pop it, return."""
        size, first = self.state.number("thunk_size"), self.state.number("thunks")
        if not self.thunks or not first <= pc < first + len(self.thunks) * size:
            return CodeRules(reason="no thunk is there")
        number = (pc - first) // size
        start, r = first + number * size, self.request
        returns = [Rule(r.return_address, pb.RULE_OFFSET, -8)]
        saved = sorted([*returns, Rule(r.fp, pb.RULE_OFFSET, -16)], key=lambda rule: rule.column)
        bounds = [0, 1, 4, 17, size]
        cfas = [(r.sp, 8, returns), (r.sp, 16, saved), (r.fp, 16, saved), (r.sp, 8, returns)]
        rows = [
            Row(start + begin, start + end, r.return_address, cfa_register=register, cfa_offset=offset, rules=rules)
            for begin, end, (register, offset, rules) in zip(bounds, bounds[1:], cfas)
            if begin < end <= size
        ]
        frame = ManagedFrame(f"thunk of {self.thunks[number]}", kind=rpb.MANAGED_COMPILED)
        return CodeRules(start, start + size, rows, [frame])

    def threads(self, engine: RuntimeEngine) -> dict[int, Structure]:
        """The interpreter's threads, by the handles of those of the target."""
        (chain,), _ = self.layouts.chains(engine, "toy_thread", "next", [self.state.number("threads")])
        known = [(self.handles.get(str(t.number("id"))), t) for _, t in chain]
        return {handle: t for handle, t in known if handle is not None}

    def executed(self, engine: RuntimeEngine, threads: dict[int, Structure]) -> dict[int, int]:
        """The numbers of the tasks that threads execute, by the handles of the threads."""
        found = self.layouts.read(engine, "toy_task", (t.number("task") for t in threads.values() if t.number("task")))
        return {handle: found[t.number("task")].number("number") for handle, t in threads.items() if t.number("task") in found}

    def reader(self, engine: RuntimeEngine, limits: Limits | None) -> FrameReader:
        return FrameReader(self.layouts, engine, self.state.text("file"), self.kinds, limits)

    def tasks(self, engine: RuntimeEngine) -> tuple[list[Structure], list[str]]:
        """The tasks, and what is wrong with their list."""
        (chain,), (end,) = self.layouts.chains(engine, "toy_task", "next", [self.state.number("tasks")])
        problems = [f"the list of tasks breaks off at {end:#x}"] if end else []
        tasks: dict[int, Structure] = {}
        for _, t in chain:
            tasks.setdefault(t.number("number"), t)
        if len(tasks) < len(chain):
            problems.append(f"{len(chain) - len(tasks)} tasks have the numbers of others: they are left out")
        return list(tasks.values()), problems


class ToyRuntime(Runtime):
    """The plugin."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[int, Interpreter] = {}  # in the order in which they were opened

    def describe(self) -> RuntimeDescription:
        return RuntimeDescription(
            name="toy",
            version="1.0",
            recognises=[RuntimeRecogniser(symbol="toy_runtime")],
            symbols=["toy_runtime"],
            types=[RuntimeType(name, members) for name, members in TYPES.items()],
            constants=[RuntimeConstants("TOY_")],
            thread_kind="task",
        )

    def open_runtime(self, engine: RuntimeEngine, request: OpenRuntimeRequest) -> OpenRuntimeAnswer:
        if "toy_runtime" not in request.symbols:
            return OpenRuntimeAnswer(problems=["the variable toy_runtime is not in memory"])
        try:
            interpreter = Interpreter(engine, request)
        except ReadError as error:
            return OpenRuntimeAnswer(problems=[f"the state of the interpreter: {error}"])
        handles = sorted(interpreter.threads(engine))
        with self._lock:
            self._open[request.runtime] = interpreter
            while len(self._open) > KEPT:
                del self._open[next(iter(self._open))]
        has_tasks = interpreter.state.number("tasks") != 0
        return OpenRuntimeAnswer(code=interpreter.code(), has_frames=bool(handles), threads=handles, has_threads=has_tasks)

    def _interpreter(self, runtime: int) -> Interpreter:
        with self._lock:
            if runtime not in self._open:
                raise ObjectNotOpen(f"runtime {runtime}")
            return self._open[runtime]

    def code_rules(self, engine: RuntimeEngine, runtime: int, pcs: Sequence[int]) -> Sequence[CodeRules]:
        interpreter = self._interpreter(runtime)
        return [interpreter.rules(pc) for pc in pcs]

    def managed_frames(self, engine: RuntimeEngine, request: ManagedFramesRequest) -> Sequence[ManagedStack]:
        interpreter = self._interpreter(request.runtime)
        threads = interpreter.threads(engine)
        tops = [threads[s.thread].number("top") if s.thread in threads else 0 for s in request.threads]
        tasks = interpreter.executed(engine, threads)
        chains, ends = interpreter.layouts.chains(engine, "toy_frame", "caller", tops)
        reader = interpreter.reader(engine, Limits(request.depth, request.elements) if request.variables else None)
        reader.load([frame for chain in chains for _, frame in chain])
        stacks = [
            _place(stack, activations([frame for _, frame in chain]), end, reader)
            for stack, chain, end in zip(request.threads, chains, ends)
        ]
        for native, stack in zip(request.threads, stacks):
            if native.thread in tasks:
                stack.state = f"executes task {tasks[native.thread]}"
        return stacks

    def managed_threads(self, engine: RuntimeEngine, runtime: int, frames: bool) -> ManagedThreadsAnswer:
        interpreter = self._interpreter(runtime)
        tasks, problems = interpreter.tasks(engine)
        waiting = [t for t in tasks if not t.number("carrier")]
        chains, _ = interpreter.layouts.chains(engine, "toy_frame", "caller", [t.number("top") if frames else 0 for t in waiting])
        reader = interpreter.reader(engine, None)
        reader.load([frame for chain in chains for _, frame in chain])
        stacks = {id(t): reader.frames([f for _, f in chain]) for t, chain in zip(waiting, chains)}
        functions = interpreter.layouts.read(engine, "toy_function", (t.number("function") for t in tasks))
        threads = [_thread(interpreter, t, functions, stacks.get(id(t), [])) for t in tasks]
        return ManagedThreadsAnswer(threads, problems)


def _place(stack: NativeStack, parts: Sequence[Activation], end: int, reader: FrameReader) -> ManagedStack:
    """Finds the native frame of each activation: the one whose part of the stack has the activation's variable."""
    reader.begin()
    cfas = [f.cfa or 0 for f in stack.frames]
    runs: list[ManagedRun] = []
    problem = f"its frames break off at {end:#x}" if end else ""
    if cfas != sorted(cfas):
        return ManagedStack(problem="its native frames are not in the order of their CFAs")
    for part in parts:
        i = bisect.bisect_right(cfas, part.entry)
        if i == len(cfas):
            break  # outside the frames that were kept
        if not stack.frames[i].in_module or runs and runs[-1].first >= i:
            problem = f"the native frame at {part.entry:#x} is not the interpreter's"
            break
        runs.append(ManagedRun(i, 1, reader.frames(part.frames)))
    return ManagedStack(runs, problem)


def _thread(interpreter: Interpreter, task: Structure, functions: dict[int, Structure], frames: list[ManagedFrame]) -> ManagedThread:
    carrier, function = task.number("carrier"), functions.get(task.number("function"))
    number, on = task.number("number"), task.number("waits_for")
    state = task.number("state")
    name = interpreter.states.get(state, f"state {state}")
    return ManagedThread(
        number,
        name=function.text("name") if function else "",
        state=name,
        reason=f"the end of task {on}" if on else "",
        parent=task.number("parent"),
        waits_for=[on] if on and on != number else [],
        carrier=str(carrier) if carrier else "",
        is_mounted=carrier != 0,
        frames=frames,
        problem="it has ended" if name == "done" and not frames else "",
    )
