// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/enginetest"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
)

const riscv64Root = "/usr/riscv64-linux-gnu"

var riscv64 = emulated{"riscv64", "rv64", riscv64Root}

// vendor has the plugin of examples/arch-riscv64 used, in its own process.
func vendor(t *testing.T) func(*enginetest.Ask) {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // the cache of plugins
	dir := t.TempDir()
	example := filepath.Join("..", "examples", "arch-riscv64")
	oracle.With{Dir: example, Env: []string{"CGO_ENABLED=0", "GOWORK="}}.Run(t, "go", "build", "-trimpath", "-o", dir+"/", "./unwindd-arch-riscv64")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return func(a *enginetest.Ask) { a.Engine.Plugins.Dirs, a.Engine.Plugins.Self = []string{dir}, self }
}

// TestStacksOfRISCVAreGDBs has programs of RISC-V crash under qemu, and walks them by the
// plugin of examples/arch-riscv64, in its own process, as gdb does.
func TestStacksOfRISCVAreGDBs(t *testing.T) {
	long(t)
	oracle.Tools(t, "riscv64-linux-gnu-gcc", "riscv64-linux-gnu-g++", "qemu-riscv64", "gdb-multiarch")
	plugins := vendor(t)
	for _, c := range []struct {
		name, compiler, source string
		flags                  []string
		threads, frames        int  // frames of the thread that crashed, at least
		further                bool // than gdb, which says that a frame did not save the PC
	}{
		{"static", "gcc", "riscv64.c", []string{"-O2", "-g", "-static"}, 1, 9, false},
		{"frame pointers", "gcc", "riscv64.c", []string{"-O1", "-g", "-static", "-fno-omit-frame-pointer"}, 1, 9, false},
		{"without call frame information", "gcc", "riscv64.c", []string{"-O2", "-static", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables"}, 1, 9, true},
		{"C++ with threads", "g++", "riscv64.cc", []string{"-O2", "-g", "-pthread"}, 4, 12, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			exe := filepath.Join(t.TempDir(), "subject")
			oracle.Run(t, "riscv64-linux-gnu-"+c.compiler, append(c.flags, "-o", exe, subject.Source(t, c.source))...)
			path, want := riscv64.qemuSnapshot(t, nil, nil, exe)
			got := enginetest.Report(t, path, plugins)
			if len(got.Threads) != c.threads || len(want) != c.threads || len(got.Target.Problems) > 0 {
				t.Errorf("%d threads, gdb has %d, expected %d; problems %q", len(got.Threads), len(want), c.threads, got.Target.Problems)
			}
			for i := range got.Threads {
				th := &got.Threads[i]
				pcs := []string{}
				for _, f := range th.Frames {
					if !f.Inlined && !trace.FoundBy(f.FoundBy).IsGuess() {
						pcs = append(pcs, f.PC)
					}
				}
				isShort := i == 0 && len(pcs) < c.frames
				if last := len(want[th.ID]); c.further && last < len(pcs) {
					pcs = pcs[:last]
				}
				if diff := cmp.Diff(want[th.ID], pcs); diff != "" || isShort {
					t.Errorf("thread %s (-gdb +unwindd), stopped %s: %s\n%s", th.ID, th.Stopped.Reason, th.Stopped.Detail, diff)
				}
			}
		})
	}
}

// TestCallsThroughNullOfRISCV has a program call through null, where no row is and ra has
// the return address, and stop in a signal handler, whose trampoline is in a page of qemu's.
func TestCallsThroughNullOfRISCV(t *testing.T) {
	long(t)
	oracle.Tools(t, "riscv64-linux-gnu-gcc", "qemu-riscv64", "gdb-multiarch")
	plugins := vendor(t)
	without := []string{"-O1", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables"}
	called := []string{"", "calls", "step", "step", "step", "main"}
	handled := []string{"handler", "", "reads", "step", "step", "step", "main"}
	for name, c := range map[string]struct {
		flags []string
		what  string
		want  []string
	}{
		"null call":                 {[]string{"-O1", "-g"}, "call", called},
		"null call, frame pointers": {[]string{"-O1", "-g", "-fno-omit-frame-pointer"}, "call", called},
		"null call, static":         {[]string{"-O1", "-g", "-static"}, "call", called},
		"null call, no CFI":         {without, "call", called},
		"handler":                   {[]string{"-O1", "-g"}, "handler", handled},
		"handler, no CFI":           {without, "handler", handled},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			exe, page := filepath.Join(dir, "subject"), filepath.Join(dir, "page")
			oracle.Run(t, "riscv64-linux-gnu-gcc", append(c.flags, "-o", exe, subject.Source(t, "riscv64crash.c"))...)
			var gdb []string
			if c.what == "handler" {
				gdb = append(gdb, "-ex", "continue", "-ex", "set $page=(long)$ra&-4096", "-ex", "dump binary memory "+page+" $page $page+4096")
			}
			path, byGDB := riscv64.qemuSnapshot(t, nil, gdb, exe, c.what)
			if c.what == "handler" {
				addPage(t, path, page)
			}
			got := enginetest.Report(t, path, plugins)
			names, pcs := []string{}, []string{}
			for _, f := range got.Threads[0].Frames {
				names, pcs = append(names, f.Function), append(pcs, f.PC)
				if f.Function == "main" {
					break
				}
			}
			if !slices.Equal(names, c.want) {
				t.Errorf("%q, expected %q", names, c.want)
			}
			for _, theirs := range byGDB { // of code without call frame information gdb knows less
				if n := min(len(theirs), len(pcs)); !slices.Equal(pcs[:n], theirs[:n]) {
					t.Errorf("PCs %q, gdb's are %q", pcs, theirs)
				}
			}
			if last := got.Threads[0].Frames[len(got.Threads[0].Frames)-1]; last.Function != "_start" {
				t.Errorf("it ends in %s, expected _start: %+v", last.Function, got.Threads[0].Stopped)
			}
		})
	}
}

