# SPDX-License-Identifier: Apache-2.0
"""The calls of a language runtime as messages."""

from collections.abc import Sequence

from . import arch_pb2 as pb
from . import runtime_pb2 as rpb
from .architecture import Section
from .columns import check, flat, lists, pack_registers, split_texts, texts
from .engine import RuntimeEngine
from .rows import pack_rows
from .runtime import (
    ManagedFrame, ManagedFramesRequest, ManagedStack, ManagedThread, ManagedVariable, MemberPlace, NativeFrame, NativeStack,
    OpenRuntimeRequest, Runtime, RuntimeDescription, RuntimeLock, RuntimeSegment, RuntimeThread, SymbolPlace, TypeLayout,
)  # fmt: skip
from .wire import FEATURE, Answers, Call, as_many

THREADS = 1024  # in a part


def _describe(runtime: Runtime, engine: RuntimeEngine, p: pb.DescribeRequest) -> Answers:
    d = runtime.describe()
    yield rpb.RuntimeDescription(
        name=d.name,
        version=d.version,
        recognises=[rpb.RuntimeRecogniser(section=r.section, symbol=r.symbol, build_id=r.build_id) for r in d.recognises],
        symbols=d.symbols,
        types=[rpb.RuntimeType(unit=t.unit, name=t.name, members=t.members) for t in d.types],
        constants=[rpb.RuntimeConstants(unit=c.unit, prefix=c.prefix) for c in d.constants],
        thread_kind=d.thread_kind,
        feature=FEATURE,
    )


def _open_runtime(runtime: Runtime, engine: RuntimeEngine, p: rpb.OpenRuntimeRequest) -> Answers:
    d = runtime.describe()
    a = runtime.open_runtime(engine, open_request(d, p))
    yield rpb.OpenRuntimeAnswer(
        version=a.version,
        code=rpb.RuntimeCode(
            starts=[c.start for c in a.code], ends=[c.end for c in a.code], names=texts(c.name for c in a.code)
        ),
        has_frames=a.has_frames,
        threads=a.threads,
        has_threads=a.has_threads,
        problems=texts(a.problems),
        locks=_locks(a.locks) if a.locks else None,
        fatal=a.fatal.encode("utf-8", "replace"),
    )


def _locks(k: Sequence[RuntimeLock]) -> rpb.RuntimeLocks:
    return rpb.RuntimeLocks(
        addresses=[i.address for i in k],
        names=texts(i.name for i in k),
        holders=[i.holder or 0 for i in k],
        has_holder=[i.holder is not None for i in k],
        waiter_counts=[len(i.waiters) for i in k],
        waiters=flat(k, lambda i: i.waiters),
    )


def open_request(d: RuntimeDescription, p: rpb.OpenRuntimeRequest) -> OpenRuntimeRequest:
    """A request to open, whose lists are those that a description asks for."""
    s, y, c, t = p.sections, p.symbols, p.constants, p.threads
    check("OpenRuntimeRequest.segments.sizes", p.segments.sizes, len(p.segments.addresses))
    check("OpenRuntimeRequest.segments.starts", p.segments.starts, len(p.segments.addresses))
    for name in ("known", "addresses", "sizes"):
        check(f"OpenRuntimeRequest.symbols.{name}", getattr(y, name), len(d.symbols))
    places = zip(d.symbols, y.known, y.addresses, y.sizes)
    return OpenRuntimeRequest(
        runtime=p.runtime,
        object=p.object,
        path=p.path.decode("utf-8", "surrogateescape"),
        build_id=p.build_id,
        machine=p.machine,
        address_bits=p.address_bits,
        byte_order=p.byte_order,
        pc=p.pc,
        sp=p.sp,
        fp=p.fp,
        return_address=p.return_address,
        has_debug_info=p.has_debug_info,
        memory_size=p.memory_size,
        segments=[RuntimeSegment(*i) for i in zip(p.segments.addresses, p.segments.sizes, p.segments.starts)],
        sections=[Section(*i) for i in zip(split_texts(s.names, len(s.types)), s.types, s.flags, s.addresses, s.sizes)],
        symbols={name: SymbolPlace(address, size) for name, known, address, size in places if known},
        types=_layouts(d, p.types),
        constants=dict(zip(split_texts(c.names, len(c.values)), c.values)),
        threads=[RuntimeThread(*i) for i in zip(t.threads, split_texts(t.ids, len(t.threads)), split_texts(t.names, len(t.threads)))],
    )


