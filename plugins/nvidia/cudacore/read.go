// SPDX-License-Identifier: Apache-2.0

package cudacore

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/unwindd/unwindd/sdk"
)

// reader reads one core.
type reader struct {
	machine  *Machine
	header   *sdk.TargetFile
	file     file
	answer   sdk.OpenTargetAnswer
	problems problems
	failed   error // what ended the reading of tables

	sections []section
	byKind   [kinds][]uint32 // the indices of sections
	strings  []byte
	rows     map[uint32]rows // of tables

	meta     []record
	devices  []device
	contexts []contextRow
	modules  []module
	grids    []grid
	banks    []bank
	sms      []sm
	blocks   []block
	warps    []warp
	lanes    []lane

	ids          map[string]struct{} // all IDs
	repeated     int                 // IDs
	agents       []string            // the IDs of devices
	processors   []string            // of devices
	queues       []string            // the IDs of contexts
	contextIndex map[ofDevice]uint32
	gridIndex    map[ofDevice]uint32
	gridMemory   [][]sdk.SpaceMemory
	kernels      map[kernel]string
	code, data   []codeRange
	reported     []bool // SMs whose exception a lane has
	threadParts  [][]sdk.TargetThread
	threads      int
	callers      int // of all threads
	left         int // threads that are left out

	// batch are the warps of a batch, parts their recorded stacks, owners the lanes of these.
	batch  [warpsOfBatch]warpLanes
	parts  []part
	owners []int
}

// Read reads a core. Data that cannot be read is a problem in the answer; an error is ctx's.
func Read(ctx context.Context, engine sdk.Engine, header *sdk.TargetFile, machine *Machine) (*sdk.OpenTargetAnswer, error) {
	r := &reader{machine: machine, header: header, file: file{engine: engine, size: header.Size}, ids: map[string]struct{}{}}
	r.answer.Kind = "cuda-core"
	r.answer.LaunchFunctions, r.answer.WaitFunctions = launchFunctions(), waitFunctions()
	if err := r.read(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		r.problems.add("the core could not be read: %v", err)
	}
	answer := r.answer // so that the tables go
	answer.Problems = r.problems.all()
	return &answer, nil
}

func (r *reader) read(ctx context.Context) error {
	if r.file.engine == nil {
		return errors.New("the caller offers no file")
	}
	if err := r.readSections(ctx); err != nil {
		return err
	}
	if err := r.readTables(ctx); err != nil {
		return err
	}
	if len(r.devices) == 0 {
		return errors.New("it has no table of devices (.cudbg.devtbl)")
	}
	r.sayMeta()
	r.addMemory()
	if err := r.readObjects(ctx); err != nil {
		return err
	}
	r.addLaunches()
	err := r.readThreads(ctx)
	r.answer.Dispatches = slices.DeleteFunc(r.answer.Dispatches, func(d sdk.TargetDispatch) bool { return d.ID == "" })
	r.sayTraps()
	if err != nil {
		return err
	}
	return r.sayMore(ctx)
}

// The parts that the user may have had the driver leave out (CUDBGCoredumpGenerationFlags).
var leftOut = []struct {
	flag uint32
	what string
}{{2, "global memory"}, {4, "shared memory"}, {8, "local memory"}, {32, "constant banks"}}

// sayMeta reports what the core says of itself.
func (r *reader) sayMeta() {
	if len(r.meta) == 0 {
		return
	}
	m := r.meta[0]
	if seconds := m.word(28); seconds != 0 {
		r.answer.HostProcess = &sdk.HostProcess{Time: uint64(seconds)}
	}
	for _, l := range leftOut {
		if m.word(24)&l.flag != 0 {
			r.problems.add("%s", l.what+" is not in the core: its flags (CUDA_COREDUMP_GENERATION_FLAGS) left it out")
		}
	}
}

// addMemory adds the memory that all threads see.
func (r *reader) addMemory() {
	for _, k := range []kind{kindGlobal, kindManaged} {
		for _, i := range r.byKind[k] {
			s := &r.sections[i]
			switch {
			case s.size == 0:
			case s.address > math.MaxUint64-s.size:
				r.problems.add("section %d (.cudbg.global) has %#x bytes at %#x, which pass the end of the address space: it is left out", i, s.size, s.address)
			default:
				r.answer.Memory = append(r.answer.Memory, sdk.SpaceMemory{Start: s.address, Size: s.size, Address: s.offset, Into: sdk.FileSpace})
			}
		}
	}
}

// sayTraps makes threads that stopped at a trap the reason of the dump where no thread has an
// exception.
func (r *reader) sayTraps() {
	threads := r.answer.Threads
	if slices.ContainsFunc(threads, func(t sdk.TargetThread) bool { return t.HasCrashed }) {
		return
	}
	for i := range threads {
		threads[i].HasCrashed = threads[i].Stop.Reason == sdk.StopTrap
	}
}
