// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// disassembled are functions of libc: small ones, large ones with jump tables, and
// such that end with a call.
var disassembled = []string{
	"qsort_r", "malloc", "getenv", "realpath", "abort", "raise", "getaddrinfo", "regexec", "wordexp", "fopen", "glob64",
}

// objdumpLine is an instruction as objdump writes it: its address, its bytes, its text.
var objdumpLine = regexp.MustCompile(`^\s*([0-9a-f]+):\t((?:[0-9a-f]{2} )+)\s*(?:\t(.*))?$`)

// sampleOf is a target that has one file loaded, and no memory.
func sampleOf(t *testing.T, path string) *engine.Target {
	t.Helper()
	file, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), amdgpu.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	m := &target.Module{Module: trace.Module{Path: path, Arch: "x86_64", File: path}, Object: file}
	for _, s := range file.Segments() {
		m.Segments = append(m.Segments, trace.Segment{Address: s.Address, Size: s.MemSize, Start: loadedAt + s.Address, Executable: s.Executable()})
	}
	var r sdk.Registers
	r.Set(16, binary.LittleEndian.AppendUint64(nil, loadedAt)) // rip
	return e.Attach(&walk.Sample{Sample: trace.Sample{Arch: "x86_64", ThreadID: "1", Registers: r}, Loaded: []*target.Module{m}})
}

// TestDisassembleEqualsObjdump holds every instruction of functions of libc against
// objdump: all of a function at once, and those around each instruction.
func TestDisassembleEqualsObjdump(t *testing.T) {
	if testing.Short() {
		t.Skip("decodes functions around each of their instructions")
	}
	oracle.Tools(t, "objdump")
	const libc = "/lib/x86_64-linux-gnu/libc.so.6"
	tg := sampleOf(t, libc)
	th := tg.Threads()[0]
	instructions := 0
	for _, name := range disassembled {
		want := objdump(t, libc, name)
		if len(want) < 2 {
			t.Fatalf("%s: %d instructions", name, len(want))
		}
		got, err := tg.Disassemble(context.Background(), th, want[0].Address, 0, len(want)-1)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if problem := sameLines(got, want, 0); problem != "" {
			t.Errorf("%s: %s", name, problem)
		}
		for i := range want {
			first, last := max(0, i-3), min(len(want), i+3)
			got, err := tg.Disassemble(context.Background(), th, want[i].Address, 3, 2)
			if err != nil {
				t.Fatalf("%s at %#x: %v", name, want[i].Address, err)
			}
			if problem := sameLines(got, want[first:last], i-first); problem != "" {
				t.Errorf("%s at %#x: %s", name, want[i].Address, problem)
			}
		}
		// The return address of a call that ends the function is behind it.
		if tail := want[len(want)-1]; strings.HasPrefix(tail.Text, "call") {
			after := tail.Address + uint64(len(tail.Bytes))
			got, err := tg.Disassemble(context.Background(), th, after, 1, 0)
			if err != nil || got[0].Address != tail.Address && got[0].Address != after {
				t.Errorf("%s: behind its last call: %v, %v", name, got, err)
			}
		}
		instructions += len(want)
	}
	t.Logf("%d instructions", instructions)
	if instructions < 2000 {
		t.Errorf("%d instructions, expected 2,000 or more", instructions)
	}
}

