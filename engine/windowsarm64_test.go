// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/pe"
	"github.com/unwindd/unwindd/engine/internal/target/minidump"
	"github.com/unwindd/unwindd/engine/internal/target/minidump/minidumptest"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
	"github.com/unwindd/unwindd/plugins/aarch64"
	"github.com/unwindd/unwindd/sdk"
)

// arm64Options are the ways in which testdata/windows/arm64.c is compiled.
var arm64Options = [][]string{
	{"-O0"}, {"-O1"}, {"-O2"}, {"-Os", "-fno-omit-frame-pointer"}, {"-O2", "-mbranch-protection=pac-ret"},
	{"-O0", "-mbranch-protection=standard"}, {"-O1", "-mbranch-protection=pac-ret+b-key"},
}

// An arm64State is a thread of arm64 at an instruction: x0 to x30, sp, pc, v0 to v31, and its stack.
type arm64State struct {
	general [33]uint64
	vectors [512]byte
	at      uint64
	stack   []byte
}

// readARM64State reads a state that testdata/windows/arm64run.c writes.
func readARM64State(r *bytes.Reader) (*arm64State, error) {
	s := new(arm64State)
	var place [2]uint64
	var skip [8]byte // vectors lie at multiples of 16 bytes
	for _, part := range []any{&s.general, &skip, &s.vectors, &place} {
		if err := binary.Read(r, binary.LittleEndian, part); err != nil {
			return nil, err
		}
	}
	s.at, s.stack = place[0], make([]byte, place[1])
	_, err := r.Read(s.stack)
	return s, err
}

// arm64Run is a program for Windows on arm64, and what it did.
type arm64Run struct {
	path    string
	file    *pe.File
	called  *arm64State    // where it calls back
	returns []uint64       // the return addresses that it noted, from the inside out
	stopped []*arm64State  // at each instruction of its functions that it comes to
	depth   map[uint64]int // how many of returns are inside, by the start of a function
}

