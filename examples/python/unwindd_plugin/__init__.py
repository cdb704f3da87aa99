# SPDX-License-Identifier: Apache-2.0
"""Plugins of unwindd in Python: what package sdk is in Go. README.md shows one.

The messages of arch.proto, whose enumerations have the constants, are in unwindd_plugin.arch_pb2."""

from .architecture import (
    Access, Architecture, Binding, Code, CodeRange, Disassembly, Exits, FrameRules, Function, Gap, Instruction, Map, MapRange,
    Nested, ObjectAnswer, ObjectRequest, Override, PositionMap, Return, ReturnSite, Section, Symbol, Table, Thread,
    Translation, Variable, Width,
)  # fmt: skip
from .columns import Registers
from .engine import Engine
from .errors import NotServed, ObjectNotOpen, ReadError, Refusal
from .rows import NO_REGISTER, Row, Rule, pack_rows, pack_rules, registers, unpack_rows, unpack_rules
from .service import ArchitectureService, Service, serve
from .target import (
    Agent, Dispatch, Note, Queue, Saved, SpaceMemory, Stop, TargetAnswer, TargetObject, TargetThread, Wave,
)  # fmt: skip

__all__ = [
    "Access", "Agent", "Architecture", "ArchitectureService", "Binding", "Code", "CodeRange", "Disassembly", "Dispatch",
    "Engine", "Exits", "FrameRules", "Function", "Gap", "Instruction", "Map", "MapRange", "NO_REGISTER", "Nested", "Note",
    "NotServed", "ObjectAnswer", "ObjectNotOpen", "ObjectRequest", "Override", "PositionMap", "Queue", "ReadError", "Refusal",
    "Registers", "Return", "ReturnSite", "Row", "Rule", "Saved", "Section", "Service", "SpaceMemory", "Stop", "Symbol",
    "Table", "TargetAnswer", "TargetObject", "TargetThread", "Thread", "Translation", "Variable", "Wave", "Width",
    "pack_rows", "pack_rules", "registers", "serve", "unpack_rows", "unpack_rules",
]  # fmt: skip
