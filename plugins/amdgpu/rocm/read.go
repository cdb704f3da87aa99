// SPDX-License-Identifier: Apache-2.0

package rocm

import (
	"context"
	"errors"

	"github.com/unwindd/unwindd/sdk"
)

// reader reads one core.
type reader struct {
	memory   memory
	machine  *Machine
	note     *note
	version  uint32 // of the runtime's debug interface: r_debug.r_version
	answer   sdk.OpenTargetAnswer
	problems problems
	kernels  kernels
	areas    []areaRange

	failedReads int
}

// Read reads the notes of a core, and the data that they lead to in its
// memory. Data that cannot be read is a problem in the answer; an error is
// ctx's.
func Read(ctx context.Context, engine sdk.Engine, notes []sdk.Note, machine *Machine) (*sdk.OpenTargetAnswer, error) {
	r := &reader{memory: memory{engine: engine}, machine: machine}
	if engine == nil {
		r.memory.engine = noMemory{}
	}
	if data := findNote(notes, r.problems.add); data != nil {
		if err := r.read(ctx, data); err != nil {
			return nil, err
		}
	}
	r.answer.Problems = r.problems.all()
	return &r.answer, nil
}

// noMemory is the engine of a caller that offers none.
type noMemory struct{ sdk.Engine }

func (noMemory) ReadMemory(context.Context, sdk.MemoryRange, []byte) (int, error) {
	return 0, errors.New("the caller offers no memory")
}

func (r *reader) read(ctx context.Context, data []byte) error {
	n, err := parseNote(data)
	if err != nil {
		r.problems.add("the note of the state of AMD's graphics processors, %s type %d, could not be read: %v", noteOwner, noteType, err)
		return nil
	}
	r.note = n
	r.sayNote()
	r.readRuntime(ctx)
	if err := r.readQueues(ctx); err != nil {
		return err
	}
	r.answer.Kind = "rocm-core"
	r.answer.WaitFunctions = waitFunctions()
	return ctx.Err()
}

// sayNote reports oddities of the note.
func (r *reader) sayNote() {
	n := r.note
	if n.driver[0] != 1 || n.driver[1] < 13 {
		r.problems.add("the driver's interface has version %d.%d, expected 1.13 or a later version 1", n.driver[0], n.driver[1])
	}
	const isEnabled = 1
	if n.runtimeState != isEnabled {
		r.problems.add("the runtime's state is %d, expected %d, debugging is enabled: what follows may be wrong", n.runtimeState, isEnabled)
	}
	if n.left[0] > 0 {
		r.problems.add("%d agents after the first %d are left out", n.left[0], maxAgents)
	}
	if n.left[1] > 0 {
		r.problems.add("%d queues after the first %d are left out", n.left[1], maxQueues)
	}
}