// objdump are the instructions of a function, at the addresses that it is loaded at.
func objdump(t *testing.T, path, function string) (lines []trace.Instruction) {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(symbols, func(s elf.Symbol) bool { return s.Name == function && s.Size > 0 })
	if i < 0 {
		t.Fatalf("%s has no symbol %s", path, function)
	}
	out, err := exec.Command("objdump", "-d", "-w", fmt.Sprintf("--start-address=%#x", symbols[i].Value),
		fmt.Sprintf("--stop-address=%#x", symbols[i].Value+symbols[i].Size), path).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		m := objdumpLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}
		address, err := strconv.ParseUint(m[1], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		code, err := hex.DecodeString(strings.ReplaceAll(m[2], " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, trace.Instruction{Address: loadedAt + address, Bytes: code, Text: m[3]})
	}
	return lines
}

// sameLines compares addresses and bytes. current is the index of the requested one.
func sameLines(got, want []trace.Instruction, current int) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d instructions, objdump has %d", len(got), len(want))
	}
	for i := range want {
		if got[i].Address != want[i].Address || !bytes.Equal(got[i].Bytes, want[i].Bytes) || got[i].IsAt != (i == current) || got[i].Text == "" {
			return fmt.Sprintf("%#x % x %s (at: %v), objdump has %#x % x %s", got[i].Address, got[i].Bytes, got[i].Text, got[i].IsAt,
				want[i].Address, want[i].Bytes, want[i].Text)
		}
	}
	return ""
}

// A mute architecture does not disassemble.
type mute struct{ sdk.Base }

func (mute) Describe(context.Context) (*sdk.Description, error) {
	d := x86_64.Description()
	d.Name, d.Recognises = "mute", []sdk.Recogniser{{ELFMachine: 0x7e57, OSABI: -1}}
	return d, nil
}

// TestCodeWhereNoFunctionIsKnown: without the beginning of a function code is read from
// the PC on, and that is said. Of a return address there is no current instruction then.
func TestCodeWhereNoFunctionIsKnown(t *testing.T) {
	code := []byte{0x90, 0xe8, 0, 0, 0, 0, 0x55, 0x90, 0xc3}
	loose := &walk.Synthetic{Arch: "x86_64", Memory: []walk.Piece{{Address: 0x1000, Bytes: code}}}
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	reader := e.Attach(loose).CodeReader(5)
	const want = "nothing before the PC: where the function begins is not known"
	for _, exact := range []bool{true, false} {
		c := reader.Of(context.Background(), loose.Thread(), &trace.Frame{PC: 0x1006, Exact: exact})
		if len(c.Lines) != 3 || c.Lines[0].Address != 0x1006 || c.Lines[0].IsAt != exact || c.Problem != want {
			t.Errorf("exact %v: %+v", exact, c)
		}
	}
	for _, pc := range []uint64{0, 0x2000, 0x1009, ^uint64(0)} {
		c := reader.Of(context.Background(), loose.Thread(), &trace.Frame{PC: pc})
		if c.Lines != nil || !strings.Contains(c.Problem, target.ErrNoMemory.Error()) {
			t.Errorf("%#x: %+v", pc, c)
		}
	}
}

// TestCodeThatIsOutOfStep: a PC within an instruction as the function's code is read.
func TestCodeThatIsOutOfStep(t *testing.T) {
	oracle.Tools(t, "objdump")
	tg := sampleOf(t, "/lib/x86_64-linux-gnu/libc.so.6")
	lines, err := tg.Disassemble(context.Background(), tg.Threads()[0], functionStart(t, "qsort_r"), 0, 40)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(lines, func(l trace.Instruction) bool { return len(l.Bytes) >= 4 })
	pc := lines[i].Address + 1
	reader := tg.CodeReader(4)
	c := reader.Of(context.Background(), tg.Threads()[0], &trace.Frame{PC: pc, Exact: true})
	if len(c.Lines) != 4 || !c.Lines[0].IsAt || c.Lines[0].Address != pc || !strings.HasPrefix(c.Problem, "nothing before the PC: code that is read from the function's beginning, ") {
		t.Errorf("%+v", c)
	}
	c = reader.Of(context.Background(), tg.Threads()[0], &trace.Frame{PC: pc})
	if len(c.Lines) != 4 || c.Lines[0].IsAt || c.Lines[0].Address != pc || c.Problem == "" {
		t.Errorf("a return address: %+v", c)
	}
}

