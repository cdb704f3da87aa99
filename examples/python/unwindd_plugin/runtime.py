# SPDX-License-Identifier: Apache-2.0
"""A language runtime: the calls, what they ask and what they answer.

The names and their meaning are those of sdk/runtime.go and sdk/managed.go, which have more words about each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from . import arch_pb2 as pb
from . import runtime_pb2 as rpb
from .architecture import Section
from .columns import Registers
from .engine import RuntimeEngine
from .rows import NO_REGISTER, Row


@dataclass(slots=True)
class RuntimeRecogniser:
    """Selects the modules that have the runtime. Every member that is set must match."""

    section: str = ""
    symbol: str = ""
    build_id: bytes = b""


@dataclass(slots=True)
class RuntimeType:
    """A type of the debug information whose layout the request of open_runtime has."""

    name: str
    members: Sequence[str]  # paths: "sched.pc" is the member pc of the member sched
    unit: str = ""  # "": any


@dataclass(slots=True)
class RuntimeConstants:
    """The constants and enumerators of the debug information whose names begin with a prefix."""

    prefix: str
    unit: str = ""  # "": any


@dataclass(slots=True)
class RuntimeDescription:
    """The constant properties of a runtime."""

    name: str
    version: str  # the plugin's own
    recognises: Sequence[RuntimeRecogniser]
    symbols: Sequence[str] = ()
    types: Sequence[RuntimeType] = ()
    constants: Sequence[RuntimeConstants] = ()
    thread_kind: str = ""  # the word for the threads that it schedules: "task"


@dataclass(slots=True)
class RuntimeSegment:
    """A range of the module's file in the memory of the target."""

    address: int
    size: int
    start: int  # in memory


@dataclass(slots=True)
class SymbolPlace:
    """The place of a function or variable in memory."""

    address: int
    size: int = 0  # 0: unknown


@dataclass(slots=True)
class MemberPlace:
    """The place of a member in its type, in bytes."""

    offset: int
    size: int


@dataclass(slots=True)
class TypeLayout:
    """The layout of a type. members lacks what the type does not have."""

    size: int
    members: Mapping[str, MemberPlace]  # by their paths
    problem: str = ""  # why the type or its first missing member was not found


@dataclass(slots=True)
class RuntimeThread:
    """A thread of the target."""

    thread: int  # handle
    id: str  # decimal LWP
    name: str = ""


@dataclass(slots=True)
class OpenRuntimeRequest:
    """A module that has the runtime, as it is in a target."""

    runtime: int  # handle of the runtime in this module, for the other calls
    object: int = 0  # handle for Engine.read_section
    path: str = ""
    build_id: bytes = b""
    machine: int = 0  # e_machine
    address_bits: int = 64
    byte_order: "pb.ByteOrder" = pb.ORDER_LITTLE_ENDIAN
    pc: int = NO_REGISTER
    sp: int = NO_REGISTER
    fp: int = NO_REGISTER
    return_address: int = NO_REGISTER
    has_debug_info: bool = False
    memory_size: int = 0  # bytes; 0: unknown
    segments: Sequence[RuntimeSegment] = ()
    sections: Sequence[Section] = ()
    symbols: Mapping[str, SymbolPlace] = field(default_factory=dict)  # of the description's, those that are there
    types: Mapping[str, TypeLayout] = field(default_factory=dict)  # of the description's, by their names
    constants: Mapping[str, int] = field(default_factory=dict)
    threads: Sequence[RuntimeThread] = ()

    def memory_address(self, address: int) -> int | None:
        """The address in memory of a virtual address in the module's file."""
        for s in self.segments:
            if s.address <= address < s.address + s.size:
                return s.start + (address - s.address)
        return None


@dataclass(slots=True)
class RuntimeCode:
    """A range of code that a runtime made."""

    start: int
    end: int
    name: str = ""


@dataclass(slots=True)
class RuntimeLock:
    """A lock of the language with the threads that hold it and wait for it, by their handles."""

    address: int  # identifies the lock
    name: str  # "the GIL"
    holder: int | None = None
    waiters: Sequence[int] = ()  # ascending


@dataclass(slots=True)
class OpenRuntimeAnswer:
    """The runtime in a module. Without anything set, no further call is made about it."""

    version: str = ""
    code: Sequence[RuntimeCode] = ()  # in order, apart from each other
    has_frames: bool = False
    threads: Sequence[int] = ()  # handles, ascending; none: all threads of the target
    has_threads: bool = False
    problems: Sequence[str] = ()  # what could not be read, each a sentence
    locks: Sequence[RuntimeLock] = ()  # that are known without stacks
    fatal: str = ""  # the message with which the runtime ended the process


@dataclass(slots=True)
class ManagedVariable:
    """A variable of the language, or a value in one."""

    name: str
    type: str = ""
    text: str = ""  # the value; "" where it only has children
    status: "rpb.ManagedStatus" = rpb.VALUE_READ
    is_param: bool = False
    children: Sequence["ManagedVariable"] = ()
    more: int = 0  # children that were left out


