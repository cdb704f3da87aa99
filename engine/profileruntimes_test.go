// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/profile"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/trace"
)

// writeRuntimeStacks writes a recording of samples with frames of a language runtime; lost is one whose
// raw data is damaged, -1: none is.
func writeRuntimeStacks(t *testing.T, samples, lost int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "perf.data")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w := perfdata.NewWriter(file, perfdata.WriterOptions{Event: "on-cpu", Arch: "x86_64", HasRaw: true})
	w.Comm(7, 7, 1, "python3", true)
	stacks := perfdata.NewRuntimeWriter()
	native := func(pc uint64, isBehind bool) perfdata.RuntimeEntry {
		return perfdata.RuntimeEntry{PC: pc, Found: uint8(code.IndexOf(trace.ByCFI)), IsBehind: isBehind}
	}
	for i := range samples {
		frames := []perfdata.RuntimeFrame{
			{Runtime: "cpython", Kind: "interpreted", Function: fmt.Sprintf("leaf%d", i), File: "/example/a.py", Line: 3, Column: 5},
			{Runtime: "cpython", Kind: "interpreted", Function: "main", File: "/example/a.py", Line: uint32(10 + i)}, //nolint:gosec // small
		}
		s := &perfdata.RuntimeStack{Stop: profile.StopNumber(trace.StopOutermost), Entries: []perfdata.RuntimeEntry{
			native(0x1000, false), {Frame: 0, IsManaged: true}, {Frame: 1, IsManaged: true}, native(0x2000, true), native(0x3000, false),
		}}
		raw := stacks.Append(nil, nil, s, frames)
		if i == lost {
			raw[len(raw)-3] = 0xff
			raw = raw[:len(raw)-2]
		}
		w.Sample(&perfdata.Sample{PID: 7, TID: 7, Time: uint64(10 + i), Period: 1, Raw: raw}) //nolint:gosec // small
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// names returns the functions of a sample's stack, innermost first; [] for a frame without one.
func namesOf(p *trace.Profile, sample int) string {
	var list []string
	for _, k := range p.StackFrames(nil, p.Samples[sample].Stack) {
		f := &p.Frames[k]
		switch {
		case len(f.Symbols) == 0:
			list = append(list, fmt.Sprintf("[%#x]", f.PC))
		case f.Managed != nil:
			list = append(list, fmt.Sprintf("%s:%d", f.Symbols[0].Function, f.Symbols[0].Line))
		default:
			list = append(list, f.Symbols[0].Function)
		}
	}
	return strings.Join(list, " ")
}

func TestRecordedFramesOfRuntimes(t *testing.T) {
	e := newX86Engine(t, Options{})
	path := writeRuntimeStacks(t, 5, -1)
	p, err := e.Profile(t.Context(), path, trace.ProfileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Samples {
		if got, want := namesOf(p, i), fmt.Sprintf("[0x1000] leaf%d:3 main:%d [0x3000]", i, 10+i); got != want {
			t.Errorf("sample %d: %s, expected %s", i, got, want)
		}
		if stop := p.Stops[p.Samples[i].Stop]; stop.Reason != trace.StopOutermost {
			t.Errorf("sample %d ends by %v", i, stop)
		}
	}
	checkParts(t, e, path, trace.ProfileOptions{}, p)
}

// What follows a damaged stack has no names: numbers are no longer those that were written.
func TestDamagedFramesOfRuntimes(t *testing.T) {
	e := newX86Engine(t, Options{})
	p, err := e.Profile(t.Context(), writeRuntimeStacks(t, 5, 2), trace.ProfileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Samples {
		if got := namesOf(p, i); strings.Contains(got, "leaf") && !strings.Contains(got, fmt.Sprintf("leaf%d:3 main:%d", i, 10+i)) {
			t.Errorf("sample %d: %s", i, got)
		}
	}
	if got := namesOf(p, 1); !strings.Contains(got, "leaf1:3 main:11") {
		t.Errorf("a sample before the damage: %s", got)
	}
}
