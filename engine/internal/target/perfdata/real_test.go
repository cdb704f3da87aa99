// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
)

var built struct {
	sync.Mutex
	path string
}

// work is the program of testdata/work.cpp, built once.
func work(t testing.TB) string {
	built.Lock()
	defer built.Unlock()
	if built.path == "" {
		path := filepath.Join(buildDir, "work")
		oracle.Run(t, "g++", "-std=c++17", "-O1", "-pthread", "testdata/work.cpp", "-o", path)
		built.path = path
	}
	return built.path
}

var buildDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "perfdata-test-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	buildDir = dir
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// perfRecord records the program. The kernel may refuse it: perf_event_open needs
// root, or perf_event_paranoid at 1 or below.
func perfRecord(t testing.TB, pipe bool, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "perf.data")
	out := path
	if pipe {
		out = "-"
	}
	all := append([]string{"record", "-o", out}, args...)
	all = append(all, "--", work(t))
	c := exec.Command(oracle.Tool(t, "perf"), all...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		oracle.Missing(t, "perf %s: %v\n%s\nperf cannot record here (it needs root, or kernel.perf_event_paranoid <= 1)", strings.Join(all, " "), err, &stderr)
	}
	if pipe {
		if err := os.WriteFile(path, stdout.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// plainSample is what perf's dump says of a sample, too.
type plainSample struct {
	Time, IP, Period uint64
	PID, TID         int
	CPU              int
	Comm, Event      string
	Mode             Mode
	Mask, ABI        uint64
	Registers        []uint64
	Stack            int
	Chain            []uint64
	DSO              string // of a user's IP
}

var (
	sampleLine = regexp.MustCompile(`^(?:(\d+) )?(\d+) (?:0x[0-9a-f]+|0) \[0x[0-9a-f]+\]: PERF_RECORD_SAMPLE\(IP, 0x([0-9a-f]+)\): (-?\d+)/(-?\d+): (0x[0-9a-f]+|0) period: (\d+)`)
	chainLine  = regexp.MustCompile(`^\.\.\.\.\.\s*\d+: ([0-9a-f]{16})$`)
	regsLine   = regexp.MustCompile(`^\.\.\. user regs: mask (0x[0-9a-f]+) ABI (\S+)`)
	regLine    = regexp.MustCompile(`^\.\.\.\. \S+\s+0x([0-9a-f]{16})$`)
	stackLine  = regexp.MustCompile(`^\.\.\. ustack: size (\d+)`)
	dsoLine    = regexp.MustCompile(`^ \.\.\.\.\.\. dso: (.*)$`)
	mmapLine   = regexp.MustCompile(`PERF_RECORD_MMAP2? .*`)
	scriptLine = regexp.MustCompile(`^\s*(.*?)\s+(-?\d+)/(-?\d+)\s+(?:\[(\d+)\]\s+)?(\d+)\.(\d{9}):\s+(\d+)\s+(\S+?):`)
	vdsoFile   = regexp.MustCompile(`^/tmp/perf-vdso\.so-\w+$`) // where perf puts a copy to read symbols
	timeOfDump = regexp.MustCompile(`^(?:(\d+) )?(\d+) (?:0x[0-9a-f]+|0) \[0x[0-9a-f]+\]: PERF_RECORD_MMAP`)
)

func number(t testing.TB, s string, base int) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(strings.TrimPrefix(s, "0x"), base, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// perfSays is what perf report -D and perf script say of a recording.
// Of a group perf script makes several samples of one, so it is not asked.
func perfSays(t testing.TB, path string, group bool) (samples []plainSample, mmaps []string) {
	t.Helper()
	var s *plainSample
	interrupted := false // the registers are those of the interrupt
	for line := range strings.Lines(oracle.Run(t, "perf", "report", "-D", "--force", "-i", path)) {
		line = strings.TrimRight(line, "\n")
		if timeOfDump.MatchString(line) {
			m := timeOfDump.FindStringSubmatch(line)
			mmaps = append(mmaps, m[2]+" "+mmapLine.FindString(line))
		}
		if m := sampleLine.FindStringSubmatch(line); m != nil {
			samples = append(samples, plainSample{})
			s = &samples[len(samples)-1]
			interrupted = false
			*s = plainSample{
				Time: number(t, m[2], 10), Mode: Mode(number(t, m[3], 16) & 7),
				IP: number(t, m[6], 16), Period: number(t, m[7], 10), CPU: -1,
			}
			s.PID, _ = strconv.Atoi(m[4])
			s.TID, _ = strconv.Atoi(m[5])
			if m[1] != "" {
				s.CPU, _ = strconv.Atoi(m[1])
			}
			continue
		}
		if s == nil {
			continue
		}
		if m := chainLine.FindStringSubmatch(line); m != nil {
			s.Chain = append(s.Chain, number(t, m[1], 16))
		}
		if m := regsLine.FindStringSubmatch(line); m != nil {
			s.Mask = number(t, m[1], 16)
			s.ABI = map[string]uint64{"none": 0, "32-bit": 1, "64-bit": 2}[m[2]]
		}
		interrupted = interrupted || strings.HasPrefix(line, "... intr regs:")
		if m := regLine.FindStringSubmatch(line); m != nil && !interrupted {
			s.Registers = append(s.Registers, number(t, m[1], 16))
		}
		if m := stackLine.FindStringSubmatch(line); m != nil {
			s.Stack = int(number(t, m[1], 10))
		}
		if m := dsoLine.FindStringSubmatch(line); m != nil {
			if s.Mode == ModeUser {
				s.DSO = vdsoFile.ReplaceAllString(strings.TrimSuffix(m[1], " (deleted)"), "[vdso]")
			}
			s = nil // what follows is of another record
		}
	}
	if group {
		return samples, mmaps
	}
	var lines [][]string
	for line := range strings.Lines(oracle.Run(t, "perf", "script", "--force", "--ns", "-G", "-F", "comm,pid,tid,time,period,event", "-i", path)) {
		m := scriptLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("perf script says %q", line)
		}
		lines = append(lines, m)
	}
	if len(lines) != len(samples) {
		t.Fatalf("perf script has %d samples, perf report -D %d", len(lines), len(samples))
	}
	// Of a directory perf report -D has them file by file.
	slices.SortStableFunc(samples, func(a, b plainSample) int { return cmp.Compare(a.Time, b.Time) })
	slices.SortStableFunc(lines, func(a, b []string) int { return cmp.Compare(scriptTime(t, a), scriptTime(t, b)) })
	for i, m := range lines {
		s := &samples[i]
		if at := scriptTime(t, m); at != s.Time {
			t.Fatalf("perf script's sample %d is of time %d, that of perf report -D of %d", i, at, s.Time)
		}
		s.Comm, s.Event = m[1], m[8]
	}
	return samples, mmaps
}

// scriptTime is the time in a line of perf script.
func scriptTime(t testing.TB, m []string) uint64 {
	t.Helper()
	return number(t, m[5], 10)*1e9 + number(t, m[6], 10)
}

// weSay is the same by this package.
func weSay(t testing.TB, f *File) (samples []plainSample, mmaps []string) {
	t.Helper()
	r := f.Reader()
	r.state.mappedHook = func(rec *record, pid, tid int, m *Mapping) {
		at, _ := f.attrs.time(rec, f.order)
		mmaps = append(mmaps, fmt.Sprintf("%d %s", at, mmapText(rec, pid, tid, m)))
	}
	for _, s := range drain(t, r) {
		if s.Problem != "" {
			t.Errorf("sample at %#x: %s", s.Offset, s.Problem)
		}
		p := plainSample{
			Time: s.Time, IP: s.IP, Period: s.Period, PID: s.PID, TID: s.TID, CPU: s.CPU, Comm: s.Comm,
			Event: f.Attrs()[s.Event].Name, Mode: s.Mode, Stack: len(s.Stack), ABI: s.Registers.ABI, Mask: s.Registers.Mask,
		}
		for i := 0; i+8 <= len(s.Registers.Values); i += 8 {
			p.Registers = append(p.Registers, f.order.u64(s.Registers.Values[i:]))
		}
		for i := range s.Chain.Len() {
			p.Chain = append(p.Chain, s.Chain.At(i))
		}
		if m := s.Space.Find(s.IP); m != nil && s.Mode == ModeUser {
			p.DSO = m.Path
		}
		samples = append(samples, p)
	}
	if p := r.Problems(); len(p) > 0 {
		t.Errorf("problems: %q", p)
	}
	return samples, mmaps
}

// mmapText is a mapping as perf writes it.
func mmapText(rec *record, pid, tid int, m *Mapping) string {
	if rec.kind == recordMmap {
		x := "x"
		if !m.Executable {
			x = "r"
		}
		return fmt.Sprintf("PERF_RECORD_MMAP %d/%d: [%#x(%#x) @ %s]: %s %s", pid, tid, m.Start, m.End-m.Start, hex(m.Offset), x, m.Path)
	}
	bit := func(on bool, c string) string {
		if on {
			return c
		}
		return "-"
	}
	prot := bit(m.Prot&1 != 0, "r") + bit(m.Prot&2 != 0, "w") + bit(m.Prot&4 != 0, "x")
	shared := "p"
	if m.Flags&1 != 0 {
		shared = "s"
	}
	where := fmt.Sprintf("%02x:%02x %d", m.Major, m.Minor, m.Inode)
	if rec.misc&miscMmapBuildID != 0 {
		where = fmt.Sprintf("<%x>", m.BuildID)
	}
	return fmt.Sprintf("PERF_RECORD_MMAP2 %d/%d: [%#x(%#x) @ %s %s]: %s%s %s", pid, tid, m.Start, m.End-m.Start, hex(m.Offset), where, prot, shared, m.Path)
}

// hex is C's %#x, which writes 0 as 0.
func hex(n uint64) string {
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%#x", n)
}

// inodeGeneration is what perf says behind the inode.
var inodeGeneration = regexp.MustCompile(`(@ \S+ \S+ \d+) \d+\]`)

// drain reads all samples.
func drain(t testing.TB, r *Reader) (all []Sample) {
	t.Helper()
	for sequence := 0; ; sequence++ {
		b, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if b.Sequence != sequence {
			t.Fatalf("batch %d is number %d", sequence, b.Sequence)
		}
		all = append(all, b.Samples...)
		b.Release()
	}
}

func open(t testing.TB, path string) *File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// Recordings that are compared otherwise than the others.
const (
	groupRecording = "group read"
	wholeSystem    = "the whole system"
)

var recordings = []struct {
	name string
	pipe bool
	args []string
}{
	{name: "raw stacks", args: []string{"-F", "499", "-e", "cpu-clock", "--call-graph", "dwarf,16384"}},
	{name: "two events", args: []string{"-F", "199", "-e", "cpu-clock,page-faults", "--call-graph", "dwarf,8192"}},
	{name: "compressed", args: []string{"-z", "-F", "499", "-e", "cpu-clock,page-faults", "--call-graph", "dwarf,16384"}},
	{name: "pipe", pipe: true, args: []string{"-F", "999", "-e", "cpu-clock", "--call-graph", "fp"}},
	{name: "pipe, two events, compressed", pipe: true, args: []string{"-z", "-F", "499", "-e", "cpu-clock,page-faults", "--call-graph", "dwarf,4096"}},
	{name: "period, addresses, CPU", args: []string{"-c", "20", "-e", "page-faults", "-d", "--sample-cpu", "--phys-data"}},
	{name: "different fields", args: []string{"-e", "cpu-clock/period=1000000,call-graph=fp/", "-e", "page-faults/period=10,call-graph=no/", "-e", "context-switches/period=1/"}},
	{name: groupRecording, args: []string{"-c", "1000000", "-e", "{cpu-clock,page-faults}:S", "-g"}},
	{name: "build IDs in mappings", args: []string{"--buildid-mmap", "-F", "499", "-e", "cpu-clock", "-g"}},
	{name: "chains beside registers", args: []string{"-F", "499", "-e", "cpu-clock", "--call-graph", "fp", "--user-regs=ip,sp"}},
	{name: "a directory", args: []string{"--threads", "-F", "499", "-e", "cpu-clock,page-faults", "--call-graph", "dwarf,4096"}},
	{name: "a compressed directory", args: []string{"--threads", "-z", "-F", "499", "-e", "cpu-clock,page-faults", "-g"}},
	{name: wholeSystem, args: []string{"-a", "-F", "199", "-e", "cpu-clock", "-g", "--weight"}},
	{name: "a clock, raw records, interrupted registers", args: []string{"-k", "CLOCK_MONOTONIC", "-R", "--intr-regs=ip,sp", "-F", "499", "-e", "cpu-clock", "--call-graph", "dwarf,1024"}},
}

// Every sample and every mapping of recordings made here is as perf says it.
func TestRecordingsAreReadAsPerfReadsThem(t *testing.T) {
	oracle.Tools(t, "perf")
	work(t)
	for i, c := range recordings {
		if testing.Short() && i >= 3 {
			break
		}
		if c.name == wholeSystem && !proof.IsRequested() {
			continue // who else runs on the machine decides how long it takes
		}
		t.Run(c.name, func(t *testing.T) {
			path := perfRecord(t, c.pipe, c.args...)
			f := open(t, path)
			if p := f.Problems(); len(p) > 0 {
				t.Errorf("problems: %q", p)
			}
			group := c.name == groupRecording
			wantSamples, wantMmaps := perfSays(t, path, group)
			gotSamples, gotMmaps := weSay(t, f)
			if group {
				for i := range gotSamples {
					gotSamples[i].Comm, gotSamples[i].Event = "", ""
				}
			}
			if !slices.IsSortedFunc(gotSamples, func(a, b plainSample) int { return cmp.Compare(a.Time, b.Time) }) {
				t.Error("the samples are not in the order of time")
			}
			if len(wantSamples) < 10 || len(wantMmaps) < 5 {
				t.Errorf("perf has %d samples and %d mappings: too few to say anything", len(wantSamples), len(wantMmaps))
			}
			for i := range wantMmaps {
				wantMmaps[i] = inodeGeneration.ReplaceAllString(wantMmaps[i], "$1]")
			}
			// perf has samples of one time in another order than the file.
			for _, list := range [][]plainSample{wantSamples, gotSamples} {
				slices.SortFunc(list, func(a, b plainSample) int {
					return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.TID, b.TID), cmp.Compare(a.Event, b.Event), cmp.Compare(a.IP, b.IP))
				})
			}
			if c.name == wholeSystem {
				// What perf started with has no time, and ends with what perf never names.
				for _, list := range [][]plainSample{wantSamples, gotSamples} {
					for i := range list {
						if strings.HasPrefix(list[i].Comm, ":") {
							list[i].Comm = ""
						}
					}
				}
			}
			reportDifferences(t, wantSamples, gotSamples)
			slices.Sort(wantMmaps)
			slices.Sort(gotMmaps)
			if d := gocmp.Diff(wantMmaps, gotMmaps); d != "" {
				t.Errorf("mappings (-perf +this):\n%.4000s", d)
			}
			t.Logf("%d samples, %d mappings, %d runs, counts %v", len(gotSamples), len(gotMmaps), len(f.runs), f.Counts())
		})
	}
}

