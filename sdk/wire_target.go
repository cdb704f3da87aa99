// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"fmt"
	"math"
	"slices"

	"github.com/unwindd/unwindd/locexpr"
	pb "github.com/unwindd/unwindd/sdk/archpb"
)

func encodeOpenTargetRequest(r *OpenTargetRequest) *pb.OpenTargetRequest {
	return &pb.OpenTargetRequest{
		Owners: blobs(r.Notes, func(n *Note) string { return n.Owner }),
		Types:  column(r.Notes, func(n *Note) uint32 { return n.Type }),
		Data:   blobs(r.Notes, func(n *Note) []byte { return n.Data }),
		File:   encodeTargetFile(r.File),
	}
}

func encodeTargetFile(f *TargetFile) *pb.TargetFile {
	if f == nil {
		return nil
	}
	return &pb.TargetFile{
		Machine: uint32(f.Machine), OsAbi: uint32(f.OSABI), AbiVersion: uint32(f.ABIVersion), Flags: f.Flags, Size: f.Size,
		SectionsOffset: f.SectionsOffset, Sections: f.Sections, SectionSize: f.SectionSize, SectionNames: f.SectionNames,
	}
}

func decodeTargetFile(d *decoder, p *pb.TargetFile) *TargetFile {
	if p == nil {
		return nil
	}
	d.small("file.machine", p.GetMachine(), math.MaxUint16)
	d.small("file.os_abi", p.GetOsAbi(), math.MaxUint8)
	d.small("file.abi_version", p.GetAbiVersion(), math.MaxUint8)
	return &TargetFile{
		Machine: uint16(p.GetMachine()), OSABI: uint8(p.GetOsAbi()), ABIVersion: uint8(p.GetAbiVersion()), //nolint:gosec // checked
		Flags: p.GetFlags(), Size: p.GetSize(),
		SectionsOffset: p.GetSectionsOffset(), Sections: p.GetSections(), SectionSize: p.GetSectionSize(), SectionNames: p.GetSectionNames(),
	}
}

func decodeOpenTargetRequest(p *pb.OpenTargetRequest) (*OpenTargetRequest, error) {
	d := decoder{message: "OpenTargetRequest"}
	n := d.entries("types", len(p.GetTypes()))
	owners := d.texts("owners", p.GetOwners(), n)
	data := d.bytes("data", p.GetData(), n)
	notes := listOf(&d, n, func(i int) Note { return Note{Owner: owners.next(), Type: p.Types[i], Data: data.next()} })
	return result(&d, &OpenTargetRequest{Notes: notes, File: decodeTargetFile(&d, p.GetFile())})
}

// encodeOpenTargetAnswer encodes the answer without its threads, which go in parts of
// their own.
func encodeOpenTargetAnswer(a *OpenTargetAnswer) *pb.OpenTargetAnswer {
	answer := &pb.OpenTargetAnswer{
		Threads: uint32(len(a.Threads)), //nolint:gosec // a decoder refuses more than MaxBatch
		Agents: &pb.TargetAgents{
			Ids:        blobs(a.Agents, func(t *TargetAgent) string { return t.ID }),
			Processors: blobs(a.Agents, func(t *TargetAgent) string { return t.Processor }),
		},
		Queues: &pb.TargetQueues{
			Ids:    blobs(a.Queues, func(q *TargetQueue) string { return q.ID }),
			Agents: blobs(a.Queues, func(q *TargetQueue) string { return q.Agent }),
			Kinds:  blobs(a.Queues, func(q *TargetQueue) string { return q.Kind }),
		},
		Dispatches: &pb.TargetDispatches{
			Ids:     blobs(a.Dispatches, func(t *TargetDispatch) string { return t.ID }),
			Queues:  blobs(a.Dispatches, func(t *TargetDispatch) string { return t.Queue }),
			Kernels: blobs(a.Dispatches, func(t *TargetDispatch) string { return t.Kernel }),
			Entries: column(a.Dispatches, func(t *TargetDispatch) uint64 { return t.Entry }),
			Grids:   triples(a.Dispatches, func(t *TargetDispatch) [3]uint32 { return t.Grid }),
			Groups:  triples(a.Dispatches, func(t *TargetDispatch) [3]uint32 { return t.Group }),
			Signals: column(a.Dispatches, func(t *TargetDispatch) uint64 { return t.Signal }),
		},
		Objects: &pb.TargetObjects{
			Uris:            blobs(a.Objects, func(o *TargetObject) string { return o.URI }),
			Paths:           blobs(a.Objects, func(o *TargetObject) string { return o.Path }),
			Offsets:         column(a.Objects, func(o *TargetObject) uint64 { return o.Offset }),
			Sizes:           column(a.Objects, func(o *TargetObject) uint64 { return o.Size }),
			MemoryAddresses: column(a.Objects, func(o *TargetObject) uint64 { return o.MemoryAddress }),
			Biases:          column(a.Objects, func(o *TargetObject) uint64 { return o.Bias }),
			Intos:           unlessZero(column(a.Objects, func(o *TargetObject) uint64 { return uint64(o.Into) })),
		},
		WaitFunctions: texts(a.WaitFunctions),
		Problems:      texts(a.Problems),
		Kind:          a.Kind,
	}
	if len(a.Memory) > 0 {
		answer.Memory = encodeSpaceMemory(a.Memory)
	}
	if len(a.LaunchFunctions) > 0 {
		answer.LaunchFunctions = texts(a.LaunchFunctions)
	}
	if p := a.HostProcess; p != nil {
		answer.HostProcess = &pb.HostProcess{Pid: p.PID, Time: p.Time}
	}
	return answer
}

