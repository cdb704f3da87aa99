// SPDX-License-Identifier: Apache-2.0

package unitrace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/gpusamples/inteltest"
	"github.com/unwindd/unwindd/engine/internal/target/linetext"
	"github.com/unwindd/unwindd/engine/object"
)

func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "perf.metrics.7.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// read reads a text: the samples as lines, and what is wrong with it, without its path.
func read(t testing.TB, text string) (f *File, samples, problems []string) {
	t.Helper()
	path := write(t, text)
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	err = f.Samples(func(s *gpusamples.Sample) error {
		if !s.InKernel || !s.HasOffset || s.HasTime || s.Launch != nil || s.PID != -1 || s.Module != -1 || s.LaunchIndex != -1 {
			t.Errorf("sample %+v", s)
		}
		samples = append(samples, fmt.Sprintf("%s+%#x %s %d", f.facts.Kernels[s.Kernel].Name, s.Offset, f.facts.States[s.State].Name, s.Weight))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range f.Problems() {
		problems = append(problems, strings.TrimPrefix(p, path+":"))
	}
	return f, samples, problems
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// lambda is a name as unitrace writes those of SYCL.
const lambda = "main::{lambda(auto:1)#1}"

// madeRun has two kernels, of which one has commas in its name and is at two addresses.
var madeRun = inteltest.Run{
	Kernels: []inteltest.Kernel{
		{Name: lambda, GPU: 0x80001000},
		{Name: "gemm<float, 16>(float*, float const*)", GPU: 0x80000000},
		{Name: lambda, GPU: 0x80004000},
	},
	Intervals: []inteltest.Interval{
		{Stalls: []inteltest.Stall{
			{Kernel: 0, Offset: 0x1b8, Counts: [10]uint64{5: 100, 9: 4}},
			{Kernel: 1, Offset: 0x10, Counts: [10]uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		}},
		{Stalls: []inteltest.Stall{
			{Kernel: 0, Offset: 0x1b8, Counts: [10]uint64{5: 74}},
			{Kernel: 2, Offset: 0x1b8, Counts: [10]uint64{8: 12345678901}},
			{Kernel: 2, Offset: 0x1c0},
		}},
	},
}

func TestTablesOfAllProductsAndDevicesAreRead(t *testing.T) {
	gemm := madeRun.Kernels[1].Name
	f, samples, problems := read(t, string(madeRun.Unitrace(0, inteltest.Xe2))+string(madeRun.Unitrace(1, inteltest.PVC)))
	want := []string{gemm + "+0x10 active 1", gemm + "+0x10 tdr 10"}
	for i, state := range []string{"control", "pipestall", "send", "dist_acc", "sbid", "sync", "inst_fetch", "other"} {
		want = append(want, fmt.Sprintf("%s+0x10 %s %d", gemm, state, i+2))
	}
	want = append(want, lambda+"+0x1b8 tdr 4", lambda+"+0x1b8 sbid 174", lambda+"+0x1b8 other 12345678901")
	for _, s := range want[:len(want):len(want)] {
		if !strings.Contains(s, "tdr") {
			want = append(want, s)
		}
	}
	diff(t, "samples", want, samples)
	diff(t, "problems", []string(nil), problems)
	diff(t, "kernels", []gpusamples.Kernel{{Name: gemm, Module: -1}, {Name: lambda, Module: -1}}, f.Facts().Kernels)
	diff(t, "events", []gpusamples.Event{{Name: gpusamples.StallEvent, Samples: len(want)}}, f.Facts().Events)
	for _, s := range f.Facts().States {
		if s.Stalled != (s.Name != "active") {
			t.Errorf("state %+v", s)
		}
	}
	if f.Facts().Clock != "" || f.Facts().Form != Form || len(f.Facts().States) != len(inteltest.States) {
		t.Errorf("facts %+v", f.Facts())
	}
	// The same without the line of the device, and from Windows.
	_, alone, problems := read(t, strings.ReplaceAll(string(madeRun.Unitrace(-1, inteltest.Xe2)), "\n", "\r\n"))
	diff(t, "problems", []string(nil), problems)
	diff(t, "samples", want[:13], alone)
}

// The writer changed its mind on how a line looks several times.
func TestOlderTablesAreRead(t *testing.T) {
	want := []string{"k+0x1b8 active 1", "k+0x1b8 sbid 174", "k(int, int)+0xc0 sbid 2"}
	for _, text := range []string{
		"\n=== Device #0 Metrics ===\n\n IP[Address],Active[Events],SbidStall[Events],\nk!0x000001b8,  1,  174,\nk(int, int)!0x000000c0, 0, 2, \n",
		"\n=== Device #0 Metrics ===\n\n Kernel, IP[Address], Active[Events], SbidStall[Events], \n \"k\", 0x000001b8,  1,  174, \n\"k(int, int)\", 0x000000c0, 0, 2, \n",
		"\n=== Device #0 Metrics ===\n\n Kernel, IP[Address], Active[Events], SbidStall[Events]\n \"k\", 0x000001b8,  1,  174\n\"k(int, int)\", 0x000000c0, 0, 2\n",
	} {
		_, samples, problems := read(t, text)
		diff(t, "samples", want, samples)
		diff(t, "problems", []string(nil), problems)
	}
}

const header = "Kernel, IP[Address], Active[Events], SbidStall[Events]\n"

func TestABadLineCostsOnlyItself(t *testing.T) {
	const good = "\"k\", 10, 1, 0\n"
	for _, tt := range []struct{ line, want string }{
		{`"k", 10, 1`, "2: has fewer columns than the header of its table"},
		{`"k(1, 10)", 10, 1`, `2: IP[Address]: "10)\"", expected a hexadecimal number`},
		{`"k<1, 10, 10, 1`, "2: has fewer columns than the header of its table"},
		{`10, 1`, "2: has fewer columns than the header of its table"},
		{`x`, "2: has fewer columns than the header of its table"},
		{`"k", 10, 1, -1`, `2: SbidStall[Events]: "-1", expected a decimal number of at most 1099511627776`},
		{`"k", 10, 1, 1.5`, `2: SbidStall[Events]: "1.5", expected a decimal number`},
		{`"k", 10, 1, 1099511627777`, `2: SbidStall[Events]: "1099511627777", expected a decimal number`},
		{`"k", 10, , 1`, `2: Active[Events]: "", expected a decimal number`},
		{`"k", 10g, 1, 1`, `2: IP[Address]: "10g", expected a hexadecimal number`},
		{`"k", 10000000000000000, 1, 1`, `2: IP[Address]: "10000000000000000", expected a hexadecimal number`},
		{`"", 10, 1, 1`, `2: Kernel: has no name`},
		{strings.Repeat("k", linetext.MaxLine) + ", 10, 1, 1", "2: the line has more than 1048576 bytes"},
	} {
		_, samples, problems := read(t, header+tt.line+"\n"+good)
		diff(t, "samples", []string{"k+0x10 active 1"}, samples)
		if len(problems) != 1 || !strings.HasPrefix(problems[0], tt.want) || !strings.HasSuffix(problems[0], ": the line is left out") {
			t.Errorf("%.40s: problems %q, expected %q", tt.line, problems, tt.want)
		}
	}
	// Half a number is another number.
	_, samples, problems := read(t, header+good+`"k", 20, 1, 17`)
	diff(t, "samples", []string{"k+0x10 active 1"}, samples)
	diff(t, "problems", []string{"3: the file ends inside the line: the line is left out"}, problems)
}

func TestATableThatHasNoStallsIsLeftOut(t *testing.T) {
	text := header + "\"k\", 10, 1, 0\n\n=== Device #1 Metrics ===\n\nKernel, GlobalInstanceId, SubDeviceId, GpuTime[ns]\n\"k\", 1, 0, 17\n\"k\", 2, 0, 17\n" +
		"=== Device #2 Metrics ===\n" + header + "\"k\", 20, 0, 3\n"
	_, samples, problems := read(t, text)
	diff(t, "samples", []string{"k+0x10 active 1", "k+0x20 sbid 3"}, samples)
	if len(problems) != 1 || !strings.HasPrefix(problems[0], "6: the table has metrics of kernels (GlobalInstanceId)") {
		t.Errorf("problems %q", problems)
	}
	_, samples, problems = read(t, "Kernel, IP[Address], Odd[%], SbidStall[Events]\n\"k\", 10, 0.5, 3\n")
	diff(t, "samples", []string{"k+0x10 sbid 3"}, samples)
	diff(t, "problems", []string{`1: "Odd[%]", expected a count of a state (NAME[Events]): the column is left out`}, problems)
}

func TestOtherFilesAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name, text, want string
		isOther          bool
	}{
		{"an empty file", "", "not a file: the file is empty", true},
		{"blank lines", "\n\n", "not a file: it has no table of stalls", true},
		{"JSON", `{"a":1}` + "\n", `not a file: line 1: "{\"a\":1}", expected "=== Device #N Metrics ===" or the columns Kernel, IP[Address]`, true},
		{"ELF", "\x7fELF", "not a file: line 1: the file ends inside the line", true},
		{"metrics", "\n=== Device #0 Metrics ===\n\nKernel,GlobalInstanceId,SubDeviceId,GpuTime[ns]\nk,1,0,3\n", "line 4: the table has metrics of kernels (GlobalInstanceId), not stalls of instructions: record stalls with unitrace --stall-sampling -o FILE", false},
		{"metrics sampled", "\nKernel, GlobalInstanceId, GpuTime[ns]\n", "line 2: the table has metrics of kernels", false},
		{"times", "=== Device Timing Summary ===\n", `line 1: "=== Device Timing Summary ===" is a report of unitrace without stalls`, false},
		{"another table", "Kernel, Calls, Time (ns)\n", "line 1: the table has no column IP[Address]", false},
		{"too many columns", "Kernel, IP[Address]" + strings.Repeat(", A[Events]", maxColumns+1) + "\n", "line 1: the table has 65 columns of counts, expected at most 64", false},
	} {
		f, err := Open(write(t, tt.text))
		if f != nil || err == nil || errors.Is(err, gpusamples.ErrOtherForm) != tt.isOther || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, expected %q", tt.name, err, tt.want)
		}
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, object.ErrNotRegular) {
		t.Errorf("a folder: %v", err)
	}
}

func TestWhatIsKeptOfNamesHasBounds(t *testing.T) {
	lines := linetext.New("f", []byte(header+"\"k\", 10, 1, 0\n\"other\", 10, 2, 0\n\"k\", 20, 3, 0\n"))
	lines.MaxKept = 600
	f, err := open(lines)
	if err != nil {
		t.Fatal(err)
	}
	var weights []uint64
	if err := f.Samples(func(s *gpusamples.Sample) error { weights = append(weights, s.Weight); return nil }); err != nil {
		t.Error(err)
	}
	diff(t, "weights", []uint64{1, 3}, weights)
	diff(t, "problems", []string{"f:3: there are more than 600 bytes of names of kernels: the line is left out"}, f.Problems())
}

func TestAFileThatIsCutWhileItsSamplesAreRead(t *testing.T) {
	path := write(t, header+strings.Repeat("\"k\", 10, 1, 0\n", 1000))
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Samples(func(*gpusamples.Sample) error { return os.Truncate(path, 100) }); !errors.Is(err, object.ErrFileShrank) {
		t.Errorf("%v", err)
	}
}

// FuzzTables reads arbitrary bytes as a file, with and without a header before them.
func FuzzTables(f *testing.F) {
	f.Add(madeRun.Unitrace(0, inteltest.Xe2))
	f.Add([]byte("\"k\", 10, 1, 0\n=== Device #1 Metrics ===\nKernel, IP[Address], Stall[Events], [Events], Odd\n\"k\", 1, 2, 3, 4\n"))
	f.Add([]byte("IP[Address],Active[Events],\nk!0x10, 1,\nk!0x, 1,\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		exercise(t, data)
		exercise(t, append([]byte(header), data...))
	})
}

func exercise(t *testing.T, data []byte) {
	f, err := open(linetext.New("fuzz", data))
	if err != nil {
		return
	}
	n := 0
	err = f.Samples(func(s *gpusamples.Sample) error {
		if n++; s.Kernel < 0 || s.Kernel >= len(f.facts.Kernels) || s.State < 0 || s.State >= len(f.facts.States) || s.Event != 0 || s.Weight == 0 || s.Weight > maxCount {
			t.Errorf("sample %+v", s)
		}
		return nil
	})
	want := 0
	for _, e := range f.facts.Events {
		want += e.Samples
	}
	if err != nil || n != want {
		t.Errorf("%d samples, then %d: %v", want, n, err)
	}
}
