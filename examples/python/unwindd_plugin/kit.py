# SPDX-License-Identifier: Apache-2.0
"""The test kit of a plugin, without its process: what can be seen of sdk/archtest in Python.

    class TestChip(unittest.TestCase):
        def test_architecture(self) -> None:
            kit.check(self, Chip())

"unwindd plugin verify" makes more checks, of the executable as unwindd starts it."""

import random
import unittest
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from . import arch_pb2 as pb
from .architecture import Architecture
from .columns import Registers, blobs, pack_registers
from .engine import Engine
from .errors import ReadError, Refusal, place
from .rows import NO_REGISTER, Row, unpack_rows, unpack_rules
from .wire import CALLS

BATCH = 257
LARGEST_DESCRIPTION = 4 << 20  # bytes


@dataclass(slots=True)
class Finding:
    """A fault of an architecture."""

    check: str
    detail: str  # the request, the answer and the expectation
    fix: str


class Nothing(Engine):
    """An engine that has nothing to read."""

    def _ask(self, request: pb.EngineRequest) -> Any:
        raise ReadError("nothing is there")


class Noise(Engine):
    """An engine whose memory and sections are noise."""

    def read_memory(self, address: int, size: int, *, space: int = 0, thread: int = 0, lane: int = -1) -> bytes:
        return noise(size)

    def read_many(self, addresses: Sequence[int], size: int) -> list[bytes | None]:
        return [noise(size) for _ in addresses]

    def read_registers(self, thread: int, numbers: Any = ()) -> Registers:
        return {}

    def read_section(self, handle: int, name: str = "") -> bytes:
        return noise(1000)


def noise(size: int) -> bytes:
    """Bytes without sense, the same each time."""
    return random.Random(size).randbytes(size)


def check(test: unittest.TestCase, arch: Architecture, code: bytes = b"") -> None:
    """Fails a test with the findings of an architecture."""
    findings = verify(arch, code)
    test.assertEqual([], findings, "\n".join(f"{f.check}: {f.detail}\n\tfix: {f.fix}" for f in findings))


def verify(arch: Architecture, code: bytes = b"") -> list[Finding]:
    """The faults of an architecture. code is machine code of it; without that its calls read noise."""
    v = _Verifier(arch, code or noise(4096))
    v.description()
    if not v.findings:
        for each in (v.rows, v.batches, v.garbage):
            each()
    return v.findings


