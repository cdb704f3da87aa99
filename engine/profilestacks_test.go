// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
)

// wordsCode is the program of examples/profile: where its functions are.
type wordsCode struct {
	path  string
	start map[string]uint64 // ELF virtual addresses
	skew  uint64            // from an offset of the file to an address
}

func openWords(t *testing.T) *wordsCode {
	t.Helper()
	path, err := filepath.Abs("../examples/profile/words")
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := &wordsCode{path: path, start: map[string]uint64{}}
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			w.start[s.Name] = s.Value
		}
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			w.skew = p.Vaddr - p.Off
		}
	}
	return w
}

// TestAddressesInTextAreNamed: frames without names have the ones of their file, where the text
// tells how their addresses count, and that the file is of the same build.
func TestAddressesInTextAreNamed(t *testing.T) {
	w := openWords(t)
	mainAt, startAt := w.start["main"], w.start["_start"]
	const bias, other = 0x5500_0000_0000, 0x5600_0000_0000
	frame := func(address uint64, name string) string {
		return fmt.Sprintf("\t%16x %s (%s)\n", address, name, w.path)
	}
	sample := func(frames ...string) string {
		return "words 7/7 [000] 1.0: 5 cycles: \n" + strings.Join(frames, "") + "\n"
	}
	named := fmt.Sprintf("main+0x%x", 9)
	for _, c := range []struct {
		name, text, want, problem string
	}{
		{"offsets", sample(frame(startAt+5-w.skew, "[unknown]"), frame(mainAt+9-w.skew, named)), "_start", ""},
		{"addresses", sample(frame(bias+startAt+5, "[unknown]"), frame(bias+mainAt+9, named)), "_start", ""},
		{"a caller's address", sample(frame(mainAt+9-w.skew, named), frame(startAt+5-w.skew, "[unknown]")), "_start", ""},
		{"another process", sample(frame(bias+mainAt+9, named)) + sample(frame(other+mainAt+9, named)) + strings.Replace(sample(frame(bias+startAt+5, "[unknown]")), "7/7", "8/8", 1), "", "nothing tells where"},
		{"mappings", fmt.Sprintf("words 7 [000] 0.5: PERF_RECORD_MMAP2 7/7: [0x%x(0x100000) @ 0x0 08:01 5 6]: r-xp %s\n", uint64(bias), w.path) + sample(frame(bias+startAt+5-w.skew, "[unknown]")), "_start", "no function in it by which its build could be checked"},
		{"another build", sample(frame(startAt+5-w.skew, "[unknown]"), frame(mainAt+0x129-w.skew, named), frame(mainAt+0x139-w.skew, "main+0x11")), "", "it is of another build"},
		{"offsets in text", sample(fmt.Sprintf("\t%16x [unknown] (%s+0x%x)\n", uint64(bias), w.path, startAt+5-w.skew), frame(mainAt+9-w.skew, named)), "_start", ""},
		{"folded", fmt.Sprintf("words;%s+0x%x 5\n", w.path, startAt+5), "_start", "no function in it by which its build could be checked"},
	} {
		path := filepath.Join(t.TempDir(), "text")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		e := newX86Engine(t, Options{})
		p, err := e.Profile(t.Context(), path, trace.ProfileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(p.Frames, func(f trace.ProfileFrame) bool { return len(f.Symbols) == 0 || f.Symbols[0].Function == "_start" })
		got := ""
		if len(p.Frames[i].Symbols) > 0 {
			got = p.Frames[i].Symbols[0].Function
		}
		if said := strings.Join(p.Problems, "\n"); got != c.want || (said == "") != (c.problem == "") || !strings.Contains(said, c.problem) {
			t.Errorf("%s: %q, problems %q", c.name, got, said)
		}
	}
}

// TestSeveralTracesAreOneProfile: of ranks, and packed or not; a recording of perf is the first.
func TestSeveralTracesAreOneProfile(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for rank := range 2 {
		path := filepath.Join(dir, fmt.Sprintf("rank%d.json", rank))
		text := fmt.Sprintf(`{"distributedInfo":{"rank":%d},"traceEvents":[
			{"ph":"X","cat":"cuda_runtime","name":"launch","pid":5,"tid":5,"ts":%d,"dur":2,"args":{"correlation":1}},
			{"ph":"X","cat":"kernel","name":"_Z4gemmPf","pid":0,"tid":7,"ts":9,"dur":3,"args":{"correlation":1,"device":0,"stream":7}}]}`, rank, 5-rank)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	e := newX86Engine(t, Options{})
	p, err := e.Profile(t.Context(), paths[0], trace.ProfileOptions{Traces: paths[1:]})
	if err != nil {
		t.Fatal(err)
	}
	var comms []string
	for _, s := range p.Samples {
		comms = append(comms, p.Threads[s.Thread].Comm+" "+p.Events[s.Event].Name)
	}
	if want := []string{"rank 1 span-time", "rank 0 span-time", "rank 0 gpu-kernel-time", "rank 1 gpu-kernel-time"}; !slices.Equal(comms, want) {
		t.Errorf("%q, expected %q", comms, want)
	}
	if k := p.Kernels; len(k) != 1 || k[0].Name != "gemm(float*)" || k[0].Dispatches != 2 || k[0].Time != 6000 {
		t.Errorf("kernels %+v", k)
	}
	const recording = "../examples/profile/perf.data"
	if p, err = e.Profile(t.Context(), recording, trace.ProfileOptions{Traces: paths}); err != nil || len(p.Events) != 4 || !p.Events[3].OtherClock || p.Events[0].OtherClock {
		t.Errorf("%v, %+v", err, p.Events)
	}
	if _, err = e.Profile(t.Context(), paths[0], trace.ProfileOptions{Traces: []string{recording}}); err == nil || !strings.Contains(err.Error(), recording+": expected a trace") {
		t.Errorf("%v", err)
	}
	if _, err = e.Profile(t.Context(), paths[0], trace.ProfileOptions{Traces: []string{"nothing"}}); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("%v", err)
	}
}

// TestKernelAddressesInTextAreNamed: the kernel begins at another address after each boot. Names of
// the text tell how far it is from the ones of a file, if they agree.
func TestKernelAddressesInTextAreNamed(t *testing.T) {
	dir := t.TempDir()
	names, path := filepath.Join(dir, "kallsyms"), filepath.Join(dir, "text")
	if err := os.WriteFile(names, []byte("ffffffff81000000 T _stext\nffffffff81000100 T do_a\nffffffff81000200 T do_b\nffffffff81000300 T do_c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const unknown = "\tffffffff91000215 [unknown] ([kernel.kallsyms])\n"
	for text, want := range map[string]string{
		"\tffffffff91000110 do_a+0x10 ([kernel.kallsyms])\n" + unknown:                                                   "do_a do_b",
		"\tffffffff91000110 do_a+0x11 ([kernel.kallsyms])\n\tffffffff91000310 do_c+0x10 ([kernel.kallsyms])\n" + unknown: "do_a do_c ?",
		unknown: "?",
		// The name of the text stays, whatever the file has there.
		"\tffffffff81000210 other+0x10 ([kernel.kallsyms])\n": "other",
	} {
		if err := os.WriteFile(path, []byte("x 1 [000] 1.0: 5 cycles: \n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := newX86Engine(t, Options{}).Profile(t.Context(), path, trace.ProfileOptions{Kallsyms: names})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, at := range p.StackFrames(nil, p.Samples[0].Stack) {
			f := &p.Frames[at]
			if !f.Kernel {
				t.Errorf("%+v is not the kernel's", f)
			}
			if len(f.Symbols) == 0 {
				got = append(got, "?")
			} else {
				got = append(got, f.Symbols[0].Function)
			}
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q: %s, expected %s", text, s, want)
		}
	}
}
