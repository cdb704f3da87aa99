// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/arch/x86/x86asm"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/recorded"
	"github.com/unwindd/unwindd/plugins/x86_64"
)

// goPlaces are instructions of Go's runtime at which a stack is not what call
// frame information says.
type goPlaces struct {
	returned            uint64 // of runtime.clone, after the system call, which returns to two threads
	saving, interrupted uint64 // the first of gosave_systemstack_switch, and of runtime.asyncPreempt
	switched            uint64 // of runtime.mcall, the call on the other stack
}

func findGoPlaces(tb testing.TB, path string) *goPlaces {
	tb.Helper()
	file := openCodeFile(tb, path)
	// find returns the first instruction of an operation in a function, and the one after it.
	find := func(name string, op x86asm.Op) (address, next uint64) {
		tb.Helper()
		named := append(slices.Clone(file.named[name]), file.named[name+".abi0"]...)
		if len(named) == 0 {
			tb.Fatalf("%s has no %s", path, name)
		}
		start, end := file.extent(named[0])
		code := file.from(start)[:end-start]
		for at := 0; at < len(code); {
			inst, err := x86asm.Decode(code[at:], 64)
			if err != nil {
				tb.Fatalf("%s+%#x: %v", name, at, err)
			}
			if op == 0 || inst.Op == op {
				return start + uint64(at), start + uint64(at+inst.Len)
			}
			at += inst.Len
		}
		tb.Fatalf("%s has no %v", name, op)
		return 0, 0
	}
	p := &goPlaces{}
	_, p.returned = find("runtime.clone", x86asm.SYSCALL)
	p.saving, _ = find("gosave_systemstack_switch", 0)
	p.switched, _ = find("runtime.mcall", x86asm.CALL)
	p.interrupted, _ = find("runtime.asyncPreempt", 0)
	return p
}

// goStops are the threads of a Go program that gdb stops once at each of some
// addresses, with a module that stands for the program.
func goStops(t *testing.T, program string, module *target.Module, addresses ...uint64) [][]*walk.Sample {
	t.Helper()
	oracle.Tools(t, "gdb")
	var list []string
	for _, a := range addresses {
		list = append(list, fmt.Sprintf("%#x", a))
	}
	path := filepath.Join(t.TempDir(), "stops")
	cmd := exec.Command("gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load no", "-ex", "source testdata/profile/stops.py", program)
	cmd.Env = append(os.Environ(), "STOPS="+path, "ADDRESSES="+strings.Join(list, " "), "GOMAXPROCS=2")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("gdb: %v\n%s", err, out)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var stops [][]*walk.Sample
	for line := range strings.Lines(string(text)) {
		var threads []struct {
			Registers []string
			Stack     string
		}
		if err := json.Unmarshal([]byte(line), &threads); err != nil {
			t.Fatal(err)
		}
		var samples []*walk.Sample
		for _, th := range threads {
			s := &walk.Sample{Sample: trace.Sample{Arch: "x86_64"}, Loaded: []*target.Module{module}}
			for number, text := range th.Registers {
				s.Registers.Set(uint32(number), binary.LittleEndian.AppendUint64(nil, parse(t, text, 16)))
			}
			s.StackStart = registerOf(s, x86_64.Description().SP)
			if s.Stack, err = hex.DecodeString(th.Stack); err != nil {
				t.Fatal(err)
			}
			samples = append(samples, s)
		}
		stops = append(stops, samples)
	}
	if len(stops) != len(addresses) {
		t.Fatalf("gdb stopped %d times\n%s", len(stops), out)
	}
	return stops
}

// wholeModule is a program that is loaded where it says.
func wholeModule(t *testing.T, path string) *target.Module {
	t.Helper()
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	m := &target.Module{Module: trace.Module{Path: path, Arch: "x86_64", File: path}, Object: o}
	for _, s := range o.Segments() {
		m.Segments = append(m.Segments, trace.Segment{Address: s.Address, Size: s.MemSize, Start: s.Address, Executable: s.Executable()})
	}
	return m
}

