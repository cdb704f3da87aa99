// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

const (
	chainStart = 0x401000 // of the code
	chainSize  = 16       // of each function, and of its frame
	chainStack = 0x7fff0000
	looseStart = 0x10000000 // code in no module
	looseSize  = 1 << 20
)

var x86 = x86_64.Description()

// reading is an architecture whose functions have one row each. It counts what it is asked.
type reading struct {
	sdk.Architecture
	isWhole   bool             // an answer serves all PCs of a function
	refused   map[string]bool  // functions whose answers are nonsense
	failing   map[string]error // functions about which calls fail
	calls     int
	functions map[string]int // how often each was asked about
	most      int            // functions of a call
}

func (a *reading) FrameRules(_ context.Context, _ sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	a.calls++
	a.most = max(a.most, len(req.Functions))
	answer := &sdk.FrameRulesAnswer{}
	for _, f := range req.Functions {
		if a.functions == nil {
			a.functions = map[string]int{}
		}
		a.functions[f.Name]++
		if err := a.failing[f.Name]; err != nil {
			return nil, err
		}
		row := cfi.Row{
			Start: f.Start, End: f.Start + uint64(len(f.Code)), ReturnAddress: uint64(x86.ReturnAddress),
			CFA:   cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(x86.SP), Offset: chainSize},
			Rules: []cfi.RegisterRule{{Column: uint64(x86.ReturnAddress), Rule: cfi.Rule{Kind: cfi.Offset, Offset: -8}}},
		}
		if a.refused[f.Name] {
			row.End++ // outside the code
		}
		answer.Functions = append(answer.Functions, sdk.FrameRules{Rows: []cfi.Row{row}, Complete: a.isWhole && f.Bounded})
	}
	return answer, nil
}

// chain is a process with functions without call frame information, each of which called the
// next; the thread is in the last. Its threads may be in code of no module.
type chain struct {
	hashed
	modules []*target.Module
	threads []*trace.Thread
	stack   []byte
}

func (c *chain) Modules() []*target.Module { return c.modules }
func (c *chain) Threads() []*trace.Thread  { return c.threads }

func (c *chain) Mapped(address uint64) (mapped, executable bool) {
	isCode := address-looseStart < looseSize
	for _, m := range c.modules {
		_, ok := m.Contains(address)
		isCode = isCode || ok
	}
	return isCode || address-chainStack < uint64(len(c.stack)), isCode
}

func (c *chain) ReadMemory(_ locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	n := 0
	if offset := address - chainStack; offset < uint64(len(c.stack)) {
		n = copy(buf, c.stack[offset:])
	} else if offset := address - looseStart; offset < looseSize {
		n = min(len(buf), int(looseSize-offset))
		clear(buf[:n])
	}
	if n < len(buf) {
		return n, fmt.Errorf("%#x: %w", address+uint64(n), target.ErrNoMemory)
	}
	return n, nil
}

// add adds a thread at a PC, whose stack pointer is at an offset of the stack.
func (c *chain) add(pc, offset uint64) {
	th := &trace.Thread{Handle: uint64(len(c.threads)), ID: fmt.Sprint(len(c.threads)), Arch: "x86_64"}
	th.Registers.Set(x86.SP, binary.LittleEndian.AppendUint64(nil, chainStack+offset))
	th.Registers.Set(x86.PC, binary.LittleEndian.AppendUint64(nil, pc))
	c.threads = append(c.threads, th)
}

// newChain makes a chain of n functions, f0 to f(n-1), of which the last is the innermost.
func newChain(t testing.TB, n int) *chain {
	t.Helper()
	c := &chain{}
	file := chainFile(t, n)
	m := &target.Module{Module: trace.Module{Path: "/chain", Arch: "x86_64", BuildID: file.BuildID()}, Object: file}
	for _, s := range file.Segments() {
		m.Segments = append(m.Segments, trace.Segment{Address: s.Address, Size: s.MemSize, Start: s.Address, Executable: s.Executable()})
	}
	c.modules = []*target.Module{m}
	for i := n - 2; i >= 0; i-- { // the frame of f(i+1): a word, and the return address into f(i)
		c.stack = binary.LittleEndian.AppendUint64(c.stack, uint64(i))
		c.stack = binary.LittleEndian.AppendUint64(c.stack, chainStart+uint64(i)*chainSize+5)
	}
	c.stack = append(c.stack, make([]byte, 64)...)
	c.add(chainStart+uint64(n-1)*chainSize+2, 0)
	return c
}

