// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/examples/gen/genasm"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/visa"
	"github.com/unwindd/unwindd/sdk"
)

// genTargets are the processors whose code is walked: two that count frame
// pointers in OWORDs and two that count bytes, of which one has GRF registers of
// 64 bytes.
var genTargets = []string{"skl", "tgllp", "dg2-g10", "pvc"}

// genLevels are the options of the levels of optimisation.
var genLevels = []struct{ name, option string }{{"O0", "-cl-opt-disable"}, {"O2", ""}}

// genSources are the sources that are compiled: testdata/visa/NAME.cl.
var genSources = []string{"rec", "k"}

// compileGen compiles a source, and answers the folder of what the compiler dumps
// of its kernels, which tests share.
func compileGen(t *testing.T, processor, source, option string, environment ...string) string {
	t.Helper()
	oracle.Tools(t, "ocloc")
	path, err := filepath.Abs(filepath.Join("testdata", "visa", source+".cl"))
	if err != nil {
		t.Fatal(err)
	}
	return oracle.Build{
		Sources: []string{path}, Env: append([]string{"IGC_ShaderDumpEnable=1"}, environment...),
		Commands: [][]string{{"sh", "-c", `IGC_DumpToCustomDir="$PWD/" exec "$0" "$@"`,
			"ocloc", "compile", "-file", path, "-device", processor, "-options", strings.TrimSpace("-g " + option), "-out_dir", "out"}},
	}.Make(t)
}

// A genCode is one kernel's code: the assembly with the files beside it.
type genCode struct {
	name     string
	assembly *genasm.Assembly
	elf, dbg string
}

// readGenCode reads the kernels of a folder.
func readGenCode(t *testing.T, name, dir string) (list []*genCode) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.asm"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		base := strings.TrimSuffix(path, ".asm")
		a, err := genasm.ReadAssembly(path)
		if err != nil {
			t.Fatal(err)
		}
		c := &genCode{assembly: a, elf: base + ".elf", dbg: base + ".dbg"}
		c.name = name + " " + c.assembly.Kernel
		for _, file := range []string{c.elf, c.dbg} {
			if _, err := os.Stat(file); err != nil {
				t.Fatal(err)
			}
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		t.Fatalf("%s: no assembly", dir)
	}
	return list
}

// genBase is the IP of the first instruction of the code, and genScratch where
// the thread's scratch memory is.
const (
	genBase    = 0x4a0000
	genScratch = 0x7f3200400000
)

// genState is a target of one hardware thread.
type genState struct {
	thread *trace.Thread
	module *target.Module
	stack  []byte
	filled bool // there is memory everywhere: genPattern of each address
}

func (s *genState) Info() trace.Target        { return trace.Target{Kind: trace.Snapshot} }
func (s *genState) Modules() []*target.Module { return []*target.Module{s.module} }
func (s *genState) Threads() []*trace.Thread  { return []*trace.Thread{s.thread} }
func (s *genState) Close() error              { return nil }
func (s *genState) Mapped(a uint64) (mapped, executable bool) {
	_, ok := s.module.Contains(a)
	return ok, ok
}

func (s *genState) ReadMemory(space locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	if outside := address-genScratch >= uint64(len(s.stack)); outside && s.filled && space == locexpr.DefaultSpace {
		for i := range buf {
			buf[i] = genPattern(int(address) + i) //nolint:gosec // any number
		}
		return len(buf), nil
	} else if space != locexpr.DefaultSpace || outside {
		return 0, fmt.Errorf("%#x: %w", address, target.ErrNoMemory)
	}
	n := copy(buf, s.stack[address-genScratch:])
	if n < len(buf) {
		return n, fmt.Errorf("%#x: %w", address+uint64(n), target.ErrNoMemory)
	}
	return n, nil
}

// genCounts are how many things were found as they are, otherwise, and not.
type genCounts struct {
	right, wrong int
	unknown      map[string]int // by cause
}