class _Verifier:
    def __init__(self, arch: Architecture, code: bytes) -> None:
        self.arch = arch
        self.code = code
        self.findings: list[Finding] = []
        self.about = "description"
        self.desc = pb.Description()

    def find(self, detail: str, fix: str) -> None:
        self.findings.append(Finding(self.about, detail, fix))

    def ask(self, name: str, what: str, request: Any, engine: Engine = Nothing()) -> list[Any] | None:
        """The messages of an answer; None where there is none."""
        try:
            answer = list(CALLS[name].make(self.arch, engine, request))
            for message in answer:
                message.SerializeToString()
            return answer
        except (Refusal, ReadError):
            return None  # an architecture may refuse anything
        except Exception as error:
            fix = "Check lengths and numbers of the request before using them; raise Refusal with a reason instead."
            self.find(f"{name} of {what}: {type(error).__name__}: {error}, at {place(error)}", fix)
            return None

    # The description.

    def description(self) -> None:
        first = self.ask("Describe", "the architecture", pb.DescribeRequest())
        if first is None:
            if not self.findings:
                self.find("Describe: no description", "Return a description: without one the plugin is not used.")
            return
        self.desc = d = first[0]
        again = self.ask("Describe", "the architecture, again", pb.DescribeRequest())
        if again is None or again[0] != d:
            self.find("Describe: two calls gave different descriptions", "What differs belongs in open_object or bind_threads.")
        for rule, detail in self._faults(d):
            if rule:
                self.find(f"Describe: {detail}", "Mend the member: unwindd refuses the description.")
        self._rules(d)

    def _faults(self, d: pb.Description) -> list[tuple[bool, str]]:
        size = len(d.SerializeToString())
        numbers = [n for r in d.registers for n in range(r.first, r.first + min(r.count, 1 << 16))]
        known = set(numbers)
        special = {"pc": d.pc, "sp": d.sp, "fp": d.fp, "return_address": d.return_address}
        faults = [
            (not d.name or not d.version, "name and version are needed"),
            (not 1 <= d.address_bits <= 64, f"address_bits is {d.address_bits}, expected 1 to 64"),
            (not d.recognises, "recognises is empty: no code object is the plugin's"),
            (not d.registers, "registers is empty"),
            (len(numbers) != len(known), "two ranges have the same register"),
            (size > LARGEST_DESCRIPTION, f"{size} bytes, expected at most {LARGEST_DESCRIPTION}"),
        ]
        for r in d.registers:
            formatted = len(r.names) == 1 and "%d" in r.names[0]
            faults.append((not r.bits, f"register {r.first}: bits is 0"))
            faults.append((not formatted and len(r.names) != r.count, f"register {r.first}: {len(r.names)} names for {r.count}"))
        for name, number in special.items():
            faults.append((number != NO_REGISTER and number not in known, f"{name} is {number}, expected a register, or {NO_REGISTER:#x}"))
        return faults

    def _rules(self, d: pb.Description) -> None:
        """The lists of rules and rows that a description has."""
        known = {n for r in d.registers for n in range(r.first, r.first + min(r.count, 1 << 16))}
        try:
            columns = {r.column for r in unpack_rules(d.default_rules)}
            for member in ("entry", "frame_pointer"):
                for row in unpack_rows(getattr(d, member)) if d.HasField(member) else []:
                    columns |= {r.column for r in row.rules} | {row.return_address}
        except Refusal as refusal:
            self.find(f"Describe: {refusal}", "All columns of a list have one length: pack_rows and pack_rules see to it.")
            return
        if unknown := sorted(columns - known):
            self.find(f"Describe: rules have the registers {unknown}", "Rules are of registers that the description has.")

    # Answers.

    def functions(self, count: int) -> pb.FrameRulesRequest:
        starts = [0x1000 * (i + 1) for i in range(count)]
        return pb.FrameRulesRequest(
            pcs=[s + 4 * (i % 8) for i, s in enumerate(starts)],
            starts=starts,
            code=blobs([self.code[:4096]] * count),
            bounded=[i % 2 == 0 for i in range(count)],
            names=blobs([b"f"] * count),
            exact=[True] * count,
            exits=[False] * count,
        )

    def rows(self) -> None:
        self.about = "rows"
        answer = self.ask("FrameRules", "4 functions", self.functions(4))
        if answer is None:
            return
        try:
            rows = unpack_rows(answer[0].rows)
        except Refusal as refusal:
            self.find(f"FrameRules: {refusal}", "All columns of a list have one length.")
            return
        for row in rows:
            if row.start >= row.end:
                self.find(f"FrameRules: a row from {row.start:#x} to {row.end:#x}", "A row ends behind its start.")
        at = 0
        for count in answer[0].row_counts:
            self._in_order(rows[at : at + count])
            at += count

    def _in_order(self, rows: Sequence[Row]) -> None:
        for before, after in zip(rows, rows[1:]):
            if after.start < before.end:
                self.find(f"FrameRules: rows at {before.start:#x} and {after.start:#x} overlap", "Rows are in order of their start, and do not overlap.")

    def threads(self, count: int) -> pb.BindThreadsRequest:
        states = []
        for i in range(count):
            state = {}
            for r in self.desc.registers:
                for j in range(min(r.count, 256)):
                    state[r.first + j] = bytes([(i + j) % 256]).ljust((r.bits + 7) // 8, b"\0")
            states.append(state)
        return self._bind(states)

    def _bind(self, states: Sequence[Registers]) -> pb.BindThreadsRequest:
        n = len(states)
        return pb.BindThreadsRequest(
            threads=range(n), registers=pack_registers(states), processors=blobs([b""] * n), lanes=[0] * n, space_counts=[0] * n
        )

    def returns(self, count: int) -> pb.ClassifyReturnRequest:
        size = max(self.desc.max_instruction, 1)
        data = noise(4096) + self.code
        places = [i * size % max(len(data) - size, 1) for i in range(count)]
        return pb.ClassifyReturnRequest(pcs=[0x1000 + p for p in places], code=blobs(data[p : p + size] for p in places))

    def batches(self) -> None:
        """An entry of an answer does not depend on the entries beside it."""
        self.about = "batches"
        requests: list[tuple[str, Callable[[int], Any], str]] = [
            ("FrameRules", self.functions, "row_counts"),
            ("BindThreads", self.threads, "pcs"),
            ("ClassifyReturn", self.returns, "classes"),
        ]
        fix = "Answer an entry for every entry of the request, in order, by that entry alone."
        for name, request, column in requests:
            several, few = self.ask(name, f"{BATCH} entries", request(BATCH)), self.ask(name, "2 entries", request(2))
            none = self.ask(name, "no entries", request(0))
            if several is None or few is None:
                continue
            if none is not None and len(getattr(none[0], column)) > 0:
                self.find(f"{name}: entries in the answer to none", fix)
            if list(getattr(several[0], column)[:2]) != list(getattr(few[0], column)):
                self.find(f"{name}: the first two entries have other {column} in a batch of {BATCH} than alone", fix)

    def garbage(self) -> None:
        """Requests without sense: an error is a good answer, and ends nothing."""
        self.about = "garbage"
        short = {n: b"" for r in self.desc.registers for n in range(r.first, r.first + min(r.count, 256))}
        wrong = pb.BindThreadsRequest(threads=[1, 2, 3])
        for engine in (Nothing(), Noise()):
            where = type(engine).__name__.lower()
            self.ask("BindThreads", "a thread without registers", self._bind([{}]), engine)
            self.ask("BindThreads", "registers without bytes", self._bind([short]), engine)
            self.ask("BindThreads", "columns of other lengths", wrong, engine)
            self.ask("OpenObject", f"an object that is {where}", pb.OpenObjectRequest(object=1, path=b"\xff/x"), engine)
            owners = [r.note_owner.encode() for r in self.desc.recognises if r.note_owner]
            for data in (b"", b"\0", noise(100)):
                notes = pb.OpenTargetRequest(owners=blobs(owners), types=[1] * len(owners), data=blobs([data] * len(owners)))
                self.ask("OpenTarget", f"notes of {len(data)} bytes", notes, engine)
        for code in (b"", b"\0", b"\xff" * 7, noise(999)):
            what = f"{len(code)} bytes of noise"
            names = blobs([b""])
            request = pb.FrameRulesRequest(
                pcs=[1 << 63], starts=[(1 << 64) - 1], code=blobs([code]), bounded=[True], names=names, exact=[False], exits=[True]
            )
            self.ask("FrameRules", what, request)
            self.ask("ClassifyReturn", what, pb.ClassifyReturnRequest(pcs=[0], code=blobs([code])))
            self.ask("Disassemble", what, pb.DisassembleRequest(address=(1 << 64) - 1, code=code, processor="none"))
        self.ask("Translate", "an address of no space", pb.TranslateRequest(space=1 << 40, address=1, lane=-1))
