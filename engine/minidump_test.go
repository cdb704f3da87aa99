// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/download"
	"github.com/unwindd/unwindd/engine/internal/symbolstore"
	"github.com/unwindd/unwindd/engine/internal/target/minidump"
	"github.com/unwindd/unwindd/engine/internal/target/minidump/minidumptest"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// dumpStack is how many bytes of a stack Breakpad keeps.
const dumpStack = 32 << 10

// A dumpWriter is how a writer of dumps of Linux has a processor and its registers.
type dumpWriter struct {
	arch  uint16
	d     *sdk.Description
	size  uint32       // of a context
	flags func([]byte) // fills in the flags of a context
}

// writeMinidump writes what a target has as Breakpad writes a dump of x86-64: the registers, the
// stacks, the modules by what identity makes of their build IDs, and no code. More streams are added by more.
func writeMinidump(t *testing.T, core *Target, path string, identity func(b *minidumptest.Builder, id []byte) []byte, more ...func(*minidumptest.Builder)) {
	t.Helper()
	flags := func(c []byte) { binary.LittleEndian.PutUint32(c[48:], 0x10000b) }
	dumpWriter{9, x86_64.Description(), 1232, flags}.write(t, core, path, identity, more...)
}

func (w dumpWriter) write(t *testing.T, core *Target, path string, identity func(b *minidumptest.Builder, id []byte) []byte, more ...func(*minidumptest.Builder)) {
	t.Helper()
	b := minidumptest.New(binary.LittleEndian)
	platform := uint32(0x8201) // Linux
	if core.Info().Kind == trace.MachOCore {
		platform = 0x8101
	}
	b.System(w.arch, platform)
	d := w.d
	set := d.RegisterSet(sdk.MinidumpContext, "", w.size)
	threads := b.Pack(uint32(len(core.Threads())))
	var crashed []byte
	for _, th := range core.Threads() {
		c := make([]byte, w.size)
		w.flags(c)
		for _, f := range set.Fields {
			if v, ok := th.Registers.Get(f.Register); ok && int(f.RegisterOffset) < len(v) {
				copy(c[f.Offset:f.Offset+f.Size], v[f.RegisterOffset:])
			}
		}
		sp, _ := th.Registers.Uint64(d.SP, sdk.LittleEndian)
		stack := make([]byte, dumpStack)
		n, _ := core.process.State().ReadMemory(locexpr.DefaultSpace, sp, stack)
		id, err := strconv.ParseUint(th.ID, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		at := b.Part(c)
		threads = append(threads, b.Pack(uint32(id), uint32(0), uint32(0), uint32(0), uint64(0), sp, b.Part(stack[:n]), at)...)
		if th.Crashed {
			crashed = b.Pack(uint32(id), uint32(0), uint32(th.Signal), uint32(1), uint64(0), core.Info().FaultAddress, uint32(0), uint32(0), make([]byte, 120), at)
		}
	}
	b.Stream(uint32(minidump.StreamThreadList), threads)
	b.Stream(uint32(minidump.StreamException), crashed)
	modules := b.Pack(uint32(len(core.process.Modules())))
	for _, m := range core.process.Modules() {
		low, high := ^uint64(0), uint64(0)
		for _, s := range m.Segments {
			low, high = min(low, s.Start&^0xfff), max(high, s.Start+s.Size)
		}
		modules = append(modules, b.Pack(low, uint32(high-low), uint32(0), uint32(0), b.Text(m.Path), make([]byte, 52),
			b.Part(identity(b, m.BuildID)), uint64(0), uint64(0), uint64(0))...)
		if m.File == "" && m.Object != nil { // the vDSO
			b.Stream(uint32(minidump.StreamMemoryList), uint32(1), low, b.Part(m.Object.Data()))
		}
	}
	b.Stream(uint32(minidump.StreamModuleList), modules)
	for _, add := range more {
		add(b)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// identities are the two forms in which Breakpad has had build IDs.
var identities = map[string]func(b *minidumptest.Builder, id []byte) []byte{
	"BpEL": func(b *minidumptest.Builder, id []byte) []byte { return b.Pack("LEpB", id) },
	"RSDS": func(b *minidumptest.Builder, id []byte) []byte {
		return b.Pack("RSDS", id[:16], uint32(0), "path\x00")
	},
}

func TestMinidumpWalksLikeItsCore(t *testing.T) {
	for name, identity := range identities {
		t.Run(name, func(t *testing.T) {
			e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}, Sysroot: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			core, err := e.Open("../examples/crash/server.core")
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			path := filepath.Join(dir, "server.dmp")
			writeMinidump(t, core, path, identity)
			// Under another name beside the dump: only the build ID finds it.
			b, err := os.ReadFile("../examples/crash/server")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "renamed"), b, 0o600); err != nil {
				t.Fatal(err)
			}
			dump, err := e.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			if p := dump.Problems(); len(p) > 0 {
				t.Errorf("problems: %q", p)
			}
			if want, got := core.Info(), dump.Info(); got.Kind != trace.Minidump || got.Signal != want.Signal || got.Machine != want.Machine ||
				got.FaultAddress != want.FaultAddress {
				t.Errorf("%+v, of the core %+v", got, want)
			}
			if len(dump.Threads()) != len(core.Threads()) || len(core.Threads()) < 2 {
				t.Fatalf("%d threads, of the core %d", len(dump.Threads()), len(core.Threads()))
			}
			for i, th := range core.Threads() {
				want := core.Walk(context.Background(), th)
				got := dump.Walk(context.Background(), dump.Threads()[i])
				w, g := summary(want), summary(got)
				w[1], g[1] = "", "" // these dumps have no names of threads
				if d := cmp.Diff(w, g); d != "" || want.Stopped.Reason != trace.StopOutermost {
					t.Errorf("thread %s, core stopped: %v (-core +dump)\n%s", th.ID, want.Stopped, d)
				}
			}
			for i, m := range dump.process.Modules() {
				if want := core.process.Modules()[i]; m.Path != want.Path || m.Object != nil && !m.Confirmed() {
					t.Errorf("module %d: %s, build ID %x, of the core %s, %x", i, m.Path, m.BuildID, want.Path, want.BuildID)
				}
			}
		})
	}
}

