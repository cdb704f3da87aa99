// SPDX-License-Identifier: Apache-2.0

package engine

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
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

const (
	// gcnWalks is how often the wave of one kernel is walked, unless everything is to
	// be executed.
	gcnWalks = 10_000
	// gcnVisits is how often it is walked in one state: at one PC, with the same
	// masks of lanes and calls in progress.
	gcnVisits = 4
	// gcnCompares is how often registers are compared at one PC, in a function that
	// was called from one place; gcnEach, after how many walks. Comparing them is
	// most of the work.
	gcnCompares = 2
	gcnEach     = 3
)

// A gcnRegister is a register by its DWARF number, with where its bytes are in
// gcnJudge.live and in the registers of a call.
type gcnRegister struct {
	number   uint64
	file     gcnFile
	reg      int
	at, size int
	// keeps says that the calling convention has functions preserve it: of a
	// vector register, in active lanes. In the others all are preserved.
	keeps bool
}

// A gcnCall is a call that is in progress: the registers at the moment of it,
// which are those that its caller has until it returns.
type gcnCall struct {
	back      uint64 // the return address
	function  uint64 // that was called: its entry, as an address of the object
	registers []byte
	exec      uint64
	cfa       uint64 // in private_wave
}

// gcnCounts is what was found out.
type gcnCounts struct {
	kernels, executed, walked, searched int
	frames, wrong, unknown              int // (instruction, frame) pairs, by return addresses
	pairs, wrongPairs, unknownPairs     int // the same, by the registers of the frame
	registers, wrongRegisters           int
	unknownRegisters                    int
	lost                                int // registers that the function itself does not preserve
	byCode                              int // frames by code that call frame information contradicts
	causes                              map[string]int
}

func (c *gcnCounts) add(d *gcnCounts) {
	for _, p := range [][2]*int{
		{&c.kernels, &d.kernels}, {&c.executed, &d.executed}, {&c.walked, &d.walked}, {&c.searched, &d.searched},
		{&c.frames, &d.frames}, {&c.wrong, &d.wrong}, {&c.unknown, &d.unknown}, {&c.pairs, &d.pairs},
		{&c.wrongPairs, &d.wrongPairs}, {&c.unknownPairs, &d.unknownPairs}, {&c.registers, &d.registers},
		{&c.wrongRegisters, &d.wrongRegisters}, {&c.unknownRegisters, &d.unknownRegisters}, {&c.lost, &d.lost},
		{&c.byCode, &d.byCode},
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

func (c *gcnCounts) String() string {
	return fmt.Sprintf("%d kernels, %d instructions executed, %d walked; return addresses of %d frames: %d wrong, %d unknown; "+
		"registers at %d instructions, of %d frames: %d wrong, %d unknown; of %d registers: %d wrong, %d unknown, %d that the function does not preserve",
		c.kernels, c.executed, c.walked, c.frames, c.wrong, c.unknown,
		c.searched, c.pairs, c.wrongPairs, c.unknownPairs, c.registers, c.wrongRegisters, c.unknownRegisters, c.lost)
}

// A gcnJudge walks a wave that executes, and holds every walk against the calls
// that are in progress.
type gcnJudge struct {
	gcnCounts
	object    *gcnObject
	state     *gcnState
	target    *Target
	thread    *target.Thread
	module    *target.Module
	registers []gcnRegister
	live      []byte // the registers of the wave now
	calls     []*gcnCall
	visits    map[uint64]int // of states
	// compared is how often registers were held against the calls, by PC and
	// return address.
	compared map[[2]uint64]int
	problems []string
	// notKept are registers that a function does not preserve though the
	// convention has it: found by executing it. A compiler may do so where it
	// knows all callers. Bits of lanes.
	notKept map[uint64]map[uint64]uint64
	quiet   bool    // only execute
	walks   int     // of this execution
	by      FoundBy // how frames must be found; "": by call frame information or, where the code contradicts that, by the code
}

func newGCNJudge(t testing.TB, o *gcnObject, arch sdk.Architecture) *gcnJudge {
	t.Helper()
	return newGCNJudgeWith(t, o, Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{arch}}, NoSymbols: true})
}

