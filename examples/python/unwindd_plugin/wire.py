# SPDX-License-Identifier: Apache-2.0
"""The calls of an architecture as messages: each takes a request, and answers one message or parts."""

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple, TypeVar

from . import arch_pb2 as pb
from .architecture import (
    Architecture, Binding, Code, CodeRange, FrameRules, Gap, Instruction, Map, ObjectAnswer, ObjectRequest, ReturnSite,
    Section, Symbol, Thread, Translation,
)  # fmt: skip
from .columns import blobs, check, flat, lists, split, split_registers, split_texts, texts
from .engine import Engine
from .rows import pack_rows, pack_rules
from .target import Note, TargetFile, pack_target

ROWS = 1 << 15  # in a part
FEATURE = 3  # the number of the features of the protocol that are known here

T = TypeVar("T")
Answers = Iterator[Any]


class Call(NamedTuple):
    """A call: its method of Architecture or Runtime, its request, and how it is made."""

    method: str
    request: Any
    make: Callable[[Any, Any, Any], Answers]  # of the plugin, the engine and the request
    in_parts: bool = False


def _describe(arch: Architecture, engine: Engine, p: pb.DescribeRequest) -> Answers:
    d = arch.describe()
    d.feature = d.feature or FEATURE
    yield d


def _open_target(arch: Architecture, engine: Engine, p: pb.OpenTargetRequest) -> Answers:
    n = len(p.types)
    notes = [Note(*note) for note in zip(split_texts(p.owners, n), p.types, split(p.data, n))]
    if not p.HasField("file"):
        yield from pack_target(arch.open_target(engine, notes))
        return
    f = p.file
    file = TargetFile(
        f.machine, f.os_abi, f.abi_version, f.flags, f.size, f.sections_offset, f.sections, f.section_size, f.section_names
    )
    yield from pack_target(arch.open_target(engine, notes, file))


def _open_object(arch: Architecture, engine: Engine, p: pb.OpenObjectRequest) -> Answers:
    s, y = p.sections, p.symbols
    others, sections = y.others or repeat(0), y.sections or repeat(0)
    request = ObjectRequest(
        object=p.object,
        path=p.path.decode("utf-8", "surrogateescape"),
        machine=p.machine,
        os_abi=p.os_abi,
        flags=p.flags,
        processor=p.processor,
        sections=[Section(*i) for i in zip(split_texts(s.names, len(s.types)), s.types, s.flags, s.addresses, s.sizes)],
        symbols=[Symbol(*i) for i in zip(split_texts(y.names, len(y.addresses)), y.addresses, y.sizes, others, sections)],
        companions={c.suffix: c.object for c in p.companions},
    )
    answer = arch.open_object(engine, request)
    yield pb.OpenObjectPart(answer=_object_answer(answer))
    for i, table in enumerate(answer.tables):
        for at in range(0, len(table.rows), ROWS):
            yield pb.OpenObjectPart(rows=pb.TableRows(table=i, rows=pack_rows(table.rows[at : at + ROWS])))


def _object_answer(a: ObjectAnswer) -> pb.OpenObjectAnswer:
    """An answer without the rows of its tables."""
    f, v = a.functions, flat(a.variables, lambda i: i.locations)
    positions = flat(a.position_maps, lambda i: i.positions)
    return pb.OpenObjectAnswer(
        processor=a.processor,
        dialect=a.dialect,
        overrides=pb.Overrides(
            augmentations=texts(i.augmentation for i in a.overrides),
            producers=texts(i.producer for i in a.overrides),
            dialects=texts(i.dialect for i in a.overrides),
        ),
        default_rules=None if a.default_rules is None else pack_rules(a.default_rules),
        nested=pb.Nested(
            names=texts(i.name for i in a.nested), offsets=[i.offset for i in a.nested], sizes=[i.size for i in a.nested]
        ),
        tables=pb.Tables(
            priorities=[i.priority for i in a.tables],
            reasons=texts(i.reason for i in a.tables),
            sections=[i.section for i in a.tables],
        ),
        functions=pb.Functions(
            names=texts(i.name for i in f),
            starts=[i.start for i in f],
            ends=[i.end for i in f],
            lanes=[i.lanes for i in f],
            kinds=[i.kind for i in f],
            default_rule_counts=[0 if i.default_rules is None else len(i.default_rules) + 1 for i in f],
            default_rules=pack_rules(flat(f, lambda i: i.default_rules or ())),
            sections=[i.section for i in f],
        ),
        position_maps=pb.PositionMaps(
            kinds=texts(i.kind for i in a.position_maps),
            counts=[len(i.positions) for i in a.position_maps],
            pcs=[i[0] for i in positions],
            positions=[i[1] for i in positions],
            sections=[i.section for i in a.position_maps],
        ),
        variables=pb.Variables(
            names=texts(i.name for i in a.variables),
            counts=[len(i.locations) for i in a.variables],
            starts=[i[0] for i in v],
            ends=[i[1] for i in v],
            locations=blobs(i[2] for i in v),
            sections=[i.section for i in a.variables],
            registers=[i.register for i in a.variables],
        ),
        problems=texts(a.problems),
        checks_cfi=a.checks_cfi,
        reads_cfi=a.reads_cfi,
    )


