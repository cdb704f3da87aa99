package sdk

import (
	"fmt"

	pb "github.com/unwindd/unwindd/sdk/archpb"
)

func encodeOpenTargetRequest(r *OpenTargetRequest) *pb.OpenTargetRequest {
	return &pb.OpenTargetRequest{
		Owners: blobs(r.Notes, func(n *Note) string { return n.Owner }),
		Types:  column(r.Notes, func(n *Note) uint32 { return n.Type }),
		Data:   blobs(r.Notes, func(n *Note) []byte { return n.Data }),
	}
}

func decodeOpenTargetRequest(p *pb.OpenTargetRequest) (*OpenTargetRequest, error) {
	d := decoder{message: "OpenTargetRequest"}
	n := d.entries("types", len(p.GetTypes()))
	owners := d.texts("owners", p.GetOwners(), n)
	data := d.bytes("data", p.GetData(), n)
	if d.err != nil {
		return nil, d.err
	}
	r := &OpenTargetRequest{}
	if n > 0 {
		r.Notes = make([]Note, n)
	}
	for i := range r.Notes {
		r.Notes[i] = Note{Owner: owners.next(), Type: p.Types[i], Data: data.next()}
	}
	return r, nil
}

// encodeOpenTargetAnswer returns the answer and the data of its registers,
// which goes in parts of its own.
func encodeOpenTargetAnswer(a *OpenTargetAnswer) (*pb.OpenTargetAnswer, []byte, error) {
	registers, err := encodeRegisters(a.Threads, func(t *TargetThread) *Registers { return &t.Registers })
	if err != nil {
		return nil, nil, fmt.Errorf("OpenTargetAnswer.Threads: %w", err)
	}
	data := registers.Data
	registers.Data = nil
	text := func(get func(*TargetThread) string) *pb.Blobs { return blobs(a.Threads, get) }
	number := func(get func(*TargetThread) uint32) []uint32 { return column(a.Threads, get) }
	return &pb.OpenTargetAnswer{
		Ids:              text(func(t *TargetThread) string { return t.ID }),
		Names:            text(func(t *TargetThread) string { return t.Name }),
		Registers:        registers,
		RegisterDataSize: uint64(len(data)),
		Waves: &pb.Waves{
			Agents:     text(func(t *TargetThread) string { return t.Wave.Agent }),
			Queues:     text(func(t *TargetThread) string { return t.Wave.Queue }),
			Dispatches: text(func(t *TargetThread) string { return t.Wave.Dispatch }),
			Kernels:    text(func(t *TargetThread) string { return t.Wave.Kernel }),
			GroupX:     number(func(t *TargetThread) uint32 { return t.Wave.Group[0] }),
			GroupY:     number(func(t *TargetThread) uint32 { return t.Wave.Group[1] }),
			GroupZ:     number(func(t *TargetThread) uint32 { return t.Wave.Group[2] }),
			InGroup:    number(func(t *TargetThread) uint32 { return t.Wave.InGroup }),
		},
		LauncherThreads:       text(func(t *TargetThread) string { return t.LauncherThread }),
		LaunchKinds:           text(func(t *TargetThread) string { return t.LaunchKind }),
		LaunchEvidence:        text(func(t *TargetThread) string { return t.LaunchEvidence }),
		ObjectUris:            blobs(a.Objects, func(o *TargetObject) string { return o.URI }),
		ObjectStarts:          column(a.Objects, func(o *TargetObject) uint64 { return o.Start }),
		ObjectSizes:           column(a.Objects, func(o *TargetObject) uint64 { return o.Size }),
		ObjectMemoryAddresses: column(a.Objects, func(o *TargetObject) uint64 { return o.MemoryAddress }),
		Problems:              texts(a.Problems),
	}, data, nil
}

// decodeOpenTargetAnswer decodes an answer whose register data came in parts.
func decodeOpenTargetAnswer(p *pb.OpenTargetAnswer, data []byte) (*OpenTargetAnswer, error) {
	d := decoder{message: "OpenTargetAnswer"}
	if len(p.GetRegisters().GetData()) > 0 {
		d.fail("registers", "%d bytes of data, expected them in parts", len(p.GetRegisters().GetData()))
	}
	if p.GetRegisterDataSize() != uint64(len(data)) {
		d.fail("register_data_size", "%d, expected %d, the bytes of the parts", p.GetRegisterDataSize(), len(data))
	}
	n := d.entries("ids", len(p.GetIds().GetLengths()))
	w := p.GetWaves()
	ids := d.texts("ids", p.GetIds(), n)
	names := d.texts("names", p.GetNames(), n)
	agents := d.texts("waves.agents", w.GetAgents(), n)
	queues := d.texts("waves.queues", w.GetQueues(), n)
	dispatches := d.texts("waves.dispatches", w.GetDispatches(), n)
	kernels := d.texts("waves.kernels", w.GetKernels(), n)
	d.length("waves.group_x", len(w.GetGroupX()), n)
	d.length("waves.group_y", len(w.GetGroupY()), n)
	d.length("waves.group_z", len(w.GetGroupZ()), n)
	d.length("waves.in_group", len(w.GetInGroup()), n)
	launchers := d.texts("launcher_threads", p.GetLauncherThreads(), n)
	kinds := d.texts("launch_kinds", p.GetLaunchKinds(), n)
	evidence := d.texts("launch_evidence", p.GetLaunchEvidence(), n)

	objects := d.entries("object_starts", len(p.GetObjectStarts()))
	uris := d.texts("object_uris", p.GetObjectUris(), objects)
	d.length("object_sizes", len(p.GetObjectSizes()), objects)
	d.length("object_memory_addresses", len(p.GetObjectMemoryAddresses()), objects)
	problems := d.textList("problems", p.GetProblems())
	if d.err != nil {
		return nil, d.err
	}
	registers, err := decodeRegisters(&pb.RegistersColumn{
		Counts:  p.GetRegisters().GetCounts(),
		Numbers: p.GetRegisters().GetNumbers(),
		Lengths: p.GetRegisters().GetLengths(),
		Data:    data,
	}, n)
	d.wrap("registers", err)
	if d.err != nil {
		return nil, d.err
	}
	a := &OpenTargetAnswer{Problems: problems}
	if n > 0 {
		a.Threads = make([]TargetThread, n)
	}
	for i := range a.Threads {
		a.Threads[i] = TargetThread{
			ID: ids.next(), Name: names.next(), Registers: registers[i],
			Wave: Wave{
				Agent: agents.next(), Queue: queues.next(), Dispatch: dispatches.next(), Kernel: kernels.next(),
				Group:   [3]uint32{w.GroupX[i], w.GroupY[i], w.GroupZ[i]},
				InGroup: w.InGroup[i],
			},
			LauncherThread: launchers.next(), LaunchKind: kinds.next(), LaunchEvidence: evidence.next(),
		}
	}
	if objects > 0 {
		a.Objects = make([]TargetObject, objects)
	}
	for i := range a.Objects {
		a.Objects[i] = TargetObject{
			URI: uris.next(), Start: p.ObjectStarts[i], Size: p.ObjectSizes[i],
			MemoryAddress: p.ObjectMemoryAddresses[i],
		}
	}
	return a, nil
}
