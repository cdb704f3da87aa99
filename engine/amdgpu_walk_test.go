// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/internal/gcn"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/sdk"
)

// waveCode is an object with call frame information of waves.
type waveCode struct {
	path      string
	processor string
	lanes     uint64
	fdes      [][]listedRow // by llvm-dwarfdump
	calls     []uint64      // return addresses
	scratch   bool          // the stack pointer counts the bytes of a lane
}

// corpusCode are the objects of the corpus with full call frame information.
func corpusCode(t *testing.T) []*waveCode {
	t.Helper()
	needLLVM(t)
	var list []*waveCode
	for _, path := range oracle.Beside(t, "corpus/amdgpu/*/*.gfx90a.cfi.co") {
		c := &waveCode{path: path, processor: "gfx90a", lanes: 64, fdes: listRows(t, path)}
		c.calls = callsOf(t, path)
		list = append(list, c)
	}
	return list
}

func needLLVM(t *testing.T) {
	t.Helper()
	oracle.Tools(t, "llvm-dwarfdump-22", "llvm-mc-22")
}

// callsOf are the addresses after s_swappc_b64.
func callsOf(t *testing.T, path string) (calls []uint64) {
	t.Helper()
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	text := o.Section(".text")
	data, err := text.Data()
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+4 <= len(data); i += 4 {
		if littleEndian(data[i:i+4])&0xff80ff00 == 0xbe801e00 {
			calls = append(calls, text.Address+uint64(i)+4)
		}
	}
	return calls
}

// row is the row in force at an address.
func (c *waveCode) row(pc uint64) *listedRow {
	for _, rows := range c.fdes {
		for i := range rows {
			if r := &rows[i]; pc >= r.start && pc < r.end {
				return r
			}
		}
	}
	return nil
}

// waveState is a target of one wave: the code is loaded, and private_wave is
// that of the reference.
type waveState struct {
	*refState
	thread *trace.Thread
	module *target.Module
	last   uint64 // there is private memory up to here, and no further

	missing map[uint64]bool // registers that the target does not have
}

func (s *waveState) Info() trace.Target        { return trace.Target{Kind: "waves"} }
func (s *waveState) Modules() []*target.Module { return []*target.Module{s.module} }
func (s *waveState) Threads() []*trace.Thread  { return []*trace.Thread{s.thread} }
func (s *waveState) Close() error              { return nil }
func (s *waveState) Mapped(a uint64) (mapped, executable bool) {
	_, ok := s.module.Contains(a)
	return ok, ok
}

func (s *waveState) ReadMemory(_ locexpr.AddressSpace, address uint64, _ []byte) (int, error) {
	return 0, fmt.Errorf("%#x: %w", address, target.ErrNoMemory)
}

func (s *waveState) ReadScoped(space locexpr.AddressSpace, th *trace.Thread, address uint64, buf []byte) (int, error) {
	if space != 6 || th != s.thread {
		return 0, fmt.Errorf("space %d: %w", space, target.ErrNoMemory)
	}
	for i := range buf {
		if address+uint64(i) > s.last {
			return i, fmt.Errorf("%#x: %w", address+uint64(i), target.ErrNoMemory)
		}
		buf[i] = s.memory(address + uint64(i))
	}
	return len(buf), nil
}

// dialected is AMDGPU with another answer about dialects.
type dialected struct {
	sdk.Architecture
	change func(*sdk.OpenObjectAnswer)
}

func (d dialected) OpenObject(ctx context.Context, e sdk.Engine, req *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
	a, err := d.Architecture.OpenObject(ctx, e, req)
	if err == nil {
		d.change(a)
	}
	return a, err
}

// A waveTest walks waves in the code of one object.
type waveTest struct {
	t      *testing.T
	code   *waveCode
	state  *waveState
	target *Target
	random *rand.Rand
	counts struct{ pcs, stacks, frames, registers, bits, places, undefined, unknown int }
}

// leftOut says that -short, which is how the race detector runs, leaves out the
// n-th of many cases in one goroutine, where the race detector has nothing to
// see and takes ten times as long. One in 32 stays.
func leftOut(n int) bool { return testing.Short() && n%32 != 0 }

func newWaveTest(t *testing.T, c *waveCode, arch sdk.Architecture) *waveTest {
	t.Helper()
	return newWaveTestWith(t, c, plugin.Options{InProcess: []sdk.Architecture{arch}})
}

