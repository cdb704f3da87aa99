// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// TestADebugFileAloneGivesNamesAndLines walks a core without the executable, whose debug file
// is there, beside the same core with it.
func TestADebugFileAloneGivesNamesAndLines(t *testing.T) {
	const program, core = "../examples/crash/server", "../examples/crash/server.core"
	debug := filepath.Join(t.TempDir(), "server.debug")
	oracle.Run(t, "objcopy", "--only-keep-debug", program, debug)
	open := func(o Options) *Target {
		o.Plugins, o.Sysroot = plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}, t.TempDir()
		e, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		path := filepath.Join(t.TempDir(), "server.core")
		oracle.Run(t, "cp", core, path) // the executable lies beside the other one
		opened, err := e.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		return opened
	}
	whole := open(Options{Exe: program})
	for name, o := range map[string]Options{
		"in a debug directory": {DebugDirs: []string{filepath.Dir(debug)}}, "given": {Modules: map[string]string{"server": debug, "none.so": program}},
	} {
		t.Run(name, func(t *testing.T) {
			alone := open(o)
			for i, th := range whole.Threads() {
				want, got := whole.Walk(t.Context(), th), alone.Walk(t.Context(), alone.Threads()[i])
				w, g := want.Frames[0], got.Frames[0]
				if w.Module == nil || g.Module == nil || w.Module.Path != g.Module.Path {
					t.Fatalf("thread %s: in %v and %v", th.ID, w.Module, g.Module)
				}
				if len(w.Symbols) == 0 || len(g.Symbols) != len(w.Symbols) || g.Symbols[0].Function != w.Symbols[0].Function || g.Symbols[0].Line != w.Symbols[0].Line {
					t.Errorf("thread %s: %+v, with the executable %+v", th.ID, g.Symbols, w.Symbols)
				}
			}
			m := alone.process.Segment(alone.Walk(t.Context(), alone.Threads()[0]).Frames[0].PC).Module
			info := m.Info()
			if m.HasCode() || m.File != "" || info.DebugFile != debug || info.DebugInfo != trace.DebugInfoFound || !strings.Contains(strings.Join(info.Problems, "\n"), "which has no code") {
				t.Errorf("%s: has code %v, file %q, %+v", m.Path, m.HasCode(), m.File, info)
			}
			problems := strings.Join(alone.Problems(), "\n")
			if (len(o.Modules) > 0) != strings.Contains(problems, "server was not used: no module is called none.so") {
				t.Errorf("problems %q", problems)
			}
		})
	}
}

// TestCallsAreSeenInDebugInformation compares what debug information says of return addresses
// with the code before them.
func TestCallsAreSeenInDebugInformation(t *testing.T) {
	e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}, Exe: "../examples/crash/server"})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	target, err := e.Open("../examples/crash/server.core")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, th := range target.Threads() {
		for _, f := range target.Walk(t.Context(), th).Frames[1:] {
			s := target.process.Segment(f.PC)
			if s == nil || s.Module.DebugInfo() != trace.DebugInfoFound {
				continue
			}
			pc := s.ObjectAddress(f.PC)
			if s.Module.Code.DescribedSite(pc).IsAfterCall {
				calls++
			}
			if off := s.Module.Code.DescribedSite(pc + 1); off.IsAfterCall {
				t.Errorf("%#x: a call returns to the address behind it, too", f.PC)
			}
		}
	}
	if calls == 0 {
		t.Error("no return address is that of a call of debug information")
	}
}