// A genWalk walks a thread at every instruction that it comes to.
type genWalk struct {
	t       *testing.T
	code    *genCode
	beside  genBeside
	machine *genasm.Thread
	state   *genState
	target  *Target
	seen    map[*genasm.Instruction]bool
	stacks  int
	counts  map[string]*genCounts
	causes  map[string]string // without their numbers
	wrong   []string
}

// genBeside says what the engine is given besides the threads.
type genBeside int

const (
	genFrame  genBeside = iota // the ELF file with the compiler's call frame information
	genStream                  // the vISA debug stream
	genBoth
)

func (b genBeside) String() string {
	return [...]string{"call frame information", "stream", "both"}[b]
}

// newGenWalk is a walk of threads in the code of a kernel.
func newGenWalk(t *testing.T, c *genCode, beside genBeside) *genWalk {
	t.Helper()
	return newGenWalkWith(t, c, beside, Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{visa.New()}}, NoSymbols: true})
}

func newGenWalkWith(t *testing.T, c *genCode, beside genBeside, o Options) *genWalk {
	t.Helper()
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	last := c.assembly.Instructions[len(c.assembly.Instructions)-1]
	m := &target.Module{
		Module: trace.Module{
			Path: c.elf,
			Arch: "visa",
			Segments: []trace.Segment{
				{Section: ".text", Size: last.Offset + last.Size, Start: genBase, Executable: true},
			},
		},
	}
	m.Companion = func(suffix string) (string, []byte, error) {
		if suffix != filepath.Ext(c.dbg) || beside != genBoth {
			return "", nil, fs.ErrNotExist
		}
		data, err := os.ReadFile(c.dbg)
		return c.dbg, data, err
	}
	if beside == genStream {
		data, err := os.ReadFile(c.dbg)
		if err != nil {
			t.Fatal(err)
		}
		m.Path, m.Segments[0].Section = c.dbg, ""
		m.Object, err = object.NewWith(c.dbg, data, code.NewFormats(e.plugins))
		if err != nil {
			t.Fatal(err)
		}
	} else if m.Object, err = object.Open(c.elf); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Object.Close() })
	s := &genState{
		thread: &trace.Thread{
			ID: "1", Arch: "visa", Processor: strings.ToLower(strings.TrimSuffix(c.assembly.Platform, "XT")), Lanes: uint32(c.assembly.Lanes),
		},
		module: m,
	}
	w := &genWalk{
		t: t, code: c, beside: beside, state: s, target: e.Attach(s),
		seen: map[*genasm.Instruction]bool{}, counts: map[string]*genCounts{}, causes: map[string]string{},
	}
	return w
}

// run walks at every instruction of a thread.
func (w *genWalk) run(deepest int) {
	w.t.Helper()
	w.machine = genasm.New(w.code.assembly, genBase, deepest, rand.New(rand.NewPCG(7, 3)))
	w.state.stack = w.machine.Scratch
	if err := w.machine.Run(func() bool {
		w.seen[w.machine.Next()] = true
		if len(w.machine.Calls) > 0 {
			w.walk()
		}
		return true
	}); err != nil {
		w.t.Fatal(err)
	}
}

// count counts a thing that was found to be something, or not found.
func (w *genWalk) count(class string, right bool, unknown string) {
	c := w.counts[class]
	if c == nil {
		c = &genCounts{unknown: map[string]int{}}
		w.counts[class] = c
	}
	switch {
	case unknown != "":
		cause, ok := w.causes[unknown]
		if !ok {
			cause = genCause.ReplaceAllString(unknown, "N")
			w.causes[unknown] = cause
		}
		c.unknown[cause]++
	case right:
		c.right++
	default:
		c.wrong++
	}
}

// genCause are numbers in the text of a cause.
var genCause = regexp.MustCompile(`\b(0x)?[0-9a-f]*[0-9][0-9a-f]*\b`)