func newWaveTestWith(t *testing.T, c *waveCode, plugins plugin.Options) *waveTest {
	t.Helper()
	e, err := New(Options{Plugins: plugins, NoSymbols: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	o, err := object.Open(c.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	m := &target.Module{Module: trace.Module{Path: c.path, Arch: "amdgpu"}, Object: o}
	for _, s := range o.Segments() {
		m.Segments = append(m.Segments, trace.Segment{Address: s.Address, Size: s.MemSize, Start: gcn.CodeBase + s.Address, Executable: true})
	}
	if len(m.Segments) == 0 {
		text := o.Section(".text")
		m.Segments = []trace.Segment{{Section: ".text", Size: text.Size, Start: gcn.CodeBase, Executable: true}}
	}
	s := &waveState{
		refState: &refState{t: t, lanes: c.lanes, scratch: c.scratch, register: map[uint64][]byte{}, written: map[uint64]byte{}},
		thread:   &trace.Thread{ID: "1", Arch: "amdgpu", Processor: c.processor, Lanes: uint32(c.lanes)},
		module:   m,
		last:     1<<32 - 1,
	}
	w := &waveTest{t: t, code: c, state: s, target: e.Attach(s), random: rand.New(rand.NewPCG(6, 2))}
	return w
}

// shuffle gives the wave random registers and private memory.
func (w *waveTest) shuffle() {
	s := w.state.refState
	s.seed = w.random.Uint64()
	clear(s.written)
	for _, n := range s.numbers() {
		b := s.register[n]
		if b == nil {
			b = make([]byte, s.registerBits(n)/8)
			s.register[n] = b
		}
		for i := 0; i < len(b); i += 4 {
			v := w.random.Uint32()
			copy(b[i:], []byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24)})
		}
	}
	switch mask := s.register[17-16*(64-s.lanes)/32]; w.random.IntN(8) {
	case 0: // no lane was active
		clear(mask)
	case 1:
		copy(mask, bytes.Repeat([]byte{0xff}, len(mask)))
	}
	// Stack pointers stay away from the end of private memory, which has no
	// frame beyond it.
	for _, n := range []uint64{64, 65} {
		s.register[n][3] &= 0x3f
		if w.code.scratch {
			s.register[n][3] = 0
		}
	}
}

func (w *waveTest) setPC(pc uint64) { copy(w.state.register[16], littleEndianBytes(pc, 8)) }

// A waveWalk is a stack with its frames.
type waveWalk struct {
	stack  *trace.Stack
	frames []walk.Activation
}

// walk walks the wave as it is now.
func (w *waveTest) walk() waveWalk {
	w.t.Helper()
	th := w.state.thread
	th.Registers = sdk.Registers{}
	for _, n := range slices.Sorted(maps.Keys(w.state.register)) {
		if !w.state.missing[n] {
			th.Registers.Set(uint32(n), w.state.register[n])
		}
	}
	if err := w.target.process.Refresh(context.Background(), th); err != nil {
		w.t.Fatal(err)
	}
	stack, frames := w.target.process.Activations(context.Background(), th)
	if len(frames) == 0 && len(w.state.missing) == 0 {
		w.t.Fatal(stack.Stopped)
	}
	return waveWalk{stack, frames}
}

// flat says where the bits of a location are, as the reference does.
func flat(dst []refPart, l *locexpr.Location, start, n uint64) []refPart {
	p := l.Place(0)
	switch {
	case l.NumPlaces() != 1:
		return append(dst, refPart{n, refPlace{kind: '!'}})
	case p.Storage == locexpr.Undefined:
		return append(dst, refPart{n, refPlace{kind: 'u'}})
	case p.Storage == locexpr.Register:
		return append(dst, refPart{n, refPlace{kind: 'r', reg: p.Register, bit: p.BitOffset + start}})
	case p.Storage == locexpr.Memory && p.Space == 6 && p.Scope.Lane == -1 && p.Scope.Thread == 0:
		return append(dst, refPart{n, refPlace{kind: 'm', bit: p.Address*8 + p.BitOffset + start}})
	case p.Storage == locexpr.Implicit:
		return append(dst, refPart{n, refPlace{kind: 'v', value: p.ImplicitBytes(), bit: p.BitOffset + start}})
	case p.Storage == locexpr.Composite:
		start += p.BitOffset
		for _, part := range p.Parts() {
			if n == 0 {
				break
			}
			if start >= part.Bits {
				start -= part.Bits
				continue
			}
			k := min(n, part.Bits-start)
			dst = flat(dst, &part.Location, start, k)
			start, n = 0, n-k
		}
		if n == 0 {
			return dst
		}
	}
	return append(dst, refPart{n, refPlace{kind: '!'}})
}

// compare holds every register of a frame, where it is and what it holds,
// against the reference.
func (w *waveTest) compare(f walk.Activation, want *refFrame, numbers []uint64) {
	w.t.Helper()
	w.counts.frames++
	for _, n := range numbers {
		bits := w.state.registerBits(n)
		wantParts := merge(want.place(n).slice(nil, 0, bits))
		wantBytes, defined := w.state.read(wantParts)
		where := func() string {
			return fmt.Sprintf("%s, frame %d of %#x, register %d", filepath.Base(w.code.path), f.Index(), littleEndian(w.state.register[16]), n)
		}
		l, err := f.Location(context.Background(), n)
		if wantParts[0].kind == 'e' {
			if w.counts.unknown++; err == nil {
				w.t.Errorf("%s: %v, expected it not to be known", where(), l)
			}
			continue
		}
		if err != nil {
			w.t.Errorf("%s: %v, expected %s", where(), err, refText(wantParts))
			continue
		}
		w.counts.registers++
		w.counts.bits += int(bits)
		if wantParts[0].kind != 'r' || len(wantParts) > 1 || wantParts[0].reg != n {
			w.counts.places++
		}
		if got := merge(flat(nil, &l, 0, bits)); !sameParts(got, wantParts) {
			w.t.Errorf("%s is at\n%s, expected\n%s", where(), refText(got), refText(wantParts))
			continue
		}
		got := make([]byte, (bits+7)/8)
		err = l.Read(context.Background(), f.Context(), got, bits)
		switch {
		case !defined:
			w.counts.undefined++
			if !errors.Is(err, locexpr.ErrUndefined) {
				w.t.Errorf("%s: %v, expected it to be undefined", where(), err)
			}
		case err != nil:
			w.t.Errorf("%s: %v", where(), err)
		case !bytes.Equal(got, wantBytes):
			w.t.Errorf("%s is\n%x, expected\n%x", where(), got, wantBytes)
		}
	}
	if w.t.Failed() {
		w.t.FailNow()
	}
}

// everyPC puts random waves at every fourth byte of the code, which is every
// instruction and the second halves of long ones, and holds CFA, return address
// and the registers of the caller against the reference.
func (w *waveTest) everyPC() {
	w.t.Helper()
	numbers := w.state.numbers()
	for _, rows := range w.code.fdes {
		for i := range rows {
			for pc := rows[i].start; pc < rows[i].end; pc += 4 {
				if leftOut(int(pc / 4)) {
					continue
				}
				w.shuffle()
				w.setPC(gcn.CodeBase + pc)
				w.counts.pcs++
				walk := w.walk()
				want := newRefFrame(w.state.refState, nil, &rows[i])
				got := &walk.stack.Frames[0]
				if !got.HasCFA || got.CFASpace != 6 || got.CFA != want.cfa || got.PC != gcn.CodeBase+pc || !got.Exact {
					w.t.Fatalf("%s: %#x: %+v, expected a CFA of %#x: %v", w.code.path, pc, *got, want.cfa, walk.stack.Stopped)
				}
				ra, known := w.state.read(want.saved(16).slice(nil, 0, 64))
				if !known {
					if len(walk.stack.Frames) != 1 || walk.stack.Stopped.Reason != trace.StopOutermost {
						w.t.Fatalf("%s: %#x: %d frames, %v, expected the outermost", w.code.path, pc, len(walk.stack.Frames), walk.stack.Stopped)
					}
					continue
				}
				if len(walk.stack.Frames) != 2 || walk.stack.Frames[1].PC != littleEndian(ra) || walk.stack.Stopped.Reason != trace.StopNoModule {
					w.t.Fatalf("%s: %#x: frames %+v, %v, expected a caller at %#x", w.code.path, pc, walk.stack.Frames, walk.stack.Stopped, ra)
				}
				w.compare(walk.frames[1], &refFrame{refState: w.state.refState, callee: want}, numbers)
			}
		}
	}
}

func (w *waveTest) log() {
	w.t.Helper()
	c := &w.counts
	w.t.Logf("%s: waves of %d lanes at %d PCs and in %d stacks: %d frames, %d registers (%d saved elsewhere, %d undefined), %d bits; 0 wrong, %d unknown",
		filepath.Join(filepath.Base(filepath.Dir(w.code.path)), filepath.Base(w.code.path)), w.code.lanes, c.pcs, c.stacks, c.frames, c.registers, c.places, c.undefined, c.bits, c.unknown)
}

func TestWavesAtEveryPCOfTheCorpus(t *testing.T) {
	pcs := 0
	for _, c := range corpusCode(t) {
		w := newWaveTest(t, c, amdgpu.New())
		w.everyPC()
		w.log()
		pcs += w.counts.pcs
	}
	if pcs < 3900 && !testing.Short() {
		t.Errorf("%d PCs, expected 3900", pcs)
	}
}

// generatedCode is walked besides the corpus.
var generatedCode = []struct {
	processor string
	lanes     uint64
	scratch   bool
}{
	{"gfx90a", 64, false}, {"gfx1030", 32, false}, {"gfx1030", 64, false}, {"gfx942", 64, true}, {"gfx1100", 32, true}, {"gfx1201", 32, true}, {"gfx1250", 32, true}, {"gfx1251", 32, true},
}

// TestWavesAtEveryPCOfGeneratedCode does the same in rows that are made up: those
// of waves of 32 lanes and of stack pointers that count the bytes of a lane, and
// both encodings of the operations, of which the plugin finds the object's.
func TestWavesAtEveryPCOfGeneratedCode(t *testing.T) {
	for i, c := range generatedCode {
		t.Run(fmt.Sprintf("%s wave%d", c.processor, c.lanes), func(t *testing.T) {
			user, old := generated(t, c.processor, c.lanes, uint64(i), c.scratch)
			for _, code := range []*waveCode{user, old} {
				w := newWaveTest(t, code, amdgpu.New())
				w.everyPC()
				w.log()
			}
		})
	}
}

// A chain is a stack that was made up: what the walk of it must find.
type chain struct {
	frames []*refFrame
	pcs    []uint64
}

// chain makes a stack of depth frames below a kernel: the top one anywhere in a
// function, the others where they have called something. Every frame's CFA and
// return address is written to where the rows say that they are. It answers nil
// where that cannot be: the place is a value, is nowhere, or holds what another
// frame needs.
func (w *waveTest) chain(depth int, functions []listedRow, calls, kernel []uint64) (c *chain) {
	if !w.state.unlessUnknown(func() { c = w.makeChain(depth, functions, calls, kernel) }) {
		return nil
	}
	return c
}

func (w *waveTest) makeChain(depth int, functions []listedRow, calls, kernel []uint64) *chain {
	w.shuffle()
	s := w.state.refState
	taken := map[[2]uint64]bool{} // bytes that a frame needs: register and byte, or 1<<32 and address
	put := func(p refPlace, bits uint64, value uint64) bool {
		parts := p.slice(nil, 0, bits)
		want := littleEndianBytes(value, int(bits/8))
		if parts[0].kind == 'v' {
			b, ok := s.read(parts)
			return ok && littleEndian(b) == value
		}
		for _, part := range parts {
			for i := range part.bits / 8 {
				key := [2]uint64{part.reg, part.bit/8 + i}
				if part.kind == 'm' {
					key[0] = 1 << 32
				}
				if taken[key] {
					return false
				}
				taken[key] = true
			}
		}
		return s.write(parts, want)
	}
	c := &chain{}
	var callee *refFrame
	for i := range depth + 1 {
		var pc, lookup uint64
		switch {
		case i == depth:
			pc = kernel[w.random.IntN(len(kernel))]
			lookup = pc - 1
		case i == 0:
			r := &functions[w.random.IntN(len(functions))]
			pc = r.start + w.random.Uint64N((r.end-r.start)/4)*4
			lookup = pc
		default:
			pc = calls[w.random.IntN(len(calls))]
			lookup = pc - 1
		}
		if i == 0 {
			w.setPC(gcn.CodeBase + pc)
		} else if !put(callee.saved(16), 64, gcn.CodeBase+pc) {
			return nil
		}
		row := w.code.row(lookup)
		// The stack grows up: outer frames have lower addresses.
		base := uint64(depth-i) * 1 << 16
		f := &refFrame{refState: s, callee: callee, row: row, memo: map[uint64]refPlace{}}
		if m := refCFA.FindStringSubmatch(row.cfa); m != nil {
			if !put(f.place(listedNumber(w.t, m[1])), 32, base) && f.place(listedNumber(w.t, m[1])).kind != 'v' {
				return nil
			}
		} else if i < depth {
			if !put(f.place(listedNumber(w.t, strings.Fields(row.cfa)[1][:6])), 32, base/s.lanes) {
				return nil
			}
		}
		f.cfa = f.findCFA()
		c.frames, c.pcs = append(c.frames, f), append(c.pcs, gcn.CodeBase+pc)
		callee = f
	}
	// Registers that were found on the way may have been written since.
	callee = nil
	for i, f := range c.frames {
		if again := newRefFrame(s, callee, f.row); again.cfa != f.cfa {
			return nil
		} else {
			c.frames[i], callee = again, again
		}
		if i > 0 {
			if b, ok := s.read(c.frames[i-1].saved(16).slice(nil, 0, 64)); !ok || littleEndian(b) != c.pcs[i] {
				return nil
			}
		}
	}
	return c
}

// walkChain walks a chain and holds every frame against it. Of a deep one only
// some registers of some frames are looked at.
func (w *waveTest) walkChain(c *chain) {
	w.t.Helper()
	w.counts.stacks++
	walk := w.walk()
	if walk.stack.Stopped.Reason != trace.StopOutermost || len(walk.stack.Frames) != len(c.pcs) {
		w.t.Fatalf("%s: %d frames, %v, expected %d: %#x", w.code.path, len(walk.stack.Frames), walk.stack.Stopped, len(c.pcs), c.pcs)
	}
	numbers := w.state.numbers()
	for i, f := range walk.stack.Frames {
		by := trace.ByCFI
		if i == 0 {
			by = trace.ByContext
		}
		if f.PC != c.pcs[i] || f.CFA != c.frames[i].cfa || f.CFASpace != 6 || !f.HasCFA || f.Exact != (i == 0) || f.FoundBy != by {
			w.t.Fatalf("%s: frame %d: %+v, expected PC %#x and CFA %#x", w.code.path, i, f, c.pcs[i], c.frames[i].cfa)
		}
		if i < 8 || i == len(c.pcs)-1 {
			w.compare(walk.frames[i], c.frames[i], numbers)
		}
	}
}

// places are the rows of functions, and the return addresses in functions and in
// kernels.
func (w *waveTest) places() (functions []listedRow, calls, kernel []uint64) {
	for _, rows := range w.code.fdes {
		outermost := rows[0].rules[16] == "undefined"
		if !outermost {
			functions = append(functions, rows...)
		}
		for _, pc := range w.code.calls {
			switch {
			case pc <= rows[0].start || pc > rows[len(rows)-1].end:
			case outermost:
				kernel = append(kernel, pc)
			default:
				calls = append(calls, pc)
			}
		}
	}
	return functions, calls, kernel
}

// chains walks stacks of the depths given, several of each.
func (w *waveTest) chains(each int, depths ...int) {
	w.t.Helper()
	functions, calls, kernel := w.places()
	if len(calls) == 0 {
		depths = depths[:1]
	}
	for _, depth := range depths {
		made := 0
		for range 400 * each {
			if c := w.chain(depth, functions, calls, kernel); c != nil {
				w.walkChain(c)
				if made++; made == each {
					break
				}
			}
		}
		if made == 0 {
			w.t.Errorf("%s: no stack of %d frames could be made", w.code.path, depth)
		}
	}
}

// recursions walks, for each call of a function, a stack of so many frames all
// of which are at that call, where such a stack can be.
func (w *waveTest) recursions(depth int) {
	w.t.Helper()
	functions, calls, kernel := w.places()
	for _, pc := range calls {
		for range 20 {
			if c := w.chain(3, functions, []uint64{pc}, kernel); c == nil {
				continue
			}
			if c := w.chain(depth, functions, []uint64{pc}, kernel); c != nil {
				w.walkChain(c)
				break
			}
		}
	}
}

// TestStacksOfWaves walks stacks whose frames are at calls, in functions and at
// places that are picked at random, recursion included.
func TestStacksOfWaves(t *testing.T) {
	each := 5
	if testing.Short() {
		each = 1
	}
	for _, c := range corpusCode(t) {
		w := newWaveTest(t, c, amdgpu.New())
		w.chains(each, 1, 2, 3, 5, 8, 13)
		w.log()
	}
	for i, g := range generatedCode {
		c, _ := generated(t, g.processor, g.lanes, uint64(i), g.scratch)
		w := newWaveTest(t, c, amdgpu.New())
		w.chains(each, 1, 2, 3, 4)
		w.log()
	}
}

// TestDeepStacksOfWaves walks stacks of many frames each of which saves some
// lanes of the same vector registers, and looks at the outermost ones.
func TestDeepStacksOfWaves(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long under the race detector, in one goroutine")
	}
	stacks := 0
	for _, c := range corpusCode(t) {
		w := newWaveTest(t, c, amdgpu.New())
		w.recursions(300)
		w.log()
		stacks += w.counts.stacks
	}
	if stacks < 8 {
		t.Errorf("%d stacks, expected 8", stacks)
	}
}

