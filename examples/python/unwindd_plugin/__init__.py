# SPDX-License-Identifier: Apache-2.0
"""Plugins of unwindd in Python: what package sdk is in Go. README.md shows one.

The messages of arch.proto and runtime.proto, whose enumerations have the constants, are in unwindd_plugin.arch_pb2 and
runtime_pb2."""

from .architecture import (
    Access, Architecture, Binding, Code, CodeRange, Disassembly, Exits, FrameRules, Function, Gap, Instruction, Map, MapRange,
    Nested, ObjectAnswer, ObjectRequest, Override, PositionMap, Return, ReturnSite, Section, Symbol, Table, Thread,
    Translation, Variable, Width,
)  # fmt: skip
from .columns import Registers
from .engine import Engine, FunctionPlace, RuntimeEngine
from .errors import NotServed, ObjectNotOpen, ReadError, Refusal
from .rows import NO_REGISTER, Row, Rule, pack_rows, pack_rules, registers, unpack_rows, unpack_rules
from .runtime import (
    CodeRules, ManagedException, ManagedFrame, ManagedFramesRequest, ManagedLock, ManagedRun, ManagedStack, ManagedThread,
    ManagedThreadsAnswer, ManagedVariable, MemberPlace, NativeFrame, NativeStack, OpenRuntimeAnswer, OpenRuntimeRequest, Runtime,
    RuntimeCode, RuntimeConstants, RuntimeDescription, RuntimeLock, RuntimeRecogniser, RuntimeSegment, RuntimeThread, RuntimeType, SymbolPlace, TypeLayout,
)  # fmt: skip
from .service import ArchitectureService, RuntimeService, Service, serve
from .target import (
    FILE_SPACE, Agent, Dispatch, HostProcess, LaneState, Note, Queue, Saved, SpaceMemory, Stop, TargetAnswer, TargetFile,
    TargetObject, TargetThread, Wave,
)  # fmt: skip

__all__ = [
    "Access", "Agent", "Architecture", "ArchitectureService", "Binding", "Code", "CodeRange", "CodeRules", "Disassembly",
    "Dispatch", "Engine", "Exits", "FILE_SPACE", "FrameRules", "Function", "FunctionPlace", "Gap", "HostProcess", "Instruction",
    "LaneState", "ManagedException", "ManagedFrame",
    "ManagedFramesRequest", "ManagedLock", "ManagedRun", "ManagedStack", "ManagedThread", "ManagedThreadsAnswer", "ManagedVariable", "Map",
    "MapRange", "MemberPlace", "NO_REGISTER", "NativeFrame", "NativeStack", "Nested", "NotServed", "Note", "ObjectAnswer",
    "ObjectNotOpen", "ObjectRequest", "OpenRuntimeAnswer", "OpenRuntimeRequest", "Override", "PositionMap", "Queue",
    "ReadError", "Refusal", "Registers", "Return", "ReturnSite", "Row", "Rule", "Runtime", "RuntimeCode", "RuntimeConstants",
    "RuntimeDescription", "RuntimeEngine", "RuntimeLock", "RuntimeRecogniser", "RuntimeSegment", "RuntimeService", "RuntimeThread",
    "RuntimeType", "Saved", "Section", "Service", "SpaceMemory", "Stop", "Symbol", "SymbolPlace", "Table", "TargetAnswer",
    "TargetFile", "TargetObject", "TargetThread", "Thread", "Translation", "TypeLayout", "Variable", "Wave", "Width", "pack_rows",
    "pack_rules", "registers", "serve", "unpack_rows", "unpack_rules",
]  # fmt: skip