// mistake keeps the first mistakes.
func (w *genWalk) mistake(format string, args ...any) {
	if in := w.machine.Next(); len(w.wrong) < 20 {
		w.wrong = append(w.wrong, fmt.Sprintf("%s+%#x, %d calls, %s: ", in.Function, in.Offset, len(w.machine.Calls), strings.TrimSpace(in.Text))+fmt.Sprintf(format, args...))
	}
}

// refresh gives the target the registers that the thread has.
func (w *genWalk) refresh() {
	w.t.Helper()
	m, th := w.machine, w.state.thread
	th.Registers = sdk.Registers{}
	th.Registers.Set(0, littleEndianBytes(m.IP(), 4))
	th.Registers.Set(1, littleEndianBytes(uint64(m.Mask), 4))
	th.Registers.Set(6, littleEndianBytes(genScratch, 8))
	for n := range m.Registers {
		th.Registers.Set(uint32(16+n), m.GRF[n*m.RegisterSize:(n+1)*m.RegisterSize])
	}
	th.Registers.Set(272, m.Address)
	th.Registers.Set(288, m.Flags[:4])
	th.Registers.Set(289, m.Flags[4:])
	if err := w.target.process.Refresh(context.Background(), th); err != nil {
		w.t.Fatal(err)
	}
}

// walk walks the thread as it is, and holds the stack against its calls.
func (w *genWalk) walk() {
	w.t.Helper()
	w.stacks++
	w.refresh()
	m, th := w.machine, w.state.thread
	stack, frames := w.target.process.Activations(context.Background(), th)
	for i := range max(len(stack.Frames), len(m.Calls)+1) {
		switch {
		case i > len(m.Calls):
			w.count("return addresses", false, "")
			w.mistake("frame %d at %#x behind the kernel's", i, stack.Frames[i].PC)
			return
		case i == len(stack.Frames):
			if stack.Stopped.Reason == trace.StopOutermost {
				w.count("return addresses", false, "")
				w.mistake("frame %d is the outermost: %v", i-1, stack.Stopped)
				return
			}
			for range len(m.Calls) - i + 1 {
				w.count("return addresses", false, fmt.Sprint(stack.Stopped))
			}
			return
		case i == 0:
		case stack.Frames[i].PC != m.Calls[len(m.Calls)-i].ReturnIP:
			w.count("return addresses", false, "")
			w.mistake("frame %d is at %#x, expected %#x", i, stack.Frames[i].PC, m.Calls[len(m.Calls)-i].ReturnIP)
			return
		default:
			w.count("return addresses", true, "")
			w.registers(i, frames[i], &m.Calls[len(m.Calls)-i])
		}
		w.frameBase(i, &stack.Frames[i])
	}
	unknown := ""
	if stack.Stopped.Reason != trace.StopOutermost {
		unknown = fmt.Sprint(stack.Stopped)
	}
	w.count("ends", true, unknown)
}

// frameBase holds the CFA against the stack pointer that the function was called
// with, which is its frame pointer.
func (w *genWalk) frameBase(i int, f *trace.Frame) {
	m := w.machine
	sp, ok := m.StackPointer()
	if i == len(m.Calls) || !ok || !m.Calls[len(m.Calls)-1-i].Instruction.StackCall() {
		return
	}
	if !f.HasCFA {
		w.count("CFAs", false, "no CFA")
		return
	}
	want := uint64(binary.LittleEndian.Uint32(m.Calls[len(m.Calls)-1-i].GRF[sp.First:])) * m.PointerUnit()
	if f.CFASpace == locexpr.DefaultSpace {
		want += genScratch
	}
	if w.count("CFAs", f.CFA == want, ""); f.CFA != want {
		w.mistake("frame %d has the CFA %#x, expected %#x", i, f.CFA, want)
	}
}

// genDescriptor is how many bytes of the register of the frame pointer are saved:
// the rest of a larger one has no meaning.
const genDescriptor = 32