@dataclass(slots=True)
class ManagedFrame:
    """A call of a function of the language."""

    function: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    kind: "rpb.ManagedKind" = rpb.MANAGED_UNKNOWN
    variables: Sequence[ManagedVariable] = ()


@dataclass(slots=True)
class CodeRules:
    """The rows and the names of the function that a PC is in; start and end are 0 where there is none."""

    start: int = 0
    end: int = 0
    rows: Sequence[Row] = ()  # none: the architecture finds them by the code
    frames: Sequence[ManagedFrame] = ()  # inlined calls, innermost first, and last the function
    reason: str = ""  # why there is nothing


@dataclass(slots=True)
class NativeFrame:
    """A native frame of a stack."""

    pc: int
    cfa: int | None = None
    in_module: bool = False  # of the runtime
    function: str = ""  # linkage name


@dataclass(slots=True)
class NativeStack:
    """The native stack of a thread."""

    thread: int  # handle
    frames: Sequence[NativeFrame]  # innermost first
    is_cut: bool = False  # there are further ones, outside the last


@dataclass(slots=True)
class ManagedFramesRequest:
    """Asks for the frames of the language in native stacks."""

    runtime: int  # handle
    threads: Sequence[NativeStack]
    variables: bool = False
    depth: int = 0  # levels of children
    elements: int = 0  # children or characters of a value


@dataclass(slots=True)
class ManagedRun:
    """Frames that stand for count native frames from first on, or before first where count is 0."""

    first: int
    count: int
    frames: Sequence[ManagedFrame]  # innermost first, one at least


@dataclass(slots=True)
class ManagedLock:
    """A lock of the language that a thread holds or waits for."""

    address: int  # identifies the lock
    name: str  # in the language's words: "the GIL"
    is_waited: bool = False  # the thread waits for it; else it holds it


@dataclass(slots=True)
class ManagedException:
    """An exception of the language on its way to a handler."""

    type: str  # "ValueError"
    text: str = ""
    frames: Sequence[ManagedFrame] = ()  # its traceback, innermost first


@dataclass(slots=True)
class ManagedStack:
    """The frames of the language in a native stack, with the state of its thread."""

    runs: Sequence[ManagedRun] = ()  # innermost first
    problem: str = ""
    name: str = ""  # of the thread, in the program's words
    state: str = ""  # of the thread, in the runtime's words
    locks: Sequence[ManagedLock] = ()
    exception: ManagedException | None = None  # that it has raised and not handled


@dataclass(slots=True)
class ManagedThread:
    """A thread that a runtime schedules."""

    number: int
    name: str = ""
    state: str = ""
    reason: str = ""  # why it waits
    parent: int = 0  # number; 0: unknown
    waits_for: Sequence[int] = ()  # numbers
    created_at: int = 0
    started_at: int = 0
    wait_since: int = 0
    wait_at_least: int = 0
    is_pinned: bool = False
    is_scanned: bool = False
    is_system: bool = False
    carrier: str = ""  # ID of the thread of the operating system that executes it
    is_mounted: bool = False
    stack_low: int = 0
    stack_high: int = 0
    registers: Registers = field(default_factory=dict)
    is_in_call: bool = False
    frames: Sequence[ManagedFrame] = ()  # of a thread without a native stack
    problem: str = ""


@dataclass(slots=True)
class ManagedThreadsAnswer:
    """The threads that a runtime schedules."""

    threads: Sequence[ManagedThread] = ()
    problems: Sequence[str] = ()


class Runtime:
    """The base of a runtime's plugin: a subclass writes describe, and the calls in which its runtime has something.
    The others are not served, and unwindd takes what is written here for their answers.

    Calls come at the same time, in several threads. A Refusal ends a call with a reason; ObjectNotOpen is for a runtime
    that open_runtime was not told of, or that is forgotten: unwindd opens it again and asks once more."""

    def describe(self) -> RuntimeDescription:
        """The constant properties of the runtime: the same each time."""
        raise NotImplementedError(f"{type(self).__name__} has no describe")

    def open_runtime(self, engine: RuntimeEngine, request: OpenRuntimeRequest) -> OpenRuntimeAnswer:
        """Examines the runtime in one module of a target."""
        return OpenRuntimeAnswer()

    def code_rules(self, engine: RuntimeEngine, runtime: int, pcs: Sequence[int]) -> Sequence[CodeRules]:
        """The rows and functions at PCs in code that the runtime made."""
        return [CodeRules(reason="the runtime makes no code") for _ in pcs]

    def managed_frames(self, engine: RuntimeEngine, request: ManagedFramesRequest) -> Sequence[ManagedStack]:
        """The frames of the language in native stacks."""
        return [ManagedStack() for _ in request.threads]

    def managed_threads(self, engine: RuntimeEngine, runtime: int, frames: bool) -> ManagedThreadsAnswer:
        """The threads that the runtime schedules, where asked with the frames of those without a native stack."""
        return ManagedThreadsAnswer()
