# SPDX-License-Identifier: Apache-2.0
"""Cores of a vendor's own: what open_target asks and answers. sdk/target.go has more words about it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from . import arch_pb2 as pb
from .columns import Registers, flat, pack_registers, texts


@dataclass(slots=True)
class Note:
    """A note of a core."""

    owner: str
    type: int
    data: bytes


@dataclass(slots=True)
class Agent:
    """A device that executes threads."""

    id: str
    processor: str = ""


@dataclass(slots=True)
class Queue:
    """A queue of an agent."""

    id: str
    agent: str
    kind: str = ""


@dataclass(slots=True)
class Dispatch:
    """A launch of a kernel that was under way."""

    id: str
    queue: str
    kernel: str = ""
    entry: int = 0
    grid: tuple[int, int, int] = (0, 0, 0)
    group: tuple[int, int, int] = (0, 0, 0)
    signal: int = 0


@dataclass(slots=True)
class TargetObject:
    """A code object: a part of a file, or, without a path, of memory."""

    uri: str
    path: str = ""
    offset: int = 0
    size: int = 0
    memory_address: int = 0
    bias: int = 0


@dataclass(slots=True)
class Saved:
    """Registers whose bytes are in memory, one after the other."""

    first: int
    count: int
    address: int


@dataclass(slots=True)
class SpaceMemory:
    """Memory of the thread's instance of an address space, which is at address in the default one."""

    space: int
    start: int
    size: int
    address: int


@dataclass(slots=True)
class Wave:
    """The identity of a wave."""

    agent: str = ""
    queue: str = ""
    dispatch: str = ""
    kernel: str = ""
    group: tuple[int, int, int] | None = None
    in_group: int | None = None


@dataclass(slots=True)
class Stop:
    """Why a thread stopped."""

    reason: str = ""
    details: Sequence[str] = ()
    address: int | None = None
    trap_id: int | None = None
    pc_exact: bool | None = None


@dataclass(slots=True)
class TargetThread:
    """A thread that a core has."""

    id: str
    registers: Registers = field(default_factory=dict)
    name: str = ""
    processor: str = ""
    lanes: int = 0
    saved: Sequence[Saved] = ()
    spaces: Mapping[int, int] = field(default_factory=dict)
    memory: Sequence[SpaceMemory] = ()
    wave: Wave = field(default_factory=Wave)
    running: bool = False
    crashed: bool = False
    stop: Stop = field(default_factory=Stop)
    problem: str = ""
    launcher_thread: str = ""
    launch_kind: str = ""
    launch_evidence: str = ""


@dataclass(slots=True)
class TargetAnswer:
    """What is in a core."""

    kind: str = ""
    agents: Sequence[Agent] = ()
    queues: Sequence[Queue] = ()
    dispatches: Sequence[Dispatch] = ()
    threads: Sequence[TargetThread] = ()
    objects: Sequence[TargetObject] = ()
    wait_functions: Sequence[str] = ()
    problems: Sequence[str] = ()


THREADS = 1024  # in a part
_NOWHERE = (0, 0, 0)


def pack_target(a: TargetAnswer) -> Iterator[pb.OpenTargetPart]:
    """The parts of an answer."""
    yield pb.OpenTargetPart(answer=_head(a))
    for at in range(0, len(a.threads), THREADS):
        yield pb.OpenTargetPart(threads=_threads(a.threads[at : at + THREADS]))


def _head(a: TargetAnswer) -> pb.OpenTargetAnswer:
    d, o = a.dispatches, a.objects
    return pb.OpenTargetAnswer(
        threads=len(a.threads),
        kind=a.kind,
        agents=pb.TargetAgents(ids=texts(i.id for i in a.agents), processors=texts(i.processor for i in a.agents)),
        queues=pb.TargetQueues(
            ids=texts(i.id for i in a.queues), agents=texts(i.agent for i in a.queues), kinds=texts(i.kind for i in a.queues)
        ),
        dispatches=pb.TargetDispatches(
            ids=texts(i.id for i in d),
            queues=texts(i.queue for i in d),
            kernels=texts(i.kernel for i in d),
            entries=[i.entry for i in d],
            grids=flat(d, lambda i: i.grid),
            groups=flat(d, lambda i: i.group),
            signals=[i.signal for i in d],
        ),
        objects=pb.TargetObjects(
            uris=texts(i.uri for i in o),
            paths=texts(i.path for i in o),
            offsets=[i.offset for i in o],
            sizes=[i.size for i in o],
            memory_addresses=[i.memory_address for i in o],
            biases=[i.bias for i in o],
        ),
        wait_functions=texts(a.wait_functions),
        problems=texts(a.problems),
    )


def _threads(t: Sequence[TargetThread]) -> pb.TargetThreads:
    saved, memory = flat(t, lambda i: i.saved), flat(t, lambda i: i.memory)
    return pb.TargetThreads(
        ids=texts(i.id for i in t),
        names=texts(i.name for i in t),
        processors=texts(i.processor for i in t),
        lanes=[i.lanes for i in t],
        registers=pack_registers(i.registers for i in t),
        saved_counts=[len(i.saved) for i in t],
        saved=pb.SavedRegisters(
            firsts=[s.first for s in saved], counts=[s.count for s in saved], addresses=[s.address for s in saved]
        ),
        space_counts=[len(i.spaces) for i in t],
        spaces=flat(t, lambda i: i.spaces.keys()),
        space_bases=flat(t, lambda i: i.spaces.values()),
        memory_counts=[len(i.memory) for i in t],
        memory=pb.SpaceMemory(
            spaces=[m.space for m in memory],
            starts=[m.start for m in memory],
            sizes=[m.size for m in memory],
            addresses=[m.address for m in memory],
        ),
        waves=_waves([i.wave for i in t]),
        running=[i.running for i in t],
        crashed=[i.crashed for i in t],
        stops=_stops([i.stop for i in t]),
        problems=texts(i.problem for i in t),
        launcher_threads=texts(i.launcher_thread for i in t),
        launch_kinds=texts(i.launch_kind for i in t),
        launch_evidence=texts(i.launch_evidence for i in t),
    )


def _waves(w: Sequence[Wave]) -> pb.Waves:
    return pb.Waves(
        agents=texts(i.agent for i in w),
        queues=texts(i.queue for i in w),
        dispatches=texts(i.dispatch for i in w),
        kernels=texts(i.kernel for i in w),
        groups=flat(w, lambda i: i.group or _NOWHERE),
        has_group=[i.group is not None for i in w],
        in_group=[i.in_group or 0 for i in w],
        has_in_group=[i.in_group is not None for i in w],
    )


def _stops(s: Sequence[Stop]) -> pb.ThreadStops:
    return pb.ThreadStops(
        reasons=texts(i.reason for i in s),
        detail_counts=[len(i.details) for i in s],
        details=texts(flat(s, lambda i: i.details)),
        addresses=[i.address or 0 for i in s],
        has_address=[i.address is not None for i in s],
        trap_ids=[i.trap_id or 0 for i in s],
        has_trap_id=[i.trap_id is not None for i in s],
        pc_exact=[bool(i.pc_exact) for i in s],
        has_pc_exact=[i.pc_exact is not None for i in s],
    )
