// SPDX-License-Identifier: Apache-2.0

package goroutine

import (
	"context"
	"encoding/binary"
	"fmt"
	"path"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// runtime is Go's runtime in a module of a process. Most processes have one; each library that
// Go built for C has its own.
type runtime struct {
	*layout
	process     *walk.Process
	state       target.Target
	module      *code.Module
	description *sdk.Description
	order       binary.ByteOrder
	reasons     []string
	machines    map[uint64]machine // runtime.m, by address
	problems    []string
}

// findRuntimes finds the runtimes in a process. Problems are sentences about code objects of Go
// whose runtime cannot be read.
func findRuntimes(p *walk.Process) (list []*runtime, problems []string) {
	hasGo := false
	for _, m := range p.Loaded() {
		if m.Object == nil || !isGo(m.Object) {
			continue
		}
		hasGo = true
		r, err := newRuntime(p, m)
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: its goroutines are not listed: %v", m.Path, err))
			continue
		}
		list = append(list, r)
	}
	if !hasGo {
		problems = append(problems, p.Info().Path+": no goroutines: no code object that was found is of Go")
	}
	return list, problems
}

// isGo reports whether the Go linker made a code object.
func isGo(o *object.Object) bool {
	for _, name := range [...]string{".gopclntab", ".data.rel.ro.gopclntab", ".note.go.buildid"} {
		if o.Section(name) != nil {
			return true
		}
	}
	return false
}

func newRuntime(p *walk.Process, m *code.Module) (*runtime, error) {
	d := m.Code.DWARF()
	arch := m.Code.Machine()
	if arch == nil {
		return nil, fmt.Errorf("nothing here reads the registers of %s", m.Arch)
	}
	r := &runtime{process: p, state: p.State(), module: m, description: arch.Description, order: binary.LittleEndian, machines: map[uint64]machine{}}
	if r.description.ByteOrder == sdk.BigEndian {
		r.order = binary.BigEndian
	}
	err := object.Guard(func() (err error) {
		if d == nil {
			return r.findStripped()
		}
		r.layout, err = readLayout(d)
		return err
	})
	if err != nil {
		return nil, err
	}
	r.readReasons()
	return r, nil
}

// name returns text that tells the runtime's goroutines from the others' goroutines.
func (r *runtime) name(all []*runtime) string {
	name := path.Base(r.module.Path)
	for _, other := range all {
		if other != r && path.Base(other.module.Path) == name && len(r.module.Segments) > 0 {
			return fmt.Sprintf("%s at %#x", name, r.module.Segments[0].Start)
		}
	}
	return name
}

func (r *runtime) problem(format string, args ...any) {
	r.problems = append(r.problems, r.module.Path+": "+fmt.Sprintf(format, args...))
}

// read reads memory of the process.
func (r *runtime) read(address uint64, buf []byte) (n int, err error) {
	guarded := object.Guard(func() error {
		n, err = r.state.ReadMemory(locexpr.DefaultSpace, address, buf)
		return nil
	})
	if guarded != nil {
		return 0, guarded
	}
	return n, err
}

// word reads a number of the size of a pointer.
func (r *runtime) word(address uint64) (uint64, error) {
	b := make([]byte, r.pointer)
	if _, err := r.read(address, b); err != nil {
		return 0, err
	}
	return r.number(b), nil
}

// variable reads a variable of the size of a pointer, by its place in the module.
func (r *runtime) variable(objectAddress uint64) (uint64, error) {
	address, ok := r.module.Start(objectAddress)
	if !ok {
		return 0, fmt.Errorf("%#x is in no segment of the module", objectAddress)
	}
	return r.word(address)
}

// latestTime returns the latest of the times that the runtime recorded, in nanoseconds of its
// clock; 0 where none is in the target.
func (r *runtime) latestTime() (latest uint64) {
	b := make([]byte, 8)
	for _, time := range r.times {
		if address, ok := r.module.Start(time); ok {
			if _, err := r.read(address, b); err == nil {
				latest = max(latest, r.number(b))
			}
		}
	}
	return latest
}

// number returns the number in up to 8 bytes.
func (r *runtime) number(b []byte) (n uint64) {
	switch len(b) {
	case 8:
		return r.order.Uint64(b)
	case 4:
		return uint64(r.order.Uint32(b))
	case 2:
		return uint64(r.order.Uint16(b))
	case 1:
		return uint64(b[0])
	}
	return 0
}

// get returns a member of a struct; 0 where this version does not have it.
func (r *runtime) get(b []byte, f field) uint64 { return r.number(b[f.offset : f.offset+f.size]) }

// maxReasonText bounds the text of a wait reason, in bytes.
const maxReasonText = 256

// readReasons reads the texts of wait reasons. Texts that are not in the target are "".
func (r *runtime) readReasons() {
	start, ok := r.module.Start(r.layout.reasons)
	if !ok || r.reasonCount == 0 {
		return
	}
	r.reasons = make([]string, r.reasonCount)
	for i := range r.reasons {
		header := start + uint64(i)*2*r.pointer
		text, err := r.word(header)
		size, err2 := r.word(header + r.pointer)
		if err != nil || err2 != nil || size > maxReasonText {
			continue
		}
		b := make([]byte, size)
		if _, err := r.read(text, b); err == nil {
			r.reasons[i] = string(b)
		}
	}
}

// reason returns the text of a wait reason; "" for 0.
func (r *runtime) reason(n uint64) string {
	switch {
	case n == 0:
		return ""
	case n < uint64(len(r.reasons)) && r.reasons[n] != "":
		return r.reasons[n]
	}
	return fmt.Sprintf("wait reason %d", n)
}

// stateName returns the name of a state, without the bit of the garbage collector.
func (r *runtime) stateName(n uint64) string {
	if name, ok := r.layout.name[n]; ok {
		return name
	}
	return fmt.Sprintf("state %d", n)
}

// machine is a runtime.m.
type machine struct {
	thread string // its LWP; "" where it is not known
	using  uint64 // the goroutine that it executes
}

// machineAt reads a runtime.m; it returns the zero machine for one that is not in the target.
func (r *runtime) machineAt(address uint64) machine {
	if address == 0 {
		return machine{}
	}
	if m, ok := r.machines[address]; ok {
		return m
	}
	var m machine
	b := make([]byte, r.m.size)
	if _, err := r.read(address, b); err == nil {
		m = machine{fmt.Sprint(r.get(b, r.m.thread)), r.get(b, r.m.using)}
	}
	r.machines[address] = m
	return m
}

// names returns a place in the code with its names.
func (r *runtime) names(ctx context.Context, pc, lookup uint64) *trace.CodePlace {
	place := &trace.CodePlace{PC: pc}
	if s := r.process.Segment(lookup); s != nil {
		if frames := s.Module.AllNames(ctx, s.ObjectAddress(lookup), false); len(frames) > 0 {
			f := &frames[0]
			place.Function, place.File, place.Line = f.Function, f.File, f.Line
		}
	}
	return place
}
