// SPDX-License-Identifier: Apache-2.0

// Package wavecheck compares, for tests, walks of a wave that executes with the calls that are in progress and
// the registers that callers had.
package wavecheck

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/internal/gcn"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/locexpr"
)

const (
	// walks bounds the walks of the wave of one kernel, except in a full proof.
	walks = 10_000
	// visits bounds the walks in one state: at one PC, with the same masks of
	// lanes and calls in progress.
	visits = 4
	// compares bounds the comparisons of registers at one PC, in a function that
	// was called from one place; each is the number of walks between two.
	// Comparing them is most of the work.
	compares = 2
	each     = 3
)

// Counts are the results of the comparisons.
type Counts struct {
	kernels, executed, walked, searched int
	Frames, wrong, Unknown              int // (instruction, frame) pairs, by return addresses
	pairs, wrongPairs, unknownPairs     int // the same, by the registers of the frame
	allRegisters, wrongRegisters        int
	unknownRegisters                    int
	lost                                int // registers that the function does not preserve
	ByCode                              int // frames by code that call frame information contradicts
	causes                              map[string]int
}

func (c *Counts) add(d *Counts) {
	for _, p := range [][2]*int{
		{&c.kernels, &d.kernels}, {&c.executed, &d.executed}, {&c.walked, &d.walked}, {&c.searched, &d.searched},
		{&c.Frames, &d.Frames}, {&c.wrong, &d.wrong}, {&c.Unknown, &d.Unknown}, {&c.pairs, &d.pairs},
		{&c.wrongPairs, &d.wrongPairs}, {&c.unknownPairs, &d.unknownPairs}, {&c.allRegisters, &d.allRegisters},
		{&c.wrongRegisters, &d.wrongRegisters}, {&c.unknownRegisters, &d.unknownRegisters}, {&c.lost, &d.lost},
		{&c.ByCode, &d.ByCode},
	} {
		*p[0] += *p[1]
	}
	if c.causes == nil {
		c.causes = map[string]int{}
	}
	for k, n := range d.causes {
		c.causes[k] += n
	}
}

// String returns the counts as a line of text.
func (c *Counts) String() string {
	return fmt.Sprintf("%d kernels, %d instructions executed, %d walked; return addresses of %d frames: %d wrong, %d unknown; "+
		"registers at %d instructions, of %d frames: %d wrong, %d unknown; of %d registers: %d wrong, %d unknown, %d that the function does not preserve",
		c.kernels, c.executed, c.walked, c.Frames, c.wrong, c.Unknown,
		c.searched, c.pairs, c.wrongPairs, c.unknownPairs, c.allRegisters, c.wrongRegisters, c.unknownRegisters, c.lost)
}

// Walker walks the stack of a thread, as an engine's target does.
type Walker interface {
	Refresh(ctx context.Context, th *trace.Thread) error
	Activations(ctx context.Context, th *trace.Thread) (*trace.Stack, []walk.Activation)
}

// Judge walks a wave that executes, and compares every walk with the calls
// that are in progress.
type Judge struct {
	Counts
	*gcn.Tracker
	Walker Walker
	Thread *trace.Thread
	module *target.Module
	visits map[uint64]int // of states
	// compared counts the comparisons of registers with the calls, by PC and
	// return address.
	compared map[[2]uint64]int
	Problems []string
	quiet    bool          // only execute
	walks    int           // of this execution
	By       trace.FoundBy // how frames must be found; "": by call frame information or, where the code contradicts that, by the code
}

