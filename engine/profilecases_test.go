// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/recorded"
)

// profileCase builds testdata/profile/cases.c and its library.
func profileCase(tb testing.TB) (program, library string) {
	tb.Helper()
	oracle.Tools(tb, "gcc")
	const source = "testdata/profile/cases.c"
	program = recorded.Once(tb, "cases", func(path string) { oracle.Run(tb, "gcc", "-O1", "-g", source, "-o", path, "-ldl") })
	library = recorded.Once(tb, "libcases.so", func(path string) {
		oracle.Run(tb, "gcc", "-O1", "-g", "-shared", "-fPIC", "-DLIBRARY", source, "-o", path)
	})
	return program, library
}

// TestProfilesOfCasesEqualPerf compares recordings of what profilers meet with perf
// script, and checks their calls.
func TestProfilesOfCasesEqualPerf(t *testing.T) {
	if testing.Short() {
		t.Skip("records programs")
	}
	program, library := profileCase(t)
	stacks := []string{"-F", "2000", "-e", "cpu-clock", "--call-graph", "dwarf,16384"}
	for _, c := range []struct {
		name    string
		record  []string
		program []string
		sees    string // a module that must be in the profile
	}{
		{"the vDSO", stacks, []string{program, "vdso"}, "[vdso]"},
		// So often that some samples are at the two instructions of the C library that end a handler.
		{"handlers of signals", append([]string{"-F", "20000"}, stacks[2:]...), []string{program, "signals"}, program},
		{"a library that comes and goes", stacks, []string{program, "loaded", library}, library},
		{"fork and exec", stacks, []string{program, "children"}, program},
		{"compressed", append(stacks[:len(stacks):len(stacks)], "-z"), []string{program, "children"}, program},
		{"two events", []string{"-F", "2000", "-e", "cpu-clock,page-faults", "--call-graph", "dwarf,8192"}, []string{program, "children"}, program},
		{"call chains of frame pointers", []string{"-F", "2000", "-e", "cpu-clock", "--call-graph", "fp"}, []string{program, "children"}, program},
		{"a symbol table less", stacks, append([]string{strippedProgram(t, "deepcpp")}, "0.15", "1"), strippedProgram(t, "deepcpp")},
		{"no .eh_frame_hdr", stacks, append([]string{headlessProgram(t)}, "0.15", "1"), headlessProgram(t)},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "perf.data")
			recorded.Perf(t, path, c.record, c.program...)
			p := profiled(t, path)
			if !slices.ContainsFunc(p.Modules, func(m trace.ProfileModule) bool { return m.Path == c.sees }) {
				t.Errorf("nothing of %s is in the profile", c.sees)
			}
			classes := comparePerf(t, path, p)
			t.Logf("%d samples: %v; problems %q", len(p.Samples), classes, p.Problems)
			if len(p.Samples) < 100 {
				t.Errorf("%d samples are too few to say anything", len(p.Samples))
			}
			if strings.HasPrefix(c.name, "call chains") {
				return // the kernel takes what is in the frame pointer
			}
			for cause, n := range checkCalls(t, p) {
				if strings.HasPrefix(cause, "unexplained") {
					t.Errorf("%d frames %s", n, cause)
				}
			}
		})
	}
}

// strippedProgram is one of profilePrograms, without symbols but those of the dynamic
// linker.
func strippedProgram(tb testing.TB, name string) string {
	tb.Helper()
	oracle.Tools(tb, "strip")
	from := recorded.Program(tb, name, 0)[0]
	return recorded.Once(tb, name+"-stripped", func(path string) { oracle.Run(tb, "strip", "-o", path, from) })
}

// headlessProgram has no index of its call frame information.
func headlessProgram(tb testing.TB) string {
	tb.Helper()
	oracle.Tools(tb, "objcopy")
	from := strippedProgram(tb, "deepcpp")
	return recorded.Once(tb, "deepcpp-headless", func(path string) {
		oracle.Run(tb, "objcopy", "--rename-section", ".eh_frame_hdr=.data.rel.ro.index", from, path)
		// The segment of the same name says where it is, too.
		data, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		for at := binary.LittleEndian.Uint64(data[32:]); binary.LittleEndian.Uint32(data[at:]) != 0; at += 56 {
			if binary.LittleEndian.Uint32(data[at:]) == 0x6474e550 { // PT_GNU_EH_FRAME
				binary.LittleEndian.PutUint32(data[at:], 0x60000000)
				break
			}
		}
		if err := os.WriteFile(path, data, 0o700); err != nil { //nolint:gosec // it is executed
			tb.Fatal(err)
		}
	})
}

// plainProfile is what a profile says, without what is open.
type plainProfile struct {
	Events   []trace.ProfileEvent
	Samples  []trace.ProfileSample
	Threads  []trace.ProfileThread
	Stacks   []trace.ProfileStack
	Frames   []trace.ProfileFrame
	Modules  []string
	Stops    []trace.Stopped
	Problems []string
	Lost     uint64
}

func plain(p *trace.Profile) plainProfile {
	out := plainProfile{p.Events, p.Samples, p.Threads, p.Stacks, p.Frames, nil, p.Stops, p.Problems, p.Lost}
	for i := range p.Modules {
		m := &p.Modules[i]
		out.Modules = append(out.Modules, fmt.Sprintf("%s %x %x-%x %x %v %s %q", m.Path, m.BuildID, m.Start, m.End, m.Offset, m.Kernel, m.DebugFile, m.Problems))
	}
	return out
}