// registers holds the registers of a frame against what they were when it
// called.
func (w *genWalk) registers(i int, f walk.Activation, call *genasm.Call) {
	m := w.machine
	check := func(class, name string, number uint64, want []byte) {
		l, err := f.Location(context.Background(), number)
		if err == nil {
			got := make([]byte, len(want))
			if err = l.Read(context.Background(), f.Context(), got, uint64(len(got))*8); err == nil {
				if w.count(class, bytes.Equal(got, want), ""); !bytes.Equal(got, want) {
					w.mistake("%s of frame %d is\n\t%x, expected\n\t%x", name, i, got, want)
				}
				return
			}
			if w.checkParts(class, name, f, l, want) {
				return
			}
		}
		w.count(class, false, err.Error())
	}
	kept := m.Kept()
	fp, _ := m.FramePointer()
	pointers := fp.First / m.RegisterSize
	for n := range m.Registers {
		class := "other registers"
		switch first := n * m.RegisterSize; {
		case n == pointers:
			class = "registers of the frame pointer"
		case first >= kept[0].First && first < kept[0].First+kept[0].Count:
			class = "callee-saved registers"
		}
		if !call.Instruction.StackCall() {
			class = "registers of subroutines' callers"
		}
		// Those that are not kept are looked at by turns: hardly any is known.
		if class != "callee-saved registers" && n != pointers && (w.stacks+n)%8 != 0 {
			continue
		}
		want := call.GRF[n*m.RegisterSize : (n+1)*m.RegisterSize]
		if n == pointers {
			want = want[:genDescriptor]
		}
		check(class, fmt.Sprintf("r%d", n), uint64(16+n), want)
	}
	check("EMask", "EMask", 1, littleEndianBytes(uint64(call.Mask), 4))
	check("ScratchBase", "ScratchBase", 6, littleEndianBytes(genScratch, 8))
	check("flags and address", "a0", 272, call.Address)
	check("flags and address", "f0", 288, call.Flags[:4])
	check("flags and address", "f1", 289, call.Flags[4:])
}

// genUnknown are what may be unknown: by what the engine is given, the class, the
// code, and the cause. Everything else must be known.
var genUnknown = []struct{ beside, class, code, cause string }{
	// Functions change these, and nothing says where they were.
	{"", "flags and address", "", "location is undefined"},
	{"", "EMask", "", "location is undefined"},
	{"", "other registers", "", "location is undefined"},
	{"", "registers of subroutines' callers", "", "location is undefined"},
	// Subroutines have no call frame information.
	{"call frame information", "return addresses", "-k-O2 kern", "no-row"},
	// It has saves at offsets that no frame has, and does not say how large it is.
	{"call frame information", "callee-saved registers", "pvc-rec-O2 reck", "location is undefined"},
	// A stream does not say where a frame is taken down, and not all of the code of
	// a subroutine.
	{"stream", "return addresses", "", "no-row"},
	{"stream", "CFAs", "", "no CFA"},
	{"stream", "ends", "-k-O2 kern", "no-row"},
}

// mayBeUnknown reports whether something may be unknown for a cause.
func (w *genWalk) mayBeUnknown(class, cause string) bool {
	for _, u := range genUnknown {
		if (u.beside == "" || u.beside == w.beside.String()) && u.class == class &&
			strings.HasSuffix(w.code.name, u.code) && strings.Contains(cause, u.cause) {
			return true
		}
	}
	return false
}

// checkParts checks a register of which only some is known; false where none is.
func (w *genWalk) checkParts(class, name string, f walk.Activation, l locexpr.Location, want []byte) (some bool) {
	for at := 0; at+4 <= len(want); at += 4 {
		part, err := l.Offset(int64(at) * 8)
		got := make([]byte, 4)
		if err != nil || part.Read(context.Background(), f.Context(), got, 32) != nil {
			continue
		}
		some = true
		if !bytes.Equal(got, want[at:at+4]) {
			w.count(class, false, "")
			w.mistake("byte %d of %s of frame %d is %x, expected %x", at, name, f.Index(), got, want[at:at+4])
			return true
		}
	}
	if some {
		w.count(class+", in part", true, "")
	}
	return some
}

