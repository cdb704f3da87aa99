// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

const (
	mingwC = "x86_64-w64-mingw32-gcc"
	wine   = "/usr/lib/wine/wine64" // of the package wine64
)

// crashes are the ways in which testdata/windows/crash.c is compiled.
var crashes = []struct {
	name    string
	options []string
	dumps   []string // types of dumps: MiniDumpNormal, MiniDumpWithFullMemory, which is large
}{
	{"O0", []string{"-O0"}, []string{"0"}},
	{"O2", []string{"-O2"}, []string{"0", "2"}},
	{"Os", []string{"-Os"}, []string{"0"}},
	{"O2fp", []string{"-O2", "-fno-omit-frame-pointer"}, []string{"0"}},
}

// windowsCrashes runs programs that dump themselves under Wine. In the folder are, for each
// of crashes, NAME.exe, what it printed, NAME.txt, and for each type of dump NAME-TYPE.dmp;
// prefix/drive_c has the system's libraries.
func windowsCrashes(t *testing.T) string {
	t.Helper()
	oracle.Tools(t, mingwC, wine)
	source, err := filepath.Abs("testdata/windows")
	if err != nil {
		t.Fatal(err)
	}
	b := oracle.Build{Sources: []string{source}}
	for _, c := range crashes {
		exe := c.name + ".exe"
		b.Commands = append(b.Commands,
			append([]string{mingwC, "-g", "-o", exe, filepath.Join(source, "crash.c"), "-ldbghelp"}, c.options...),
			[]string{"sh", filepath.Join(source, "run.sh"), c.name + ".txt", exe, c.name, c.dumps[len(c.dumps)-1]})
	}
	return b.Make(t)
}

// printed are the return addresses that the program printed of its stacks, by what it
// called them, but for that of the call that printed them. The system goes on above a
// stack's first function: what it finds there is left out.
func printed(t *testing.T, path string) map[string][]uint64 {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stacks, ended := map[string][]uint64{}, map[string]bool{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, digits, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		address, err := strconv.ParseUint(digits, 16, 64)
		if err != nil {
			t.Fatalf("%s: %q", path, lines.Text())
		}
		if ended[name] = ended[name] || address == 0; !ended[name] {
			stacks[name] = append(stacks[name], address)
		}
	}
	for name, list := range stacks {
		stacks[name] = list[1:]
	}
	return stacks
}

// A partOfPE says what of a PE file is taken away, without changing how it is known.
type partOfPE func(file []byte)

func peHeader(file []byte) []byte { return file[binary.LittleEndian.Uint32(file[0x3c:]):] }

// withoutNames takes the symbol table, and the sections of DWARF, which are the last ones.
func withoutNames(file []byte) {
	h := peHeader(file)
	clear(h[12:20])
	sections := h[24+int(binary.LittleEndian.Uint16(h[20:])):]
	count := binary.LittleEndian.Uint16(h[6:])
	for i := range count {
		if sections[40*int(i)] == '/' {
			binary.LittleEndian.PutUint16(h[6:], i)
			return
		}
	}
}

// withoutUnwindCodes takes .pdata.
func withoutUnwindCodes(file []byte) { clear(peHeader(file)[24+112+8*3:][:8]) }

// TestWindowsCrashes walks crashes of programs by MinGW by unwind codes, with names and
// without, and by DWARF alone, and wants the return addresses that the system found while
// they ran.
func TestWindowsCrashes(t *testing.T) {
	dir := windowsCrashes(t)
	for _, c := range crashes {
		name := c.name
		for _, typ := range c.dumps {
			for part, take := range map[string]partOfPE{"whole": nil, "unwind codes": withoutNames, "DWARF": withoutUnwindCodes} {
				t.Run(fmt.Sprintf("%s type %s %s", name, typ, part), func(t *testing.T) {
					e, err := New(Options{
						Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}},
						Sysroot: filepath.Join(dir, "prefix/drive_c"), Exe: exeWithout(t, filepath.Join(dir, name+".exe"), take),
					})
					if err != nil {
						t.Fatal(err)
					}
					defer e.Close()
					checkWindowsCrash(t, e, filepath.Join(dir, name+"-"+typ+".dmp"), printed(t, filepath.Join(dir, name+".txt")), part)
				})
			}
		}
	}
}