// New returns a judge, which is the target to walk. Its Walker must be set before it executes a
// kernel.
func New(t testing.TB, o *gcn.Object) *Judge {
	t.Helper()
	file, err := object.Open(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	p := o.Processor
	j := &Judge{
		Tracker: gcn.NewTracker(o),
		Thread:  &trace.Thread{ID: "1", Arch: "amdgpu", Processor: p.Name, Lanes: uint32(p.Lanes)}, //nolint:gosec // 32 or 64
		module:  &target.Module{Module: trace.Module{Path: o.Path, Arch: "amdgpu"}, Object: file},
	}
	j.causes, j.By = map[string]int{}, trace.ByRules
	for _, s := range file.Segments() {
		j.module.Segments = append(j.module.Segments, trace.Segment{Address: s.Address, Size: s.MemSize, Start: gcn.CodeBase + s.Address, Executable: true})
	}
	for _, r := range j.Registers {
		j.Thread.Registers.Set(uint32(r.Number), j.Live[r.Offset:][:r.Size])
	}
	j.Live = j.Thread.Registers.Data
	return j
}

// Info is of target.Target: a Judge is a process of one wave, its code, and its private memory.
func (j *Judge) Info() trace.Target { return trace.Target{Kind: "waves"} }

// Modules is of target.Target.
func (j *Judge) Modules() []*target.Module { return []*target.Module{j.module} }

// Threads is of target.Target.
func (j *Judge) Threads() []*trace.Thread { return []*trace.Thread{j.Thread} }

// Close is of target.Target.
func (j *Judge) Close() error { return nil }

// Mapped is of target.Target.
func (j *Judge) Mapped(a uint64) (mapped, executable bool) {
	_, ok := j.module.Contains(a)
	return ok, ok
}

// ReadMemory is of target.Target.
func (j *Judge) ReadMemory(_ locexpr.AddressSpace, address uint64, _ []byte) (int, error) {
	return 0, fmt.Errorf("%#x: %w", address, target.ErrNoMemory)
}

// ReadScoped is of target.ScopedMemory: it reads local and private memory.
func (j *Judge) ReadScoped(space locexpr.AddressSpace, th *trace.Thread, address uint64, buf []byte) (int, error) {
	memory := map[locexpr.AddressSpace][]byte{3: j.State.Local, 6: j.State.Scratch}[space]
	if th != j.Thread || address >= uint64(len(memory)) {
		return 0, fmt.Errorf("space %d, %#x: %w", space, address, target.ErrNoMemory)
	}
	n := copy(buf, memory[address:])
	if n < len(buf) {
		return n, fmt.Errorf("%#x: %w", address, target.ErrNoMemory)
	}
	return n, nil
}

// Launch puts a wave at the entry of its kernel.
func (j *Judge) Launch(s *gcn.State) {
	j.Start(s)
	j.visits, j.compared, j.walks = map[uint64]int{}, map[[2]uint64]int{}, 0
}

// errSteps is the error of a kernel that executes longer than its limit.
var errSteps = errors.New("the kernel executes too long")

// run executes the kernel, and walks at every instruction unless quiet.
func (j *Judge) run(limit int) error {
	s := j.State
	for !s.Ended {
		if s.Steps == limit {
			return fmt.Errorf("%d instructions: %w", limit, errSteps)
		}
		if !j.quiet {
			j.look()
			if len(j.Problems) > 20 {
				return nil
			}
		}
		if err := s.Step(); err != nil {
			return err
		}
	}
	if len(j.Calls) != 0 {
		return fmt.Errorf("%d calls in progress at the end", len(j.Calls))
	}
	return nil
}

// key returns the key of a state that walks find alike: the PC, the lanes that
// execute, and the innermost calls in progress.
func (j *Judge) key(calls int) uint64 {
	h := fnv.New64a()
	word := func(v uint64) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], v)
		_, _ = h.Write(b[:])
	}
	word(j.State.PC)
	word(j.State.Exec())
	word(uint64(calls)) //nolint:gosec // not negative
	for _, c := range j.Calls[max(len(j.Calls)-calls, 0):] {
		word(c.Back)
		word(c.Exec)
	}
	return h.Sum64()
}

// look walks the wave, a bounded number of times in one state. Return addresses are
// compared with the calls at every walk, registers at every third one, twice for each
// PC and innermost call; registers of frames beyond the first caller at every fourth
// of these.
func (j *Judge) look() {
	k := j.key(len(j.Calls) + 1)
	j.visits[k]++
	if j.visits[k] > visits || j.walks == walks && !proof.IsRequested() {
		return
	}
	j.walked++
	j.walks++
	j.Refresh()
	if err := j.Walker.Refresh(context.Background(), j.Thread); err != nil {
		j.problem("%v", err)
		return
	}
	stack, frames := j.Walker.Activations(context.Background(), j.Thread)
	depth := 0
	if j.walked%each == 0 && j.first() {
		if depth = 1; j.searched%4 == 0 {
			depth = len(j.Calls)
		}
	}
	j.judge(stack, frames, depth)
}

// first reports whether to compare registers at the PC, in the innermost call.
func (j *Judge) first() bool {
	site := [2]uint64{j.State.PC}
	if n := len(j.Calls); n > 0 {
		site[1] = j.Calls[n-1].Back
	}
	j.compared[site]++
	return j.compared[site] <= compares
}

func (j *Judge) problem(format string, args ...any) {
	offset := j.State.PC - gcn.CodeBase
	where := fmt.Sprintf("%#x %s+%#x: ", offset, j.Object.Code.Functions[j.Object.Code.Function(offset)], offset-j.Object.Code.Function(offset))
	j.Problems = append(j.Problems, where+fmt.Sprintf(format, args...))
}

