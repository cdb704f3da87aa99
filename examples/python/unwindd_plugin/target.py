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


FILE_SPACE = (1 << 64) - 1  # the address space of the bytes of a core's file: addresses are offsets


@dataclass(slots=True)
class TargetFile:
    """The ELF header of a core that has sections and no segments. Its bytes are in FILE_SPACE."""

    machine: int
    os_abi: int
    abi_version: int
    flags: int
    size: int
    sections_offset: int
    sections: int
    section_size: int
    section_names: int


@dataclass(slots=True)
class HostProcess:
    """The process that used the devices."""

    pid: int = 0
    time: int = 0


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
    into: int = 0


@dataclass(slots=True)
class Saved:
    """Registers whose bytes are in memory, one after the other."""

    first: int
    count: int
    address: int
    into: int = 0


@dataclass(slots=True)
class SpaceMemory:
    """Memory of an instance of an address space, which is at address in the space into."""

    space: int
    start: int
    size: int
    address: int
    into: int = 0


@dataclass(slots=True)
class LaneState:
    """A lane that has registers and memory of its own."""

    lane: int
    registers: Registers = field(default_factory=dict)
    saved: Sequence[Saved] = ()
    memory: Sequence[SpaceMemory] = ()


@dataclass(slots=True)
class Wave:
    """The identity of a wave."""

    agent: str = ""
    queue: str = ""
    dispatch: str = ""
    kernel: str = ""
    group: tuple[int, int, int] | None = None
    in_group: int | None = None
    cluster: tuple[int, int, int] | None = None


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
    callers: Sequence[int] = ()
    lane_states: Sequence[LaneState] = ()
    lead: int = 0
    state: str = ""


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
    memory: Sequence[SpaceMemory] = ()
    launch_functions: Sequence[str] = ()
    host_process: HostProcess | None = None


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
            intos=[i.into for i in o],
        ),
        wait_functions=texts(a.wait_functions),
        problems=texts(a.problems),
        memory=_memory(a.memory),
        launch_functions=texts(a.launch_functions),
        host_process=pb.HostProcess(pid=a.host_process.pid, time=a.host_process.time) if a.host_process else None,
    )


def _saved(s: Sequence[Saved]) -> pb.SavedRegisters:
    return pb.SavedRegisters(
        firsts=[i.first for i in s], counts=[i.count for i in s], addresses=[i.address for i in s], intos=[i.into for i in s]
    )


def _memory(m: Sequence[SpaceMemory]) -> pb.SpaceMemory:
    return pb.SpaceMemory(
        spaces=[i.space for i in m],
        starts=[i.start for i in m],
        sizes=[i.size for i in m],
        addresses=[i.address for i in m],
        intos=[i.into for i in m],
    )


def _lane_states(t: Sequence[TargetThread]) -> pb.LaneStates | None:
    lanes = flat(t, lambda i: i.lane_states)
    if not lanes:
        return None
    return pb.LaneStates(
        counts=[len(i.lane_states) for i in t],
        lanes=[i.lane for i in lanes],
        registers=pack_registers(i.registers for i in lanes),
        saved_counts=[len(i.saved) for i in lanes],
        saved=_saved(flat(lanes, lambda i: i.saved)),
        memory_counts=[len(i.memory) for i in lanes],
        memory=_memory(flat(lanes, lambda i: i.memory)),
    )


def _threads(t: Sequence[TargetThread]) -> pb.TargetThreads:
    return pb.TargetThreads(
        ids=texts(i.id for i in t),
        names=texts(i.name for i in t),
        processors=texts(i.processor for i in t),
        lanes=[i.lanes for i in t],
        registers=pack_registers(i.registers for i in t),
        saved_counts=[len(i.saved) for i in t],
        saved=_saved(flat(t, lambda i: i.saved)),
        space_counts=[len(i.spaces) for i in t],
        spaces=flat(t, lambda i: i.spaces.keys()),
        space_bases=flat(t, lambda i: i.spaces.values()),
        memory_counts=[len(i.memory) for i in t],
        memory=_memory(flat(t, lambda i: i.memory)),
        waves=_waves([i.wave for i in t]),
        running=[i.running for i in t],
        crashed=[i.crashed for i in t],
        stops=_stops([i.stop for i in t]),
        problems=texts(i.problem for i in t),
        launcher_threads=texts(i.launcher_thread for i in t),
        launch_kinds=texts(i.launch_kind for i in t),
        launch_evidence=texts(i.launch_evidence for i in t),
        caller_counts=[len(i.callers) for i in t],
        callers=flat(t, lambda i: i.callers),
        lane_states=_lane_states(t),
        leads=[i.lead for i in t],
        states=texts(i.state for i in t),
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
        clusters=pb.Clusters(clusters=flat(w, lambda i: i.cluster or _NOWHERE), has_cluster=[i.cluster is not None for i in w]),
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