// runARM64 compiles the program and runs it.
func runARM64(t *testing.T, options []string) *arm64Run {
	t.Helper()
	oracle.Tools(t, "clang-22", "lld-link-22", "aarch64-linux-gnu-gcc", "qemu-aarch64")
	source, err := filepath.Abs("testdata/windows")
	if err != nil {
		t.Fatal(err)
	}
	dir := oracle.Build{Sources: []string{source}, Commands: [][]string{
		slices.Concat([]string{"clang-22", "--target=aarch64-pc-windows-msvc", "-ffreestanding", "-w", "-g", "-gcodeview", "-funwind-tables", "-c", "-o", "app.obj", filepath.Join(source, "arm64.c")}, options),
		{"lld-link-22", "/dll", "/entry:start", "/subsystem:console", "/nodefaultlib", "/debug", "/pdb:app.pdb", "/out:app.dll", "app.obj"},
		{"aarch64-linux-gnu-gcc", "-O1", "-static", "-o", "run", filepath.Join(source, "arm64run.c")},
	}}.Make(t)
	r := &arm64Run{path: filepath.Join(dir, "app.dll"), depth: map[uint64]int{}}
	data, err := os.ReadFile(r.path)
	if err != nil {
		t.Fatal(err)
	}
	if r.file, err = pe.New(r.path, data); err != nil {
		t.Fatal(err)
	}
	exports, err := r.file.Exports()
	if err != nil {
		t.Fatal(err)
	}
	notes := exports[slices.IndexFunc(exports, func(e pe.Export) bool { return e.Name == "returns" })].Address
	args := []string{"-cpu", "max", filepath.Join(dir, "run"), r.path, fmt.Sprint(notes - r.file.ImageBase())}
	err = r.file.Functions(func(fn pe.Function) bool {
		for at := fn.Start; at < fn.End; at += 4 {
			args = append(args, fmt.Sprint(at-r.file.ImageBase()))
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("qemu-aarch64", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	r.read(t, bytes.NewReader(out))
	return r
}

// read reads what the program did.
func (r *arm64Run) read(t *testing.T, out *bytes.Reader) {
	t.Helper()
	var err error
	if r.called, err = readARM64State(out); err != nil {
		t.Fatal(err)
	}
	var returns [16]uint64
	if err := binary.Read(out, binary.LittleEndian, &returns); err != nil {
		t.Fatal(err)
	}
	r.returns = returns[:8] // the next is of arm64run.c
	large, _, err := r.file.FunctionAt(returns[4])
	if err != nil {
		t.Fatal(err)
	}
	r.returns[5] = r.callOf(t, large.Start)
	for out.Len() > 0 {
		s, err := readARM64State(out)
		if err != nil {
			t.Fatal(err)
		}
		r.stopped = append(r.stopped, s)
	}
	for i, pc := range append([]uint64{r.called.general[30]}, r.returns...) {
		if fn, ok, err := r.file.FunctionAt(pc); ok && err == nil {
			r.depth[fn.Start] = i
		}
	}
}

// callOf is the address behind the one call of a function.
func (r *arm64Run) callOf(t *testing.T, start uint64) (behind uint64) {
	t.Helper()
	text := r.file.Section(".text")
	code, err := text.Data()
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+4 <= len(code); i += 4 {
		word := binary.LittleEndian.Uint32(code[i:])
		if at := text.Address() + uint64(i); word>>26 == 0x25 && at+uint64(int64(word)<<38>>36) == start {
			behind = at + 4
		}
	}
	return behind
}

// windowsDump is a dump of a state as Windows writes it.
func (r *arm64Run) windowsDump(s *arm64State) *minidumptest.Builder {
	b := minidumptest.New(binary.LittleEndian)
	b.System(12, 2)
	c := b.Pack(uint32(0x400007), uint32(0x60000000), s.general[:], s.vectors[:], make([]byte, 128))
	b.Stream(uint32(minidump.StreamThreadList), uint32(1), uint32(7), make([]byte, 20), s.at, b.Part(s.stack), b.Part(c))
	b.Stream(uint32(minidump.StreamModuleList), uint32(1), r.module(b, `C:\app\app.dll`))
	return b
}

// module is the program in a list of modules.
func (r *arm64Run) module(b *minidumptest.Builder, name string) []byte {
	id, _ := r.file.Identity()
	return b.Pack(r.file.ImageBase(), r.file.SizeOfImage(), uint32(0), r.file.TimeDateStamp(), b.Text(name), make([]byte, 52),
		b.Part("RSDS", id.GUID[:], id.Age, id.PDB+"\x00"), make([]byte, 24))
}

// open opens a dump with the program's file.
func (r *arm64Run) open(t *testing.T, e *Engine, b *minidumptest.Builder) *Target {
	t.Helper()
	path := filepath.Join(t.TempDir(), "made.dmp")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	dump, err := e.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dump.Close() })
	return dump
}

// arm64Engine is an engine that finds one program.
func arm64Engine(t *testing.T, exe string) *Engine {
	t.Helper()
	e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{aarch64.New()}}, Sysroot: t.TempDir(), Exe: exe})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// TestWindowsDumpsOfARM64 walks dumps of a program for Windows on arm64 that runs here, at each of its