// chainFile makes an ELF file with n functions that have symbols and no call frame information.
func chainFile(t testing.TB, n int) *object.Object {
	t.Helper()
	text := bytes.Repeat([]byte{0x90}, n*chainSize)
	names := []byte{0}
	symbols := make([]byte, elf.Sym64Size)
	for i := range n {
		var b bytes.Buffer
		_ = binary.Write(&b, binary.LittleEndian, elf.Sym64{
			Name: uint32(len(names)), Info: uint8(elf.STB_GLOBAL)<<4 | uint8(elf.STT_FUNC), Shndx: 1,
			Value: chainStart + uint64(i)*chainSize, Size: chainSize,
		})
		symbols = append(symbols, b.Bytes()...)
		names = append(names, fmt.Sprintf("f%d\x00", i)...)
	}
	sections := []byte("\x00.text\x00.symtab\x00.strtab\x00.shstrtab\x00")
	at := uint64(0x1000)
	place := func(b []byte) (offset, size uint64) {
		offset, size = at, uint64(len(b))
		at += (size + 7) &^ 7
		return offset, size
	}
	var headers []elf.Section64
	add := func(name string, h elf.Section64, b []byte) {
		h.Name = uint32(bytes.Index(sections, []byte(name+"\x00")))
		h.Off, h.Size = place(b)
		headers = append(headers, h)
	}
	headers = append(headers, elf.Section64{})
	add(".text", elf.Section64{Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR), Addr: chainStart, Addralign: 16}, text)
	add(".symtab", elf.Section64{Type: uint32(elf.SHT_SYMTAB), Link: 3, Info: 1, Entsize: elf.Sym64Size, Addralign: 8}, symbols)
	add(".strtab", elf.Section64{Type: uint32(elf.SHT_STRTAB), Addralign: 1}, names)
	add(".shstrtab", elf.Section64{Type: uint32(elf.SHT_STRTAB), Addralign: 1}, sections)
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Phoff: 64, Shoff: at, Ehsize: 64, Phentsize: 56, Phnum: 1, Shentsize: 64, Shnum: uint16(len(headers)), Shstrndx: uint16(len(headers) - 1),
	}
	load := elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Off: 0x1000, Vaddr: chainStart, Paddr: chainStart, Filesz: uint64(len(text)), Memsz: uint64(len(text)), Align: 0x1000}
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, header)
	_ = binary.Write(&b, binary.LittleEndian, load)
	for i, part := range [][]byte{text, symbols, names, sections} {
		b.Write(make([]byte, int(headers[i+1].Off)-b.Len()))
		b.Write(part)
	}
	b.Write(make([]byte, int(at)-b.Len()))
	_ = binary.Write(&b, binary.LittleEndian, headers)
	o, err := object.New("chain", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	return o
}

// walkChain walks the first thread.
func walkChain(t testing.TB, arch sdk.Architecture, c *chain) *trace.Stack {
	t.Helper()
	return newProcess(t, arch, Options{MaxFrames: 1 << 20}, c).Walk(t.Context(), c.threads[0])
}

// aloneStack is the stack of a process that is asked about function by function.
func aloneStack(t *testing.T, arch sdk.Architecture, c *chain) *trace.Stack {
	t.Helper()
	p := newProcess(t, arch, Options{MaxFrames: 1 << 20}, &chain{})
	return p.shared.Alone(p.shared.options).NewProcess(c, object.Finder{}).Walk(t.Context(), c.threads[0])
}