func reportDifferences(t *testing.T, want, got []plainSample) {
	t.Helper()
	if len(want) != len(got) {
		t.Errorf("%d samples, perf has %d", len(got), len(want))
	}
	bad := 0
	for i := range min(len(want), len(got)) {
		w := want[i]
		// A name in angle brackets is perf's way to say that there is none.
		if strings.HasPrefix(w.DSO, "<") || w.DSO == "[unknown]" {
			w.DSO = ""
		}
		if d := gocmp.Diff(w, got[i]); d != "" {
			if bad++; bad <= 3 {
				t.Errorf("sample %d (-perf +this):\n%s", i, d)
			}
		}
	}
	if bad > 3 {
		t.Errorf("%d samples differ", bad)
	}
}

// The header of a recording is as perf says it, and of the machine.
func TestFeatures(t *testing.T) {
	path := perfRecord(t, false, "-F", "499", "-k", "CLOCK_MONOTONIC", "-e", "cpu-clock", "--call-graph", "dwarf,4096")
	f := open(t, path)
	x := f.Features()
	// 1 is CLOCK_MONOTONIC of Linux.
	if now := uint64(time.Now().UnixNano()); x.ClockID != 1 || x.ClockResolution != 1 || x.Clock == 0 || x.Clock > x.FirstSample ||
		x.WallClock > now || x.WallClock < now-uint64(time.Hour) {
		t.Errorf("clocks: %+v", x)
	}
	host, _ := os.Hostname()
	if x.Hostname != host || x.CPUsOnline == 0 || x.CPUsAvailable < x.CPUsOnline || x.TotalMemory == 0 ||
		x.Arch != strings.TrimSpace(oracle.Run(t, "uname", "-m")) || x.OSRelease != strings.TrimSpace(oracle.Run(t, "uname", "-r")) {
		t.Errorf("features: %+v", x)
	}
	if n := len(x.CmdLine); n < 5 || x.CmdLine[1] != "record" || x.CmdLine[n-1] != work(t) {
		t.Errorf("command line %q", x.CmdLine)
	}
	samples := drain(t, f.Reader())
	if n := len(samples); n == 0 || x.FirstSample != samples[0].Time || x.LastSample != samples[n-1].Time {
		t.Errorf("samples from %d to %d", x.FirstSample, x.LastSample)
	}
	want := map[string]string{}
	for line := range strings.Lines(oracle.Run(t, "perf", "buildid-list", "--force", "-i", path)) {
		if id, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			want[name] = id
		}
	}
	got := map[string]string{}
	for _, b := range x.BuildIDs {
		got[b.Path] = fmt.Sprintf("%x", b.ID)
	}
	if len(want) < 2 || !maps.Equal(want, got) {
		t.Errorf("build IDs %v, perf has %v", got, want)
	}
	found := 0
	for _, s := range samples {
		if m := s.Space.Find(s.IP); m != nil && want[m.Path] != "" {
			found++
			if fmt.Sprintf("%x", m.BuildID) != want[m.Path] {
				t.Fatalf("%s has build ID %x, expected %s", m.Path, m.BuildID, want[m.Path])
			}
		}
	}
	if found == 0 {
		t.Error("no sample's mapping has a build ID")
	}
}
