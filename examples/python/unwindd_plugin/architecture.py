# SPDX-License-Identifier: Apache-2.0
"""An architecture: the calls, what they ask and what they answer.

The names and their meaning are those of sdk/architecture.go, which has more words about each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from . import arch_pb2 as pb
from .columns import Registers
from .engine import Engine
from .errors import NotServed
from .rows import NO_REGISTER, Row, Rule
from .target import Note, TargetAnswer, TargetFile


@dataclass(slots=True)
class Section:
    """A section of an ELF file, without its bytes."""

    name: str
    type: int
    flags: int
    address: int
    size: int


@dataclass(slots=True)
class Symbol:
    """A function of a symbol table; the name is as it is there, mangled."""

    name: str
    address: int
    size: int
    other: int = 0  # st_other
    section: int = 0  # index into the request's sections


@dataclass(slots=True)
class ObjectRequest:
    """A code object that the plugin recognises. Without an ELF header machine is 0, and there are no sections."""

    object: int  # handle for Engine.read_section
    path: str = ""
    machine: int = 0
    os_abi: int = 0
    flags: int = 0
    processor: str = ""
    sections: Sequence[Section] = ()
    symbols: Sequence[Symbol] = ()
    companions: Mapping[str, int] = field(default_factory=dict)  # handles by suffix


@dataclass(slots=True)
class Override:
    """A dialect for the CIEs and units whose augmentation, or units whose producer, begins so."""

    dialect: str
    augmentation: str = ""
    producer: str = ""


@dataclass(slots=True)
class Nested:
    """A code object in a file that is no ELF file."""

    name: str
    offset: int
    size: int


@dataclass(slots=True)
class Table:
    """Rows that do not overlap, in order."""

    rows: Sequence[Row]
    priority: "pb.RowPriority" = pb.BELOW_CFI
    reason: str = ""
    section: int = 0


@dataclass(slots=True)
class Function:
    """A range of PCs with what is known of it."""

    name: str
    start: int
    end: int
    lanes: int = 0  # of a thread that executes it; 0: unknown
    kind: "pb.FunctionKind" = pb.FUNCTION_ORDINARY
    default_rules: Sequence[Rule] | None = None  # None: the object's
    section: int = 0


@dataclass(slots=True)
class PositionMap:
    """Other positions of PCs: each is valid up to the next PC."""

    kind: str
    positions: Sequence[tuple[int, int]]  # PC and position, in order
    section: int = 0


@dataclass(slots=True)
class Variable:
    """A variable with its locations: expressions for PCs from start up to end."""

    name: str
    locations: Sequence[tuple[int, int, bytes]]
    section: int = 0
    register: int = 0  # of an intermediate language, as DW_OP_regx names it; 0: none, and name is the variable's


@dataclass(slots=True)
class ObjectAnswer:
    """The peculiarities of a code object."""

    processor: str = ""
    dialect: str = ""  # "": standard DWARF
    overrides: Sequence[Override] = ()
    default_rules: Sequence[Rule] | None = None  # None: the description's
    nested: Sequence[Nested] = ()
    tables: Sequence[Table] = ()
    functions: Sequence[Function] = ()
    position_maps: Sequence[PositionMap] = ()
    variables: Sequence[Variable] = ()
    problems: Sequence[str] = ()  # what could not be read, each a sentence
    checks_cfi: bool = False
    reads_cfi: bool = False  # the tables are made of the object's call frame information


@dataclass(slots=True)
class CodeRange:
    """Code to find a row in, for pc. Where bounded, start is a function's first instruction."""

    pc: int
    start: int
    code: bytes
    bounded: bool = False
    name: str = ""
    exact: bool = False  # pc is executed next; else it is inside a call
    exits: bool = False  # FrameRules.exits are asked for, in place of rows
    parts: Sequence[tuple[int, bytes]] = ()  # addresses and code of other pieces of the function


@dataclass(slots=True)
class Gap:
    """A range of PCs without a row, or one that CFI contradicts."""

    start: int
    end: int
    reason: str


@dataclass(slots=True)
class Exits:
    """Where code goes on to, other than by returns."""

    jumps: Sequence[int] = ()
    slots: Sequence[int] = ()
    open: bool = False


@dataclass(slots=True)
class FrameRules:
    """The rows found by reading a function's code."""

    rows: Sequence[Row] = ()
    reason: str = ""  # why there is no row for the PC
    gaps: Sequence[Gap] = ()
    trampoline: bool = False
    complete: bool = False
    uncalled: bool = False
    exits: Exits | None = None
    contradictions: Sequence[Gap] = ()


@dataclass(slots=True)
class Thread:
    """A thread's top frame."""

    thread: int  # handle for Engine.read_registers and Engine.read_memory
    registers: Registers
    processor: str = ""
    lanes: int = 0
    spaces: Mapping[int, int] = field(default_factory=dict)  # where address spaces begin

    def number(self, register: int, order: "pb.ByteOrder" = pb.ORDER_LITTLE_ENDIAN) -> int | None:
        """A register as an unsigned number; None where the thread does not have it."""
        value = self.registers.get(register)
        if value is None:
            return None
        return int.from_bytes(value, "big" if order == pb.ORDER_BIG_ENDIAN else "little")