// instructions, by unwind codes, and wants the return addresses that it noted itself.
func TestWindowsDumpsOfARM64(t *testing.T) {
	for _, options := range arm64Options {
		t.Run(strings.Join(options, " "), func(t *testing.T) {
			r := runARM64(t, options)
			e := arm64Engine(t, r.path)
			for i, s := range append([]*arm64State{r.called}, r.stopped...) {
				dump := r.open(t, e, r.windowsDump(s))
				stack := dump.Walk(context.Background(), dump.Threads()[0])
				_ = dump.Close()
				var got []uint64
				for _, f := range stack.Frames {
					if f.FoundBy != trace.ByContext && f.FoundBy != trace.ByPE || f.PC-r.file.ImageBase() >= uint64(r.file.SizeOfImage()) {
						break
					}
					got = append(got, f.PC)
				}
				want := []uint64{s.general[32]}
				fn, _, err := r.file.FunctionAt(s.general[32])
				if err != nil {
					t.Fatal(err)
				}
				depth, ok := r.depth[fn.Start]
				if !ok { // a function that one of those calls
					if len(got) < 2 {
						t.Fatalf("%#x: %v", s.general[32], stack.Stopped)
					}
					want = append(want, got[1])
					caller, _, _ := r.file.FunctionAt(got[1])
					depth = r.depth[caller.Start]
				}
				want = append(want, r.returns[depth:]...)
				if d := cmp.Diff(want, got); d != "" {
					t.Fatalf("%d, %#x: stopped %v, problems %q (-noted +dump)\n%s", i, s.general[32], stack.Stopped, dump.Problems(), d)
				}
			}
			t.Logf("%d instructions", len(r.stopped))
			if len(r.stopped) < 200 {
				t.Error("expected more")
			}
		})
	}
}

