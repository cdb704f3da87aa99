// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/arch/x86/x86asm"

	"github.com/unwindd/unwindd/engine/internal/macho"
	"github.com/unwindd/unwindd/engine/internal/target/machocore/machocoretest"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/aarch64"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// macMachine is a processor of macOS: how its code moves the registers of frames.
type macMachine struct {
	arch   string
	number uint32
	step   func(s *macState, code []byte) (size int)
	isCall func(code []byte, pc uint64) (target uint64, size int)
	enter  func(s *macState, m *macStack, returns uint64) // after a call
	states func(s *macState) []byte
	signed uint64 // what return addresses have above their 47 bits
	isEnd  func(code []byte) bool
}

// macState has the registers of a frame.
type macState struct {
	pc, sp, fp, lr uint64
	stack          *macStack // of pushes and pops
	isLeaving      bool      // an epilogue has begun
}

// macStack is the memory of a stack, which grows down from its end.
type macStack struct {
	start uint64
	data  []byte
}

func (m *macStack) put(address, value uint64) {
	binary.LittleEndian.PutUint64(m.data[address-m.start:], value)
}

func (m *macStack) get(address uint64) uint64 {
	return binary.LittleEndian.Uint64(m.data[address-m.start:])
}

// macMachines are the processors, and one with signed return addresses.
var macMachines = map[string]*macMachine{
	"arm64":  {arch: "arm64", number: macho.MachineARM64, step: armStep, isCall: armCall, enter: armEnter, states: armStates, isEnd: armIsReturn},
	"signed": {arch: "arm64", number: macho.MachineARM64, step: armStep, isCall: armCall, enter: armEnter, states: armStates, isEnd: armIsReturn, signed: 0x3a5b << 47 &^ (1 << 55)},
	"x86_64": {arch: "x86_64", number: macho.MachineX86_64, step: x86Step, isCall: x86Call, enter: x86Enter, states: x86States, isEnd: x86IsReturn},
}

// macFunction is a function of the program.
type macFunction struct {
	name       string
	start, end uint64 // in memory
	code       []byte
}

// TestMacOSCoresAtEachInstruction makes stacks by hand, of a chain of functions of a program by Clang, with a
// thread at each instruction of each: in prologues, bodies and epilogues. Return addresses are the ones that
// were put there, and the ones that lldb finds.
func TestMacOSCoresAtEachInstruction(t *testing.T) {
	oracle.Tools(t, "clang-22", "ld64.lld-22", "lldb-22")
	source, err := filepath.Abs("testdata/macos")
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range macMachines {
		for _, level := range []string{"-O0", "-O2"} {
			dir := oracle.Build{Sources: []string{source}, Commands: [][]string{
				{"clang-22", "-target", m.arch + "-apple-macos13", "-g", level, "-fno-stack-protector", "-c", filepath.Join(source, "chain.c"), "-o", "chain.o"},
				{"ld64.lld-22", "-arch", m.arch, "-platform_version", "macos", "13.0", "13.0", "-undefined", "dynamic_lookup", "-o", "chain", "chain.o"},
			}}.Make(t)
			for _, from := range []string{"file", "memory"} {
				t.Run(name+level+" "+from, func(t *testing.T) { checkMacOSCore(t, m, filepath.Join(dir, "chain"), from) })
			}
		}
	}
}

const macSlide = 0x3210000

var updateCores = flag.Bool("update", false, "write testdata/macos/*.core.gz")

// keep writes a core of a program at -O2 into testdata, packed.
func keep(t *testing.T, name string, core []byte) {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(core)
	if err := errors.Join(err, w.Close(), os.WriteFile(filepath.Join("testdata/macos", name+".core.gz"), packed.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestMacOSCoresWithoutTools walks cores of TestMacOSCoresAtEachInstruction, which writes them with -update: each
// thread has main as its outermost function, by the image in memory.
func TestMacOSCoresWithoutTools(t *testing.T) {
	for _, name := range []string{"signed", "x86_64"} {
		e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), aarch64.New()}}, Sysroot: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		target, err := e.Open(filepath.Join("testdata/macos", name+".core.gz"))
		if err != nil {
			t.Fatal(err)
		}
		defer target.Close()
		if n := len(target.Threads()); n < 60 {
			t.Errorf("%s: %d threads, expected more", name, n)
		}
		for s := range target.Stacks(context.Background()) {
			if last := s.Frames[len(s.Frames)-1]; len(last.Symbols) == 0 || last.Symbols[0].Function != "main" {
				t.Errorf("%s: thread %s: %#x, stopped: %v", name, s.Thread.ID, pcsOf(s), s.Stopped)
			}
		}
	}
}

