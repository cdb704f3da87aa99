// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"debug/dwarf"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

const threadLocalDir = "testdata/threadlocal"

func needTools(t *testing.T, tools ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles programs and runs gdb")
	}
	oracle.Tools(t, tools...)
}

// compileC compiles a source of threadLocalDir.
func compileC(t *testing.T, source, out string, flags ...string) string {
	t.Helper()
	source = filepath.Join(threadLocalDir, source)
	if _, err := os.Stat(source); err != nil { // a cached result is of these files
		t.Fatal(err)
	}
	oracle.Run(t, "gcc", append([]string{"-g", "-gdwarf-5", "-O1", "-pthread", source, "-o", out}, flags...)...)
	return out
}

func openTarget(t *testing.T, path string) *engine.Target {
	t.Helper()
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	core, err := e.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return core
}

// global is a variable of a module.
type global struct {
	module *target.Module
	expr   []byte
	size   int64
}

// globals are the variables of a module by name. symbols is the file that has
// its debugging information.
func globals(t *testing.T, core *engine.Target, path, symbols string) map[string]global {
	t.Helper()
	modules := core.Process().Modules()
	i := slices.IndexFunc(modules, func(m *target.Module) bool { return m.Path == path })
	if i < 0 {
		t.Fatalf("%s is not in the core", path)
	}
	info := readDebugInfo(t, symbols)
	out := map[string]global{}
	for _, unit := range info.dies {
		if unit.Tag != dwarf.TagCompileUnit {
			continue
		}
		for _, x := range unit.children {
			expr, ok := x.Val(dwarf.AttrLocation).([]byte)
			if x.Tag != dwarf.TagVariable || !ok {
				continue
			}
			size, err := info.size(x)
			if err != nil {
				t.Fatal(err)
			}
			out[info.name(x)] = global{modules[i], expr, size}
		}
	}
	return out
}

// read is the bytes of a variable in a thread, and where they are.
func (g *global) read(core *engine.Target, th *trace.Thread, frame int, module *target.Module) (b []byte, address uint64, err error) {
	b = make([]byte, g.size)
	err = core.Process().Evaluate(context.Background(), th, frame, walk.Surroundings{Module: module}, locexpr.DWARF5,
		func(ctx locexpr.Context, ev *locexpr.Evaluator) error {
			l, err := ev.Location(context.Background(), g.expr, ctx)
			if err != nil {
				return err
			}
			_, address, _ = l.MemoryAddress()
			return l.Read(context.Background(), ctx, b, uint64(g.size)*8)
		})
	return b, address, err
}

// TestThreadLocalVariablesEqualGDB compares thread-local variables in every
// thread with those that gdb reads: of the executable, of a library whose
// storage is allocated on demand, which has the module ID of one that was
// unloaded, and of a library in the static block.
func TestThreadLocalVariablesEqualGDB(t *testing.T) {
	needTools(t, "gcc", "gdb", "gcore")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	exe := compileC(t, "program.c", filepath.Join(dir, "program"), "-Wl,-rpath,$ORIGIN")
	libraries := map[string]string{"first": "global-dynamic", "second": "global-dynamic", "fixed": "initial-exec"}
	for name, model := range libraries {
		compileC(t, "library.c", filepath.Join(dir, "lib"+name+".so"), "-fPIC", "-shared", "-DNAME="+name, "-ftls-model="+model)
	}
	path := variablesCore(t, exe, false)
	core := openTarget(t, path)
	variables := map[string]global{}
	for _, file := range []string{exe, filepath.Join(dir, "libsecond.so"), filepath.Join(dir, "libfixed.so")} {
		maps.Copy(variables, globals(t, core, file, file))
	}
	for _, name := range []string{"truth", "step", "first", "second", "fixed"} { // these belong to no thread
		if _, ok := variables[name]; !ok {
			t.Errorf("%s is not among the variables", name)
		}
		delete(variables, name)
	}
	if len(variables) != 10 {
		t.Fatalf("%d variables, expected 10", len(variables))
	}

	const readsUnallocated = 3 * 4 // variables of second in the threads 0, 1, 3 and 4
	unallocated, equals := 0, 0
	names := strings.Join(slices.Sorted(maps.Keys(variables)), " ")
	gdb := gdbThreadLocals(t, exe, path, names)
	if len(gdb) != 6 || len(core.Threads()) != 6 {
		t.Fatalf("gdb has %d threads, the core %d, expected 6", len(gdb), len(core.Threads()))
	}
	for _, th := range core.Threads() {
		for name, v := range variables {
			want, ok := gdb[th.ID][name]
			if !ok {
				t.Fatalf("gdb says nothing of %s in thread %s", name, th.ID)
			}
			got, address, err := v.read(core, th, 0, v.module)
			switch {
			case err != nil && strings.Contains(want.Error, "not yet allocated") && strings.Contains(err.Error(), "is not allocated in this thread yet"):
				unallocated++
			case err != nil || want.Error != "" || want.Bytes != hex.EncodeToString(got):
				t.Errorf("thread %s: %s is %x at %#x, %v; gdb has %+v", th.ID, name, got, address, err, want)
			default:
				equals++
			}
		}
	}
	t.Logf("%d equal, %d not allocated", equals, unallocated)
	if unallocated != readsUnallocated {
		t.Errorf("%d reads of storage that is not allocated, expected %d", unallocated, readsUnallocated)
	}
	testFramesModule(t, core, exe, variables["counter"])
}