// TestWavesWithPartsMissing takes registers and memory away from stacks that can
// be walked. What is still found must be what it was: a wave that lacks what a
// rule needs has fewer frames and registers, and no others.
func TestWavesWithPartsMissing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long under the race detector, in one goroutine")
	}
	for _, c := range corpusCode(t) {
		w := newWaveTest(t, c, amdgpu.New())
		functions, calls, kernel := w.places()
		if len(calls) == 0 {
			t.Fatalf("%s: no calls", c.path)
		}
		numbers := w.state.numbers()
		reasons, found, lost, whole := map[trace.StopReason]int{}, 0, 0, 0
		for i := range 80 {
			w.state.last, w.state.missing = 1<<32-1, nil
			c := w.chain(4, functions, calls, kernel)
			if c == nil {
				continue
			}
			if i%2 == 0 {
				w.state.last = w.random.Uint64N(0x60000)
			} else {
				w.state.missing = map[uint64]bool{}
				few := 1 + w.random.IntN(100)
				for _, n := range numbers {
					if w.random.IntN(few) == 0 {
						w.state.missing[n] = true
					}
				}
			}
			walk := w.walk()
			if reasons[walk.stack.Stopped.Reason]++; len(walk.stack.Frames) == len(c.pcs) {
				whole++
			} else if r := walk.stack.Stopped; r.Reason != trace.StopNoMemory && !strings.HasSuffix(r.Detail, "in the target's registers") {
				t.Errorf("%d of %d frames, %v", len(walk.stack.Frames), len(c.pcs), walk.stack.Stopped)
			}
			for j, f := range walk.stack.Frames {
				if f.PC != c.pcs[j] || f.HasCFA && f.CFA != c.frames[j].cfa {
					t.Fatalf("frame %d: %+v, expected PC %#x and CFA %#x", j, f, c.pcs[j], c.frames[j].cfa)
				}
				for _, n := range numbers {
					want := merge(c.frames[j].place(n).slice(nil, 0, w.state.registerBits(n)))
					value, ok := w.state.read(want)
					l, err := walk.frames[j].Location(t.Context(), n)
					if err != nil {
						lost++
						continue
					}
					if got := merge(flat(nil, &l, 0, w.state.registerBits(n))); !sameParts(got, want) {
						t.Fatalf("frame %d, register %d is at %s, expected %s", j, n, refText(got), refText(want))
					}
					got := make([]byte, len(value))
					if err := l.Read(t.Context(), walk.frames[j].Context(), got, w.state.registerBits(n)); err != nil {
						lost++
					} else if found++; !ok || !bytes.Equal(got, value) {
						t.Fatalf("frame %d, register %d is %x, expected %x", j, n, got, value)
					}
				}
			}
		}
		t.Logf("%s: %v, %d stacks are whole; %d registers found, %d not", c.path, reasons, whole, found, lost)
		if found < 10000 || lost < 1000 || reasons[trace.StopNoMemory] < 10 || whole < 10 {
			t.Error("too few of some kind")
		}
	}
}

