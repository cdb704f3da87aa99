// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// TestVariablesOfAMinidumpWithAPDBAreThoseOfLLDB compares every variable of a program without optimization, in the
// frames of its own functions, by the PDB file that lld wrote.
func TestVariablesOfAMinidumpWithAPDBAreThoseOfLLDB(t *testing.T) {
	const clang, lldb = "clang++-22", "lldb-22"
	oracle.Tools(t, clang, lldb, wine)
	source, err := filepath.Abs("testdata/windows")
	if err != nil {
		t.Fatal(err)
	}
	dir := oracle.Build{Sources: []string{source}, Commands: [][]string{
		{clang, "--target=x86_64-w64-mingw32", "-gcodeview", "-g", "-O0", "-fuse-ld=lld", "-static", "-Wl,-s", "-Wl,--pdb=locals.pdb", "-o", "locals.exe", filepath.Join(source, "winelocals.cc"), "-ldbghelp"},
		{"sh", filepath.Join(source, "run.sh"), "locals.txt", "locals.exe", "locals.dmp"},
	}}.Make(t)
	exe, dump := filepath.Join(dir, "locals.exe"), filepath.Join(dir, "locals.dmp")
	e, err := New(Options{
		Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}},
		Locals:  &trace.DefaultValueLimits, Drives: filepath.Join(dir, "prefix/dosdevices"),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	target, err := e.Open(dump)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	got := map[string]string{}
	for i, f := range target.Walk(context.Background(), target.Threads()[0]).Frames {
		for _, of := range f.Locals() {
			for k := range of {
				addValues(got, fmt.Sprintf("%d %s", i, of[k].Name), &of[k].Value)
			}
		}
	}
	compared := 0
	out := oracle.Run(t, lldb, "--no-lldbinit", "-b", "-o", "target create "+exe+" --core "+dump, "-o", "command script import "+filepath.Join(source, "winelocals.py"))
	for line := range strings.Lines(out) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 4)
		if len(fields) != 4 || fields[0] != "variable" {
			continue
		}
		name := fields[1] + " " + fields[2]
		if !isSameValue(got[name], fields[3]) {
			t.Errorf("frame %s is %q, of LLDB %q", name, got[name], fields[3])
		}
		compared++
	}
	if compared < 60 {
		t.Errorf("%d values were compared\n%s\n%v", compared, out, got)
	}
}

// addValues adds the values of a variable that have no parts, by their paths.
func addValues(values map[string]string, path string, v *trace.Value) {
	if len(v.Children) == 1 && v.Children[0].Role == trace.RolePointee {
		if isReference := strings.HasSuffix(v.Type, "&"); isReference {
			addValues(values, path, &v.Children[0])
			return
		}
		values[path] = v.Text
		return
	}
	for i := range v.Children {
		addValues(values, path+"/"+strings.Trim(v.Children[i].Name, "<>"), &v.Children[i])
	}
	switch {
	case len(v.Children) > 0:
	case v.Status == trace.ValueOK:
		values[path] = v.Text
	default:
		values[path] = "unknown"
	}
}

// isSameValue compares a text with LLDB's. Characters are numbers with a character behind them, pointers have the name
// of what they lead to.
func isSameValue(text, want string) bool {
	first, _, _ := strings.Cut(text, " ")
	if first == want {
		return true
	}
	a, err := strconv.ParseFloat(first, 64)
	b, wrong := strconv.ParseFloat(want, 64)
	return err == nil && wrong == nil && (a == b || a-b < 0.02*b && b-a < 0.02*b)
}