func checkMacOSCore(t *testing.T, m *macMachine, program, from string) {
	b, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	f, err := macho.New(program, b)
	if err != nil {
		t.Fatal(err)
	}
	path := program
	if from == "memory" {
		path = "/nowhere/chain"
	}
	core, truth := macOSCore(t, m, f, b, path)
	file := filepath.Join(t.TempDir(), "core")
	if err := os.WriteFile(file, core.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if *updateCores && from == "memory" && strings.Contains(t.Name(), "-O2") {
		keep(t, strings.TrimSuffix(filepath.Base(t.Name()), "-O2_memory"), core.Bytes())
	}
	lldb := lldbStacks(t, file)
	if len(lldb) != len(truth) {
		t.Fatalf("lldb has %d threads, expected %d", len(lldb), len(truth))
	}
	e, target := openMacOSCore(t, file, Options{})
	if from == "file" {
		checkMacOSDump(t, e, target, truth)
	}
	wrong, shorter := 0, 0
	for i, th := range target.Threads() {
		stack := target.Walk(context.Background(), th)
		if last := stack.Frames[len(stack.Frames)-1]; len(last.Symbols) == 0 || last.Symbols[len(last.Symbols)-1].Function != "main" {
			t.Errorf("thread %s: the outermost function is %+v, expected main", th.ID, last.Symbols)
		}
		if got := pcsOf(stack); !slices.Equal(got, truth[i]) {
			if wrong++; wrong < 8 {
				t.Errorf("thread %s: %#x, stopped: %v, expected %#x; lldb %#x", th.ID, got, stack.Stopped, truth[i], lldb[i])
			}
		}
		if from == "memory" {
			continue // lldb goes by frame pointers then: in prologues it leaves callers out
		}
		// lldb ends where a frame pointer is zero.
		if n := len(lldb[i]); n > len(truth[i]) || !slices.Equal(lldb[i], truth[i][:n]) {
			t.Errorf("thread %s: lldb has %#x, expected the first of %#x", th.ID, lldb[i], truth[i])
		} else if n < len(truth[i]) {
			shorter++
		}
	}
	t.Logf("%d threads, %d wrong; lldb ends earlier in %d", len(truth), wrong, shorter)
	if len(truth) < 60 {
		t.Errorf("%d threads, expected more", len(truth))
	}
}

// macOSCore makes a core of a program that is said to be at a path, and returns the chains of PCs of its threads.
func macOSCore(t *testing.T, m *macMachine, f *macho.File, b []byte, path string) (core *machocoretest.Builder, truth [][]uint64) {
	t.Helper()
	core = &machocoretest.Builder{Machine: m.number}
	base := uint64(0)
	for _, s := range f.Segments() {
		if s.Name == "__TEXT" {
			base = s.Address + macSlide
		}
		if s.FileSize > 0 {
			core.Segment(machocoretest.Segment{Address: s.Address + macSlide, Data: b[s.Offset:][:s.FileSize], Protection: s.Protection})
		}
	}
	core.Images(machocoretest.Image{Path: path, UUID: f.UUID(), Address: base})
	core.Bits(47)
	return core, m.fill(t, core, chainOf(t, f))
}

// openMacOSCore opens a core with the architectures in this process, and the files at their paths.
func openMacOSCore(t *testing.T, file string, options Options) (*Engine, *Target) {
	t.Helper()
	options.Plugins, options.Sysroot = plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), aarch64.New()}}, "/"
	e, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	target, err := e.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = target.Close() })
	return e, target
}

// checkMacOSDump wants the stacks of a core in a minidump that has no code, too, by the program and by its symbol file.
func checkMacOSDump(t *testing.T, e *Engine, core *Target, truth [][]uint64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "made.dmp")
	macDumps[core.Threads()[0].Arch].write(t, core, path, macIdentity)
	compareWithSymbols(t, core, path, storeOfSymbols(t, e, core.Modules()[0].File))
	dump, err := e.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dump.Close()
	wrong := 0
	for i, th := range dump.Threads() {
		stack := dump.Walk(context.Background(), th)
		if got := pcsOf(stack); !slices.Equal(got, truth[i]) {
			if wrong++; wrong < 8 {
				t.Errorf("thread %s of the minidump: %#x, stopped: %v, expected %#x", th.ID, got, stack.Stopped, truth[i])
			}
		}
	}
	if wrong > 0 || len(dump.Threads()) != len(truth) || len(dump.Modules()) != 1 || dump.Modules()[0].File == "" {
		t.Errorf("the minidump: %d of %d threads are wrong; %+v", wrong, len(dump.Threads()), dump.Modules())
	}
}