func newGCNJudgeWith(t testing.TB, o *gcnObject, options Options) *gcnJudge {
	t.Helper()
	e, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	file, err := object.Open(o.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	p := o.processor
	j := &gcnJudge{
		object: o, notKept: map[uint64]map[uint64]uint64{},
		thread: &target.Thread{ID: "1", Arch: "amdgpu", Processor: p.name, Lanes: uint32(p.lanes)}, //nolint:gosec // 32 or 64
		module: &target.Module{Path: o.path, Arch: "amdgpu", Object: file},
	}
	j.causes, j.by = map[string]int{}, ByRules
	for _, s := range file.Segments() {
		j.module.Segments = append(j.module.Segments, target.Segment{Address: s.Address, Size: s.MemSize, Start: codeBase + s.Address, Executable: true})
	}
	j.layout()
	j.target = e.Attach(j)
	return j
}

// layout lists the registers that waves of the object have.
func (j *gcnJudge) layout() {
	p := j.object.processor
	mask := p.lanes / 8
	add := func(number uint64, file gcnFile, reg, size int, keeps bool) {
		j.registers = append(j.registers, gcnRegister{number, file, reg, len(j.live), size, keeps})
		j.live = append(j.live, make([]byte, size)...)
	}
	exec, vcc, vectors := uint64(17), uint64(768), uint64(2560)
	if p.lanes == 32 {
		exec, vcc, vectors = 1, 512, 1536
		add(exec, gcnScalar, gcnExec, mask, true)
	}
	add(16, gcnOther, 0, 8, true)
	if p.lanes == 64 {
		add(exec, gcnScalar, gcnExec, mask, true)
	}
	// What LLVM 22 has functions preserve: less than its guide says.
	keepsScalar := func(n int) bool {
		return n >= 32 && n < 40 || n >= 48 && (n/8%2 == 0 || n >= 96) || n < 4 && !p.flat
	}
	for n := range 64 {
		add(32+uint64(n), gcnScalar, n, 4, keepsScalar(n))
	}
	add(vcc, gcnScalar, gcnVCC, mask, false)
	for n := 64; n < 106; n++ {
		add(1088+uint64(n-64), gcnScalar, n, 4, keepsScalar(n))
	}
	for n := range min(max(j.object.vectors, 64), 256) {
		add(vectors+uint64(n), gcnVector, n, p.lanes*4, n >= 40 && n/8%2 == 1)
	}
	if p.acc {
		for n := range min(max(j.object.accs, 8), 256) {
			add(3072+uint64(n), gcnAcc, n, p.lanes*4, n >= 32)
		}
	}
	for _, r := range j.registers {
		j.thread.Registers.Set(uint32(r.number), j.live[r.at:][:r.size])
	}
	j.live = j.thread.Registers.Data
}

// refresh writes the registers of the wave to where the target has them.
func (j *gcnJudge) refresh() {
	s := j.state
	for i := range j.registers {
		r := &j.registers[i]
		b := j.live[r.at:][:r.size]
		switch r.file {
		case gcnOther:
			binary.LittleEndian.PutUint64(b, s.pc)
		case gcnScalar:
			for k := 0; k < r.size; k += 4 {
				binary.LittleEndian.PutUint32(b[k:], s.scalar[r.reg+k/4])
			}
		default:
			first := r.reg
			if r.file == gcnAcc {
				first += 256
			}
			for k, v := range s.vector[first*s.lanes:][:s.lanes] {
				binary.LittleEndian.PutUint32(b[4*k:], v)
			}
		}
	}
}

// The target: one wave, its code, and its private memory.
func (j *gcnJudge) Info() target.Info         { return target.Info{Kind: "waves"} }
func (j *gcnJudge) Modules() []*target.Module { return []*target.Module{j.module} }
func (j *gcnJudge) Threads() []*target.Thread { return []*target.Thread{j.thread} }
func (j *gcnJudge) Close() error              { return nil }
func (j *gcnJudge) Mapped(a uint64) (mapped, executable bool) {
	_, ok := j.module.Contains(a)
	return ok, ok
}

func (j *gcnJudge) ReadMemory(_ locexpr.AddressSpace, address uint64, _ []byte) (int, error) {
	return 0, fmt.Errorf("%#x: %w", address, target.ErrNoMemory)
}

func (j *gcnJudge) ReadScoped(space locexpr.AddressSpace, th *target.Thread, address uint64, buf []byte) (int, error) {
	memory := map[locexpr.AddressSpace][]byte{3: j.state.local, 6: j.state.scratch}[space]
	if th != j.thread || address >= uint64(len(memory)) {
		return 0, fmt.Errorf("space %d, %#x: %w", space, address, target.ErrNoMemory)
	}
	n := copy(buf, memory[address:])
	if n < len(buf) {
		return n, fmt.Errorf("%#x: %w", address, target.ErrNoMemory)
	}
	return n, nil
}

// start puts a wave at the entry of its kernel.
func (j *gcnJudge) start(s *gcnState) {
	j.state, j.calls, j.visits, j.compared, j.walks = s, nil, map[uint64]int{}, map[[2]uint64]int{}, 0
	s.onCall = func(back uint64) error {
		j.refresh()
		c := &gcnCall{back: back, function: s.pc - codeBase, registers: bytes.Clone(j.live), exec: s.exec(), cfa: uint64(s.scalar[32])}
		if s.flat {
			c.cfa *= uint64(s.lanes) //nolint:gosec // positive
		}
		if s.code.functions[c.function] == "" {
			return fmt.Errorf("a call to %#x, where no function begins", s.pc)
		}
		j.calls = append(j.calls, c)
		return nil
	}
	s.onReturn = func(to uint64) error {
		n := len(j.calls)
		switch {
		case n > 0 && to == j.calls[n-1].back:
			j.returned(j.calls[n-1])
			j.calls = j.calls[:n-1]
			return nil
		case s.code.functions[to-codeBase] != "": // a tail call: the return address and what it found are the same
			if n == 0 {
				return fmt.Errorf("a kernel that jumps to %#x", to)
			}
			return nil
		}
		return fmt.Errorf("a jump to %#x, neither a return nor a tail call", to)
	}
}

// returned notes the registers that a function did not preserve.
func (j *gcnJudge) returned(c *gcnCall) {
	j.refresh()
	inactive := ^c.exec & (^uint64(0) >> (64 - j.state.lanes))
	for i := range j.registers {
		r := &j.registers[i]
		now, then := j.live[r.at:][:r.size], c.registers[r.at:][:r.size]
		if r.file == gcnOther || bytes.Equal(now, then) {
			continue
		}
		var lanes uint64
		switch {
		case r.file == gcnScalar && r.keeps:
			lanes = ^uint64(0)
		case r.file != gcnScalar:
			for l := range j.state.lanes {
				if !bytes.Equal(now[4*l:][:4], then[4*l:][:4]) {
					lanes |= 1 << l
				}
			}
			if !r.keeps {
				lanes &= inactive
			}
		}
		if lanes != 0 {
			if j.notKept[c.function] == nil {
				j.notKept[c.function] = map[uint64]uint64{}
			}
			j.notKept[c.function][r.number] |= lanes
		}
	}
}

// errGCNSteps says that a kernel executes longer than it is followed.
var errGCNSteps = errors.New("the kernel executes too long")

// run executes the kernel, and walks at every instruction unless quiet.
func (j *gcnJudge) run(limit int) error {
	s := j.state
	for !s.ended {
		if s.steps == limit {
			return fmt.Errorf("%d instructions: %w", limit, errGCNSteps)
		}
		if !j.quiet {
			j.look()
			if len(j.problems) > 20 {
				return nil
			}
		}
		if err := s.step(); err != nil {
			return err
		}
	}
	if len(j.calls) != 0 {
		return fmt.Errorf("%d calls in progress at the end", len(j.calls))
	}
	return nil
}

// key is that of a state that walks find alike: the PC, the lanes that execute,
// and so many of the calls in progress, the innermost ones.
func (j *gcnJudge) key(calls int) uint64 {
	h := fnv.New64a()
	word := func(v uint64) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], v)
		_, _ = h.Write(b[:])
	}
	word(j.state.pc)
	word(j.state.exec())
	word(uint64(calls)) //nolint:gosec // not negative
	for _, c := range j.calls[max(len(j.calls)-calls, 0):] {
		word(c.back)
		word(c.exec)
	}
	return h.Sum64()
}