// TestWindowsDumpsOfARM64ByTheImage walks a dump with the whole memory where the program's file is
// elsewhere.
func TestWindowsDumpsOfARM64ByTheImage(t *testing.T) {
	r := runARM64(t, []string{"-O2"})
	base := r.file.ImageBase()
	image := make([]byte, r.file.SizeOfImage())
	for _, s := range r.file.Sections() {
		data, err := s.Data()
		if err != nil {
			t.Fatal(err)
		}
		copy(image[s.RVA:], data)
	}
	head, err := r.file.Bytes(base, uint64(r.file.SizeOfHeaders()))
	if err != nil {
		t.Fatal(err)
	}
	copy(image, head)
	b := r.windowsDump(r.called)
	b.Stream(uint32(minidump.StreamMemory64List), uint64(1), uint64(b.Put(image)), base, uint64(len(image)))
	dir := t.TempDir()
	pdb, err := os.ReadFile(filepath.Join(filepath.Dir(r.path), "app.pdb"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"made.dmp": b.Bytes(), "app.pdb": pdb} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dump, err := arm64Engine(t, "").Open(filepath.Join(dir, "made.dmp"))
	if err != nil {
		t.Fatal(err)
	}
	defer dump.Close()
	got := dump.Walk(context.Background(), dump.Threads()[0])
	for i, want := range r.returns {
		if f := got.Frames[min(i+1, len(got.Frames)-1)]; f.PC != want || f.FoundBy != trace.ByPE {
			t.Fatalf("frame %d is %#x by %s, expected %#x; stopped: %v", i+1, f.PC, f.FoundBy, want, got.Stopped)
		}
	}
	// The record in the image leads to the PDB file beside the dump.
	for i, want := range []string{"bottom", "reals", "variadic", "many", "dynamic", "large", "medium", "early", "start"} {
		if f := &got.Frames[i]; len(f.Symbols) == 0 || f.Symbols[0].Function != want || filepath.Base(f.Symbols[0].File) != "arm64.c" {
			t.Errorf("frame %d is named %+v, expected %s", i, f.Symbols, want)
		}
	}
}

// Return addresses on macOS are signed in the top byte, too.
func TestFramePointersOfARM64LeadThroughSignedAddresses(t *testing.T) {
	const module, stack, signature = 0x180000000, 0x7000, 0xa5<<56 | 0x35<<47
	for name, platform := range map[string]uint32{"macOS": 0x8101, "iOS": 0x8102, "Windows": 2} {
		b := minidumptest.New(binary.LittleEndian)
		b.System(12, platform)
		general := [33]uint64{29: stack + 0x20, 30: module + 0x180 | signature, 31: stack, 32: module + 0x100}
		c := b.Pack(uint32(0x400003), uint32(0), general[:], make([]byte, 640))
		bytes := make([]byte, 0x100)
		for at, record := range map[uint64][]uint64{0x20: {stack + 0x40, module + 0x200 | signature}, 0x40: {stack + 0x60, module + 0x300 | signature}, 0x60: {0, 0}} {
			copy(bytes[at:], b.Pack(record))
		}
		b.Stream(uint32(minidump.StreamThreadList), uint32(1), uint32(7), make([]byte, 20), uint64(stack), b.Part(bytes), b.Part(c))
		b.Stream(uint32(minidump.StreamModuleList), uint32(1), uint64(module), uint32(0x2000), uint64(0), b.Text("/usr/lib/libx.dylib"), make([]byte, 84))
		dump := (&arm64Run{}).open(t, arm64Engine(t, ""), b)
		got := pcsOf(dump.Walk(context.Background(), dump.Threads()[0]))
		if want := []uint64{module + 0x100, module + 0x200, module + 0x300}; !slices.Equal(got, want) {
			t.Errorf("%s: %#x, expected %#x", name, got, want)
		}
	}
}

// TestMinidumpsOfARM64WalkLikeTheirCores writes what a core of Linux on arm64 has as each writer writes a dump:
// the walks are the core's.
func TestMinidumpsOfARM64WalkLikeTheirCores(t *testing.T) {
	oracle.Tools(t, "aarch64-linux-gnu-gcc", "qemu-aarch64", "sh")
	const root = "/usr/aarch64-linux-gnu"
	crashpad := func(mask uint64) func(*minidumptest.Builder) {
		return func(b *minidumptest.Builder) {
			b.Stream(uint32(minidump.StreamCrashpadInfo), uint32(1), make([]byte, 32), make([]byte, 16), uint32(0), mask)
		}
	}
	modern := func(c []byte) { binary.LittleEndian.PutUint32(c, 0x400007) }
	for name, w := range map[string]struct {
		dumpWriter
		more []func(*minidumptest.Builder)
	}{
		"Breakpad's older format": {dumpWriter{0x8003, aarch64.Description(), 796, func(c []byte) { binary.LittleEndian.PutUint64(c, 0x80000006) }}, nil},
		"Breakpad":                {dumpWriter{12, aarch64.Description(), 912, modern}, nil},
		"Crashpad":                {dumpWriter{12, aarch64.Description(), 912, modern}, []func(*minidumptest.Builder){crashpad(0x7f << 48)}},
	} {
		for _, flags := range [][]string{{"-O1", "-g"}, {"-O2", "-g", "-mbranch-protection=standard"}} {
			t.Run(name+" "+strings.Join(flags, " "), func(t *testing.T) {
				dir := t.TempDir()
				exe := filepath.Join(dir, "subject")
				oracle.Run(t, "aarch64-linux-gnu-gcc", append(flags, "-Wl,--build-id", "-o", exe, subject.Source(t, "aarch64crash.c"))...)
				cmd := exec.Command("sh", "-c", "ulimit -c unlimited && exec qemu-aarch64 -cpu max -L "+root+" ./subject data")
				cmd.Dir = dir
				_ = cmd.Run() // it crashes
				cores, _ := filepath.Glob(filepath.Join(dir, "qemu_*.core"))
				if len(cores) != 1 {
					t.Fatalf("%d cores", len(cores))
				}
				e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{aarch64.New()}}, Sysroot: root, Exe: exe})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				core, err := e.Open(cores[0])
				if err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(dir, "made.dmp")
				w.write(t, core, path, identities["BpEL"], w.more...)
				dump, err := e.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				want, got := summary(core.Walk(context.Background(), core.Threads()[0])), summary(dump.Walk(context.Background(), dump.Threads()[0]))
				want[1], got[1] = "", "" // these dumps have no names of threads
				if d := cmp.Diff(want, got); d != "" || len(want) < 7 {
					t.Errorf("(-core +dump)\n%s", d)
				}
			})
		}
	}
}