// TestDialectsOfCIEs walks from a function whose CIE says one encoding of the
// operations through one of another: evaluating the rules of the second needs
// those of the first.
func TestDialectsOfCIEs(t *testing.T) {
	needLLVM(t)
	path := filepath.Join(t.TempDir(), "mixed.o")
	cmd := exec.Command("llvm-mc-22", "-triple", "amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-filetype=obj", "-o", path, "testdata/amdgpu/dialects.s")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	arch := dialected{amdgpu.New(), func(a *sdk.OpenObjectAnswer) {
		a.Dialect = locexpr.LLVMUser.Name
		a.Overrides = []sdk.DialectOverride{
			{Producer: "one", Dialect: locexpr.Intel.Name},
			{Augmentation: "[old:v0.0]", Dialect: locexpr.LLVMLegacy.Name},
			{Augmentation: "[old:v0.0]", Dialect: locexpr.Intel.Name},
		}
	}}
	w := newWaveTest(t, &waveCode{path: path, processor: "gfx90a", lanes: 64}, arch)
	w.shuffle()
	set := func(n uint64, v uint64, size int) { copy(w.state.register[n], littleEndianBytes(v, size)) }
	w.setPC(gcn.CodeBase)
	set(64, 0x1000, 4)
	// f0 has its return address in lanes 3 and 4 of VGPR1, and VGPR40 in memory
	// for the lanes that were active; f1 has its own in lanes 3 and 4 of VGPR40,
	// of which the first was.
	set(17, 1<<3, 8)
	copy(w.state.register[2561][4*3:], littleEndianBytes(gcn.CodeBase+8, 8))
	for i, b := range littleEndianBytes((gcn.CodeBase+16)&0xffffffff, 4) {
		w.state.written[0x1000+3*4+uint64(i)] = b
	}
	copy(w.state.register[2600][4*4:], littleEndianBytes(gcn.CodeBase>>32, 4))
	walk := w.walk()
	if got, want := pcs(walk.stack), []uint64{gcn.CodeBase, gcn.CodeBase + 8, gcn.CodeBase + 16}; !slices.Equal(got, want) || walk.stack.Stopped.Reason != trace.StopOutermost {
		t.Errorf("PCs %#x, %v, expected %#x", got, walk.stack.Stopped, want)
	}
}