// look walks the wave as it is, but not in the same state for ever. Return
// addresses are held against the calls at every walk, registers at every third one,
// twice for each PC and innermost call; those of frames beyond the first caller at
// every fourth of these.
func (j *gcnJudge) look() {
	k := j.key(len(j.calls) + 1)
	j.visits[k]++
	if j.visits[k] > gcnVisits || j.walks == gcnWalks && !proof.IsAsked() {
		return
	}
	j.walked++
	j.walks++
	j.refresh()
	t := j.target
	if err := t.Refresh(context.Background(), j.thread); err != nil {
		j.problem("%v", err)
		return
	}
	stack, frames := t.Activations(context.Background(), j.thread)
	depth := 0
	if j.walked%gcnEach == 0 && j.first() {
		if depth = 1; j.searched%4 == 0 {
			depth = len(j.calls)
		}
	}
	j.judge(stack, frames, depth)
}

// first says whether registers are to be compared at the PC, in the innermost call.
func (j *gcnJudge) first() bool {
	at := [2]uint64{j.state.pc}
	if n := len(j.calls); n > 0 {
		at[1] = j.calls[n-1].back
	}
	j.compared[at]++
	return j.compared[at] <= gcnCompares
}

func (j *gcnJudge) problem(format string, args ...any) {
	at := j.state.pc - codeBase
	where := fmt.Sprintf("%#x %s+%#x: ", at, j.object.code.functions[j.object.code.function(at)], at-j.object.code.function(at))
	j.problems = append(j.problems, where+fmt.Sprintf(format, args...))
}