// Numbers matches the numbers in a cause, which are no part of it.
var Numbers = regexp.MustCompile(`0x[0-9a-f]+|[0-9]+`)

// cause counts a reason for unknown values.
func (j *Judge) cause(what, why string, n int) {
	j.causes[what+": "+Numbers.ReplaceAllString(why, "N")] += n
}

// judge compares a walk with the calls, with the registers of so many callers.
func (j *Judge) judge(stack *trace.Stack, activations []walk.Activation, search int) {
	frames := stack.Frames
	depth := len(j.Calls)
	j.Frames += depth + 1
	for i := range depth + 1 {
		if i == len(frames) {
			j.Unknown += depth + 1 - i
			j.cause("return address", string(stack.Stopped.Reason)+", "+stack.Stopped.Detail, depth+1-i)
			break
		}
		want := j.State.PC
		if i > 0 {
			want = j.Calls[depth-i].Back
		}
		if frames[i].PC != want {
			j.wrong++
			j.problem("frame %d of %d is at %#x, expected %#x", i, depth+1, frames[i].PC, want)
			return
		}
		switch found := frames[i].FoundBy; {
		case i == 0 || found == j.By || j.By == "" && found == trace.ByCFI:
		case j.By == "" && found == trace.ByRules:
			j.ByCode++
		default:
			j.problem("frame %d was found by %s, expected %s", i, found, j.By)
			return
		}
		if i < depth && frames[i].HasCFA {
			if c := j.Calls[depth-1-i]; frames[i].CFASpace != 6 || frames[i].CFA != c.CFA {
				j.wrong++
				j.problem("frame %d has its CFA at %#x of space %d, expected %#x of private_wave", i, frames[i].CFA, frames[i].CFASpace, c.CFA)
				return
			}
		}
	}
	if len(frames) > depth+1 {
		j.wrong++
		j.problem("%d frames, expected %d; the one after the kernel's at %#x", len(frames), depth+1, frames[depth+1].PC)
		return
	}
	if len(frames) == depth+1 && stack.Stopped.Reason != trace.StopOutermost {
		j.Unknown++
		j.cause("end", string(stack.Stopped.Reason)+", "+stack.Stopped.Detail, 1)
	}
	if search == 0 {
		return
	}
	j.searched++
	for i := 1; i < len(frames) && i <= search; i++ {
		j.compare(activations[i], j.Calls[depth-i])
	}
}

// compare compares the registers of a frame with the registers at the moment of
// its call.
func (j *Judge) compare(f walk.Activation, c *gcn.Call) {
	j.pairs++
	var wrong, unknown bool
	for i := range j.Registers {
		r := &j.Registers[i]
		// Registers that functions need not preserve are many: a quarter of them for
		// each frame, in turn.
		if r.File == gcn.OtherFile || !r.Keeps && (r.Reg+j.pairs)%4 != 0 {
			continue
		}
		j.allRegisters++
		good, missing, why := j.register(f, c, r)
		if !good {
			wrong = true
			j.wrongRegisters++
			j.problem("frame %d, called %s: register %d %s", f.Index(), j.Object.Code.Functions[c.Function], r.Number, why)
			continue
		}
		// The required parts: all of a scalar; the lanes of a vector register
		// that did not execute, and all of them where it is preserved.
		needed := ^uint64(0)
		if r.File == gcn.Scalar && !r.Keeps {
			needed = 0
		} else if r.File != gcn.Scalar && !r.Keeps {
			needed = ^c.Exec
		}
		if r.File != gcn.Scalar {
			needed &= ^uint64(0) >> (64 - j.State.Lanes)
		}
		if missing &= needed; missing == 0 {
			continue
		}
		if missing &^= j.lostIn(c, r); missing == 0 {
			j.lost++
			continue
		}
		unknown = true
		j.unknownRegisters++
		kind := "vector register"
		switch {
		case r.File == gcn.Scalar:
			kind = "scalar register"
		case r.File == gcn.Acc:
			kind = "accumulation register"
		}
		if r.File != gcn.Scalar && missing&c.Exec == 0 {
			kind += " of lanes that do not execute"
		}
		j.cause(kind, why, 1)
	}
	if wrong {
		j.wrongPairs++
	}
	if unknown {
		j.unknownPairs++
	}
}

// lostIn returns the lanes of a register that some function between a call and
// the top frame may have changed.
func (j *Judge) lostIn(c *gcn.Call, r *gcn.Register) uint64 {
	var lost uint64
	for i := slices.Index(j.Calls, c); i < len(j.Calls); i++ {
		lost |= j.NotKept[j.Calls[i].Function][r.Number]
	}
	return lost
}