// TestFDEWithoutRulesIsNoInformation says so, and does not end the stack as one
// whose outermost frame was found: the frame is found by reading the code.
func TestFDEWithoutRulesIsNoInformation(t *testing.T) {
	c := corpusCode(t)[0]
	c.path = strings.Replace(c.path, ".cfi.co", ".co", 1)
	w := newWaveTest(t, c, amdgpu.New())
	w.shuffle()
	w.setPC(gcn.CodeBase + c.fdes[0][0].start + 8)
	stack := w.walk().stack
	if len(stack.Frames) != 2 || !stack.Frames[0].HasCFA || stack.Frames[1].FoundBy != trace.ByRules || stack.Stopped.Reason != trace.StopNoModule {
		t.Errorf("%+v", *stack)
	}
}

// countingRules counts the functions that it is asked to read.
type countingRules struct {
	sdk.Architecture
	functions *int
}

func (c countingRules) FrameRules(ctx context.Context, e sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	*c.functions += len(req.Functions)
	return c.Architecture.FrameRules(ctx, e, req)
}

// TestCodeIsReadOncePerFunction walks from every instruction of functions without
// call frame information: the plugin is asked about each of them once.
func TestCodeIsReadOncePerFunction(t *testing.T) {
	c := corpusCode(t)[0]
	c.path = strings.Replace(c.path, ".cfi.co", ".co", 1)
	asked, functions, walks := 0, 0, 0
	w := newWaveTest(t, c, countingRules{amdgpu.New(), &asked})
	for _, rows := range c.fdes {
		if rows[0].rules[16] == "undefined" {
			continue // a kernel
		}
		functions++
		for pc := rows[0].start; pc < rows[len(rows)-1].end; pc += 4 {
			w.shuffle()
			w.setPC(gcn.CodeBase + pc)
			if stack := w.walk().stack; len(stack.Frames) == 2 && stack.Frames[1].FoundBy == trace.ByRules {
				walks++
			}
		}
	}
	if functions == 0 || asked != functions || walks < 20*functions {
		t.Errorf("%d functions, read %d times for %d walks", functions, asked, walks)
	}
}