@dataclass(slots=True)
class Width:
    """Another size, in bits, of count registers."""

    first: int
    count: int
    bits: int


@dataclass(slots=True)
class MapRange:
    """A range of an address space, and where it is."""

    kind: "pb.MapKind"
    start: int
    size: int
    into: int = 0
    base: int = 0
    element: int = 0
    stride: int = 0
    register: int = 0


@dataclass(slots=True)
class Map:
    """The ranges of an address space that is no memory of the target."""

    space: int
    ranges: Sequence[MapRange]


@dataclass(slots=True)
class Binding:
    """What the machine decides for a thread."""

    pc: int = 0
    lanes: int = 1
    active_lanes: bytes = b""  # a bit a lane, lane 0 lowest; b"": all
    active_unknown: bool = False
    widths: Sequence[Width] = ()
    return_address_mask: int = 0
    agent: str = ""
    group: str = ""
    wave: str = ""
    maps: Sequence[Map] = ()
    problem: str = ""  # why the thread cannot be walked


@dataclass(slots=True)
class ReturnSite:
    """An address that may be a return address, and the bytes before it."""

    pc: int
    code: bytes


@dataclass(slots=True)
class Return:
    """Whether there is a call before an address, and where a direct one goes."""

    kind: "pb.ReturnClass" = pb.RETURN_UNKNOWN
    target: int = 0


@dataclass(slots=True)
class Translation:
    """An address, or an expression, in an opaque range of an address space."""

    space: int
    address: int
    expression: bytes | None
    thread: int
    frame: int
    lane: int


@dataclass(slots=True)
class Code:
    """Code to be shown."""

    address: int
    code: bytes
    processor: str = ""
    lanes: int = 0


@dataclass(slots=True)
class Access:
    """A place of memory that an instruction reads or writes: base + index * scale + segment + displacement."""

    reads: bool = False
    writes: bool = False
    size: int = 0
    base: int = NO_REGISTER
    index: int = NO_REGISTER
    segment: int = NO_REGISTER
    scale: int = 0
    displacement: int = 0
    address_bits: int = 64
    index_bits: int = 0
    index_signed: bool = False


@dataclass(slots=True)
class Instruction:
    """A decoded instruction. register is of a division, or where a jump through it goes."""

    address: int
    size: int
    text: str
    kind: "pb.InstructionKind" = pb.INSTRUCTION_KIND_OTHER
    register: int = 0
    register_bits: int = 0  # 0: there is no register
    accesses: Sequence[Access] = ()


@dataclass(slots=True)
class Disassembly:
    """Instructions in order, and the target by which LLVM's tools read the same code."""

    instructions: Sequence[Instruction]
    llvm_triple: str = ""
    llvm_cpu: str = ""
    llvm_features: str = ""


class Architecture:
    """The base of a plugin: a subclass writes describe, and the calls in which its machine differs.
    The others are not served, and unwindd takes what is written here for their answers.

    Calls come at the same time, in several threads. An entry of an answer is about the entry of
    the request at its place, and depends on it alone. A Refusal ends a call with a reason."""

    def describe(self) -> pb.Description:
        """The constant properties of the architecture: the same each time."""
        raise NotImplementedError(f"{type(self).__name__} has no describe")

    def open_target(self, engine: Engine, notes: Sequence[Note], file: TargetFile | None = None) -> TargetAnswer:
        """The threads and code objects in the notes, or in the file, of a core that the plugin recognises."""
        return TargetAnswer()

    def open_object(self, engine: Engine, request: ObjectRequest) -> ObjectAnswer:
        """The peculiarities of a code object."""
        return ObjectAnswer()

    def frame_rules(self, engine: Engine, handle: int, functions: Sequence[CodeRange]) -> Sequence[FrameRules]:
        """The rows of functions that have none. handle is that of their code object, or 0."""
        return [FrameRules(reason="the architecture does not read code") for _ in functions]

    def bind_threads(self, engine: Engine, threads: Sequence[Thread]) -> Sequence[Binding]:
        """The PCs, lanes and memory of threads by the registers of their top frames."""
        d = self.describe()
        return [_bind(d, t) for t in threads]

    def translate(self, engine: Engine, request: Translation) -> bytes:
        """An expression that gives the location of an address in an opaque range."""
        raise NotServed("the architecture does not implement this call")

    def classify_return(self, sites: Sequence[ReturnSite]) -> Sequence[Return]:
        """Whether there are calls before addresses."""
        return [Return() for _ in sites]

    def disassemble(self, code: Code) -> Disassembly:
        """Instructions as text."""
        raise NotServed("the architecture does not implement this call")


def _bind(d: pb.Description, thread: Thread) -> Binding:
    """Binds a thread as a CPU's: it has one lane, and the PC is in the description's register."""
    pc = None if d.pc == NO_REGISTER else thread.number(d.pc, d.byte_order)
    if pc is None:
        return Binding(problem=f"the PC, register {d.pc}, is not among the thread's registers")
    return Binding(pc=pc)