// triples builds one column from three numbers of each entry.
func triples[T any](list []T, get func(*T) [3]uint32) []uint32 {
	return flat(list, func(t *T) []uint32 { v := get(t); return v[:] })
}

// decodeOpenTargetAnswer decodes an answer. threads is how many threads follow.
func decodeOpenTargetAnswer(p *pb.OpenTargetAnswer) (a *OpenTargetAnswer, threads int, err error) {
	d := decoder{message: "OpenTargetAnswer"}
	a = &OpenTargetAnswer{
		Kind:          d.text("kind", p.GetKind()),
		Agents:        decodeTargetAgents(&d, p.GetAgents()),
		Queues:        decodeTargetQueues(&d, p.GetQueues()),
		Dispatches:    decodeTargetDispatches(&d, p.GetDispatches()),
		Objects:       decodeTargetObjects(&d, p.GetObjects()),
		WaitFunctions: d.textList("wait_functions", p.GetWaitFunctions()),
		Problems:      d.textList("problems", p.GetProblems()),

		Memory:          decodeSpaceMemory(&d, "memory", p.GetMemory()),
		LaunchFunctions: d.textList("launch_functions", p.GetLaunchFunctions()),
	}
	if host := p.GetHostProcess(); host != nil {
		a.HostProcess = &HostProcess{PID: host.GetPid(), Time: host.GetTime()}
	}
	threads = d.entries("threads", int(p.GetThreads()))
	if d.err != nil {
		return nil, 0, d.err
	}
	return a, threads, nil
}

func decodeTargetAgents(d *decoder, p *pb.TargetAgents) []TargetAgent {
	n := d.entries("agents.ids", len(p.GetIds().GetLengths()))
	ids := d.texts("agents.ids", p.GetIds(), n)
	processors := d.texts("agents.processors", p.GetProcessors(), n)
	return listOf(d, n, func(int) TargetAgent { return TargetAgent{ID: ids.next(), Processor: processors.next()} })
}

func decodeTargetQueues(d *decoder, p *pb.TargetQueues) []TargetQueue {
	n := d.entries("queues.ids", len(p.GetIds().GetLengths()))
	ids := d.texts("queues.ids", p.GetIds(), n)
	agents := d.texts("queues.agents", p.GetAgents(), n)
	kinds := d.texts("queues.kinds", p.GetKinds(), n)
	return listOf(d, n, func(int) TargetQueue {
		return TargetQueue{ID: ids.next(), Agent: agents.next(), Kind: kinds.next()}
	})
}

func decodeTargetDispatches(d *decoder, p *pb.TargetDispatches) []TargetDispatch {
	n := d.entries("dispatches.ids", len(p.GetIds().GetLengths()))
	ids := d.texts("dispatches.ids", p.GetIds(), n)
	queues := d.texts("dispatches.queues", p.GetQueues(), n)
	kernels := d.texts("dispatches.kernels", p.GetKernels(), n)
	d.length("dispatches.entries", len(p.GetEntries()), n)
	d.length("dispatches.grids", len(p.GetGrids()), 3*n)
	d.length("dispatches.groups", len(p.GetGroups()), 3*n)
	d.length("dispatches.signals", len(p.GetSignals()), n)
	return listOf(d, n, func(i int) TargetDispatch {
		return TargetDispatch{
			ID: ids.next(), Queue: queues.next(), Kernel: kernels.next(), Entry: p.Entries[i],
			Grid: [3]uint32(p.Grids[3*i:]), Group: [3]uint32(p.Groups[3*i:]), Signal: p.Signals[i],
		}
	})
}