// register compares one register of a frame with its value at the call: good is
// false where it is wrong. missing are the lanes, or for scalars all bits, that
// are not known, with the cause.
func (j *Judge) register(f walk.Activation, c *gcn.Call, r *gcn.Register) (good bool, missing uint64, why string) {
	want := c.Registers[r.Offset:][:r.Size]
	l, err := f.Location(context.Background(), r.Number)
	if err != nil {
		return true, ^uint64(0), err.Error()
	}
	if p := l.Place(0); l.NumPlaces() == 1 && p.Storage == locexpr.Register && p.Register == r.Number && p.BitOffset == 0 {
		got := j.Live[r.Offset:][:r.Size]
		if !bytes.Equal(got, want) {
			return false, 0, fmt.Sprintf("is where it was: %x, expected %x", got, want)
		}
		return true, 0, ""
	}
	if p := l.Place(0); l.NumPlaces() == 1 && p.Storage == locexpr.Composite && p.BitOffset == 0 && r.File != gcn.Scalar {
		if good, missing, ok := j.parts(p.Parts(), want); ok && good {
			return true, missing, "is undefined"
		}
	}
	lane := r.Size
	if r.File == gcn.Vector || r.File == gcn.Acc {
		lane = 4
	}
	whole := make([]byte, r.Size)
	if err := l.Read(context.Background(), f.Context(), whole, uint64(r.Size)*8); err == nil {
		if !bytes.Equal(whole, want) {
			return false, 0, fmt.Sprintf("is %x, expected %x, at %v", whole, want, l)
		}
		return true, 0, ""
	}
	for i := 0; i < r.Size; i += lane {
		part, err := l.Offset(int64(i) * 8)
		got := make([]byte, lane)
		if err == nil {
			err = part.Read(context.Background(), f.Context(), got, uint64(lane)*8)
		}
		if err != nil {
			missing |= 1 << (i / lane)
			why = err.Error()
			continue
		}
		if !bytes.Equal(got, want[i:][:lane]) {
			return false, 0, fmt.Sprintf("is %x in lane %d, expected %x, at %v", got, i/lane, want[i:][:lane], l)
		}
	}
	if lane == r.Size {
		missing = ^uint64(0)
	}
	return true, missing, why
}

// parts compares a vector register with a composite whose parts are lanes, without
// the engine, which is faster; ok is false where it has other parts.
func (j *Judge) parts(parts []locexpr.Part, want []byte) (good bool, missing uint64, ok bool) {
	lane := 0
	for i := range parts {
		n := int(parts[i].Bits / 32) //nolint:gosec // lanes
		p := parts[i].Location.Place(0)
		if parts[i].Bits%32 != 0 || parts[i].Location.NumPlaces() != 1 || 4*(lane+n) > len(want) || p.BitOffset%8 != 0 {
			return false, 0, false
		}
		var got []byte
		address := p.BitOffset / 8
		switch p.Storage {
		case locexpr.Undefined:
			missing |= (1<<n - 1) << lane
		case locexpr.Register:
			k, found := slices.BinarySearchFunc(j.Registers, p.Register, func(r gcn.Register, n uint64) int { return int(r.Number) - int(n) }) //nolint:gosec // register numbers
			if !found || address+4*uint64(n) > uint64(j.Registers[k].Size) {                                                                   //nolint:gosec // sizes
				return false, 0, false
			}
			got = j.Live[j.Registers[k].Offset+int(address):] //nolint:gosec // within the register
		case locexpr.Memory:
			if address += p.Address; p.Space != 6 || address+4*uint64(n) > uint64(len(j.State.Scratch)) { //nolint:gosec // sizes
				return false, 0, false
			}
			got = j.State.Scratch[address:]
		default:
			return false, 0, false
		}
		if got != nil && !bytes.Equal(got[:4*n], want[4*lane:][:4*n]) {
			return false, 0, true
		}
		lane += n
	}
	return true, missing, 4*lane == len(want)
}

// execute runs every kernel of an object twice: to find the registers that its
// functions preserve, and to walk it.
func (j *Judge) execute(k *gcn.Kernel, launch func() (*gcn.State, error), limit int) error {
	for _, quiet := range []bool{true, false} {
		s, err := launch()
		if err != nil {
			return err
		}
		j.quiet = quiet
		j.Launch(s)
		if err := j.run(limit); err != nil {
			return fmt.Errorf("%s of %s: %w", k.Name, j.Object.Path, err)
		}
		if !quiet {
			j.kernels++
			j.executed += s.Steps
		}
	}
	return nil
}
