// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"archive/zip"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// writeSnapshot writes what a target has as a snapshot: the registers, the
// stacks, and the modules by build ID, or with their code objects where inside
// is set.
func writeSnapshot(t *testing.T, core *Target, path string, inside bool) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	add := func(name string, data []byte) {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	number := func(n uint64) string { return fmt.Sprintf("0x%x", n) }
	d := x86_64.Description()
	var threads, modules, memory []any
	for i, th := range core.Threads() {
		registers := map[string]string{}
		for _, n := range th.Registers.Numbers {
			info, ok := d.Register(n)
			if !ok {
				t.Fatalf("register %d", n)
			}
			if v, ok := th.Registers.Uint64(n, sdk.LittleEndian); ok && info.Class != sdk.Vector {
				registers[info.Name] = number(v)
			} else if b, _ := th.Registers.Get(n); info.Class == sdk.Vector {
				registers[strings.ToUpper(info.Name)] = hex.EncodeToString(b)
			}
		}
		threads = append(threads, map[string]any{"id": th.ID, "name": th.Name, "arch": th.Arch, "crashed": th.Crashed, "signal": th.Signal, "registers": registers})
		sp, _ := th.Registers.Uint64(d.SP, sdk.LittleEndian)
		stack := make([]byte, 16<<10)
		n, _ := core.process.State().ReadMemory(0, sp, stack)
		name := fmt.Sprintf("memory/%d.bin", i)
		add(name, stack[:n])
		memory = append(memory, map[string]any{"file": name, "space": "global", "address": number(sp)})
	}
	for i, m := range core.process.Modules() {
		entry := map[string]any{"path": m.Path, "build_id": hex.EncodeToString(m.BuildID), "arch": m.Arch}
		var segments []any
		for _, s := range m.Segments {
			segments = append(segments, map[string]any{"address": number(s.Address), "size": number(s.Size), "start": number(s.Start)})
		}
		entry["segments"] = segments
		// The vDSO is in no file.
		if m.Object != nil && (inside || m.Object.Path() == "") {
			name := fmt.Sprintf("modules/%d", i)
			add(name, m.Object.Data())
			entry["file"] = name
		}
		modules = append(modules, entry)
	}
	text, err := json.Marshal(map[string]any{"format_version": 1, "threads": threads, "modules": modules, "memory": memory})
	if err != nil {
		t.Fatal(err)
	}
	add("snapshot.json", text)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestSnapshotWalksLikeItsCore(t *testing.T) {
	for _, tt := range []struct {
		name   string
		inside bool
	}{{"code objects inside", true}, {"code objects by build ID", false}} {
		t.Run(tt.name, func(t *testing.T) {
			o := Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}, Sysroot: t.TempDir()}
			e, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			core, err := e.Open("../examples/crash/server.core")
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			path := filepath.Join(dir, "server.snapshot")
			writeSnapshot(t, core, path, tt.inside)
			if !tt.inside {
				// Under another name beside the snapshot: only the build ID finds it.
				b, err := os.ReadFile("../examples/crash/server")
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "renamed"), b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			snap, err := e.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			if p := snap.Problems(); len(p) > 0 {
				t.Errorf("problems: %q", p)
			}
			if want, got := core.Info(), snap.Info(); got.Kind != trace.Snapshot || got.Signal != want.Signal || got.Machine != want.Machine {
				t.Errorf("%+v, of the core %+v", got, want)
			}
			if len(snap.Threads()) != len(core.Threads()) || len(core.Threads()) < 2 {
				t.Fatalf("%d threads, of the core %d", len(snap.Threads()), len(core.Threads()))
			}
			for i, th := range core.Threads() {
				want := core.Walk(context.Background(), th)
				got := snap.Walk(context.Background(), snap.Threads()[i])
				if d := cmp.Diff(summary(want), summary(got)); d != "" || want.Stopped.Reason != trace.StopOutermost {
					t.Errorf("thread %s, core stopped: %v (-core +snapshot)\n%s", th.ID, want.Stopped, d)
				}
			}
		})
	}
}

// summary is the part of a stack that does not depend on its source.
func summary(s *trace.Stack) []string {
	list := []string{s.Thread.ID, s.Thread.Name, fmt.Sprint(s.Thread.Crashed, s.Stopped)}
	for _, f := range s.Frames {
		list = append(list, fmt.Sprintf("%#x %#x %s %#x %v", f.PC, f.CFA, f.FoundBy, f.ModuleOffset, f.Symbols))
	}
	return list
}

func TestOpenTellsTargetsByTheirFirstBytes(t *testing.T) {
	e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	dir := t.TempDir()
	empty, err := os.Create(filepath.Join(dir, "other.zip"))
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(empty)
	if _, err := z.Create("a.txt"); err != nil {
		t.Fatal(err)
	}
	z.Close()
	empty.Close()
	for name, text := range map[string]string{"empty": "", "text": "hello", "minidump": "MDMP\x93\xa7"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		path    string
		unknown bool
		want    string
	}{
		{filepath.Join(dir, "other.zip"), true, filepath.Join(dir, "other.zip") + ": not a snapshot: the file is a ZIP file without a member snapshot.json"},
		{filepath.Join(dir, "empty"), true, ": the file is empty, expected a core, a minidump or a snapshot"},
		{filepath.Join(dir, "text"), true, `not a core, minidump or snapshot (it begins with "hell")`},
		{filepath.Join(dir, "minidump"), false, "the header has 32 bytes, the file has 6"},
		{"../examples/crash/server", true, "server is an executable: give the core"},
		{filepath.Join(dir, "none"), false, "no such file"},
		{dir, false, "not a regular file"},
	} {
		target, err := e.Open(tt.path)
		if target != nil || err == nil || errors.Is(err, ErrUnknownTarget) != tt.unknown || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, expected %q", tt.path, err, tt.want)
		}
	}
	if len(e.targets) > 0 {
		t.Errorf("%d targets are open", len(e.targets))
	}
}