// chainOf returns the functions of the chain, the innermost first.
func chainOf(t *testing.T, f *macho.File) (list []macFunction) {
	t.Helper()
	starts, err := f.FunctionStarts()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"_leaf", "_inner", "_middle", "_outer", "_main"} {
		err := f.Symbols(func(s *macho.Symbol) {
			if s.Name != name || s.IsStab() {
				return
			}
			section := f.SectionAt(s.Value)
			end := section.Address + section.Size
			if i, _ := slices.BinarySearch(starts, s.Value+1); i < len(starts) {
				end = starts[i]
			}
			code, err := f.Bytes(s.Value, end-s.Value)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, macFunction{name, s.Value + macSlide, end + macSlide, code})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(list) != 5 {
		t.Fatalf("%d functions, expected 5", len(list))
	}
	return list
}

// fill adds a thread at each instruction of the functions, and returns the chains of PCs.
func (m *macMachine) fill(t *testing.T, core *machocoretest.Builder, chain []macFunction) (truth [][]uint64) {
	t.Helper()
	at := uint64(0x16f000000)
	for depth := range chain {
		stack := &macStack{start: at, data: make([]byte, 0x2000)}
		at += 0x10000
		s := macState{sp: stack.start + 0x1f00}
		var outer []uint64
		m.enter(&s, stack, 0)
		for i := len(chain) - 1; i > depth; i-- {
			outer = append(outer, m.call(t, &s, stack, &chain[i], &chain[i-1]))
		}
		slices.Reverse(outer)
		entry := s
		m.sweep(stack, entry, &chain[depth], func(s macState) bool {
			own := stack.clone(at)
			moved := s.moved(stack, at)
			at += 0x10000
			core.Thread(m.states(&moved))
			core.Segment(machocoretest.Segment{Address: own.start, Data: own.data, Protection: macho.CanRead | macho.CanWrite})
			truth = append(truth, append([]uint64{s.pc}, outer...))
			return true
		})
	}
	return truth
}

// clone copies a stack to another address: words that are addresses in it move with it.
func (m *macStack) clone(start uint64) *macStack {
	own := &macStack{start: start, data: slices.Clone(m.data)}
	for i := 0; i < len(own.data); i += 8 {
		if v := binary.LittleEndian.Uint64(own.data[i:]); v-m.start < uint64(len(m.data)) {
			binary.LittleEndian.PutUint64(own.data[i:], v-m.start+start)
		}
	}
	return own
}

func (s macState) moved(from *macStack, start uint64) macState {
	for _, r := range []*uint64{&s.sp, &s.fp} {
		if *r-from.start < uint64(len(from.data)) {
			*r = *r - from.start + start
		}
	}
	return s
}

// sweep yields the state before each instruction of a function that was just called. What a prologue
// pushes is in the stack afterwards. It ends when yield returns false.
func (m *macMachine) sweep(stack *macStack, s macState, f *macFunction, yield func(macState) bool) {
	body := s
	for at := 0; at < len(f.code); {
		s.pc = f.start + uint64(at)
		if !yield(s) {
			return
		}
		s.stack = stack
		size := m.step(&s, f.code[at:])
		switch {
		case m.isEnd(f.code[at:]):
			s = body
		case !s.isLeaving:
			body = s
		}
		at += size
	}
}

// call goes through a function to its first call of another one, and enters that. It returns the return address.
func (m *macMachine) call(t *testing.T, s *macState, stack *macStack, f, callee *macFunction) (returns uint64) {
	t.Helper()
	m.sweep(stack, *s, f, func(now macState) bool {
		target, size := m.isCall(f.code[now.pc-f.start:], now.pc)
		if target != callee.start {
			return true
		}
		*s, returns = now, now.pc+uint64(size)
		return false
	})
	if returns == 0 {
		t.Fatalf("%s does not call %s", f.name, callee.name)
	}
	m.enter(s, stack, returns|m.signed)
	return returns
}

var lldbThread = regexp.MustCompile(`thread #(\d+)`)
var lldbFrame = regexp.MustCompile(`frame #\d+: 0x([0-9a-f]+)`)

// lldbStacks returns the PCs of lldb's stacks, without frames of inlined functions.
func lldbStacks(t *testing.T, core string) (list [][]uint64) {
	t.Helper()
	for _, line := range strings.Split(oracle.Run(t, "lldb-22", "--no-lldbinit", "--batch", "-o", "target create --core "+core, "-o", "bt all"), "\n") {
		if lldbThread.MatchString(line) {
			list = append(list, nil)
		}
		if x := lldbFrame.FindStringSubmatch(line); x != nil && !strings.Contains(line, "[inlined]") && len(list) > 0 {
			pc, _ := strconv.ParseUint(x[1], 16, 64)
			list[len(list)-1] = append(list[len(list)-1], pc)
		}
	}
	return list
}

// The part of arm64 that prologues and epilogues use.

func armStep(s *macState, code []byte) int {
	w := binary.LittleEndian.Uint32(code)
	immediate := uint64(w >> 10 & 0xfff)
	pair := uint64(int64(int32(w<<10)>>25) * 8) //nolint:gosec // its bits
	switch {
	case w&0xffc003ff == 0xd10003ff: // sub sp, sp, #N
		s.sp -= immediate
	case w&0xffc003ff == 0x910003ff: // add sp, sp, #N
		s.sp += immediate
		s.isLeaving = true
	case w&0xffc003ff == 0x910003fd: // add x29, sp, #N
		s.fp = s.sp + immediate
	case w&0xffc003e0 == 0xa98003e0: // stp ..., [sp, #-N]!
		s.sp += pair
		if w&0x7c1f == 0x7800|29 { // x29, x30
			s.save(s.sp)
		}
	case w&0xffc07fff == 0xa9007bfd: // stp x29, x30, [sp, #N]
		s.save(s.sp + pair)
	case w&0xffc07fff == 0xa9407bfd: // ldp x29, x30, [sp, #N]
		s.restore(s.sp + pair)
	case w&0xffc07fff == 0xa8c07bfd: // ldp x29, x30, [sp], #N
		s.restore(s.sp)
		s.sp += pair
	case w&0xffc003e0 == 0xa8c003e0: // ldp ..., [sp], #N
		s.sp += pair
		s.isLeaving = true
	case w>>26 == 0x25: // bl: the return address of the call before it
		s.lr = s.pc + 4
	}
	return 4
}

func (s *macState) save(address uint64) {
	s.stack.put(address, s.fp)
	s.stack.put(address+8, s.lr)
}

func (s *macState) restore(address uint64) {
	s.fp, s.lr = s.stack.get(address), s.stack.get(address+8)
	s.isLeaving = true
}

func armIsReturn(code []byte) bool { return binary.LittleEndian.Uint32(code) == 0xd65f03c0 }

func armCall(code []byte, pc uint64) (target uint64, size int) {
	if w := binary.LittleEndian.Uint32(code); w>>26 == 0x25 {
		return pc + uint64(int64(int32(w<<6)>>6)*4), 4 //nolint:gosec // its bits
	}
	return 0, 4
}

func armEnter(s *macState, _ *macStack, returns uint64) { s.lr = returns }

func armStates(s *macState) []byte {
	b := make([]byte, 8*29)
	b = append(b, machocoretest.Words(s.fp, s.lr, s.sp, s.pc, 0)...)
	return machocoretest.State(6, b)
}

// The part of x86-64 that prologues and epilogues use.

func x86Step(s *macState, code []byte) int {
	isLeaving := true
	switch {
	case code[0] == 0x55: // push rbp
		s.sp -= 8
		s.stack.put(s.sp, s.fp)
		isLeaving = false
	case code[0] == 0x5d: // pop rbp
		s.fp = s.stack.get(s.sp)
		s.sp += 8
	case code[0] >= 0x50 && code[0] < 0x58, code[0] == 0x41 && code[1] >= 0x50 && code[1] < 0x58:
		s.sp -= 8
		isLeaving = false
	case code[0] >= 0x58 && code[0] < 0x60, code[0] == 0x41 && code[1] >= 0x58 && code[1] < 0x60:
		s.sp += 8
	case string(code[:3]) == "\x48\x89\xe5": // mov rbp, rsp
		s.fp, isLeaving = s.sp, false
	case string(code[:3]) == "\x48\x83\xec": // sub rsp, N
		s.sp, isLeaving = s.sp-uint64(code[3]), false
	case string(code[:3]) == "\x48\x83\xc4": // add rsp, N
		s.sp += uint64(code[3])
	default:
		isLeaving = false
	}
	s.isLeaving = s.isLeaving || isLeaving
	inst, err := x86asm.Decode(code, 64)
	if err != nil {
		return 1
	}
	return inst.Len
}

func x86IsReturn(code []byte) bool { return code[0] == 0xc3 }

func x86Call(code []byte, pc uint64) (target uint64, size int) {
	if code[0] == 0xe8 && len(code) >= 5 {
		return pc + 5 + uint64(int64(int32(binary.LittleEndian.Uint32(code[1:])))), 5 //nolint:gosec // its bits
	}
	return 0, 5
}

func x86Enter(s *macState, m *macStack, returns uint64) {
	s.sp -= 8
	m.put(s.sp, returns)
}

func x86States(s *macState) []byte {
	return machocoretest.State(4, machocoretest.Words(0, 0, 0, 0, 0, 0, s.fp, s.sp, 0, 0, 0, 0, 0, 0, 0, 0, s.pc, 0x202, 0x2b, 0, 0))
}