// log prints the findings.
func (w *genWalk) log() {
	w.t.Helper()
	w.t.Logf("%s, %s: %d instructions, %d stacks", w.code.name, w.beside, len(w.seen), w.stacks)
	for _, p := range w.target.ModuleInfo(&w.state.module.Module).Problems {
		w.t.Logf("  %s", p)
	}
	for _, class := range slices.Sorted(maps.Keys(w.counts)) {
		c := w.counts[class]
		unknown := 0
		for _, n := range c.unknown {
			unknown += n
		}
		w.t.Logf("  %s: %d right, %d wrong, %d unknown", class, c.right, c.wrong, unknown)
		for _, cause := range slices.Sorted(maps.Keys(c.unknown)) {
			w.t.Logf("    %d: %s", c.unknown[cause], cause)
			if !w.mayBeUnknown(class, cause) {
				w.t.Errorf("%s are not known: %s", class, cause)
			}
		}
	}
	for _, s := range w.wrong {
		w.t.Error(s)
	}
}

// everySeen says that a stack was walked at every instruction of what is called.
func (w *genWalk) everySeen() {
	w.t.Helper()
	for _, in := range w.code.assembly.Instructions {
		if in.Function != w.code.assembly.Kernel && !w.seen[in] {
			w.t.Errorf("no thread came to line %d: %s", in.Line, in.Text)
		}
	}
}

// walkGen walks threads at every instruction of a kernel and of what it calls.
func walkGen(t *testing.T, c *genCode, beside genBeside) {
	t.Helper()
	t.Run(fmt.Sprint(c.name, ", ", beside), func(t *testing.T) {
		w := newGenWalk(t, c, beside)
		w.run(genDepth)
		w.everySeen()
		w.log()
	})
}

// genDepth is how deep the calls of threads are: so deep that two functions that
// call each other come to all of their code.
const genDepth = 3

func TestGenThreadsAtEveryInstruction(t *testing.T) {
	for _, processor := range genTargets {
		for _, source := range genSources {
			for _, level := range genLevels {
				if testing.Short() && (level.option != "" || processor != "pvc") {
					continue // the race detector finds nothing else there
				}
				name := processor + "-" + source + "-" + level.name
				for _, c := range readGenCode(t, name, compileGen(t, processor, source, level.option)) {
					for _, beside := range []genBeside{genFrame, genStream, genBoth} {
						walkGen(t, c, beside)
					}
				}
			}
		}
	}
}

// TestGenThreadsByLaterCallFrameInformation is about the second of the dialects
// of call frame information, which the compiler writes when it is told to.
func TestGenThreadsByLaterCallFrameInformation(t *testing.T) {
	for _, processor := range genTargets {
		if testing.Short() && processor != "pvc" {
			continue
		}
		dir := compileGen(t, processor, "rec", "", "IGC_EnableGTLocationDebugging=1")
		for _, c := range readGenCode(t, processor+"-rec-O2", dir) {
			walkGen(t, c, genFrame)
			walkGen(t, c, genBoth)
		}
	}
}

// TestGenThreadsOfTheCorpus is about code that was compiled before.
func TestGenThreadsOfTheCorpus(t *testing.T) {
	files := oracle.Beside(t, "corpus/visa/*/*.asm")
	if testing.Short() {
		files = files[:1]
	}
	kernels := map[string]bool{}
	for _, path := range files {
		kernels[filepath.Dir(path)] = true
	}
	for _, dir := range slices.Sorted(maps.Keys(kernels)) {
		for _, c := range readGenCode(t, filepath.Base(dir), dir) {
			walkGen(t, c, genBoth)
		}
	}
}
