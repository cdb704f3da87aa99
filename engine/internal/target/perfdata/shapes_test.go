// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// perf before Linux 4.18 described the events of a pipe before it listed them. Each is
// one event all the same, and a sample without an id is of the only one.
func TestEventsThatAPipeDescribesFirstAreNotDoubled(t *testing.T) {
	a := simple()
	a.SampleType &^= SampleIdentifier
	b := newBuilder(false, a)
	out := append(b.magic(), b.pack(uint64(pipeHeader))...)
	desc := b.pack(uint32(1), uint32(128), b.attr(&a), uint32(0), uint32(8), []byte("cycles\x00\x00"))
	out = append(out, b.record(recordFeature, 0, uint64(featureEventDesc), desc)...)
	out = append(out, b.record(recordAttr, 0, b.attr(&a))...)
	out = append(out, b.record(recordSample, uint16(ModeUser), uint64(0x1000), uint32(7), uint32(7), uint64(5))...)
	f, samples, _ := collect(t, out)
	if len(f.Attrs()) != 1 || f.Attrs()[0].Name != "cycles" || len(f.Problems()) > 0 {
		t.Errorf("events %+v, problems %q", f.Attrs(), f.Problems())
	}
	if len(samples) != 1 || samples[0].Event != 0 || samples[0].Problem != "" || samples[0].IP != 0x1000 {
		t.Errorf("samples %+v", samples)
	}
}

// Events that a recording does not name have the names that perf gives them.
func TestNamesOfEvents(t *testing.T) {
	list := []Attr{{Type: 0, Config: 0}, {Type: 0, Config: 9}, {Type: 0, Config: 10}, {Type: 1, Config: 2}, {Type: 1, Config: 99}, {Type: 2, Config: 300}, {Type: 4, Config: 1}}
	for i := range list {
		list[i].SampleType, list[i].Flags = simple().SampleType, FlagSampleIDAll
	}
	b := newBuilder(false, list...)
	b.pipe = true
	delete(b.feature, featureHostname)
	b.add(recordEventType, 0, uint64(300), "sched:sched_switch")
	f := parse(t, b.bytes())
	var names []string
	for _, a := range f.Attrs() {
		names = append(names, a.Name)
	}
	if want := []string{"cycles", "ref-cycles", "", "page-faults", "", "sched:sched_switch", ""}; !slices.Equal(names, want) {
		t.Errorf("names %q, expected %q", names, want)
	}
}

// What processors traced follows its record, in files and in pipes. It is gone over
// whole, and a problem says how much it is.
func TestAUXAreasAreSkipped(t *testing.T) {
	for _, pipe := range []bool{false, true} {
		b := newBuilder(false, simple())
		b.pipe = pipe
		// The trace is as samples would be, so that one that is read shows.
		trace := newBuilder(false, simple()).sample(8, 8, 3).sample(8, 8, 4).records.Bytes()
		b.sample(7, 7, 1)
		b.add(70, 0, uint32(1), uint32(0), []uint64{1, 2, 3}) // AUXTRACE_INFO
		for range 2 {
			b.add(recordAuxtrace, 0, uint64(len(trace)), []uint64{0, 0}, uint32(0), uint32(7), uint32(0), uint32(0))
			b.records.Write(trace)
		}
		b.add(72, 0, make([]byte, 40)) // AUXTRACE_ERROR
		b.sample(7, 7, 5)
		f, samples, _ := collect(t, b.bytes())
		if len(samples) != 2 || samples[0].Time != 1 || samples[1].Time != 5 {
			t.Errorf("pipe %v: samples %+v", pipe, samples)
		}
		want := fmt.Sprintf("test: %d bytes that processors traced (AUX areas) are skipped", 2*len(trace))
		if p := f.Problems(); len(p) != 1 || !strings.HasPrefix(p[0], want) {
			t.Errorf("pipe %v: problems %q, expected %q", pipe, p, want)
		}
	}
}