// Breakpad makes an identity of the code of a file that has no build ID.
func TestAFileWithoutABuildIDIsKnownByItsCode(t *testing.T) {
	o, err := object.Open("../examples/crash/server")
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	text, err := o.Section(".text").Data()
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, 16)
	for i := range min(len(text), 4096) {
		want[i%16] ^= text[i]
	}
	if d := cmp.Diff(want, o.TextID()); d != "" {
		t.Error(d)
	}
	if o.HasID(want) {
		t.Error("a file with a build ID is known by its code")
	}
}

// openMade opens a dump that was made, with an engine of its own that finds no files.
func openMade(t *testing.T, b *minidumptest.Builder) *Target {
	t.Helper()
	path := filepath.Join(t.TempDir(), "made.dmp")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}, Sysroot: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	dump, err := e.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return dump
}

// Neither files nor code of modules are there: return addresses cannot be held against
// calls. Chains of frame records are believed that end where the outermost frame is marked.
func TestFramePointersLeadThroughModulesThatAreElsewhere(t *testing.T) {
	const module, stack = 0x10000000, 0x7000
	for _, tt := range []struct {
		name string
		pc   uint64
		top  uint64 // the word at the stack pointer
		last uint64 // the frame pointer that the last record saved
		end  uint64 // its return address
		maps string // of /proc/PID/maps
		want []uint64
	}{
		{"to a frame pointer of 0", module + 0x100, 0, 0, module + 0x300, "", []uint64{module + 0x100, module + 0x200, module + 0x300}},
		{"to a record of zeros", module + 0x100, 0, stack + 0x80, module + 0x300, "", []uint64{module + 0x100, module + 0x200, module + 0x300}},
		{"to a count of arguments", module + 0x100, 0, stack + 0xa0, module + 0x300, "", []uint64{module + 0x100, module + 0x200, module + 0x300}},
		{"to a record of other things", module + 0x100, 0, stack + 0x90, module + 0x300, "", []uint64{module + 0x100}},
		{"to no code", module + 0x100, 0, 0, 0x5000, "", []uint64{module + 0x100}},
		{"to below itself", module + 0x100, 0, stack, module + 0x300, "", []uint64{module + 0x100}},
		{"in a stack that may be executed", module + 0x100, 0, 0, module + 0x300, "rwxp", []uint64{module + 0x100, module + 0x200, module + 0x300}},
		{"above a jump to nowhere", 0, stack + 0x10, 0, module + 0x300, "", []uint64{0, module + 0x200, module + 0x300}},
		{"above a jump to nowhere, to no code", 0, stack + 0x10, 0, 0x5000, "", []uint64{0}},
		{"above a call to nowhere", 0, module + 0x180, 0, module + 0x300, "", []uint64{0, module + 0x180, module + 0x200, module + 0x300}},
		{"above a call to nowhere from data", 0, module + 0x1180, 0, 0x5000, "rw-p", []uint64{0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := minidumptest.New(binary.LittleEndian)
			b.System(9, 0x8201)
			c := make([]byte, 1232)
			binary.LittleEndian.PutUint32(c[48:], 0x10000b)
			copy(c[152:], b.Pack(uint64(stack)))
			copy(c[160:], b.Pack(uint64(stack+0x10)))
			copy(c[248:], b.Pack(tt.pc))
			bytes := make([]byte, 0x100)
			copy(bytes, b.Pack(tt.top))
			for at, record := range map[uint64][]uint64{0x10: {stack + 0x40, module + 0x200}, 0x40: {tt.last, tt.end}, 0x90: {0, 0x5000}, 0xa0: {0, 3}} {
				copy(bytes[at:], b.Pack(record))
			}
			b.Stream(uint32(minidump.StreamThreadList), uint32(1), uint32(7), make([]byte, 20), uint64(stack), b.Part(bytes), b.Part(c))
			b.Stream(uint32(minidump.StreamModuleList), uint32(1), uint64(module), uint32(0x2000), uint64(0), b.Text("/usr/lib/libx.dylib"), make([]byte, 84))
			if tt.maps != "" {
				b.Stream(uint32(minidump.StreamLinuxMaps), fmt.Sprintf("7000-8000 %s 00000000 00:00 0 [stack]\n"+
					"10000000-10001000 r-xp 00000000 00:00 0 /usr/lib/libx.dylib\n10001000-10002000 rw-p 00000000 00:00 0 /usr/lib/libx.dylib\n", tt.maps))
			}
			s := walkMade(t, b)
			var got []uint64
			for i, f := range s.Frames {
				got = append(got, f.PC)
				if i > 0 && f.FoundBy != trace.ByFramePointer && f.PC != tt.top {
					t.Errorf("frame %d by %s", i, f.FoundBy)
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("%s; stopped: %v", d, s.Stopped)
			}
		})
	}
}

// walkMade walks the first thread of a dump that was made.
func walkMade(t *testing.T, b *minidumptest.Builder) *trace.Stack {
	t.Helper()
	dump := openMade(t, b)
	defer dump.Close()
	return dump.Walk(context.Background(), dump.Threads()[0])
}

// Of a module of Windows whose file is elsewhere the dump says which PDB file has its names.
func TestAModuleOfWindowsNamesItsPDBFile(t *testing.T) {
	const module = 0x7ff600000000
	for name, want := range map[string]bool{`c:\build\x.pdb`: true, `c:\build\x.exe`: false} {
		b := minidumptest.New(binary.LittleEndian)
		b.System(9, 2)
		c := make([]byte, 1232)
		binary.LittleEndian.PutUint32(c[48:], 0x10000b)
		copy(c[248:], b.Pack(uint64(module+0x100)))
		b.Stream(uint32(minidump.StreamThreadList), uint32(1), uint32(7), make([]byte, 20), uint64(0x7000), uint64(0), b.Part(c))
		b.Stream(uint32(minidump.StreamModuleList), uint32(1), uint64(module), uint32(0x1000), uint32(0), uint32(0x5f3a1b2c), b.Text(`C:\x.exe`), make([]byte, 52),
			b.Part("RSDS", []byte{4, 3, 2, 1, 6, 5, 8, 7, 9, 10, 11, 12, 13, 14, 15, 16}, uint32(2), name+"\x00"), make([]byte, 24))
		dump := openMade(t, b)
		dump.Walk(context.Background(), dump.Threads()[0])
		problems := strings.Join(dump.ModuleInfo(dump.Modules()[0]).Problems, "\n")
		said := strings.Contains(problems, "into a store as x.pdb/0102030405060708090A0B0C0D0E0F102/x.pdb")
		if said != want {
			t.Errorf("%s: problems %q", name, problems)
		}
	}
}

// A store of Microsoft's layout has PE files by their time and size.
func TestPEFilesOfModulesComeFromStores(t *testing.T) {
	oracle.Tools(t, "x86_64-w64-mingw32-gcc")
	dir, store := t.TempDir(), t.TempDir()
	source, exe := filepath.Join(dir, "p.c"), filepath.Join(dir, "p.exe")
	if err := os.WriteFile(source, []byte("int main(void) { return 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	oracle.Run(t, "x86_64-w64-mingw32-gcc", "-g", "-Wl,--build-id", "-o", exe, source)
	o, err := object.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	id, err := o.PE().Identity()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(store, "p.exe", id.CodeID())
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(exe, filepath.Join(folder, "p.exe")); err != nil {
		t.Fatal(err)
	}
	const base = 0x7ff600000000
	b := minidumptest.New(binary.LittleEndian)
	b.System(9, 2)
	c := make([]byte, 1232)
	binary.LittleEndian.PutUint32(c[48:], 0x10000b)
	copy(c[248:], b.Pack(base+o.Entry()-o.PE().ImageBase()))
	b.Stream(uint32(minidump.StreamThreadList), uint32(1), uint32(7), make([]byte, 20), uint64(0x7000), uint64(0), b.Part(c))
	b.Stream(uint32(minidump.StreamModuleList), uint32(1), uint64(base), id.SizeOfImage, uint32(0), id.TimeDateStamp, b.Text(`C:\work\p.exe`), make([]byte, 84))
	path := filepath.Join(dir, "made.dmp")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, stores := range [][]string{{store}, nil} {
		options := Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}, Sysroot: t.TempDir()}
		if stores != nil {
			if options.Symbols, err = symbolstore.New(stores, download.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		e, err := New(options)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		dump, err := e.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		s := dump.Walk(context.Background(), dump.Threads()[0])
		isNamed := len(s.Frames) > 0 && len(s.Frames[0].Symbols) > 0 && s.Frames[0].Symbols[0].Function == "mainCRTStartup"
		if isNamed != (stores != nil) {
			t.Errorf("stores %q: frames %+v; %+v", stores, s.Frames, dump.ModuleInfo(dump.Modules()[0]))
		}
	}
}