// TestFunctionsWithoutRowsAreAskedAboutTogether walks a stack of functions without call frame
// information: few calls are made, each function is asked about once, and the stack is the one
// that single questions lead to.
func TestFunctionsWithoutRowsAreAskedAboutTogether(t *testing.T) {
	const n = 1500
	for _, isWhole := range []bool{false, true} {
		arch := &reading{Architecture: x86_64.New(), isWhole: isWhole}
		stack := walkChain(t, arch, newChain(t, n))
		if len(stack.Frames) != n {
			t.Fatalf("%d frames, expected %d: %+v", len(stack.Frames), n, stack.Stopped)
		}
		if arch.calls > 20 || arch.most < 200 {
			t.Errorf("whole %v: %d calls about %d functions at most, expected 20 about 256", isWhole, arch.calls, arch.most)
		}
		for name, times := range arch.functions {
			if times != 1 {
				t.Fatalf("whole %v: %s was asked about %d times", isWhole, name, times)
			}
		}
		alone := &reading{Architecture: x86_64.New(), isWhole: isWhole}
		if diff := cmp.Diff(pcsOf(aloneStack(t, alone, newChain(t, n))), pcsOf(stack)); diff != "" {
			t.Errorf("whole %v: asked alone (-), together (+):\n%s", isWhole, diff)
		}
		if alone.calls != n || alone.most != 1 {
			t.Errorf("whole %v: what is recorded led to %d calls about %d functions at most, expected %d about one", isWhole, alone.calls, alone.most, n)
		}
	}
}

func pcsOf(s *trace.Stack) (pcs []string) {
	for _, f := range s.Frames {
		pcs = append(pcs, fmt.Sprintf("%#x %s %#x", f.PC, f.FoundBy, f.CFA))
	}
	return append(pcs, fmt.Sprintf("%s: %s", s.Stopped.Reason, s.Stopped.Detail))
}

// TestFewFunctionsAreAskedAboutAlone has stacks with one function and with three without call
// frame information, and words of others above that no frame is of.
func TestFewFunctionsAreAskedAboutAlone(t *testing.T) {
	for n, most := range map[int]int{1: 1, 3: 4} {
		c := newChain(t, 1000)
		stale := c.stack
		c.stack = append(slices.Clone(stale[len(stale)-64-(n-1)*chainSize:][:(n-1)*chainSize]), make([]byte, 64)...)
		for i := range 100 {
			c.stack = binary.LittleEndian.AppendUint64(c.stack, chainStart+uint64(i+500)*chainSize+5)
		}
		c.threads = nil
		c.add(chainStart+uint64(n-1)*chainSize+2, 0)
		arch := &reading{Architecture: x86_64.New()}
		stack := walkChain(t, arch, c)
		if len(stack.Frames) != n {
			t.Fatalf("%d frames, expected %d: %+v", len(stack.Frames), n, stack.Stopped)
		}
		if len(arch.functions) > most {
			t.Errorf("%d functions were asked about for a stack of %d, expected %d at most", len(arch.functions), n, most)
		}
	}
}

// TestARefusedFunctionCostsNoOther has functions about which a plugin answers nonsense, or with an
// error: only the frames of these lack their rows, as if each function had been asked about alone.
func TestARefusedFunctionCostsNoOther(t *testing.T) {
	const n = 600
	for what, spoil := range map[string]func(*reading){
		"nonsense": func(a *reading) { a.refused = map[string]bool{"f300": true} },
		"an error": func(a *reading) { a.failing = map[string]error{"f300": errors.New("no")} },
	} {
		together, alone := &reading{Architecture: x86_64.New()}, &reading{Architecture: x86_64.New()}
		spoil(together)
		spoil(alone)
		c := newChain(t, n)
		for i := range 100 { // other threads are further out
			c.add(chainStart+uint64(200+i)*chainSize+2, uint64(n-201-i)*chainSize)
		}
		p := newProcess(t, together, Options{MaxFrames: 1 << 20}, c)
		single := newProcess(t, alone, Options{MaxFrames: 1 << 20}, &chain{})
		q := single.shared.Alone(single.shared.options).NewProcess(c, object.Finder{})
		for _, th := range c.threads {
			if diff := cmp.Diff(pcsOf(q.Walk(t.Context(), th)), pcsOf(p.Walk(t.Context(), th))); diff != "" {
				t.Fatalf("%s: thread %s alone (-), together (+):\n%s", what, th.ID, diff)
			}
		}
		if together.calls > 100 {
			t.Errorf("%s: %d calls for %d functions", what, together.calls, n)
		}
	}
}