// addPage puts the page of code that the first thread's ra points into, which is in no
// module, into a snapshot.
func addPage(t *testing.T, snapshot, page string) {
	t.Helper()
	code, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	editSnapshot(t, snapshot, "memory/page.bin", code, func(s map[string]any) {
		start := registerOf(t, s, "ra") &^ 4095
		at := fmt.Sprintf("%#x", start)
		s["modules"] = append(s["modules"].([]any), map[string]any{"arch": "riscv64", "segments": []any{map[string]any{"address": at, "size": "0x1000", "start": at}}})
		s["memory"] = append(s["memory"].([]any), map[string]any{"file": "memory/page.bin", "address": at})
	})
}

// registerOf is a register of a snapshot's first thread.
func registerOf(t *testing.T, snapshot map[string]any, name string) uint64 {
	t.Helper()
	text, _ := snapshot["threads"].([]any)[0].(map[string]any)["registers"].(map[string]any)[name].(string)
	v, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		t.Fatalf("register %s: %v", name, err)
	}
	return v
}

// editSnapshot changes a snapshot's description, and adds a member.
func editSnapshot(t *testing.T, path, member string, content []byte, edit func(map[string]any)) {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	add := func(name string, b []byte) {
		f, err := w.Create(name)
		if err == nil {
			_, err = f.Write(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name == "snapshot.json" {
			var s map[string]any
			if err := json.Unmarshal(b, &s); err != nil {
				t.Fatal(err)
			}
			edit(s)
			if b, err = json.Marshal(s); err != nil {
				t.Fatal(err)
			}
		}
		add(f.Name, b)
	}
	add(member, content)
	if err := errors.Join(w.Close(), os.WriteFile(path, out.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestThreadLocalStorageOfRISCV reads variables of a thread where tp says that they are.
// gcc 12 does not say in debug information where they are: clang does.
func TestThreadLocalStorageOfRISCV(t *testing.T) {
	long(t)
	oracle.Tools(t, "clang-22", "ld.lld-22", "riscv64-linux-gnu-gcc", "qemu-riscv64", "gdb-multiarch")
	plugins := vendor(t)
	dir := t.TempDir()
	exe, block := filepath.Join(dir, "subject"), filepath.Join(dir, "block")
	oracle.Run(t, "clang-22", "--target=riscv64-linux-gnu", "-march=rv64gc", "-w", "-O1", "-g", "-fuse-ld=lld-22", "-o", exe, subject.Source(t, "riscv64crash.c"))
	path, _ := riscv64.qemuSnapshot(t, nil, []string{"-ex", "dump binary memory " + block + " $tp-64 $tp+64"}, exe, "data")
	content, err := os.ReadFile(block)
	if err != nil {
		t.Fatal(err)
	}
	editSnapshot(t, path, "memory/block.bin", content, func(s map[string]any) {
		s["memory"] = append(s["memory"].([]any), map[string]any{"file": "memory/block.bin", "address": fmt.Sprintf("%#x", registerOf(t, s, "tp")-64)})
	})
	got := enginetest.Report(t, path, plugins, func(a *enginetest.Ask) { a.Stack.Globals = []string{"mark", "before"} })
	values := map[string]string{}
	for _, v := range got.Globals {
		if v.Value != nil {
			values[v.Name] = *v.Value
		}
		for _, element := range v.Children {
			if element.Value != nil {
				values[v.Name] += *element.Value + " "
			}
		}
	}
	if values["mark"] != "4711" || values["before"] != "2 0 0 0 42 " {
		t.Errorf("mark and before are %q, expected 4711 and 2 0 0 0 42", values)
	}
}
