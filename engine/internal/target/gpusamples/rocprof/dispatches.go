// SPDX-License-Identifier: Apache-2.0

package rocprof

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
)

// The members of a kernel symbol
// (rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t).
const (
	kernelID = iota
	kernelObject
	kernelName
	kernelDescriptor
	kernelEntry
	kernelAddress
)

var kernelFields = []field{
	{path: "kernel_id"}, {path: "code_object_id"}, {path: "kernel_name", isText: true},
	{path: "kernel_object"}, {path: "kernel_code_entry_byte_offset"}, {path: "kernel_address.handle"},
}

// kernelSymbol is the code object of a kernel, and the address of its first instruction; 0
// where that is unknown.
type kernelSymbol struct{ object, entry uint64 }

// addKernel adds a kernel.
func (p *process) addKernel(v *values) error {
	id, ok := v.number(kernelID)
	if !ok {
		return errNoKernelID
	}
	if id == 0 {
		return nil // the first element, a placeholder
	}
	var k kernelSymbol
	k.object, _ = v.number(kernelObject)
	k.entry, _ = v.number(kernelAddress)
	if descriptor, _ := v.number(kernelDescriptor); k.entry == 0 && descriptor > 0 && v.has(kernelEntry) {
		k.entry = descriptor + v.numbers[kernelEntry]
	}
	// A kernel is dispatched by the symbol of its descriptor: NAME.kd.
	name := strings.TrimSuffix(string(v.text(kernelName)), ".kd")
	if i, again := p.kernels.get(id); again {
		if i != several && p.kernelFacts[i-p.firstKernel] == k && p.file.facts.Kernels[i].Name == name {
			return nil
		}
		p.problem("kernel %d is described twice, and differently: neither is used", id)
	}
	if err := p.file.account(len(name) + 160); err != nil {
		return err
	}
	p.kernels.add(id, len(p.file.facts.Kernels))
	p.kernelFacts = append(p.kernelFacts, k)
	p.file.facts.Kernels = append(p.file.facts.Kernels, gpusamples.Kernel{Name: name, Module: -1})
	return nil
}

// resolveKernels finds the code objects of kernels, and the kernels' addresses in them.
func (p *process) resolveKernels() {
	outside := 0
	for i, k := range p.kernelFacts {
		module := p.objects.find(k.object)
		if module < 0 {
			continue
		}
		kernel, o := &p.file.facts.Kernels[p.firstKernel+i], p.object(module)
		kernel.Module = module
		switch {
		case k.entry == 0 || o.size == 0:
		case k.entry-o.base >= o.size:
			if outside++; outside == 1 {
				p.problem("kernel %s begins at %#x, expected within the %#x bytes at %#x of code object %s: where it begins is not known",
					kernel.Name, k.entry, o.size, o.base, p.file.facts.Modules[module].ID)
			}
		default:
			kernel.Entry, kernel.HasEntry = k.entry-o.delta, true
		}
	}
	if outside > 1 {
		p.problem("%d kernels begin outside of their code objects", outside)
	}
}

// The members of a dispatch (rocprofiler_buffer_tracing_kernel_dispatch_record_t).
const (
	dispatchThread = iota
	dispatchCorrelation
	dispatchStart
	dispatchEnd
	dispatchAgent
	dispatchQueue
	dispatchKernel
	dispatchID
	dispatchGroup // x, y, z
	dispatchGrid  = dispatchGroup + 3
)

var dispatchFields = []field{
	{path: "thread_id"}, {path: "correlation_id.internal"}, {path: "start_timestamp"}, {path: "end_timestamp"},
	{path: "dispatch_info.agent_id.handle"}, {path: "dispatch_info.queue_id.handle"}, {path: "dispatch_info.kernel_id"}, {path: "dispatch_info.dispatch_id"},
	{path: "dispatch_info.workgroup_size.x"}, {path: "dispatch_info.workgroup_size.y"}, {path: "dispatch_info.workgroup_size.z"},
	{path: "dispatch_info.grid_size.x"}, {path: "dispatch_info.grid_size.y"}, {path: "dispatch_info.grid_size.z"},
}

