// SPDX-License-Identifier: Apache-2.0

package job

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/internal/recorded"
	"github.com/unwindd/unwindd/plugins/aarch64"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

func TestMain(m *testing.M) {
	status := m.Run()
	recorded.Clean()
	os.Exit(status)
}

// newEngine is an engine of its own, as that of another process.
func newEngine(tb testing.TB, noSymbols bool) *engine.Engine {
	tb.Helper()
	plugins := plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), aarch64.New()}}
	e, err := engine.New(engine.Options{Plugins: plugins, MaxFrames: engine.DefaultMaxFrames, NoSymbols: noSymbols})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = e.Close() })
	return e
}

// allFormats are what a profile is in every format.
func allFormats(tb testing.TB, p *trace.Profile) map[string][]byte {
	tb.Helper()
	all := map[string][]byte{}
	r, err := report.NewProfile(p)
	if err != nil {
		tb.Fatal(err)
	}
	for _, format := range ProfileFormats {
		var b bytes.Buffer
		j := NewProfile()
		j.Format = format
		if err := j.WriteReport(r, &b, report.TextOptions{Verbose: true}); err != nil {
			tb.Fatal(err)
		}
		all[format] = b.Bytes()
	}
	var b bytes.Buffer
	if err := r.WriteSummary(&b, report.SummaryOptions{}); err != nil {
		tb.Fatal(err)
	}
	all["summary"] = b.Bytes()
	return all
}

// checkParts holds the profiles of a recording that was divided against that of the whole.
func checkParts(t *testing.T, path string, noSymbols bool, o trace.ProfileOptions) {
	t.Helper()
	whole, err := newEngine(t, noSymbols).Profile(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	expected := allFormats(t, whole)
	counts := []int{3}
	if proof.IsRequested() {
		counts = []int{1, 2, 3, 7}
	}
	for _, count := range counts {
		with := o
		with.Parts = nil
		for index := range count {
			var b bytes.Buffer
			if err := newEngine(t, true).ProfilePart(t.Context(), path, trace.ProfilePart{Index: index, Count: count}, o, &b); err != nil {
				t.Fatalf("%s, part %d of %d: %v", path, index, count, err)
			}
			with.Parts = append(with.Parts, io.Reader(&b))
		}
		joined, err := newEngine(t, noSymbols).Profile(t.Context(), path, with)
		if err != nil {
			t.Fatalf("%s, %d parts: %v", path, count, err)
		}
		for format, b := range allFormats(t, joined) {
			if !bytes.Equal(b, expected[format]) {
				t.Errorf("%s, %d parts, %s: %d bytes differ from the %d of the whole: %s", path, count, format, len(b), len(expected[format]), firstDifference(b, expected[format]))
			}
		}
	}
}

// firstDifference shows where two texts differ.
func firstDifference(a, b []byte) string {
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	show := func(x []byte) string { return string(x[max(0, min(at, len(x))-80):min(len(x), at+120)]) }
	return strings.ToValidUTF8("..."+show(a)+"...\nexpected ..."+show(b), "?")
}

// TestPartsAreTheWhole divides recordings of programs in several languages.
func TestPartsAreTheWhole(t *testing.T) {
	if testing.Short() {
		t.Skip("records programs")
	}
	without := []bool{true} // names of C++ make reports of 200 MB
	if proof.IsRequested() {
		without = []bool{false, true}
	}
	for _, program := range recorded.Programs {
		for _, noSymbols := range without {
			checkParts(t, recorded.Recording(t, program.Name, recorded.Samples()), noSymbols, trace.ProfileOptions{})
		}
	}
}

// TestPartsOfSeveralProcesses divides recordings of several processes and threads: of call
// chains and of stacks, with and without compression.
func TestPartsOfSeveralProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("records programs")
	}
	const script = `for i in 1 2 3; do (seq 60000 | sort -R | sort -n | md5sum >/dev/null) & done; wait; exec bash -c 'for ((i=0;i<60000;i++)); do :; done'`
	for name, args := range map[string][]string{
		"chains":     {"-F", "2000", "-e", "cpu-clock", "-g"},
		"stacks":     {"-F", "2000", "-e", "cpu-clock", "--call-graph", "dwarf,4096"},
		"compressed": {"-F", "2000", "-e", "cpu-clock", "-z", "--call-graph", "dwarf,4096"},
		"events":     {"-F", "2000", "-e", "cpu-clock,task-clock", "-g"},
		"bare":       {"-F", "2000", "-e", "cpu-clock"},
	} {
		path := recorded.Once(t, name+".data", func(path string) { recorded.Perf(t, path, args, "bash", "-c", script) })
		checkParts(t, path, false, trace.ProfileOptions{})
	}
}

// TestPartsOfTheExample divides the recording of the documentation.
func TestPartsOfTheExample(t *testing.T) {
	checkParts(t, filepath.Join("..", "..", "..", "examples", "profile", "perf.data"), false, trace.ProfileOptions{})
}
