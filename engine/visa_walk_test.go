package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
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

// genSources are what is compiled: testdata/visa/NAME.cl.
var genSources = []string{"rec", "k"}

// compileGen compiles a source, and answers the folder of what the compiler dumps
// of its kernels.
func compileGen(t *testing.T, processor, source, option string) string {
	t.Helper()
	if _, err := exec.LookPath("ocloc"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("ocloc is missing")
		}
		t.Skip("ocloc is missing")
	}
	path, err := filepath.Abs(filepath.Join("testdata", "visa", source+".cl"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command("ocloc", "compile", "-file", path, "-device", processor, "-options", strings.TrimSpace("-g "+option), "-out_dir", filepath.Join(dir, "out"))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "IGC_ShaderDumpEnable=1", "IGC_DumpToCustomDir="+dir+"/")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return dir
}

// A genCode is one kernel's code: the assembly with the files beside it.
type genCode struct {
	name     string
	assembly *genAssembly
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
		c := &genCode{assembly: readGenAssembly(t, path), elf: base + ".elf", dbg: base + ".dbg"}
		c.name = name + " " + c.assembly.kernel
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
	thread *target.Thread
	module *target.Module
	stack  []byte
}

func (s *genState) Info() target.Info         { return target.Info{Kind: target.Snapshot} }
func (s *genState) Modules() []*target.Module { return []*target.Module{s.module} }
func (s *genState) Threads() []*target.Thread { return []*target.Thread{s.thread} }
func (s *genState) Close() error              { return nil }
func (s *genState) Mapped(a uint64) (mapped, executable bool) {
	_, ok := s.module.Contains(a)
	return ok, ok
}

func (s *genState) ReadMemory(space locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	if space != locexpr.DefaultSpace || address-genScratch >= uint64(len(s.stack)) {
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
	machine *genMachine
	state   *genState
	target  *Target
	seen    map[int]bool // instructions
	stacks  int
	counts  map[string]*genCounts
	wrong   []string
}

// newGenWalk is a walk of threads in the code of a file.
func newGenWalk(t *testing.T, c *genCode, o *object.Object) *genWalk {
	t.Helper()
	e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{visa.New()}}, NoSymbols: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	last := c.assembly.instructions[len(c.assembly.instructions)-1]
	m := &target.Module{Path: o.Path(), Arch: "visa", Object: o, Segments: []target.Segment{
		{Section: ".text", Size: last.offset + last.size, Start: genBase, Executable: true},
	}}
	processor := strings.ToLower(strings.TrimSuffix(c.assembly.platform, "XT"))
	s := &genState{
		thread: &target.Thread{ID: "1", Arch: "visa", Processor: processor, Lanes: uint32(c.assembly.width)},
		module: m,
	}
	w := &genWalk{t: t, code: c, state: s, target: e.Attach(s), seen: map[int]bool{}, counts: map[string]*genCounts{}}
	w.target.bound.Do(func() { w.target.bindAll(context.Background()) })
	return w
}