func decodeTargetObjects(d *decoder, p *pb.TargetObjects) []TargetObject {
	n := d.entries("objects.offsets", len(p.GetOffsets()))
	uris := d.texts("objects.uris", p.GetUris(), n)
	paths := d.texts("objects.paths", p.GetPaths(), n)
	d.length("objects.sizes", len(p.GetSizes()), n)
	d.length("objects.memory_addresses", len(p.GetMemoryAddresses()), n)
	d.length("objects.biases", len(p.GetBiases()), n)
	intos := sparse(d, "objects.intos", p.GetIntos(), n)
	return listOf(d, n, func(i int) TargetObject {
		return TargetObject{
			URI: uris.next(), Path: paths.next(), Offset: p.Offsets[i], Size: p.Sizes[i],
			MemoryAddress: p.MemoryAddresses[i], Bias: p.Biases[i], Into: locexpr.AddressSpace(intos[i]),
		}
	})
}

// encodeTargetThreads encodes a part of the threads of an answer.
func encodeTargetThreads(list []TargetThread) (*pb.TargetThreads, error) {
	registers, err := encodeRegisters(list, func(t *TargetThread) *Registers { return &t.Registers })
	if err != nil {
		return nil, fmt.Errorf("OpenTargetAnswer.Threads: %w", err)
	}
	lanes, err := encodeLaneStates(list)
	if err != nil {
		return nil, fmt.Errorf("OpenTargetAnswer.Threads: %w", err)
	}
	text := func(get func(*TargetThread) string) *pb.Blobs { return blobs(list, get) }
	saved := flat(list, func(t *TargetThread) []SavedRegisters { return t.Saved })
	spaces := flat(list, func(t *TargetThread) []SpaceBase { return t.Spaces })
	memory := flat(list, func(t *TargetThread) []SpaceMemory { return t.Memory })
	states := text(func(t *TargetThread) string { return t.State })
	if len(states.Data) == 0 {
		states = nil
	}
	return &pb.TargetThreads{
		Ids:             text(func(t *TargetThread) string { return t.ID }),
		Names:           text(func(t *TargetThread) string { return t.Name }),
		Processors:      text(func(t *TargetThread) string { return t.Processor }),
		Lanes:           column(list, func(t *TargetThread) uint32 { return t.Lanes }),
		Registers:       registers,
		SavedCounts:     column(list, func(t *TargetThread) uint32 { return uint32(len(t.Saved)) }), //nolint:gosec // a count
		Saved:           encodeSavedRegisters(saved),
		SpaceCounts:     column(list, func(t *TargetThread) uint32 { return uint32(len(t.Spaces)) }), //nolint:gosec // a count
		Spaces:          column(spaces, func(s *SpaceBase) uint64 { return uint64(s.Space) }),
		SpaceBases:      column(spaces, func(s *SpaceBase) uint64 { return s.Base }),
		MemoryCounts:    column(list, func(t *TargetThread) uint32 { return uint32(len(t.Memory)) }), //nolint:gosec // a count
		Memory:          encodeSpaceMemory(memory),
		Waves:           encodeWaves(list),
		Running:         column(list, func(t *TargetThread) bool { return t.IsRunning }),
		Crashed:         column(list, func(t *TargetThread) bool { return t.HasCrashed }),
		Stops:           encodeThreadStops(list),
		Problems:        text(func(t *TargetThread) string { return t.Problem }),
		LauncherThreads: text(func(t *TargetThread) string { return t.LauncherThread }),
		LaunchKinds:     text(func(t *TargetThread) string { return t.LaunchKind }),
		LaunchEvidence:  text(func(t *TargetThread) string { return t.LaunchEvidence }),
		CallerCounts:    unlessZero(column(list, func(t *TargetThread) uint32 { return uint32(len(t.Callers)) })), //nolint:gosec // a count
		Callers:         flat(list, func(t *TargetThread) []uint64 { return t.Callers }),
		LaneStates:      lanes,
		Leads:           unlessZero(column(list, func(t *TargetThread) uint32 { return t.Lead })),
		States:          states,
	}, nil
}

