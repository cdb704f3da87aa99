# SPDX-License-Identifier: Apache-2.0
"""An architecture plugin for a machine that does not exist.

The toy has 32-bit registers and waves of four lanes. The file of its programs says how
much of the stack each function takes, and a word in memory says which lanes execute.
"""

import struct
from collections.abc import Sequence

from unwindd_plugin import (
    NO_REGISTER, Architecture, Binding, Engine, Function, ObjectAnswer, ObjectRequest, ReadError, Refusal, Return, ReturnSite,
    Row, Rule, Table, Thread, pack_rows, pack_rules, registers,
)  # fmt: skip
from unwindd_plugin import arch_pb2 as pb

LANE_WORD, SP, PC = range(3)  # registers
LANES = 4
MAGIC = b"TOYCODE\0"
FUNCTION = struct.Struct("<16sIII")  # name, start, end, bytes of its frame
CALL = 0xCA  # the first byte of a call; every instruction has four


def row(start: int, end: int, size: int) -> Row:
    """The row of a function whose frame has size bytes: its return address is the last word."""
    return Row(start, end, PC, cfa_register=SP, cfa_offset=size, rules=[Rule(PC, pb.RULE_OFFSET, -4)])


class Toy(Architecture):
    def describe(self) -> pb.Description:
        return pb.Description(
            name="toy", version="1.0", byte_order=pb.ORDER_LITTLE_ENDIAN, address_bits=32,
            recognises=[pb.Recogniser(magic=MAGIC, os_abi=-1)],
            registers=[
                registers(LANE_WORD, ["lanes", "sp"], 32),
                registers(PC, ["pc"], 32, kind=pb.CLASS_PROGRAM_COUNTER),
            ],
            pc=PC, sp=SP, fp=NO_REGISTER, return_address=PC,
            entry=pack_rows([row(0, 0, 4)]),  # a call pushes the return address
            default_rules=pack_rules([Rule(LANE_WORD, pb.RULE_SAME_VALUE), Rule(SP, pb.RULE_VAL_OFFSET)]),
            call_distance=1, max_instruction=4, stack_align=4,
        )  # fmt: skip

    def open_object(self, engine: Engine, request: ObjectRequest) -> ObjectAnswer:
        data = engine.read_section(request.object)
        head = len(MAGIC) + 4
        count = int.from_bytes(data[len(MAGIC) : head], "little")
        if len(data) != head + count * FUNCTION.size:
            raise Refusal(f"the table of functions: {len(data) - head} bytes, expected {FUNCTION.size} for each of {count}")
        table = sorted(FUNCTION.iter_unpack(data[head:]), key=lambda f: int(f[1]))
        functions = []
        for name, start, end, _ in table:
            name = name.rstrip(b"\0").decode("utf-8", "surrogateescape")
            kind = pb.FUNCTION_KERNEL if name == "kernel" else pb.FUNCTION_ORDINARY
            functions.append(Function(name, start, end, LANES, kind))
        return ObjectAnswer(tables=[Table([row(*f[1:]) for f in table])], functions=functions)

    def bind_threads(self, engine: Engine, threads: Sequence[Thread]) -> Sequence[Binding]:
        words = first_bytes(engine, [t.number(LANE_WORD) or 0 for t in threads])
        return [
            Binding(
                pc=thread.number(PC) or 0,
                lanes=LANES,
                active_lanes=b"" if word is None else bytes([word[0] & 0x0F]),
                active_unknown=word is None,
            )
            for thread, word in zip(threads, words)
        ]

    def classify_return(self, sites: Sequence[ReturnSite]) -> Sequence[Return]:
        after, other = Return(pb.RETURN_AFTER_INDIRECT_CALL), Return(pb.RETURN_NOT_AFTER_CALL)
        return [after if len(s.code) >= 4 and s.code[-4] == CALL else other for s in sites]


def first_bytes(engine: Engine, addresses: Sequence[int]) -> Sequence[bytes | None]:
    """The byte at each address; None where there is none."""
    try:
        return engine.read_many(addresses, 1)
    except ReadError:
        return [None] * len(addresses)
