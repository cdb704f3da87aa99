// SPDX-License-Identifier: Apache-2.0

//go:build linux

package engine

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/x86"
	"github.com/unwindd/unwindd/sdk"
)

// wine32Folder names the variable with the folder that testdata/windows/wine32.sh makes.
const wine32Folder = "UNWINDD_WINE32"

// TestStacksOfX86UnderWine walks the minidumps of programs for 32-bit x86 by the frame data of their PDB files, and
// their libraries: the return addresses that the functions printed are on the stack, in their order, up to the first
// function of the thread.
func TestStacksOfX86UnderWine(t *testing.T) {
	oracle.All(t)
	folder := os.Getenv(wine32Folder)
	if folder == "" {
		t.Skipf("%s names no folder with Wine for 32-bit x86", wine32Folder)
	}
	oracle.Tools(t, "clang++-22")
	for name, options := range map[string][]string{
		"O0": {"-O0"}, "O1": {"-O1"}, "O2": {"-O2"}, "O2 with frame pointers": {"-O2", "-fno-omit-frame-pointer"}, "Os": {"-Os", "-mno-sse"},
	} {
		t.Run(name, func(t *testing.T) {
			p := wine32{folder, t.TempDir()}
			p.build(t, options)
			for _, way := range []string{"1", "2", "3", "4", "5"} {
				for _, place := range []string{"", "thread", "once"} {
					p.check(t, way, place)
				}
			}
		})
	}
}

// wine32 is a program for 32-bit x86 in a folder of its own.
type wine32 struct{ folder, dir string }

func (p wine32) exe() string { return filepath.Join(p.dir, "crash32.exe") }

func (p wine32) build(t *testing.T, options []string) {
	t.Helper()
	source, err := filepath.Abs("testdata/windows/crash32.cc")
	if err != nil {
		t.Fatal(err)
	}
	usr := filepath.Join(p.folder, "root/usr")
	compiler := filepath.Join(usr, "lib/gcc/i686-w64-mingw32/12-win32")
	args := []string{"--target=i686-w64-mingw32", "-gcodeview", "-g", "-fuse-ld=lld", "-static", "-Wl,-s", "-Wl,--pdb=crash32.pdb", "-nostdlibinc", "-isystem", filepath.Join(usr, "share/mingw-w64/include")}
	for _, place := range []string{filepath.Join(usr, "i686-w64-mingw32/lib"), compiler} {
		args = append(args, "-B"+place, "-L"+place)
	}
	oracle.With{Dir: p.dir}.Run(t, "clang++-22", append(append(args, options...), "-o", "crash32.exe", source, "-ldbghelp")...)
}

// run runs the program, and returns the return addresses that it printed, the innermost first.
func (p wine32) run(t *testing.T, args ...string) (called []uint64) {
	t.Helper()
	lib, wine := filepath.Join(p.folder, "root/usr/lib"), filepath.Join(p.folder, "root/usr/lib/wine")
	cmd := exec.Command(filepath.Join(wine, "wine"), append([]string{p.exe()}, args...)...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "WINEDEBUG=-all", "WINEARCH=win32", "WINEPREFIX="+filepath.Join(p.folder, "prefix"), "HOME="+p.dir,
		"WINESERVER="+filepath.Join(wine, "wineserver32"), "WINELOADER="+filepath.Join(wine, "wine"), "WINEDLLPATH="+filepath.Join(lib, "i386-linux-gnu/wine"),
		"LD_LIBRARY_PATH="+filepath.Join(p.folder, "root/lib/i386-linux-gnu")+":"+filepath.Join(lib, "i386-linux-gnu"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if digits, ok := strings.CutPrefix(strings.TrimSpace(line), "called "); ok {
			address, err := strconv.ParseUint(digits, 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			called = slices.Insert(called, 0, address)
		}
	}
	return called
}

func (p wine32) check(t *testing.T, way, place string) {
	t.Helper()
	called := p.run(t, way, place)
	e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86.New()}}, Sysroot: filepath.Join(p.folder, "prefix/drive_c"), Exe: p.exe()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	dump, err := e.Open(filepath.Join(p.dir, "crash32.dmp"))
	if err != nil {
		t.Fatal(err)
	}
	defer dump.Close()
	threads := dump.Threads()
	i := slices.IndexFunc(threads, func(th *trace.Thread) bool { return th.Crashed })
	if i < 0 {
		t.Fatal("no thread crashed")
	}
	s := dump.Walk(context.Background(), threads[i])
	rest := called
	for j := range s.Frames {
		f := &s.Frames[j]
		if len(rest) > 0 && f.PC == rest[0] {
			rest = rest[1:]
		}
		if isBadJump := way == "2" && j == 1; f.FoundBy == trace.ByScan && !isBadJump {
			t.Errorf("way %s %s: frame %d at %#x is a guess", way, place, j, f.PC)
		}
	}
	if len(called) < 10 || len(rest) > 0 || s.Stopped.Reason != trace.StopOutermost {
		t.Errorf("way %s %s: %d of %d return addresses are not on the stack, the next %#x; %+v", way, place, len(rest), len(called), rest, s.Stopped)
	}
}