func encodeWaves(list []TargetThread) *pb.Waves {
	return &pb.Waves{
		Agents:     blobs(list, func(t *TargetThread) string { return t.Wave.Agent }),
		Queues:     blobs(list, func(t *TargetThread) string { return t.Wave.Queue }),
		Dispatches: blobs(list, func(t *TargetThread) string { return t.Wave.Dispatch }),
		Kernels:    blobs(list, func(t *TargetThread) string { return t.Wave.Kernel }),
		Groups:     triples(list, func(t *TargetThread) [3]uint32 { return t.Wave.Group }),
		HasGroup:   column(list, func(t *TargetThread) bool { return t.Wave.HasGroup }),
		InGroup:    column(list, func(t *TargetThread) uint32 { return t.Wave.InGroup }),
		HasInGroup: column(list, func(t *TargetThread) bool { return t.Wave.HasInGroup }),
		Clusters:   encodeClusters(list),
	}
}

func encodeClusters(list []TargetThread) *pb.Clusters {
	if !slices.ContainsFunc(list, func(t TargetThread) bool { return t.Wave.HasCluster || t.Wave.Cluster != [3]uint32{} }) {
		return nil
	}
	return &pb.Clusters{
		Clusters:   triples(list, func(t *TargetThread) [3]uint32 { return t.Wave.Cluster }),
		HasCluster: column(list, func(t *TargetThread) bool { return t.Wave.HasCluster }),
	}
}

func encodeThreadStops(list []TargetThread) *pb.ThreadStops {
	details := flat(list, func(t *TargetThread) []string { return t.Stop.Details })
	return &pb.ThreadStops{
		Reasons:      blobs(list, func(t *TargetThread) string { return t.Stop.Reason }),
		DetailCounts: column(list, func(t *TargetThread) uint32 { return uint32(len(t.Stop.Details)) }), //nolint:gosec // a count
		Details:      texts(details),
		Addresses:    column(list, func(t *TargetThread) uint64 { return t.Stop.Address }),
		HasAddress:   column(list, func(t *TargetThread) bool { return t.Stop.HasAddress }),
		TrapIds:      column(list, func(t *TargetThread) uint32 { return t.Stop.TrapID }),
		HasTrapId:    column(list, func(t *TargetThread) bool { return t.Stop.HasTrapID }),
		PcExact:      column(list, func(t *TargetThread) bool { return t.Stop.IsPCExact }),
		HasPcExact:   column(list, func(t *TargetThread) bool { return t.Stop.HasPCExact }),
	}
}

// threadsPart decodes a part of the threads of an answer.
type threadsPart struct {
	decoder
	n int

	registers []Registers
	saved     splitter[SavedRegisters]
	spaces    splitter[SpaceBase]
	memory    splitter[SpaceMemory]
	callers   splitter[uint64]
	lanes     splitter[LaneState]
	wave      func(i int) Wave
	stop      func(i int) ThreadStop
}

// decodeTargetThreads decodes a part of the threads of an answer.
func decodeTargetThreads(p *pb.TargetThreads) ([]TargetThread, error) {
	d := threadsPart{decoder: decoder{message: "TargetThreads"}}
	n := d.entries("ids", len(p.GetIds().GetLengths()))
	d.n = n
	ids := d.texts("ids", p.GetIds(), n)
	names := d.texts("names", p.GetNames(), n)
	processors := d.texts("processors", p.GetProcessors(), n)
	d.length("lanes", len(p.GetLanes()), n)
	d.lists(p)
	d.waves(p.GetWaves())
	d.length("running", len(p.GetRunning()), n)
	d.length("crashed", len(p.GetCrashed()), n)
	d.stops(p.GetStops())
	problems := d.texts("problems", p.GetProblems(), n)
	launchers := d.texts("launcher_threads", p.GetLauncherThreads(), n)
	kinds := d.texts("launch_kinds", p.GetLaunchKinds(), n)
	evidence := d.texts("launch_evidence", p.GetLaunchEvidence(), n)
	callers := sparse(&d.decoder, "caller_counts", p.GetCallerCounts(), n)
	d.entries("callers", len(p.GetCallers()))
	d.sum("caller_counts", callers, len(p.GetCallers()))
	d.callers.all = p.GetCallers()
	lanes := d.laneStates(p.GetLaneStates())
	leads := sparse(&d.decoder, "leads", p.GetLeads(), n)
	state := func() string { return "" }
	if p.GetStates() != nil {
		states := d.texts("states", p.GetStates(), n)
		state = states.next
	}
	list := listOf(&d.decoder, n, func(i int) TargetThread {
		return TargetThread{
			ID: ids.next(), Name: names.next(), Processor: processors.next(), Lanes: p.Lanes[i],
			Registers: d.registers[i], Saved: d.saved.next(p.SavedCounts[i]), Spaces: d.spaces.next(p.SpaceCounts[i]),
			Memory: d.memory.next(p.MemoryCounts[i]), Wave: d.wave(i), IsRunning: p.Running[i], HasCrashed: p.Crashed[i],
			Stop: d.stop(i), Problem: problems.next(),
			LauncherThread: launchers.next(), LaunchKind: kinds.next(), LaunchEvidence: evidence.next(),
			Callers: d.callers.next(callers[i]), LaneStates: d.lanes.next(lanes[i]), Lead: leads[i], State: state(),
		}
	})
	return list, d.err
}