def _layouts(d: RuntimeDescription, p: rpb.TypeLayouts) -> dict[str, TypeLayout]:
    check("TypeLayouts.sizes", p.sizes, len(d.types))
    check("TypeLayouts.member_counts", p.member_counts, len(d.types))
    check("TypeLayouts.member_sizes", p.member_sizes, len(p.offsets))
    places = [MemberPlace(*i) for i in zip(p.offsets, p.member_sizes)]
    problems = split_texts(p.problems, len(d.types))
    own = lists("TypeLayouts.member_counts", p.member_counts, places)
    layouts = {}
    for t, size, problem, members in zip(d.types, p.sizes, problems, own):
        if members:
            check(f"TypeLayouts: members of {t.name}", members, len(t.members))
        layouts[t.name] = TypeLayout(size, {path: m for path, m in zip(t.members, members) if m.size}, problem)
    return layouts


def _code_rules(runtime: Runtime, engine: RuntimeEngine, p: rpb.CodeRulesRequest) -> Answers:
    a = as_many("code_rules", p.pcs, runtime.code_rules(engine, p.runtime, p.pcs))
    yield rpb.CodeRulesAnswer(
        starts=[c.start for c in a],
        ends=[c.end for c in a],
        row_counts=[len(c.rows) for c in a],
        rows=pack_rows(flat(a, lambda c: c.rows)),
        frame_counts=[len(c.frames) for c in a],
        frames=pack_frames(flat(a, lambda c: c.frames)),
        reasons=texts(c.reason for c in a),
    )


def pack_frames(frames: Sequence[ManagedFrame]) -> rpb.ManagedFrameList:
    """A list of frames with their variables."""
    p = rpb.ManagedFrameList(
        functions=texts(f.function for f in frames),
        files=texts(f.file for f in frames),
        lines=[f.line for f in frames],
        columns=[f.column for f in frames],
        kinds=[f.kind for f in frames],
        variable_counts=[len(f.variables) for f in frames],
    )
    v = flat(frames, lambda f: flat(f.variables, _tree))
    if v:
        p.variables.CopyFrom(
            rpb.ManagedVariables(
                names=texts(i.name for i in v),
                types=texts(i.type for i in v),
                texts=texts(i.text for i in v),
                statuses=[i.status for i in v],
                parameters=[i.is_param for i in v],
                child_counts=[len(i.children) for i in v],
                more=[i.more for i in v],
            )
        )
    return p


def _tree(variable: ManagedVariable) -> list[ManagedVariable]:
    """A variable, followed by its children, each with its own behind it."""
    return [variable, *flat(variable.children, _tree)]


def _managed_frames(runtime: Runtime, engine: RuntimeEngine, p: rpb.ManagedFramesRequest) -> Answers:
    request = frames_request(p)
    a = as_many("managed_frames", request.threads, runtime.managed_frames(engine, request))
    runs = flat(a, lambda s: s.runs)
    yield rpb.ManagedFramesAnswer(
        run_counts=[len(s.runs) for s in a],
        problems=texts(s.problem for s in a),
        firsts=[r.first for r in runs],
        counts=[r.count for r in runs],
        frame_counts=[len(r.frames) for r in runs],
        frames=pack_frames(flat(runs, lambda r: r.frames)),
        states=_states(a) if any(s.name or s.state or s.locks or s.exception for s in a) else None,
    )


