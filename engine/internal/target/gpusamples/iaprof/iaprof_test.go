// SPDX-License-Identifier: Apache-2.0

package iaprof

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
	path := filepath.Join(t.TempDir(), "profile.txt")
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
	if err := f.Samples(func(s *gpusamples.Sample) error { samples = append(samples, f.line(s)); return nil }); err != nil {
		t.Fatal(err)
	}
	for _, p := range f.Problems() {
		problems = append(problems, strings.TrimPrefix(p, path+":"))
	}
	return f, samples, problems
}

// line is a sample in a line.
func (f *File) line(s *gpusamples.Sample) string {
	var b strings.Builder
	if s.HasTime {
		fmt.Fprintf(&b, "%d: ", s.Time)
	}
	switch {
	case s.InKernel:
		b.WriteString(f.facts.Kernels[s.Kernel].Name + fmt.Sprintf("+%#x", s.Offset))
	case s.HasOffset:
		fmt.Fprintf(&b, "?+%#x (%s)", s.Offset, s.Problem)
	default:
		fmt.Fprintf(&b, "%#x", s.PC)
	}
	fmt.Fprintf(&b, " %s %s %d", s.Instruction, f.facts.States[s.State].Name, s.Weight)
	if l := s.Launch; l != nil {
		fmt.Fprintf(&b, " by %d %s %q", s.PID, l.Comm, l.Names)
	}
	return b.String()
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

var stack = []string{"zeCommandListAppendLaunchKernel", "Lcom/App;::run", "work::<[u8; 4]>", "0x7f0000001234", "main"}

var madeRun = inteltest.Run{
	Kernels: []inteltest.Kernel{
		{Name: "later", File: "a b.cl", GPU: 0xffff800000300000, Launch: &inteltest.Launch{PID: 71, Comm: "a\tb", Names: []string{"main"}}},
		{Name: "_ZTS4gemm", Symbol: "typeinfo name for gemm", File: unknownFile, GPU: 0x100000, Launch: &inteltest.Launch{PID: 70, Comm: "python3", Names: stack}, Functions: []inteltest.Function{{Symbol: "helper", File: "h.h", Start: 0x1000}}},
	},
	Intervals: []inteltest.Interval{
		{End: 1_234_567_891_000, Stalls: []inteltest.Stall{
			{Kernel: 1, Offset: 0x10, Instruction: "send", Counts: [10]uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
			{Kernel: 0, Offset: 0, Instruction: notDecoded, Counts: [10]uint64{5: 7}},
			{Kernel: 1, Offset: 0x20, Instruction: "add"},
		}, MHz: 2000, Busy: 99},
		{End: 1_234_577_000_000},
		{End: 1_234_587_000_001_000, Stalls: []inteltest.Stall{
			{Kernel: 1, Offset: 0x1008, Instruction: "send", Counts: [10]uint64{1}},
			{Kernel: 1, Offset: 0x20, Instruction: "add", Counts: [10]uint64{9: 3}},
		}},
	},
}

func TestARunIsRead(t *testing.T) {
	f, samples, problems := read(t, string(madeRun.Iaprof()))
	by := fmt.Sprintf(" by 70 python3 %q", stack)
	var want []string
	for i, state := range inteltest.States {
		want = append(want, fmt.Sprintf("1234567891000: gemm+0x10 send %s %d%s", state, i+1, by))
	}
	want = append(want,
		`1234567891000: later+0x0  sbid 7 by 71 a	b ["main"]`,
		`1234587000001000: gemm+0x20 add tdr 3`+by,
		`1234587000001000: helper+0x8 send active 1`,
	)
	diff(t, "samples", want, samples)
	diff(t, "problems", []string(nil), problems)
	facts := f.Facts()
	diff(t, "kernels", []gpusamples.Kernel{{Name: "gemm", Module: -1}, {Name: "later", Module: -1, File: "a b.cl"}, {Name: "helper", Module: -1, File: "h.h"}}, facts.Kernels)
	diff(t, "launches", []gpusamples.Launch{{PID: 70, TID: -1, Comm: "python3", Names: stack}, {PID: 71, TID: -1, Comm: "a\tb", Names: []string{"main"}}}, facts.Launches)
	diff(t, "processes", []gpusamples.Process{{PID: 70}, {PID: 71}}, facts.Processes)
	diff(t, "events", []gpusamples.Event{{Name: gpusamples.StallEvent, Samples: len(want)}}, facts.Events)
	if facts.Clock != "CLOCK_MONOTONIC" || facts.Form != Form || len(facts.States) != len(inteltest.States) {
		t.Errorf("facts %+v", facts)
	}
	for i, s := range facts.States {
		if s.Name != inteltest.States[i] || s.Stalled != (i > 0) {
			t.Errorf("state %d: %+v", i, s)
		}
	}
}

// begin has an interval and a kernel, and good is a line of it.
const (
	begin = "string\t1\tk\nstring\t2\tsend\nstring\t3\tcomm\nstring\t4\touter;inner\ninterval\t0\t1.000000\nkernel\t0x1000\t3\t7\t4\t0\t1\n"
	good  = "eustall\t0x10\t2\t1\t0\t0\t0\t0\t0\t0\t0\t0\t0\n"
	want  = `1000000000: k+0x10 send active 1 by 7 comm ["inner" "outer"]`
)

func TestABadLineCostsOnlyItself(t *testing.T) {
	zeros := strings.Repeat("\t0", 9)
	for _, tt := range []struct{ line, want string }{
		{"eustall\t0x10\t2\t1" + strings.Repeat("\t0", 8), "eustall: 12 fields, expected 13"},
		{"eustall\t0x10\t2\t1" + zeros + "\t0", "eustall: 14 fields, expected 13"},
		{"eustall\t10\t2\t1" + zeros, `eustall: offset: "10", expected 0x and hexadecimal digits`},
		{"eustall\t0x\t2\t1" + zeros, `eustall: offset: "0x", expected 0x`},
		{"eustall\t0x10\t\t1" + zeros, `eustall: instruction: "", expected a decimal number`},
		{"eustall\t0x10\t2\t-1" + zeros, `eustall: active: "-1", expected a decimal number of at most 1099511627776`},
		{"eustall\t0x10\t2\t1\t0\t0\t0\t0\t0\t0\t0\t0\t1099511627777", `eustall: tdr: "1099511627777", expected`},
		{"string\t1", "string: 2 fields, expected 3"},
		{"string\tx\ty", `string: ID: "x", expected a decimal number`},
		{"string\t0\ty", "string: ID: 0, which says that there is no string"},
		{"metric\tx", "metric: 2 fields, expected 3"},
		{"second line of a name", `"second line of a", expected string, interval, kernel, eustall or metric`},
		{"string\t9\t" + strings.Repeat("x", linetext.MaxLine), "the line has more than 1048576 bytes"},
	} {
		_, samples, problems := read(t, begin+tt.line+"\n"+good)
		diff(t, "samples of "+tt.want, []string{want}, samples)
		if len(problems) != 1 || !strings.HasPrefix(problems[0], "7: "+tt.want) || !strings.HasSuffix(problems[0], ": the line is left out") {
			t.Errorf("%.40s: problems %q, expected %q", tt.line, problems, tt.want)
		}
	}
	// Half a number is another number.
	_, samples, problems := read(t, begin+good+good[:len(good)-1])
	diff(t, "samples", []string{want}, samples)
	diff(t, "problems", []string{"8: the file ends inside the line: the line is left out"}, problems)
}

// Stalls are never those of the kernel before the one whose line is wrong.
func TestStallsBehindABadKernelHaveNone(t *testing.T) {
	const lost = "1000000000: ?+0x10 (the line of its kernel is not valid) send active 1"
	for _, tt := range []struct{ line, problem string }{
		{"kernel\t1000\t3\t7\t4\t0\t1", `kernel: GPU address: "1000", expected 0x`},
		{"kernel\t0x1000\t3\t7\t4\t0", "kernel: 6 fields, expected 7"},
		{"kernel\t0x1000\t3\t2147483648\t4\t0\t1", `kernel: process: "2147483648", expected a decimal number of at most 2147483647`},
		{"kernel\t0x1000\tx\t7\t4\t0\t1", `kernel: comm: "x"`},
		{"kernel\t0x1000\t3\t7\tx\t0\t1", `kernel: stack: "x"`},
		{"kernel\t0x1000\t3\t7\t4\tx\t1", `kernel: file: "x"`},
		{"kernel\t0x1000\t3\t7\t4\t0\tx", `kernel: symbol: "x"`},
	} {
		_, samples, problems := read(t, begin+good+tt.line+"\n"+good+"kernel\t0x1000\t3\t7\t4\t0\t1\n"+good)
		diff(t, "samples", []string{want, lost, want}, samples)
		if len(problems) != 1 || !strings.HasPrefix(problems[0], "8: "+tt.problem) {
			t.Errorf("problems %q, expected %q", problems, tt.problem)
		}
	}
}

// Nor are they of the interval before the one whose line is wrong.
func TestStallsOfABadIntervalHaveNoTime(t *testing.T) {
	kernel := strings.SplitAfter(begin, "\n")[5]
	for _, tt := range []struct{ line, problem string }{
		{"interval\t1", "interval: 2 fields, expected 3"},
		{"interval\tx\t2.000000", `interval: number: "x"`},
		{"interval\t1\t2", `interval: time: "2", expected seconds with six decimals`},
		{"interval\t1\t2.5", `interval: time: "2.5", expected`},
		{"interval\t1\tnan", `interval: time: "nan", expected`},
		{"interval\t1\t-2.000000", `interval: time: "-2.000000", expected`},
		{"interval\t1\t99999999999.000000", `interval: time: "99999999999.000000", expected`},
	} {
		_, samples, problems := read(t, begin+good+tt.line+"\n"+good+kernel+good+"interval\t2\t3.000001\n"+kernel+good)
		_, timeless, _ := strings.Cut(want, " ")
		diff(t, "samples", []string{want, timeless, "3000001000: " + timeless}, samples)
		// Nor of the kernel of an interval before theirs.
		_, samples, _ = read(t, begin+good+"interval\t1\t2.000000\n"+good)
		diff(t, "samples", []string{want}, samples)
		if len(problems) != 2 || !strings.HasPrefix(problems[0], "8: "+tt.problem) || problems[1] != "9: eustall: stands behind no kernel of its interval: the line is left out" {
			t.Errorf("problems %q, expected %q", problems, tt.problem)
		}
	}
}

// iaprof takes IDs of strings in two threads, without a lock.
func TestStringsThatAreDescribedTwiceAreNotUsed(t *testing.T) {
	_, samples, problems := read(t, begin+"string\t3\tother\nstring\t2\tsend\nstring\t9\ta\nstring\t9\tb\n"+good)
	diff(t, "samples", []string{strings.Replace(want, "comm", "", 1)}, samples)
	diff(t, "problems", []string{"7: string 3 is described twice, and differently: neither is used"}, problems)
	_, samples, problems = read(t, begin+"string\t1\tother\n"+good)
	diff(t, "samples", []string(nil), samples)
	diff(t, "problems", []string{"7: string 1 stands behind string 4: another run begins here, which is left out: give it as a file of its own"}, problems)
}

// What the symbol of a kernel does not name is no kernel, but an address.
func TestKernelsWithoutANameAreAddresses(t *testing.T) {
	for _, tt := range []struct {
		symbol   string
		problems []string
	}{{"0", nil}, {"12", nil}, {"13", nil}, {"11", []string{"8: no line describes string 11"}}} {
		text := "string\t12\t\nstring\t13\t_entry\n" + strings.Replace(begin, "\t0\t1\n", "\t0\t"+tt.symbol+"\n", 1)
		f, samples, problems := read(t, strings.ReplaceAll(text, "string\t1\t", "string\t14\t")+good)
		diff(t, "samples", []string{strings.Replace(want, "k+0x10", "0x1010", 1)}, samples)
		diff(t, "problems", tt.problems, problems)
		diff(t, "kernels", []gpusamples.Kernel(nil), f.Facts().Kernels)
	}
}

func TestASecondRunIsLeftOut(t *testing.T) {
	first := strings.Replace(begin, "\t0\t1.", "\t5\t1.", 1) + good
	for _, second := range []string{begin + good, strings.Replace(first, "string\t1\tk\n", "", 1)} {
		_, samples, problems := read(t, first+second)
		diff(t, "samples", []string{want}, samples)
		if len(problems) == 0 || !strings.Contains(strings.Join(problems, "\n"), "another run begins here") {
			t.Errorf("problems %q", problems)
		}
	}
}

func TestOtherFilesAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name, text, want string
		isOther          bool
	}{
		{"an empty file", "", "not a file: the file is empty", true},
		{"blank lines", "\n\n", "not a file: it has no lines", true},
		{"JSON", `{"a":1}` + "\n", `not a file: line 1: "{\"a\":1}", expected string, interval, kernel, eustall or metric`, true},
		{"a string without an ID", "string\tx\ty\n", "not a file: line 1: string: ID:", true},
		{"one line without an end", "string\t1\ty", "not a file: line 1: the file ends inside the line", true},
		{"the text of tag tiber", "string\t1\tunknown\nstring\t2\tactive\ninterval_start\t0\t1.000000\nproc_name\t3\n", "line 3: interval_start is a line of an iaprof from before March of 2026", false},
		{"the text of v0.5.0", "interval_start\t0\t1.000000\neustall\t1\t2\t3\n", "line 1: interval_start is a line of an iaprof", false},
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

func TestWhatIsKeptHasBounds(t *testing.T) {
	text := begin + good
	for i := range 50 {
		text += fmt.Sprintf("string\t%d\tname of kernel %d\nkernel\t0x%x\t3\t7\t4\t0\t%d\n", i+10, i, i<<12, i+10) + good
	}
	whole := 0
	for kept := 0; kept < 40000; kept += 500 {
		lines := linetext.New("f", []byte(text))
		lines.MaxKept = kept
		f, err := open(lines)
		if err != nil {
			t.Fatal(err)
		}
		n, want := 0, 0
		for _, e := range f.facts.Events {
			want = e.Samples
		}
		if err := f.Samples(func(s *gpusamples.Sample) error { n++; f.line(s); return nil }); err != nil {
			t.Fatal(err)
		}
		if n != want {
			t.Fatalf("%d bytes: %d samples, then %d", kept, want, n)
		}
		if len(f.Problems()) == 0 {
			whole++
			if n != 51 || len(f.facts.Kernels) != 51 {
				t.Errorf("%d bytes: %d samples of %d kernels", kept, n, len(f.facts.Kernels))
			}
		}
	}
	if whole == 0 || whole == 80 {
		t.Errorf("%d of 80 bounds are enough", whole)
	}
}

func TestStacksAreSplit(t *testing.T) {
	for stack, want := range map[string][]string{
		"":                     nil,
		"main":                 {"main"},
		"_start;main;f":        {"f", "main", "_start"},
		"main;f<[u8; 4]>;0x10": {"0x10", "f<[u8; 4]>", "main"},
		"main;LA;::run;LB;::x": {"LB;::x", "LA;::run", "main"},
		"a;;b":                 {"b", "", "a"},
		";":                    {""},
	} {
		diff(t, stack, want, splitStack(stack))
	}
}

func TestAFileThatIsCutWhileItsSamplesAreRead(t *testing.T) {
	path := write(t, begin+strings.Repeat(good, 1000))
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Samples(func(*gpusamples.Sample) error { return os.Truncate(path, 100) }); !errors.Is(err, object.ErrFileShrank) {
		t.Errorf("%v", err)
	}
	stop := errors.New("enough")
	f, _, _ = read(t, begin+good)
	if err := f.Samples(func(*gpusamples.Sample) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("%v: the error of yield is lost", err)
	}
}

// FuzzText reads arbitrary bytes as a file, with and without a run before them.
func FuzzText(f *testing.F) {
	f.Add(madeRun.Iaprof())
	f.Add([]byte(good + "string\t2\tother\nkernel\t0x1\t9\t0\t9\t9\t9\n" + good))
	f.Add([]byte("interval\t0\t1.000000\n" + begin))
	f.Fuzz(func(t *testing.T, data []byte) {
		exercise(t, data)
		exercise(t, append([]byte(begin), data...))
	})
}

func exercise(t *testing.T, data []byte) {
	lines := linetext.New("fuzz", data)
	lines.MaxKept = 2000
	f, err := open(lines)
	if err != nil {
		return
	}
	n, want := 0, 0
	for _, e := range f.facts.Events {
		want += e.Samples
	}
	err = f.Samples(func(s *gpusamples.Sample) error {
		if n++; s.State < 0 || s.State >= len(f.facts.States) || s.Event != 0 || s.Weight == 0 || s.Weight > maxCount || s.InKernel != (s.Kernel >= 0) || (s.Launch != nil) != (s.LaunchIndex >= 0) {
			t.Errorf("sample %+v", s)
		}
		f.line(s)
		return nil
	})
	if err != nil || n != want {
		t.Errorf("%d samples, then %d: %v", want, n, err)
	}
}