// TestWindowsCrashesByTheImagesInTheDump walks a dump with the whole memory where no file of a module is
// there: unwind codes, exports and the names of debug information are in the images.
func TestWindowsCrashesByTheImagesInTheDump(t *testing.T) {
	dir := windowsCrashes(t)
	e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}, Sysroot: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	b, err := os.ReadFile(filepath.Join(dir, "O2-2.dmp"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "elsewhere.dmp") // the program is beside the first one
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	checkWindowsCrash(t, e, path, printed(t, filepath.Join(dir, "O2.txt")), "images")
}

// exeWithout is a copy of a program without a part.
func exeWithout(t *testing.T, path string, take partOfPE) string {
	t.Helper()
	if take == nil {
		return path
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	take(b)
	path = filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// checkWindowsCrash compares the stacks of a dump with those that the program printed.
func checkWindowsCrash(t *testing.T, e *Engine, path string, want map[string][]uint64, part string) {
	t.Helper()
	dump, err := e.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dump.Close()
	if got := dump.Fact(context.Background()); !strings.HasPrefix(got, "null pointer: reads 4 bytes at 0x60 through r") {
		t.Errorf("what happened: %q", got)
	}
	threads := 0
	for _, th := range dump.Threads() {
		s := dump.Walk(context.Background(), th)
		what := "wait"
		if th.Crashed {
			what = "crash"
		}
		all := pcsOf(s)
		// A thread that waits is further in than where it printed.
		first := slices.Index(all, want[what][0])
		if first < 1 {
			t.Errorf("thread %s: PCs %#x, printed %#x", th.ID, all, want[what])
			continue
		}
		if d := cmp.Diff(want[what], all[first:]); d != "" {
			t.Errorf("thread %s, stopped: %v (-printed +dump)\n%s", th.ID, s.Stopped, d)
		}
		checkHowFound(t, s, part)
		threads++
	}
	if threads != 2 {
		t.Errorf("%d threads, expected 2", threads)
	}
}

// pcsOf are the PCs of a stack without frames that tail calls left.
func pcsOf(s *trace.Stack) (list []uint64) {
	for _, f := range s.Frames {
		if f.FoundBy != trace.ByCallSite {
			list = append(list, f.PC)
		}
	}
	return list
}

// checkHowFound wants frames to be found by what is there of the module of the frame that
// they were found through, and named by it.
func checkHowFound(t *testing.T, s *trace.Stack, part string) {
	t.Helper()
	var callee *trace.Frame
	for i := range s.Frames {
		f := &s.Frames[i]
		isOwn := strings.HasSuffix(f.Module.Path, ".exe")
		isNamed, isInMemory := len(f.Symbols) > 0, part == "images" // which have names of exports only
		if isNamed && isOwn && (part == "unwind codes" || isInMemory) || !isNamed && !isOwn && !isInMemory {
			t.Errorf("%s: %#x in %s is named %v", part, f.PC, f.Module.Path, f.Symbols)
		}
		if f.FoundBy == trace.ByCallSite {
			continue
		}
		want := trace.ByContext
		if callee != nil {
			want = trace.ByPE
			if part == "DWARF" && strings.HasSuffix(callee.Module.Path, ".exe") {
				want = trace.ByCFI
			}
			if callee.Exact && len(callee.Symbols) > 0 && strings.HasPrefix(callee.Symbols[0].Function, "NtWait") {
				want = trace.ByRules // a system call: a leaf, which .pdata does not have
			}
		}
		if f.FoundBy != want || f.RestsOnGuess {
			t.Errorf("%s: %#x in %s was found by %s, expected %s", part, f.PC, f.Module.Path, f.FoundBy, want)
		}
		callee = f
	}
}