// lists checks the lists of threads.
func (d *threadsPart) lists(p *pb.TargetThreads) {
	var err error
	if d.registers, err = decodeRegisters(p.GetRegisters(), d.n); err != nil {
		d.wrap("registers", err)
	}
	d.saved.all = decodeSavedRegisters(&d.decoder, "saved", p.GetSaved())
	d.length("saved_counts", len(p.GetSavedCounts()), d.n)
	d.sum("saved_counts", p.GetSavedCounts(), len(d.saved.all))
	d.spaces.all = decodeSpaceBases(&d.decoder, p)
	d.length("space_counts", len(p.GetSpaceCounts()), d.n)
	d.sum("space_counts", p.GetSpaceCounts(), len(d.spaces.all))
	d.memory.all = decodeSpaceMemory(&d.decoder, "memory", p.GetMemory())
	d.length("memory_counts", len(p.GetMemoryCounts()), d.n)
	d.sum("memory_counts", p.GetMemoryCounts(), len(d.memory.all))
}

// waves checks the identities of waves.
func (d *threadsPart) waves(w *pb.Waves) {
	agents := d.texts("waves.agents", w.GetAgents(), d.n)
	queues := d.texts("waves.queues", w.GetQueues(), d.n)
	dispatches := d.texts("waves.dispatches", w.GetDispatches(), d.n)
	kernels := d.texts("waves.kernels", w.GetKernels(), d.n)
	d.length("waves.groups", len(w.GetGroups()), 3*d.n)
	d.length("waves.has_group", len(w.GetHasGroup()), d.n)
	d.length("waves.in_group", len(w.GetInGroup()), d.n)
	d.length("waves.has_in_group", len(w.GetHasInGroup()), d.n)
	c := w.GetClusters()
	if c != nil {
		d.length("waves.clusters.clusters", len(c.GetClusters()), 3*d.n)
		d.length("waves.clusters.has_cluster", len(c.GetHasCluster()), d.n)
	}
	d.wave = func(i int) Wave {
		wave := Wave{
			Agent: agents.next(), Queue: queues.next(), Dispatch: dispatches.next(), Kernel: kernels.next(),
			Group: [3]uint32(w.Groups[3*i:]), HasGroup: w.HasGroup[i], InGroup: w.InGroup[i], HasInGroup: w.HasInGroup[i],
		}
		if c != nil {
			wave.Cluster, wave.HasCluster = [3]uint32(c.Clusters[3*i:]), c.HasCluster[i]
		}
		return wave
	}
}

// stops checks the stops of threads.
func (d *threadsPart) stops(s *pb.ThreadStops) {
	reasons := d.texts("stops.reasons", s.GetReasons(), d.n)
	all := splitter[string]{d.textList("stops.details", s.GetDetails())}
	d.length("stops.detail_counts", len(s.GetDetailCounts()), d.n)
	d.sum("stops.detail_counts", s.GetDetailCounts(), len(all.all))
	d.length("stops.addresses", len(s.GetAddresses()), d.n)
	d.length("stops.has_address", len(s.GetHasAddress()), d.n)
	d.length("stops.trap_ids", len(s.GetTrapIds()), d.n)
	d.length("stops.has_trap_id", len(s.GetHasTrapId()), d.n)
	d.length("stops.pc_exact", len(s.GetPcExact()), d.n)
	d.length("stops.has_pc_exact", len(s.GetHasPcExact()), d.n)
	d.stop = func(i int) ThreadStop {
		return ThreadStop{
			Reason: reasons.next(), Details: all.next(s.DetailCounts[i]), Address: s.Addresses[i], HasAddress: s.HasAddress[i],
			TrapID: s.TrapIds[i], HasTrapID: s.HasTrapId[i], IsPCExact: s.PcExact[i], HasPCExact: s.HasPcExact[i],
		}
	}
}