def _frame_rules(arch: Architecture, engine: Engine, p: pb.FrameRulesRequest) -> Answers:
    n = len(p.pcs)
    for name in ("starts", "bounded", "exact", "exits"):
        check(f"FrameRulesRequest.{name}", getattr(p, name), n)
    columns = zip(p.pcs, p.starts, split(p.code, n), p.bounded, split_texts(p.names, n), p.exact, p.exits)
    functions = [CodeRange(*c) for c in columns]
    if p.part_counts:
        check("FrameRulesRequest.part_counts", p.part_counts, n)
        parts = list(zip(p.part_starts, split(p.part_code, len(p.part_starts))))
        for function, own in zip(functions, lists("FrameRulesRequest.part_counts", p.part_counts, parts)):
            function.parts = own
    answer = as_many("frame_rules", functions, arch.frame_rules(engine, p.object, functions))
    yield pb.FrameRulesAnswer(
        row_counts=[len(f.rows) for f in answer],
        rows=pack_rows(flat(answer, lambda f: f.rows)),
        reasons=texts(f.reason for f in answer),
        trampolines=[f.trampoline for f in answer],
        complete=[f.complete for f in answer],
        gap_counts=[len(f.gaps) for f in answer],
        gaps=_gaps(flat(answer, lambda f: f.gaps)),
        uncalled=[f.uncalled for f in answer],
        exits=_exits(answer),
        contradictions=_contradictions(answer),
    )


def _gaps(gaps: Sequence[Gap]) -> pb.RowGaps:
    return pb.RowGaps(starts=[g.start for g in gaps], ends=[g.end for g in gaps], reasons=texts(g.reason for g in gaps))


def _exits(answer: Sequence[FrameRules]) -> pb.CodeExits | None:
    if all(f.exits is None for f in answer):
        return None
    exits = [f.exits for f in answer]
    return pb.CodeExits(
        known=[e is not None for e in exits],
        open=[e is not None and e.open for e in exits],
        jump_counts=[len(e.jumps) if e else 0 for e in exits],
        jumps=flat(exits, lambda e: e.jumps if e else ()),
        slot_counts=[len(e.slots) if e else 0 for e in exits],
        slots=flat(exits, lambda e: e.slots if e else ()),
    )


def _contradictions(answer: Sequence[FrameRules]) -> pb.Contradictions | None:
    ranges = flat(answer, lambda f: f.contradictions)
    if not ranges:
        return None
    return pb.Contradictions(counts=[len(f.contradictions) for f in answer], ranges=_gaps(ranges))


def _bind_threads(arch: Architecture, engine: Engine, p: pb.BindThreadsRequest) -> Answers:
    n = len(p.threads)
    check("BindThreadsRequest.lanes", p.lanes, n)
    check("BindThreadsRequest.space_counts", p.space_counts, n)
    bases = list(zip(p.spaces, p.space_bases))
    spaces = [dict(own) for own in lists("BindThreadsRequest.space_counts", p.space_counts, bases)]
    columns = zip(p.threads, split_registers(p.registers, n), split_texts(p.processors, n), p.lanes, spaces)
    threads = [Thread(*c) for c in columns]
    answer = as_many("bind_threads", threads, arch.bind_threads(engine, threads))
    yield _bindings(answer)


def _bindings(b: Sequence[Binding]) -> pb.BindThreadsAnswer:
    widths = flat(b, lambda i: i.widths)
    return pb.BindThreadsAnswer(
        pcs=[i.pc for i in b],
        lanes=[i.lanes for i in b],
        active_lanes=blobs(i.active_lanes for i in b),
        active_unknown=[i.active_unknown for i in b],
        width_counts=[len(i.widths) for i in b],
        widths=pb.Widths(
            firsts=[w.first for w in widths], counts=[w.count for w in widths], bits=[w.bits for w in widths]
        ),
        return_address_masks=[i.return_address_mask for i in b],
        agents=texts(i.agent for i in b),
        groups=texts(i.group for i in b),
        waves=texts(i.wave for i in b),
        map_counts=[len(i.maps) for i in b],
        maps=_maps(flat(b, lambda i: i.maps)),
        problems=texts(i.problem for i in b),
    )