func registerOf(s *walk.Sample, number uint32) uint64 {
	v, _ := s.Registers.Uint64(number, x86_64.Description().ByteOrder)
	return v
}

// savedReturnsOf are those that the chain of frame pointers leads to.
func savedReturnsOf(s *walk.Sample) []uint64 {
	return savedReturns(registerOf(s, x86_64.Description().FP), s.StackStart, s.Stack)
}

// returnsOf are the return addresses of a stack.
func returnsOf(s *trace.Stack) (list []uint64) {
	for _, f := range s.Frames[1:] {
		list = append(list, f.PC)
	}
	return list
}

// below reports whether a list of return addresses equals a chain, up to the end of the shorter.
func below(returns, chain []uint64) bool {
	n := min(len(returns), len(chain))
	return n > 0 && slices.Equal(returns[:n], chain[:n])
}

// TestGoStacksWhereTheyChange walks threads of a Go program that gdb stopped where
// stacks begin, are left, or are those of code that a signal interrupted: by call
// frame information and symbols, and by what stripping leaves.
func TestGoStacksWhereTheyChange(t *testing.T) {
	if testing.Short() {
		t.Skip("runs gdb")
	}
	program := recorded.Program(t, "gowork", 0)[0]
	for _, path := range []string{program, strippedProgram(t, "gowork")} {
		t.Run(filepath.Base(path), func(t *testing.T) { walkGoStops(t, program, path) })
	}
}

func walkGoStops(t *testing.T, program, path string) {
	t.Helper()
	p := findGoPlaces(t, program)
	stops := goStops(t, program, wholeModule(t, path), p.returned, p.saving, p.switched, p.interrupted)
	e := newX86Engine(t, Options{})
	// at are the threads of a stop that are at an address, walked.
	at := func(stop []*walk.Sample, address uint64) (samples []*walk.Sample, stacks []*trace.Stack) {
		t.Helper()
		for _, s := range stop {
			if registerOf(s, x86_64.Description().PC) == address {
				samples, stacks = append(samples, s), append(stacks, e.Attach(s).Walk(t.Context(), s.Thread()))
			}
		}
		if len(samples) == 0 {
			t.Fatalf("no thread is at %#x", address)
		}
		return samples, stacks
	}

	samples, stacks := at(stops[0], p.returned)
	made := 0
	for i, s := range samples {
		returns, stopped := returnsOf(stacks[i]), stacks[i].Stopped
		if registerOf(s, 0) == 0 {
			if made++; len(returns) > 0 || stopped.Reason != trace.StopOutermost {
				t.Errorf("a new thread: %#x, %v", returns, stopped)
			}
		} else if len(returns) < 3 || stopped.Reason != trace.StopOutermost {
			t.Errorf("the thread that makes another one: %#x, %v", returns, stopped)
		}
	}
	if made == 0 {
		t.Error("no thread is new")
	}

	samples, stacks = at(stops[1], p.saving)
	if returns, chain := returnsOf(stacks[0]), savedReturnsOf(samples[0]); len(returns) < 3 || !below(returns[1:], chain) {
		t.Errorf("before the stack is left: %#x, the frame pointers lead to %#x", returns, chain)
	}

	_, stacks = at(stops[2], p.switched)
	if s := stacks[0]; len(s.Frames) != 1 || s.Stopped != (trace.Stopped{Reason: trace.StopOutermost, Detail: "a stack begins in runtime.mcall"}) {
		t.Errorf("after the stack was left: %#x, %v", returnsOf(s), s.Stopped)
	}

	samples, stacks = at(stops[3], p.interrupted)
	returns, chain := returnsOf(stacks[0]), savedReturnsOf(samples[0])
	if len(returns) < 3 || !stacks[0].Frames[1].Exact || stacks[0].Frames[2].Exact {
		t.Fatalf("in code that a signal interrupted: %#x", returns)
	}
	// Its function may not have saved the frame pointer yet.
	if !below(returns[1:], chain) && !below(returns[2:], chain) {
		t.Errorf("in code that a signal interrupted: %#x, the frame pointers lead to %#x", returns, chain)
	}
}