// testFramesModule checks that the module of a frame is meant where none is
// given.
func testFramesModule(t *testing.T, core *engine.Target, exe string, counter global) {
	t.Helper()
	own := 0
	for _, th := range core.Threads() {
		for i, f := range core.Walk(context.Background(), th).Frames {
			got, at, err := counter.read(core, th, i, nil)
			want, wantAt, wantErr := counter.read(core, th, 0, core.Process().Modules()[f.Module.ID])
			if err != nil || wantErr != nil || at != wantAt || hex.EncodeToString(got) != hex.EncodeToString(want) {
				t.Errorf("thread %s frame %d of %s: %x at %#x, %v, expected %x at %#x, %v", th.ID, i, f.Module.Path, got, at, err, want, wantAt, wantErr)
			}
			if f.Module.Path == exe {
				own++
			}
		}
	}
	if own < len(core.Threads()) {
		t.Errorf("%d frames are of the executable, expected %d or more", own, len(core.Threads()))
	}
}

type gdbThreadLocal struct{ Bytes, Error string }

// gdbThreadLocals are the variables by thread and name.
func gdbThreadLocals(t *testing.T, exe, core, names string) map[string]map[string]gdbThreadLocal {
	t.Helper()
	script := filepath.Join(threadLocalDir, "values.py")
	out := filepath.Join(t.TempDir(), "values.json")
	cmd := exec.Command("gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-ex", "source "+script, exe, core)
	cmd.Env = append(os.Environ(), "VARIABLES="+out, "NAMES="+names)
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("gdb: %v\n%s", err, text)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var threads []struct {
		ID     string
		Values map[string]gdbThreadLocal
	}
	if err := json.Unmarshal(data, &threads); err != nil {
		t.Fatal(err)
	}
	byID := map[string]map[string]gdbThreadLocal{}
	for _, th := range threads {
		byID[th.ID] = th.Values
	}
	return byID
}

// The program says itself where its variables are. One without a dynamic loader
// has nothing but its segment PT_TLS to find them by.
func TestThreadLocalVariablesAreWhereTheProgramSays(t *testing.T) {
	needTools(t, "gcc", "gcore")
	for name, flags := range map[string][]string{
		"dynamic":                 {"-DALONE"},
		"static":                  {"-DALONE", "-static"},
		"static, without symbols": {"-DALONE", "-static-pie", "-s"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			exe := compileC(t, "program.c", filepath.Join(dir, "program"), flags...)
			core := openTarget(t, variablesCore(t, exe, false))
			// The debugging information of the same link without -s.
			symbols := exe
			if slices.Contains(flags, "-s") {
				symbols = compileC(t, "program.c", filepath.Join(dir, "symbols"), flags[:len(flags)-1]...)
			}
			variables := globals(t, core, exe, symbols)
			truth := variables["truth"]
			table, _, err := truth.read(core, core.Threads()[0], 0, truth.module)
			if err != nil {
				t.Fatal(err)
			}
			checked := 0
			for _, th := range core.Threads() {
				for row := table; len(row) > 0; row = row[40:] {
					if wordOf(row)&0xffffffff != idOf(t, th) {
						continue
					}
					for i, name := range []string{"counter", "name", "wide", "hidden"} {
						v := variables[name]
						if _, address, err := v.read(core, th, 0, v.module); err != nil || address != wordOf(row[8+8*i:]) {
							t.Errorf("thread %s: %s is at %#x, %v, expected %#x", th.ID, name, address, err, wordOf(row[8+8*i:]))
						}
						checked++
					}
				}
			}
			if checked != 6*4 {
				t.Errorf("%d variables, expected %d", checked, 6*4)
			}
		})
	}
}

func wordOf(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

func idOf(t *testing.T, th *trace.Thread) uint64 {
	t.Helper()
	id, err := strconv.ParseUint(th.ID, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