def _states(a: Sequence[ManagedStack]) -> rpb.ManagedStates:
    """The states of threads beside their frames."""
    locks, exceptions = flat(a, lambda s: s.locks), [s.exception for s in a if s.exception]
    return rpb.ManagedStates(
        names=texts(s.name for s in a),
        states=texts(s.state for s in a),
        lock_counts=[len(s.locks) for s in a],
        locks=rpb.ManagedLocks(
            addresses=[k.address for k in locks], names=texts(k.name for k in locks), waited=[k.is_waited for k in locks]
        ),
        has_exception=[s.exception is not None for s in a],
        exceptions=rpb.ManagedExceptions(
            types=texts(x.type for x in exceptions),
            texts=texts(x.text for x in exceptions),
            frame_counts=[len(x.frames) for x in exceptions],
            frames=pack_frames(flat(exceptions, lambda x: x.frames)),
        ),
    )


def frames_request(p: rpb.ManagedFramesRequest) -> ManagedFramesRequest:
    """A request for the frames in native stacks."""
    f, n = p.frames, len(p.frames.pcs)
    for name in ("cfas", "has_cfa", "in_module"):
        check(f"ManagedFramesRequest.frames.{name}", getattr(f, name), n)
    check("ManagedFramesRequest.frame_counts", p.frame_counts, len(p.threads))
    check("ManagedFramesRequest.cut", p.cut, len(p.threads))
    cfas = [cfa if has else None for cfa, has in zip(f.cfas, f.has_cfa)]
    frames = [NativeFrame(*i) for i in zip(f.pcs, cfas, f.in_module, split_texts(f.functions, n))]
    own = lists("ManagedFramesRequest.frame_counts", p.frame_counts, frames)
    threads = [NativeStack(*i) for i in zip(p.threads, own, p.cut)]
    return ManagedFramesRequest(p.runtime, threads, p.variables, p.depth, p.elements)


def _managed_threads(runtime: Runtime, engine: RuntimeEngine, p: rpb.ManagedThreadsRequest) -> Answers:
    a = runtime.managed_threads(engine, p.runtime, p.frames)
    yield rpb.ManagedThreadsPart(answer_problems=texts(a.problems))
    for at in range(0, len(a.threads), THREADS):
        yield _threads(a.threads[at : at + THREADS])


def _threads(t: Sequence[ManagedThread]) -> rpb.ManagedThreadsPart:
    return rpb.ManagedThreadsPart(
        numbers=[i.number for i in t],
        names=texts(i.name for i in t),
        states=texts(i.state for i in t),
        reasons=texts(i.reason for i in t),
        parents=[i.parent for i in t],
        waits_for_counts=[len(i.waits_for) for i in t],
        waits_for=flat(t, lambda i: i.waits_for),
        created_at=[i.created_at for i in t],
        started_at=[i.started_at for i in t],
        wait_since=[i.wait_since for i in t],
        wait_at_least=[i.wait_at_least for i in t],
        pinned=[i.is_pinned for i in t],
        scanned=[i.is_scanned for i in t],
        system=[i.is_system for i in t],
        carriers=texts(i.carrier for i in t),
        mounted=[i.is_mounted for i in t],
        stack_lows=[i.stack_low for i in t],
        stack_highs=[i.stack_high for i in t],
        registers=pack_registers(i.registers for i in t),
        in_call=[i.is_in_call for i in t],
        frame_counts=[len(i.frames) for i in t],
        frames=pack_frames(flat(t, lambda i: i.frames)),
        problems=texts(i.problem for i in t),
    )


CALLS = {
    "Describe": Call("describe", pb.DescribeRequest, _describe),
    "OpenRuntime": Call("open_runtime", rpb.OpenRuntimeRequest, _open_runtime),
    "CodeRules": Call("code_rules", rpb.CodeRulesRequest, _code_rules),
    "ManagedFrames": Call("managed_frames", rpb.ManagedFramesRequest, _managed_frames),
    "ManagedThreads": Call("managed_threads", rpb.ManagedThreadsRequest, _managed_threads, in_parts=True),
}
"""The calls by their names in runtime.proto."""


def served(runtime: Runtime) -> dict[str, Call]:
    """The calls that a plugin writes itself, as wire.served has them."""
    own, base = type(runtime), Runtime
    return {name: c for name, c in CALLS.items() if getattr(own, c.method) is not getattr(base, c.method)}
