// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// windowsLocals is the folder of testdata/windows/locals.cc with its PDB file, locals.exe and
// locals.pdb, and the dump of its crash, crash.dmp.
func windowsLocals(t *testing.T) string {
	t.Helper()
	oracle.Tools(t, "clang++-22", wine)
	source, err := filepath.Abs("testdata/windows")
	if err != nil {
		t.Fatal(err)
	}
	return oracle.Build{Sources: []string{filepath.Join(source, "locals.cc"), filepath.Join(source, "run.sh")}, Commands: [][]string{
		{"clang++-22", "--target=x86_64-w64-mingw32", "-std=c++20", "-gcodeview", "-g", "-O0", "-fuse-ld=lld", "-static", "-Wl,-s", "-Wl,--pdb=locals.pdb",
			"-o", "locals.exe", filepath.Join(source, "locals.cc"), "-ldbghelp"},
		{"sh", filepath.Join(source, "run.sh"), "locals.txt", "locals.exe"},
		{"test", "-s", "crash.dmp"},
	}}.Make(t)
}

// crashedFrames are the frames of the crash with their variables.
func crashedFrames(t *testing.T, dir string, limits trace.ValueLimits) []trace.Frame {
	t.Helper()
	dump, th := crashOf(t, dir, limits)
	return dump.Walk(context.Background(), th).Frames
}

// crashOf is the dump with the thread that crashed.
func crashOf(t *testing.T, dir string, limits trace.ValueLimits) (*Target, *trace.Thread) {
	t.Helper()
	e, err := New(Options{
		Locals: &limits, Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}},
		Sysroot: filepath.Join(dir, "prefix/drive_c"), Exe: filepath.Join(dir, "locals.exe"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	dump, err := e.Open(filepath.Join(dir, "crash.dmp"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dump.Close() })
	for _, th := range dump.Threads() {
		if th.Crashed {
			return dump, th
		}
	}
	t.Fatal("no thread crashed")
	return nil, nil
}

// flatten adds the values without parts by their paths. Members of bases are the object's own.
func flatten(flat map[string]string, path string, v *trace.Value) {
	if v.HasText && len(v.Children) == 0 {
		flat[path] = v.Text
	}
	for i := range v.Children {
		child := &v.Children[i]
		switch {
		case child.Role == trace.RoleBase || child.Name == "":
			flatten(flat, path, child)
		case v.Shape == trace.ShapeArray:
			flatten(flat, fmt.Sprintf("%s[%d]", path, i), child)
		default:
			flatten(flat, path+"."+child.Name, child)
		}
	}
}

// plainNumber is a number as both tools write it; false for other texts. An address may have its text
// behind it.
func plainNumber(text string) (string, bool) {
	if strings.HasPrefix(text, "0x") {
		text, _, _ = strings.Cut(text, " ")
	}
	switch text {
	case "true", "false":
		return text, true
	case "nullptr":
		return "0x0", true
	}
	if n, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64); err == nil && strings.HasPrefix(text, "0x") {
		return fmt.Sprintf("%#x", n), true
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil || regexp.MustCompile(`^[A-Z][a-z]*$`).MatchString(text) {
		return text, true
	}
	return text, false
}

// lldbDiffers are the variables that LLDB reads wrong, or whose values it writes in a way of its
// own: members of virtual bases, pointers to members, and real numbers of x87.
var lldbDiffers = regexp.MustCompile(`\bbase$|^method$|^member$|^ld$|^np$|^lambda\.`)

// The variables of a dump of Windows are those that LLDB reads of it.
func TestVariablesOfAMinidumpAreThoseOfLLDB(t *testing.T) {
	oracle.All(t)
	oracle.Tools(t, "lldb-22")
	dir := windowsLocals(t)
	frames := crashedFrames(t, dir, trace.ValueLimits{Depth: 12, Elements: 200, Raw: true})
	out := oracle.With{Dir: dir}.Run(t, "lldb-22", "-b", "-c", "crash.dmp", "locals.exe", "-o", "frame variable -R -F", "-o", "up", "-o", "script print('OUTER')", "-o", "frame variable -R -F")
	inner, outer, _ := strings.Cut(out, "\nOUTER")
	compared := 0
	for i, text := range []string{inner, outer} {
		flat, names := map[string]string{}, map[string]bool{}
		for _, list := range frames[i].Locals() {
			for j := range list {
				if v := &list[j]; !v.IsShadowed {
					flatten(flat, v.Name, &v.Value)
				}
				names[list[j].Name] = true
			}
		}
		for _, line := range strings.Split(text, "\n") {
			path, want, ok := strings.Cut(line, " = ")
			root := regexp.MustCompile(`^\w+`).FindString(path)
			if !ok || root == "" || strings.ContainsAny(path, " (") {
				continue
			}
			if !names[root] {
				t.Errorf("frame %d has no %s, which LLDB reads as %s", i, path, want)
			}
			want, isNumber := plainNumber(want)
			got, isThere := flat[path]
			if !isThere || !isNumber || lldbDiffers.MatchString(path) || path == "depth" && want != got {
				continue
			}
			compared++
			if got, _ = plainNumber(got); got != want {
				t.Errorf("frame %d: %s is %s, expected %s", i, path, got, want)
			}
		}
	}
	if compared < 50 {
		t.Errorf("%d values were compared, expected at least 50", compared)
	}
	t.Logf("%d values", compared)
}

// Objects of libraries in a dump of Windows are shown as elsewhere.
func TestVariablesOfAMinidumpAreReadByPDB(t *testing.T) {
	oracle.All(t)
	frames := crashedFrames(t, windowsLocals(t), trace.DefaultValueLimits)
	got := map[string]string{}
	for _, list := range frames[0].Locals() {
		for i := range list {
			if !list[i].IsShadowed {
				got[list[i].Name] = list[i].Text
			}
		}
	}
	for name, want := range map[string]string{
		"depth": "77", "text": `"hi"`, "method": "&virtual table offset 16", "member": "&Derived::own", "buffer": `"hello"`, "wide": `L"wide"`, "plain": "B",
		"own": `"hi world, which is long enough for the heap"`, "numbers": "std::vector of length 4, capacity 4", "names": "std::map with 2 elements", "flag": "true",
		"big": "-1234567890123", "f": "3.25", "inner": "84", "counter": "5",
	} {
		if got[name] != want {
			t.Errorf("%s is %s, expected %s", name, got[name], want)
		}
	}
}

// Variables outside of functions, static ones of functions and those of threads are found by name.
func TestGlobalsOfAMinidumpAreReadByPDB(t *testing.T) {
	oracle.All(t)
	dump, th := crashOf(t, windowsLocals(t), trace.DefaultValueLimits)
	for name, want := range map[string]string{
		"hidden": "ns::hidden = 7", "Derived::count": "Derived::count = 99", "tls_value": "tls_value = 1235", "counter": "counter = 5",
	} {
		list, err := dump.Globals(context.Background(), th, name, trace.DefaultValueLimits)
		if err != nil || len(list) != 1 {
			t.Errorf("%s: %d variables, %v", name, len(list), err)
			continue
		}
		if got := list[0].Name + " = " + list[0].Text; got != want {
			t.Errorf("%s, expected %s", got, want)
		}
	}
}