// run walks at every instruction of a thread.
func (w *genWalk) run(deepest int, seed uint64) {
	w.t.Helper()
	w.machine = newGenMachine(w.code.assembly, genBase, deepest, rand.New(rand.NewPCG(7, seed)))
	w.state.stack = w.machine.stack
	if err := w.machine.run(func() {
		w.seen[w.machine.next] = true
		if len(w.machine.calls) > 0 {
			w.walk()
		}
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
		c.unknown[genCause.ReplaceAllString(unknown, "N")]++
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
	if in := w.machine.in(); len(w.wrong) < 20 {
		w.wrong = append(w.wrong, fmt.Sprintf("%s+%#x, %d calls, %s: ", in.function, in.offset, len(w.machine.calls), strings.TrimSpace(in.text))+fmt.Sprintf(format, args...))
	}
}

// walk walks the thread as it is, and holds the stack against its calls.
func (w *genWalk) walk() {
	w.t.Helper()
	w.stacks++
	m := w.machine
	th := w.state.thread
	th.Registers = sdk.Registers{}
	th.Registers.Set(0, littleEndianBytes(m.ip(m.in()), 4))
	th.Registers.Set(1, littleEndianBytes(uint64(m.mask), 4))
	th.Registers.Set(6, littleEndianBytes(genScratch, 8))
	for n := range m.registers {
		th.Registers.Set(uint32(16+n), m.grf[n*m.size:(n+1)*m.size])
	}
	th.Registers.Set(272, m.address[:])
	th.Registers.Set(288, m.flags[:4])
	th.Registers.Set(289, m.flags[4:])
	s := w.target.threads[th]
	w.target.bind(context.Background(), s.arch, s)
	if s.failure != nil || s.binding.Problem != "" {
		w.t.Fatal(s.failure, s.binding)
	}
	walk := newWalker(w.target, s)
	walk.walk(context.Background())

	stack := walk.stack
	for i := range max(len(stack.Frames), len(m.calls)+1) {
		switch {
		case i > len(m.calls):
			w.count("return addresses", false, "")
			w.mistake("frame %d at %#x behind the kernel's", i, stack.Frames[i].PC)
			return
		case i == len(stack.Frames):
			if stack.Stopped.Reason == StopOutermost {
				w.count("return addresses", false, "")
				w.mistake("frame %d is the outermost: %v", i-1, stack.Stopped)
				return
			}
			for range len(m.calls) - i + 1 {
				w.count("return addresses", false, fmt.Sprint(stack.Stopped))
			}
			return
		case i == 0:
		case stack.Frames[i].PC != m.calls[len(m.calls)-i].ip:
			w.count("return addresses", false, "")
			w.mistake("frame %d is at %#x, expected %#x", i, stack.Frames[i].PC, m.calls[len(m.calls)-i].ip)
			return
		default:
			w.count("return addresses", true, "")
			w.registers(i, walk.frames[i], &m.calls[len(m.calls)-i])
		}
		w.frameBase(i, &stack.Frames[i])
	}
	unknown := ""
	if stack.Stopped.Reason != StopOutermost {
		unknown = fmt.Sprint(stack.Stopped)
	}
	w.count("ends", true, unknown)
}

// frameBase holds the CFA against the stack pointer that the function was called
// with, which is its frame pointer.
func (w *genWalk) frameBase(i int, f *Frame) {
	m := w.machine
	sp, ok := m.declared["be_sp"]
	if i == len(m.calls) || !ok || !m.calls[len(m.calls)-1-i].call.stackCalls() {
		return
	}
	if !f.HasCFA {
		w.count("CFAs", false, "no CFA")
		return
	}
	want := uint64(binary.LittleEndian.Uint32(m.calls[len(m.calls)-1-i].registers[sp.first:])) * m.unit()
	if f.CFASpace == locexpr.DefaultSpace {
		want += genScratch
	}
	if w.count("CFAs", f.CFA == want, ""); f.CFA != want {
		w.mistake("frame %d has the CFA %#x, expected %#x", i, f.CFA, want)
	}
}

// registers holds the registers of a frame against what they were when it
// called.
func (w *genWalk) registers(i int, f *frame, call *genCall) {
	m := w.machine
	check := func(class, name string, number uint64, want []byte) {
		l, err := f.location(number)
		if err == nil {
			got := make([]byte, len(want))
			if err = l.Read(frameContext{frame: f}, got, uint64(len(got))*8); err == nil {
				if w.count(class, bytes.Equal(got, want), ""); !bytes.Equal(got, want) {
					w.mistake("%s of frame %d is\n\t%x, expected\n\t%x", name, i, got, want)
				}
				return
			}
		}
		w.count(class, false, err.Error())
	}
	kept := m.kept()
	pointers := m.declared["be_fp"].first / m.size
	for n := range m.registers {
		class := "other registers"
		switch first := n * m.size; {
		case n == pointers:
			class = "registers of the frame pointer"
		case first >= kept[0].first && first < kept[0].first+kept[0].count:
			class = "callee-saved registers"
		}
		if !call.call.stackCalls() {
			class = "registers of subroutines' callers"
		}
		check(class, fmt.Sprintf("r%d", n), uint64(16+n), call.registers[n*m.size:(n+1)*m.size])
	}
	check("EMask", "EMask", 1, littleEndianBytes(uint64(call.mask), 4))
	check("ScratchBase", "ScratchBase", 6, littleEndianBytes(genScratch, 8))
	check("flags and address", "a0", 272, call.address)
	check("flags and address", "f0", 288, call.flags[:4])
	check("flags and address", "f1", 289, call.flags[4:])
}

// log says what was found.
func (w *genWalk) log() {
	w.t.Helper()
	w.t.Logf("%s: %d instructions, %d stacks", w.code.name, len(w.seen), w.stacks)
	for _, class := range slices.Sorted(maps.Keys(w.counts)) {
		c := w.counts[class]
		unknown := 0
		for _, n := range c.unknown {
			unknown += n
		}
		w.t.Logf("  %s: %d right, %d wrong, %d unknown", class, c.right, c.wrong, unknown)
		for _, cause := range slices.Sorted(maps.Keys(c.unknown)) {
			w.t.Logf("    %d: %s", c.unknown[cause], cause)
		}
	}
	for _, s := range w.wrong {
		w.t.Error(s)
	}
}

func TestGenThreadsAtEveryInstruction(t *testing.T) {
	for _, processor := range genTargets {
		for _, source := range genSources {
			for _, level := range genLevels {
				name := processor + "-" + source + "-" + level.name
				for _, c := range readGenCode(t, name, compileGen(t, processor, source, level.option)) {
					t.Run(c.name, func(t *testing.T) {
						o, err := object.Open(c.elf)
						if err != nil {
							t.Fatal(err)
						}
						defer o.Close()
						w := newGenWalk(t, c, o)
						for deepest := range 5 {
							w.run(deepest+1, uint64(deepest))
						}
						w.log()
					})
				}
			}
		}
	}
}