def _maps(maps: Sequence[Map]) -> pb.Maps:
    r = flat(maps, lambda m: m.ranges)
    return pb.Maps(
        spaces=[m.space for m in maps],
        range_counts=[len(m.ranges) for m in maps],
        ranges=pb.MapRanges(
            kinds=[i.kind for i in r],
            starts=[i.start for i in r],
            sizes=[i.size for i in r],
            into=[i.into for i in r],
            bases=[i.base for i in r],
            elements=[i.element for i in r],
            strides=[i.stride for i in r],
            registers=[i.register for i in r],
        ),
    )


def _translate(arch: Architecture, engine: Engine, p: pb.TranslateRequest) -> Answers:
    expression = p.expression if p.HasField("expression") else None
    request = Translation(p.space, p.address, expression, p.thread, p.frame, p.lane)
    yield pb.TranslateAnswer(expression=arch.translate(engine, request))


def _classify_return(arch: Architecture, engine: Engine, p: pb.ClassifyReturnRequest) -> Answers:
    sites = [ReturnSite(*s) for s in zip(p.pcs, split(p.code, len(p.pcs)))]
    answer = as_many("classify_return", sites, arch.classify_return(sites))
    yield pb.ClassifyReturnAnswer(classes=[r.kind for r in answer], targets=[r.target for r in answer])


def _disassemble(arch: Architecture, engine: Engine, p: pb.DisassembleRequest) -> Answers:
    answer = arch.disassemble(Code(p.address, p.code, p.processor, p.lanes))
    code = answer.instructions
    yield pb.DisassembleAnswer(
        addresses=[i.address for i in code],
        sizes=[i.size for i in code],
        texts=texts(i.text for i in code),
        llvm_triple=answer.llvm_triple,
        llvm_cpu=answer.llvm_cpu,
        llvm_features=answer.llvm_features,
        kinds=[i.kind for i in code],
        registers=[i.register for i in code],
        register_bits=[i.register_bits for i in code],
        accesses=_accesses(code),
    )


def _accesses(code: Sequence[Instruction]) -> pb.Accesses | None:
    a = flat(code, lambda i: i.accesses)
    if not a:
        return None
    return pb.Accesses(
        counts=[len(i.accesses) for i in code],
        reads=[i.reads for i in a],
        writes=[i.writes for i in a],
        sizes=[i.size for i in a],
        bases=[i.base for i in a],
        indexes=[i.index for i in a],
        segments=[i.segment for i in a],
        scales=[i.scale for i in a],
        displacements=[i.displacement for i in a],
        address_bits=[i.address_bits for i in a],
        index_bits=[i.index_bits for i in a],
        indexes_signed=[i.index_signed for i in a],
    )


def as_many(call: str, request: Sequence[object], answer: Sequence[T]) -> Sequence[T]:
    if len(answer) != len(request):
        raise ValueError(f"{call} answers {len(answer)} entries, expected {len(request)}, as many as are asked about")
    return answer


CALLS = {
    "Describe": Call("describe", pb.DescribeRequest, _describe),
    "OpenTarget": Call("open_target", pb.OpenTargetRequest, _open_target, in_parts=True),
    "OpenObject": Call("open_object", pb.OpenObjectRequest, _open_object, in_parts=True),
    "FrameRules": Call("frame_rules", pb.FrameRulesRequest, _frame_rules),
    "BindThreads": Call("bind_threads", pb.BindThreadsRequest, _bind_threads),
    "Translate": Call("translate", pb.TranslateRequest, _translate),
    "ClassifyReturn": Call("classify_return", pb.ClassifyReturnRequest, _classify_return),
    "Disassemble": Call("disassemble", pb.DisassembleRequest, _disassemble),
}
"""The calls by their names in arch.proto."""


def served(arch: Architecture) -> dict[str, Call]:
    """The calls that a plugin writes itself. The rest is answered UNIMPLEMENTED, which stands for what
    Architecture answers, and costs nothing."""
    own, base = type(arch), Architecture
    return {name: c for name, c in CALLS.items() if getattr(own, c.method) is not getattr(base, c.method)}