var gcnNumbers = regexp.MustCompile(`0x[0-9a-f]+|[0-9]+`)

// cause counts why something is not known.
func (j *gcnJudge) cause(what, why string, n int) {
	j.causes[what+": "+gcnNumbers.ReplaceAllString(why, "N")] += n
}

// judge holds a walk against the calls, with the registers of so many callers.
func (j *gcnJudge) judge(stack *Stack, activations []walk.Activation, search int) {
	frames := stack.Frames
	depth := len(j.calls)
	j.frames += depth + 1
	for i := range depth + 1 {
		if i == len(frames) {
			j.unknown += depth + 1 - i
			j.cause("return address", string(stack.Stopped.Reason)+", "+stack.Stopped.Detail, depth+1-i)
			break
		}
		want := j.state.pc
		if i > 0 {
			want = j.calls[depth-i].back
		}
		if frames[i].PC != want {
			j.wrong++
			j.problem("frame %d of %d is at %#x, expected %#x", i, depth+1, frames[i].PC, want)
			return
		}
		switch by := frames[i].FoundBy; {
		case i == 0 || by == j.by || j.by == "" && by == ByCFI:
		case j.by == "" && by == ByRules:
			j.byCode++
		default:
			j.problem("frame %d was found by %s, expected %s", i, by, j.by)
			return
		}
		if i < depth && frames[i].HasCFA {
			if c := j.calls[depth-1-i]; frames[i].CFASpace != 6 || frames[i].CFA != c.cfa {
				j.wrong++
				j.problem("frame %d has its CFA at %#x of space %d, expected %#x of private_wave", i, frames[i].CFA, frames[i].CFASpace, c.cfa)
				return
			}
		}
	}
	if len(frames) > depth+1 {
		j.wrong++
		j.problem("%d frames, expected %d; the one after the kernel's at %#x", len(frames), depth+1, frames[depth+1].PC)
		return
	}
	if len(frames) == depth+1 && stack.Stopped.Reason != StopOutermost {
		j.unknown++
		j.cause("end", string(stack.Stopped.Reason)+", "+stack.Stopped.Detail, 1)
	}
	if search == 0 {
		return
	}
	j.searched++
	for i := 1; i < len(frames) && i <= search; i++ {
		j.compare(activations[i], j.calls[depth-i])
	}
}