// TestProfilesDoNotDependOnHowManyWalk makes the same profile with 1, 2, 4 and 8
// goroutines, with symbols.
func TestProfilesDoNotDependOnHowManyWalk(t *testing.T) {
	program, _ := profileCase(t)
	path := filepath.Join(t.TempDir(), "perf.data")
	recorded.Perf(t, path, []string{"-F", "4000", "-e", "cpu-clock", "--call-graph", "dwarf,8192"}, program, "children")
	var want plainProfile
	for _, jobs := range []int{1, 2, 4, 8} {
		p, err := newX86Engine(t, Options{}).Profile(t.Context(), path, trace.ProfileOptions{Jobs: jobs})
		if err != nil {
			t.Fatal(err)
		}
		got := plain(p)
		if jobs == 1 {
			want = got
			if len(p.Samples) < 500 {
				t.Errorf("%d samples are too few to be several batches", len(p.Samples))
			}
		} else if d := cmp.Diff(want, got); d != "" {
			t.Errorf("with %d goroutines (-1 +%d):\n%.4000s", jobs, jobs, d)
		}
	}
}

// isUnmapped reports whether a frame that was read of a cut recording is one of the whole
// recording but for its mapping. A busy machine writes what one processor did long after
// what another one did: the record of the mapping may lie behind the cut.
func isUnmapped(cut, whole perfPC) bool {
	const page = 4096
	return cut.path == "" && whole.path != "" && cut.address%page == whole.address%page
}

// TestCutRecordingsSayWhatIsReadable cuts a recording at many lengths, and gives
// records sizes that cannot be. What is left is told as it was, with a problem.
func TestCutRecordingsSayWhatIsReadable(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a recording at every cut")
	}
	program, _ := profileCase(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "perf.data")
	// On one CPU, records are in the order of time: of several, a cut would lose
	// mappings of samples that it leaves.
	recorded.Perf(t, path, []string{"-F", "1000", "-e", "cpu-clock", "--call-graph", "dwarf,2048"}, "taskset", "-c", "0", program, "children")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	e := newX86Engine(t, Options{NoSymbols: true})
	whole := profiled(t, path)
	stacks, keys := map[sampleKey][]perfPC{}, sampleKeys{}
	for i := range whole.Samples {
		s := &whole.Samples[i]
		stacks[keys.next(whole.Threads[s.Thread].TID, s.Time)] = perfPCs(whole, s)
	}
	check := func(name string, damaged []byte, cut bool) {
		t.Helper()
		path := filepath.Join(dir, "damaged")
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := e.Profile(t.Context(), path, trace.ProfileOptions{})
		if err != nil {
			if len(damaged) > 1000 {
				t.Errorf("%s: %v", name, err)
			}
			return
		}
		checkParts(t, e, path, trace.ProfileOptions{}, p)
		if len(p.Samples) < len(whole.Samples) && len(p.Problems) == 0 {
			t.Errorf("%s: %d samples of %d and no problem", name, len(p.Samples), len(whole.Samples))
		}
		if cut {
			short, keys := 0, sampleKeys{}
			for i := range p.Samples {
				s := &p.Samples[i]
				key := keys.next(p.Threads[s.Thread].TID, s.Time)
				whole, known := stacks[key]
				got := perfPCs(p, s)
				switch last := len(got) - 1; {
				case last >= 0 && last < len(whole) && isUnmapped(got[last], whole[last]):
					whole = append(slices.Clone(whole[:last]), got[last])
				case !known: // the record that was cut, before it says its thread and time
					short++
					whole = got
				case len(got) < len(whole) && p.Stops[s.Stop].Reason != trace.StopOutermost: // or behind that
					short++
					whole = whole[:len(got)]
				}
				if d := cmp.Diff(whole, got, cmpopts.EquateComparable(perfPC{}), cmpopts.EquateEmpty()); d != "" || short > 1 {
					t.Errorf("%s: the sample of thread %d at %d (-whole +cut):\n%s", name, key.tid, key.time, d)
				}
			}
		}
	}
	cuts := 25
	if testing.Short() {
		cuts = 5
	}
	for i := range cuts {
		length := len(data) * i / cuts
		check(fmt.Sprintf("cut at %d", length), data[:length], true)
	}
	at := binary.LittleEndian.Uint64(data[40:]) // of the records
	for i := range cuts {
		record := at
		for n := 0; n < i*8; n++ {
			record += uint64(binary.LittleEndian.Uint16(data[record+6:]))
		}
		if record+8 > uint64(len(data)) {
			break
		}
		for _, size := range []uint16{0, 7, 9, 0xffff} {
			damaged := slices.Clone(data)
			binary.LittleEndian.PutUint16(damaged[record+6:], size)
			check(fmt.Sprintf("record at %#x with size %d", record, size), damaged, false)
		}
	}
	for _, field := range []int{8, 16, 24, 32, 40, 48} {
		for _, value := range []uint64{0, 1, 1 << 40, ^uint64(0)} {
			damaged := slices.Clone(data)
			binary.LittleEndian.PutUint64(damaged[field:], value)
			path := filepath.Join(dir, "header")
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			if p, err := e.Profile(t.Context(), path, trace.ProfileOptions{}); err == nil && len(p.Samples) < len(whole.Samples) && len(p.Problems) == 0 {
				t.Errorf("the header's field at %d is %#x: %d samples of %d and no problem", field, value, len(p.Samples), len(whole.Samples))
			}
		}
	}
}