// dispatchRefs are the IDs that a dispatch refers to.
type dispatchRefs struct {
	kernel, agent, queue uint64
	isQueued             bool // agent and queue are known
}

// dispatchBytes is the memory of a dispatch and its launch while the file is read.
const dispatchBytes = 370

// readDispatches reads the dispatches, of which there may be a million. They are counted
// before, as lists that grow need twice the memory.
func (p *process) readDispatches(r *jsontext.Reader) error {
	f, ahead, count := p.file, *r, 0
	_ = ahead.Array(func(int) error { // its errors are found again below
		count++
		f.passed(ahead.At)
		return ahead.Skip()
	})
	count = min(count, (f.maxKept-f.kept)/dispatchBytes)
	f.facts.Dispatches, f.facts.Launches = slices.Grow(f.facts.Dispatches, count), slices.Grow(f.facts.Launches, count)
	p.dispatchRefs, p.launches.calls = slices.Grow(p.dispatchRefs, count), slices.Grow(p.launches.calls, count)
	return p.readArray(r, dispatchFields, maxRecord, p.addDispatch)
}

// addDispatch adds a dispatch.
func (p *process) addDispatch(v *values) error {
	id, ok := v.number(dispatchID)
	if !ok || id == 0 {
		return errNoDispatchID
	}
	if err := p.file.account(dispatchBytes); err != nil {
		return err
	}
	var refs dispatchRefs
	d := gpusamples.Dispatch{ID: strconv.FormatUint(id, 10), PID: -1, Kernel: -1, Launch: -1}
	refs.kernel, _ = v.number(dispatchKernel)
	refs.agent, refs.isQueued = v.number(dispatchAgent)
	refs.queue, _ = v.number(dispatchQueue)
	for i := range 3 {
		group, _ := v.number(dispatchGroup + i)
		grid, _ := v.number(dispatchGrid + i)
		d.Group[i] = uint32(min(group, math.MaxUint32)) //nolint:gosec // bounded
		d.Grid[i] = uint32(min(grid, math.MaxUint32))   //nolint:gosec // bounded
	}
	d.Start, _ = v.number(dispatchStart)
	d.End, _ = v.number(dispatchEnd)
	if d.HasTime = d.Start > 0 && d.End >= d.Start; !d.HasTime {
		d.Start, d.End = 0, 0
	}
	if _, again := p.dispatches.get(id); again {
		p.problem("dispatch %d is described twice: its samples are of neither", id)
	}
	correlation, _ := v.number(dispatchCorrelation)
	d.Launch = p.launches.add(correlation, id31(v.number(dispatchThread)))
	p.dispatches.add(id, len(p.file.facts.Dispatches))
	p.file.facts.Dispatches = append(p.file.facts.Dispatches, d)
	p.dispatchRefs = append(p.dispatchRefs, refs)
	return nil
}

// sampled adds the dispatch of a sample. Without --kernel-trace it is in samples only.
func (p *process) sampled(id, correlation uint64) {
	if _, known := p.dispatches.get(id); known || id == 0 {
		return
	}
	if _, known := p.undescribed[id]; !known && p.file.account(64) == nil {
		p.undescribed[id] = correlation
	}
}

// resolveDispatches finds the kernels and agents of dispatches, and the launches of
// dispatches that are in samples only.
func (p *process) resolveDispatches() {
	queues := map[uint64]string{} // there are few
	for i, refs := range p.dispatchRefs {
		d := &p.file.facts.Dispatches[p.firstDispatch+i]
		d.PID, d.Kernel = p.pid, p.kernels.find(refs.kernel)
		if !refs.isQueued {
			continue
		}
		queue, known := queues[refs.queue]
		if !known {
			queue = strconv.FormatUint(refs.queue, 10)
			queues[refs.queue] = queue
		}
		d.Agent, d.Queue = p.agentID(refs.agent), queue
	}
	for _, id := range slices.Sorted(maps.Keys(p.undescribed)) {
		_, known := p.dispatches.get(id) // by a record behind the samples
		if correlation := p.undescribed[id]; !known && p.launches.isCall(correlation) {
			p.sampledLaunches.add(id, p.launches.add(correlation, -1))
		}
	}
}