// compare holds the registers of a frame against those at the moment of its call.
func (j *gcnJudge) compare(f walk.Activation, c *gcnCall) {
	j.pairs++
	var wrong, unknown bool
	for i := range j.registers {
		r := &j.registers[i]
		// Registers that functions need not preserve are many: a quarter of them for
		// each frame, in turn.
		if r.file == gcnOther || !r.keeps && (r.reg+j.pairs)%4 != 0 {
			continue
		}
		j.gcnCounts.registers++
		good, missing, why := j.register(f, c, r)
		if !good {
			wrong = true
			j.wrongRegisters++
			j.problem("frame %d, called %s: register %d %s", f.Index(), j.object.code.functions[c.function], r.number, why)
			continue
		}
		// What must be there: all of a scalar; the lanes of a vector register
		// that did not execute, and all of them where it is preserved.
		needed := ^uint64(0)
		if r.file == gcnScalar && !r.keeps {
			needed = 0
		} else if r.file != gcnScalar && !r.keeps {
			needed = ^c.exec
		}
		if r.file != gcnScalar {
			needed &= ^uint64(0) >> (64 - j.state.lanes)
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
		case r.file == gcnScalar:
			kind = "scalar register"
		case r.file == gcnAcc:
			kind = "accumulation register"
		}
		if r.file != gcnScalar && missing&c.exec == 0 {
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

// lostIn are the lanes of a register that no function between a call and the top
// frame can be relied on to have kept.
func (j *gcnJudge) lostIn(c *gcnCall, r *gcnRegister) uint64 {
	var lost uint64
	for i := slices.Index(j.calls, c); i < len(j.calls); i++ {
		lost |= j.notKept[j.calls[i].function][r.number]
	}
	return lost
}

// register holds one register of a frame against its value at the call: false
// where it is wrong. missing are the lanes, or for scalars all bits, that are not
// known, with the cause.
func (j *gcnJudge) register(f walk.Activation, c *gcnCall, r *gcnRegister) (good bool, missing uint64, why string) {
	want := c.registers[r.at:][:r.size]
	l, err := f.Location(context.Background(), r.number)
	if err != nil {
		return true, ^uint64(0), err.Error()
	}
	if p := l.Place(0); l.NumPlaces() == 1 && p.Storage == locexpr.Register && p.Register == r.number && p.BitOffset == 0 {
		got := j.live[r.at:][:r.size]
		if !bytes.Equal(got, want) {
			return false, 0, fmt.Sprintf("is where it was: %x, expected %x", got, want)
		}
		return true, 0, ""
	}
	if p := l.Place(0); l.NumPlaces() == 1 && p.Storage == locexpr.Composite && p.BitOffset == 0 && r.file != gcnScalar {
		if good, missing, ok := j.parts(p.Parts(), want); ok && good {
			return true, missing, "is undefined"
		}
	}
	lane := r.size
	if r.file == gcnVector || r.file == gcnAcc {
		lane = 4
	}
	whole := make([]byte, r.size)
	if err := l.Read(context.Background(), f.Context(), whole, uint64(r.size)*8); err == nil {
		if !bytes.Equal(whole, want) {
			return false, 0, fmt.Sprintf("is %x, expected %x, at %v", whole, want, refText(merge(flat(nil, &l, 0, uint64(r.size)*8))))
		}
		return true, 0, ""
	}
	for i := 0; i < r.size; i += lane {
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
			return false, 0, fmt.Sprintf("is %x in lane %d, expected %x, at %v", got, i/lane, want[i:][:lane], refText(merge(flat(nil, &l, 0, uint64(r.size)*8))))
		}
	}
	if lane == r.size {
		missing = ^uint64(0)
	}
	return true, missing, why
}

// parts holds a vector register against a composite whose parts are lanes, without
// reading through the engine; false where it has other parts. It is faster.
func (j *gcnJudge) parts(parts []locexpr.Part, want []byte) (good bool, missing uint64, ok bool) {
	lane := 0
	for i := range parts {
		n := int(parts[i].Bits / 32) //nolint:gosec // lanes
		p := parts[i].Location.Place(0)
		if parts[i].Bits%32 != 0 || parts[i].Location.NumPlaces() != 1 || 4*(lane+n) > len(want) || p.BitOffset%8 != 0 {
			return false, 0, false
		}
		var from []byte
		at := p.BitOffset / 8
		switch p.Storage {
		case locexpr.Undefined:
			missing |= (1<<n - 1) << lane
		case locexpr.Register:
			k, found := slices.BinarySearchFunc(j.registers, p.Register, func(r gcnRegister, n uint64) int { return int(r.number) - int(n) }) //nolint:gosec // register numbers
			if !found || at+4*uint64(n) > uint64(j.registers[k].size) {                                                                       //nolint:gosec // sizes
				return false, 0, false
			}
			from = j.live[j.registers[k].at+int(at):] //nolint:gosec // within the register
		case locexpr.Memory:
			if at += p.Address; p.Space != 6 || at+4*uint64(n) > uint64(len(j.state.scratch)) { //nolint:gosec // sizes
				return false, 0, false
			}
			from = j.state.scratch[at:]
		default:
			return false, 0, false
		}
		if from != nil && !bytes.Equal(from[:4*n], want[4*lane:][:4*n]) {
			return false, 0, true
		}
		lane += n
	}
	return true, missing, 4*lane == len(want)
}

// execute runs every kernel of an object twice: to find out what its functions
// preserve, and to walk it.
func (j *gcnJudge) execute(k *gcnKernel, launch func() (*gcnState, error), limit int) error {
	for _, quiet := range []bool{true, false} {
		s, err := launch()
		if err != nil {
			return err
		}
		j.quiet = quiet
		j.start(s)
		if err := j.run(limit); err != nil {
			return fmt.Errorf("%s of %s: %w", k.name, j.object.path, err)
		}
		if !quiet {
			j.kernels++
			j.executed += s.steps
		}
	}
	return nil
}