// TestAPluginThatIsLateIsAskedForLess has a function that no answer in time is had about: the
// function that is needed is asked about alone, and later calls are small.
func TestAPluginThatIsLateIsAskedForLess(t *testing.T) {
	const n = 600
	arch := &reading{Architecture: x86_64.New(), failing: map[string]error{"f300": fmt.Errorf("too late: %w", context.DeadlineExceeded)}}
	c := newChain(t, n)
	stack := walkChain(t, arch, c)
	if want := n - 300; len(stack.Frames) != want || stack.Stopped.Reason != trace.StopPluginFailed {
		t.Errorf("%d frames, stopped %+v, expected %d up to the function that is late", len(stack.Frames), stack.Stopped, want)
	}
	if got := arch.functions["f300"]; got > 3 {
		t.Errorf("it was late %d times, expected 3 at most", got)
	}
}

// TestCodeInNoModuleIsAskedAboutOnce has threads at one place of code in no module, and each at
// its own.
func TestCodeInNoModuleIsAskedAboutOnce(t *testing.T) {
	const n = 400
	for _, tt := range []struct {
		what        string
		step        uint64
		calls, asks int
	}{
		{"one place", 0, 1, 1},
		{"places of their own", 16, n / 4, n},
	} {
		arch := &reading{Architecture: x86_64.New()}
		c := &chain{stack: make([]byte, 64)}
		for i := range uint64(n) {
			c.add(looseStart+0x2000+i*tt.step, 0)
		}
		p := newProcess(t, arch, Options{MaxFrames: 64}, c)
		for s := range p.Stacks(t.Context()) {
			if len(s.Frames) != 1 {
				t.Fatalf("%s: thread %s has %d frames, stopped %+v", tt.what, s.Thread.ID, len(s.Frames), s.Stopped)
			}
		}
		if arch.calls > tt.calls || arch.functions[""] != tt.asks {
			t.Errorf("%s: %d calls about %d places, expected %d about %d", tt.what, arch.calls, arch.functions[""], tt.calls, tt.asks)
		}
		p.SetModules(nil)
		p.Walk(t.Context(), c.threads[0])
		if arch.functions[""] == tt.asks {
			t.Errorf("%s: the code is not asked about again after other modules were loaded", tt.what)
		}
	}
}

// badThreads is an architecture about some of whose threads calls fail.
type badThreads struct {
	sdk.Architecture
	isBad func(batch []sdk.ThreadState) error
	calls int
}

func (a *badThreads) BindThreads(ctx context.Context, e sdk.Engine, req *sdk.BindThreadsRequest) (*sdk.BindThreadsAnswer, error) {
	a.calls++
	if err := a.isBad(req.Threads); err != nil {
		return nil, err
	}
	return a.Architecture.BindThreads(ctx, e, req)
}

// TestABadThreadCostsNoOther has one thread about which the plugin answers with an error, and a
// plugin that is late with many threads: the others are bound in few calls.
func TestABadThreadCostsNoOther(t *testing.T) {
	const n = 3000
	late := fmt.Errorf("too late: %w", context.DeadlineExceeded)
	for _, tt := range []struct {
		what  string
		isBad func([]sdk.ThreadState) error
		bad   int // threads without a binding
		calls int
	}{
		{"one with an error", func(batch []sdk.ThreadState) error {
			if slices.ContainsFunc(batch, func(s sdk.ThreadState) bool { return s.Thread == 1234 }) {
				return errors.New("no")
			}
			return nil
		}, 1, 40},
		{"late with many", func(batch []sdk.ThreadState) error {
			if len(batch) > maxSlowlyBound {
				return late
			}
			return nil
		}, 0, 1 + n/maxSlowlyBound + 1},
		{"always late", func([]sdk.ThreadState) error { return late }, n, 2},
	} {
		arch := &badThreads{Architecture: x86_64.New(), isBad: tt.isBad}
		c := &chain{}
		for i := range uint64(n) {
			c.add(i, 0)
		}
		p := newProcess(t, arch, Options{MaxFrames: 64}, c)
		bad := 0
		for _, th := range c.threads {
			if s := p.stateOf(t.Context(), th); s.binding == nil {
				bad++
			}
		}
		if bad != tt.bad || arch.calls > tt.calls {
			t.Errorf("%s: %d threads are not bound after %d calls, expected %d after %d at most", tt.what, bad, arch.calls, tt.bad, tt.calls)
		}
	}
}