// A directory has what its files have, in the order of time, whether they are
// compressed or not. Files of other names are not of it.
func TestDirectories(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	main := newBuilder(false, simple()).comm(7, 7, 0, "main", 0).comm(8, 8, 0, "other", 0)
	main.feature[featureDirFormat] = main.pack(uint64(dirFormat))
	write("data", main.bytes())
	write("data.0", newBuilder(false, simple()).sample(7, 7, 1).sample(7, 7, 5).records.Bytes())
	write("data.1", nil)
	packed := newBuilder(false, simple())
	compress(t, packed, newBuilder(false, simple()).comm(8, 8, 3, "renamed", 0).sample(8, 8, 4).records.Bytes(), recordCompressed2, 50)
	write("data.2", packed.records.Bytes())
	write("data.10", newBuilder(false, simple()).sample(8, 8, 2).records.Bytes()[:20])
	write("data.old", newBuilder(false, simple()).sample(9, 9, 2).records.Bytes())
	write("data.03", newBuilder(false, simple()).sample(9, 9, 2).records.Bytes())

	f := open(t, dir)
	var got []string
	for _, s := range drain(t, f.Reader()) {
		got = append(got, fmt.Sprintf("%d %s %v", s.Time, s.Comm, s.IsCompressed))
	}
	if want := []string{"0  false", "1 main false", "4 renamed true", "5 main false"}; !slices.Equal(got, want) {
		t.Errorf("samples %q, expected %q", got, want)
	}
	if p := f.Problems(); len(p) != 1 || p[0] != dir+": data.10: offset 0x0: the file ends 20 bytes into a record (SAMPLE) of 40 bytes" {
		t.Errorf("problems %q", p)
	}
	if f.Samples() != 4 || f.Kallsyms() != "" {
		t.Errorf("%d samples, %q", f.Samples(), f.Kallsyms())
	}
	if err := os.Mkdir(filepath.Join(dir, "kcore_dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("kcore_dir/kallsyms", nil)
	if got, want := f.Kallsyms(), filepath.Join(dir, "kcore_dir", "kallsyms"); got != want {
		t.Errorf("%q, expected %q", got, want)
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty directory: %v", err)
	}
}

// What perf record --switch-output divided is one recording under the name that perf was
// told. What perf found again as it began a file is of that time, and a file of another run
// is not of it.
func TestSeries(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "perf.data")
	write := func(suffix string, b *builder) {
		t.Helper()
		if err := os.WriteFile(path+suffix, b.bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(".2024043018025117", newBuilder(false, simple()).comm(7, 7, 0, "first", 0).sample(7, 7, 10).mmap2(7, 11, 0x1000, 0x1000, 0, 5, "/one", 0).sample(7, 7, 12))
	later := newBuilder(false, simple()).comm(7, 7, 0, "second", 0).mmap2(7, 0, 0x1000, 0x1000, 0, 5, "/two", 0).sample(7, 7, 13)
	later.feature[featureBuildID] = later.record(0, 0, int32(-1), make([]byte, 20), uint32(0), "/two")
	write(".2024043018025200", later)
	packed := newBuilder(false, simple())
	compress(t, packed, newBuilder(false, simple()).sample(7, 7, 14).records.Bytes(), recordCompressed, 50)
	write(".2024043018025300", packed)
	other := newBuilder(false, simple())
	other.ids = [][]uint64{{900, 901}}
	write(".2024043018020000", other.sample(7, 7, 1))
	write(".2024043018020000x", other)
	write(".old", other)

	f := open(t, path)
	var got []string
	for _, s := range drain(t, f.Reader()) {
		name := ""
		if m := s.Space.Find(0x1000); m != nil {
			name = m.Path
		}
		got = append(got, fmt.Sprintf("%d %s %s", s.Time, s.Comm, name))
	}
	if want := []string{"10 first ", "12 first /one", "13 second /two", "14 second /two"}; !slices.Equal(got, want) {
		t.Errorf("samples %q, expected %q", got, want)
	}
	if p := f.Problems(); len(p) != 1 || p[0] != path+": perf.data.2024043018020000 is not read: it is of another run of perf record" {
		t.Errorf("problems %q", p)
	}
	if b := f.Features().BuildIDs; f.Path() != path || f.Samples() != 4 || len(b) != 1 || b[0].Path != "/two" {
		t.Errorf("%s: %d samples, build IDs %v", f.Path(), f.Samples(), b)
	}
	write("", newBuilder(false, simple()).sample(7, 7, 1)) // a file of the name is what is meant
	if n := open(t, path).Samples(); n != 1 {
		t.Errorf("%d samples, expected that of the file itself", n)
	}
	if err := os.WriteFile(filepath.Join(dir, "x.2024043018025117"), []byte("no recording at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(dir, "x")); !errors.Is(err, ErrNotPerfData) || !strings.Contains(err.Error(), "x.2024043018025117") {
		t.Errorf("a series of no recordings: %v", err)
	}
}
