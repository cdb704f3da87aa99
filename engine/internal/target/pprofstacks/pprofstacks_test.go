// SPDX-License-Identifier: Apache-2.0

package pprofstacks

import (
	"bytes"
	"fmt"
	"math"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"
	"github.com/klauspost/compress/gzip"

	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
)

// uncompressed is a profile as bytes.
func uncompressed(t testing.TB, p *profile.Profile) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := p.WriteUncompressed(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// small is a profile with two types of samples, an inlined call, and code without a name.
func small() *profile.Profile {
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "milliseconds"}}}
	m := &profile.Mapping{ID: 1, Start: 0x1000, Limit: 0x2000, Offset: 0x100, File: "/bin/a"}
	main := &profile.Function{ID: 1, Name: "main", SystemName: "main", Filename: "a.c", StartLine: 3}
	leaf := &profile.Function{ID: 2, Name: "leaf(int)", SystemName: "_Z4leafi", Filename: "a.h"}
	p.Mapping, p.Function = []*profile.Mapping{m}, []*profile.Function{main, leaf}
	p.Location = []*profile.Location{
		{ID: 1, Address: 0x1010, Mapping: m, Line: []profile.Line{{Function: leaf, Line: 7, Column: 2}, {Function: main, Line: 4}}},
		{ID: 2, Address: 0x1020, Mapping: m},
	}
	p.Sample = []*profile.Sample{
		{Location: []*profile.Location{p.Location[0]}, Value: []int64{1, 10}, Label: map[string][]string{"comm": {"a"}}, NumLabel: map[string][]int64{"pid": {5}, "tid": {6}}},
		{Location: []*profile.Location{p.Location[1], p.Location[0]}, Value: []int64{0, math.MaxInt64}},
		{Value: []int64{2, 0}},
	}
	return p
}

// text are the samples of a file.
func text(f *stacktree.File) (lines []string) {
	for _, s := range f.Samples {
		line := fmt.Sprintf("%s %d %s/%d/%d", f.Events[s.Event].Name, s.Weight, f.Threads[s.Thread].Comm, f.Threads[s.Thread].PID, f.Threads[s.Thread].TID)
		for n := s.Stack; n != 0; n = f.Stacks[n].Caller {
			frame := &f.Frames[f.Stacks[n].Frame]
			line += fmt.Sprintf(" %s+%#x", frame.Object, frame.Address)
			for _, symbol := range frame.Symbols {
				line += fmt.Sprintf(":%s(%s:%d)%v", symbol.Function, symbol.File, symbol.Line, symbol.Inlined)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func TestProfilesOfPprofAreRead(t *testing.T) {
	data := uncompressed(t, small())
	if !IsPprof(data) {
		t.Fatalf("it begins with %q", data[:8])
	}
	f, err := Read("a.pb.gz", data)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"samples 1 a/5/6 /bin/a+0x110:leaf(int)(a.h:7)true:main(a.c:4)false",
		"cpu 10000000 a/5/6 /bin/a+0x110:leaf(int)(a.h:7)true:main(a.c:4)false",
		"cpu 18446744073709551615 /-1/-1 /bin/a+0x120 /bin/a+0x110:leaf(int)(a.h:7)true:main(a.c:4)false",
		"samples 2 /-1/-1",
	}
	if diff := cmp.Diff(want, text(f)); diff != "" {
		t.Error(diff)
	}
	if e := f.Events[1]; e.Unit != "nanoseconds" || e.Meaning != "cpu-clock" || f.Check() != nil {
		t.Errorf("%+v, %v", e, f.Check())
	}
	negative := small()
	negative.Sample[0].Value[0] = -1
	if _, err := Read("a.pb.gz", uncompressed(t, negative)); err == nil || !strings.Contains(err.Error(), "a.pb.gz: it has weights below zero") {
		t.Errorf("of a difference: %v", err)
	}
	if _, err := Read("a.pb.gz", data[:len(data)-3]); err == nil || !strings.HasPrefix(err.Error(), "a.pb.gz: as a profile of pprof: ") {
		t.Errorf("cut: %v", err)
	}
}

// TestProfilesOfGoAreRead has a profile that the runtime of Go wrote.
func TestProfilesOfGoAreRead(t *testing.T) {
	var b bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&b, 0); err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	var data bytes.Buffer
	if _, err := data.ReadFrom(z); err != nil {
		t.Fatal(err)
	}
	f, err := Read("goroutine.pb.gz", data.Bytes())
	if err != nil || !IsPprof(data.Bytes()) || !strings.Contains(strings.Join(text(f), "\n"), "TestProfilesOfGoAreRead") {
		t.Errorf("%v, %q", err, text(f))
	}
}

func TestOtherFilesAreNoProfilesOfPprof(t *testing.T) {
	for _, data := range []string{"", "\n", "\nperf 1 1.0: 1 cpu-clock:\n", "PERFILE2", "\x0a\x00\x08", "{}", "a;b 1\n"} {
		if IsPprof([]byte(data)) {
			t.Errorf("%q is taken for one", data)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(uncompressed(f, small()))
	f.Fuzz(func(t *testing.T, data []byte) {
		if file, err := Read("fuzz", data); err == nil {
			if err := file.Check(); err != nil {
				t.Error(err)
			}
		}
	})
}