// TestCodeOfLongFunctions reads functions from their beginnings in several requests, and
// says of one that is too long for that.
func TestCodeOfLongFunctions(t *testing.T) {
	oracle.Tools(t, "gcc")
	dir := t.TempDir()
	source, library := filepath.Join(dir, "long.s"), filepath.Join(dir, "long.so")
	var text strings.Builder
	for _, f := range []struct {
		name  string
		count int
	}{{"long", 60_000}, {"longer", 160_000}} {
		fmt.Fprintf(&text, ".globl %[1]s\n.type %[1]s, @function\n%[1]s:\n.rept %[2]d\nmov $0x11223344, %%eax\nxor %%eax, %%edx\n.endr\ncall *%%rax\n.size %[1]s, .-%[1]s\n", f.name, f.count)
	}
	if err := os.WriteFile(source, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	oracle.Run(t, "gcc", "-shared", "-nostdlib", "-o", library, source)
	file, err := elf.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	tg := sampleOf(t, library)
	reader := tg.CodeReader(5)
	for _, s := range symbols {
		c := reader.Of(context.Background(), tg.Threads()[0], &trace.Frame{PC: loadedAt + s.Value + s.Size})
		switch s.Name {
		case "long": // its last instruction is the call
			if len(c.Lines) != 5 || !c.Lines[4].IsAt || len(c.Lines[4].Bytes) != 2 || len(c.Lines[0].Bytes) != 5 || c.Problem != "" {
				t.Errorf("%s: %+v", s.Name, c)
			}
		case "longer":
			if !strings.Contains(c.Problem, "the function begins more than 1024 KiB before") && !strings.Contains(c.Problem, target.ErrNoMemory.Error()) {
				t.Errorf("%s: %+v", s.Name, c)
			}
		}
	}
}

// functionStart is where a function of libc is loaded.
func functionStart(t *testing.T, name string) uint64 {
	t.Helper()
	return objdump(t, "/lib/x86_64-linux-gnu/libc.so.6", name)[0].Address
}

// TestDisassembleWithoutCode asks where nothing is, far from any code, and an
// architecture that does not disassemble.
func TestDisassembleWithoutCode(t *testing.T) {
	tg := sampleOf(t, "/lib/x86_64-linux-gnu/libc.so.6")
	for _, address := range []uint64{0, 16, ^uint64(0), loadedAt + 1<<40} {
		if lines, err := tg.Disassemble(context.Background(), tg.Threads()[0], address, 1<<30, 1<<30); err == nil {
			t.Errorf("%#x: %v", address, lines)
		}
	}
	if _, err := tg.Disassemble(context.Background(), &trace.Thread{}, loadedAt, 0, 0); err == nil {
		t.Error("no error of a thread of no target")
	}
	state := &walk.Synthetic{Arch: "mute", Memory: []walk.Piece{{Address: 0x1000, Bytes: make([]byte, 64)}}}
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{mute{}, x86_64.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	mutes := e.Attach(state)
	if _, err := mutes.Disassemble(context.Background(), state.Thread(), 0x1000, 0, 4); !errors.Is(err, sdk.ErrNotImplemented) {
		t.Errorf("mute: %v, expected %v", err, sdk.ErrNotImplemented)
	}
	c := mutes.CodeReader(3).Of(context.Background(), state.Thread(), &trace.Frame{PC: 0x1000, Exact: true})
	if c.Problem != "architecture mute shows no code" || c.Lines != nil {
		t.Errorf("mute: %+v", c)
	}
	// Code that is in no module is read from memory, from the address on.
	loose := &walk.Synthetic{Arch: "x86_64", Memory: []walk.Piece{{Address: 0x1000, Bytes: []byte{0x90, 0x55, 0xc3}}}}
	lines, err := e.Attach(loose).Disassemble(context.Background(), loose.Thread(), 0x1001, 5, 5)
	if err != nil || len(lines) != 2 || lines[0].Address != 0x1001 || !lines[0].IsAt || len(lines[1].Bytes) != 1 {
		t.Errorf("loose code: %v, %v", lines, err)
	}
}
