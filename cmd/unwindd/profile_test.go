// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"
	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/schema"
)

// wordsRecording is what perf recorded of a program of two processes; its
// executable lies beside it.
const wordsRecording = "../../examples/profile/perf.data"

// runProfile runs `unwindd profile` on a recording.
func runProfile(t testing.TB, args ...string) (stdout, stderr string) {
	t.Helper()
	cmd := command(append([]string{"profile", "--in-process"}, args...)...)
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	if e := cmd.Run(); e != nil {
		t.Fatalf("%q: %v\n%s", args, e, err.String())
	}
	return out.String(), err.String()
}

// profileJSON is what the tests read of the profile's JSON.
type profileJSON struct {
	Target struct {
		Lost     uint64
		Problems []string
	}
	Samples []profileSample
	Frames  []struct {
		PC, Function, File string
		Offset             string `json:"module_offset"`
		Inlined            bool
	}
}

type profileSample struct {
	Event, Comm, Stopped string
	PID, TID             int
	Time, Weight         uint64
	Frames               []int
}

func readProfile(t testing.TB, args ...string) *profileJSON {
	t.Helper()
	out, _ := runProfile(t, append(args, "--format", "json")...)
	p := &profileJSON{}
	if err := json.Unmarshal([]byte(out), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// stacks are the sums of weights by stack of functions, outermost first; flat and
// cum those by function.
func (p *profileJSON) stacks(event string) (stacks, flat, cum map[string]uint64) {
	stacks, flat, cum = map[string]uint64{}, map[string]uint64{}, map[string]uint64{}
	for _, s := range p.Samples {
		if s.Event != event {
			continue
		}
		var names []string
		for _, f := range s.Frames {
			names = append(names, p.Frames[f].Function)
		}
		flat[names[0]] += s.Weight
		for i, name := range names {
			if !slices.Contains(names[:i], name) {
				cum[name] += s.Weight
			}
		}
		slices.Reverse(names)
		stacks[s.Comm+";"+strings.Join(names, ";")] += s.Weight
	}
	return stacks, flat, cum
}

func TestProfileHasEverySampleOfTheRecording(t *testing.T) {
	p := readProfile(t, wordsRecording)
	script := oracle.Run(t, "perf", "script", "-i", wordsRecording, "--no-inline", "-F", "comm,pid,tid,time,period,event")
	line := regexp.MustCompile(`(?m)^ *(\S+) +(\d+)/(\d+) +(\d+)\.(\d{6}): +(\d+) +(\S+):`)
	var want, got []string
	for _, m := range line.FindAllStringSubmatch(script, -1) {
		want = append(want, strings.Join(m[1:], " "))
	}
	for _, s := range p.Samples {
		got = append(got, fmt.Sprintf("%s %d %d %d %06d %d %s", s.Comm, s.PID, s.TID, s.Time/1e9, s.Time%1e9/1e3, s.Weight, s.Event))
	}
	if len(want) < 80 {
		t.Fatalf("perf script has %d samples", len(want))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-perf script +profile):\n%s", diff)
	}
}

// TestProfileIsOneInAllFormats compares what the forms say, each as its own reader
// reads it, with the JSON.
func TestProfileIsOneInAllFormats(t *testing.T) {
	if testing.Short() {
		t.Skip("reads the profile by other tools")
	}
	p := readProfile(t, wordsRecording)
	dir := t.TempDir()
	binary := filepath.Join(dir, "words.pb.gz")
	runProfile(t, wordsRecording, "--format", "pprof", "-o", binary)
	for _, event := range []string{"cpu-clock", "page-faults"} {
		stacks, flat, cum := p.stacks(event)
		out, _ := runProfile(t, wordsRecording, "--format", "folded", "--event", event)
		if diff := cmp.Diff(stacks, parseFolded(t, out)); diff != "" {
			t.Errorf("%s: folded (-json +folded):\n%s", event, diff)
		}
		gotFlat, gotCum := pprofTop(t, binary, event)
		for name := range cum {
			if flat[name] == 0 {
				flat[name] = 0 // as -top has it
			}
		}
		if diff := cmp.Diff(flat, gotFlat); diff != "" {
			t.Errorf("%s: pprof -top, flat (-json +pprof):\n%s", event, diff)
		}
		if diff := cmp.Diff(cum, gotCum); diff != "" {
			t.Errorf("%s: pprof -top, cum (-json +pprof):\n%s", event, diff)
		}
		traces := pprofTraces(t, binary, event)
		if diff := cmp.Diff(stacks, traces); diff != "" {
			t.Errorf("%s: pprof -traces (-json +pprof):\n%s", event, diff)
		}
	}
}

func parseFolded(t testing.TB, text string) map[string]uint64 {
	t.Helper()
	got := map[string]uint64{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		at := strings.LastIndexByte(line, ' ')
		n, err := strconv.ParseUint(line[at+1:], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		got[line[:at]] += n
	}
	return got
}

// pprof runs `go tool pprof`; nothing is left out.
func pprof(t testing.TB, args ...string) string {
	t.Helper()
	return oracle.Run(t, "go", append([]string{"tool", "pprof", "-symbolize=none", "-nodefraction=0", "-edgefraction=0", "-nodecount=10000"}, args...)...)
}

var topLine = regexp.MustCompile(`(?m)^ *(\d+)(?:ns)? +\S+% +\S+% +(\d+)(?:ns)? +\S+% +(.*?)(?: \((?:partial-)?inline\))?$`)

func pprofTop(t testing.TB, path, event string) (flat, cum map[string]uint64) {
	t.Helper()
	flat, cum = map[string]uint64{}, map[string]uint64{}
	for _, m := range topLine.FindAllStringSubmatch(pprof(t, "-top", "-unit=ns", "-sample_index="+event, path), -1) {
		a, _ := strconv.ParseUint(m[1], 10, 64)
		b, _ := strconv.ParseUint(m[2], 10, 64)
		flat[m[3]], cum[m[3]] = a, b
	}
	return flat, cum
}

// pprofTraces are the stacks that `pprof -traces` prints, innermost first.
func pprofTraces(t testing.TB, path, event string) map[string]uint64 {
	t.Helper()
	got := map[string]uint64{}
	for _, block := range strings.Split(pprof(t, "-traces", "-unit=ns", "-sample_index="+event, path), "-----------+")[1:] {
		var names []string
		var weight uint64
		comm := ""
		for line := range strings.Lines(block[strings.IndexByte(block, '\n')+1:]) {
			line = strings.TrimSuffix(line, "\n")
			if label, ok := strings.CutPrefix(strings.TrimSpace(line), "comm:"); ok {
				comm = strings.TrimSpace(label)
				continue
			}
			if len(line) < 12 || strings.Contains(line, ":  ") || strings.TrimSpace(line) == "" {
				continue
			}
			if value := strings.TrimSpace(line[:11]); value != "" {
				n, err := strconv.ParseUint(strings.TrimSuffix(value, "ns"), 10, 64)
				if err != nil {
					continue // another label
				}
				weight = n
			}
			name := strings.TrimSuffix(strings.TrimSpace(line[11:]), " (inline)")
			names = append(names, name)
		}
		if weight == 0 || len(names) == 0 {
			continue
		}
		slices.Reverse(names)
		got[comm+";"+strings.Join(names, ";")] += weight
	}
	return got
}

func TestPprofOfARecordingHasBuildIDsInlinedCallsAndLabels(t *testing.T) {
	oracle.Tools(t, "readelf")
	out, _ := runProfile(t, wordsRecording, "--format", "pprof")
	p, err := profile.ParseData([]byte(out))
	if err != nil {
		t.Fatal(err)
	}
	notes := oracle.Run(t, "readelf", "-n", "../../examples/profile/words")
	m := p.Mapping[0]
	if filepath.Base(m.File) != "words" || m.BuildID == "" || !strings.Contains(notes, "Build ID: "+m.BuildID) {
		t.Errorf("mapping %+v, expected that of words, with its build ID in\n%s", m, notes)
	}
	if !m.HasFunctions || !m.HasFilenames || !m.HasLineNumbers || !m.HasInlineFrames {
		t.Errorf("mapping %+v, expected all of its information", m)
	}
	inlined, starts := 0, 0
	for _, l := range p.Location {
		if l.Address < m.Start || l.Address >= m.Limit {
			t.Errorf("location %#x is outside of %#x to %#x", l.Address, m.Start, m.Limit)
		}
		if len(l.Line) > 1 {
			inlined++
		}
		for _, line := range l.Line {
			if line.Function.StartLine > 0 {
				starts++
			}
		}
	}
	if inlined == 0 || starts == 0 {
		t.Errorf("%d locations have inlined calls, %d lines the beginning of their function", inlined, starts)
	}
	processes := map[int64]string{}
	for _, s := range p.Sample {
		if len(s.NumLabel["pid"]) != 1 || len(s.NumLabel["tid"]) != 1 || len(s.Label["comm"]) != 1 {
			t.Fatalf("labels %v %v", s.NumLabel, s.Label)
		}
		processes[s.NumLabel["pid"][0]] += s.Label["comm"][0] + " "
	}
	if len(processes) != 2 {
		t.Errorf("processes %v, expected two", processes)
	}
}

func TestProfileOfSeveralEventsAsFoldedStacks(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "words")
	names := func() (list []string) {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			list = append(list, e.Name())
			os.Remove(filepath.Join(dir, e.Name()))
		}
		return list
	}
	_, stderr := runProfile(t, wordsRecording, "--format", "folded", "-o", out)
	if diff := cmp.Diff([]string{"words.cpu-clock", "words.page-faults"}, names()); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(stderr, "page-faults: "+out+".page-faults\n") {
		t.Errorf("the files are not told:\n%s", stderr)
	}
	runProfile(t, wordsRecording, "--format", "folded", "-o", out, "--event", "page-faults")
	if diff := cmp.Diff([]string{"words"}, names()); diff != "" {
		t.Error(diff)
	}
	first, _ := runProfile(t, wordsRecording, "--format", "folded")
	clock, _ := runProfile(t, wordsRecording, "--format", "folded", "--event", "cpu-clock")
	if first != clock || first == "" {
		t.Errorf("without -o and --event not the first event is written:\n%s", first)
	}
}

func TestProfileWithoutSymbolsHasAddresses(t *testing.T) {
	with, without := readProfile(t, wordsRecording), readProfile(t, wordsRecording, "--symbols=false")
	for i, f := range without.Frames {
		if f.Function != "" || f.File != "" || f.Inlined || f.PC == "" || f.Offset == "" {
			t.Errorf("frame %d is %+v", i, f)
		}
	}
	pcs := func(p *profileJSON) (list [][]string) {
		for _, s := range p.Samples {
			var one []string
			for _, f := range s.Frames {
				if !p.Frames[f].Inlined {
					one = append(one, p.Frames[f].PC)
				}
			}
			list = append(list, one)
		}
		return list
	}
	if diff := cmp.Diff(pcs(with), pcs(without)); diff != "" {
		t.Error(diff)
	}
	if _, stderr := runProfile(t, wordsRecording, "--symbols=false"); strings.Contains(stderr, "without a function") {
		t.Errorf("the summary misses symbols that were not asked for:\n%s", stderr)
	}
	folded, _ := runProfile(t, wordsRecording, "--symbols=false", "--format", "folded")
	if !regexp.MustCompile(`(?m)^words(;\[words\]\+0x[0-9a-f]+)+ \d+$`).MatchString(folded) {
		t.Errorf("folded:\n%s", folded)
	}
}

// TestProfileIsAsItsSchemaHasIt reads the JSON by docs/profile.schema.json, which
// has every member that is written.
func TestProfileIsAsItsSchemaHasIt(t *testing.T) {
	profiles := schema.Docs(t, "profile.schema.json")
	for _, args := range [][]string{{}, {"--symbols=false"}, {"--max-stack", "2"}} {
		out, _ := runProfile(t, append(args, wordsRecording, "--format", "json")...)
		var p any
		if err := json.Unmarshal([]byte(out), &p); err != nil {
			t.Fatal(err)
		}
		for _, wrong := range profiles.Check("profile", p) {
			t.Error(wrong)
		}
	}
}

func TestProfileCutsStacksAtTheirLimit(t *testing.T) {
	cut := 0
	for _, s := range readProfile(t, wordsRecording, "--max-stack", "3", "--symbols=false").Samples {
		if len(s.Frames) > 3 {
			t.Errorf("%d frames", len(s.Frames))
		}
		if s.Stopped == "frame-limit" {
			cut++
		}
	}
	if cut == 0 {
		t.Error("no stack was cut")
	}
}

func TestProfileDoesNotDependOnTheNumberOfGoroutines(t *testing.T) {
	one, _ := runProfile(t, wordsRecording, "--format", "json", "-j", "1")
	for _, jobs := range []string{"2", "7"} {
		if more, _ := runProfile(t, wordsRecording, "--format", "json", "-j", jobs); more != one {
			t.Errorf("-j %s: other bytes than -j 1", jobs)
		}
	}
}

func TestProfileOfACutRecordingHasWhatIsThere(t *testing.T) {
	b, err := os.ReadFile(wordsRecording)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	words, err := os.ReadFile("../../examples/profile/words")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "perf.data")
	if err := errors.Join(os.WriteFile(path, b[:100_000], 0o600), os.WriteFile(filepath.Join(dir, "words"), words, 0o700)); err != nil {
		t.Fatal(err)
	}
	p := readProfile(t, path)
	if len(p.Samples) < 20 || len(p.Target.Problems) == 0 {
		t.Errorf("%d samples, problems %q", len(p.Samples), p.Target.Problems)
	}
	_, stderr := runProfile(t, path)
	if !strings.Contains(stderr, "problem: "+path) {
		t.Errorf("the summary does not tell the problem:\n%s", stderr)
	}
}

func TestProfileRefusesWhatItCannotDo(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("PERFILE2 it is not"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{}, exitUsage, "accepts 1 arg"},
		{[]string{"", "--gpu-samples", gpuSamples}, exitUsage, "RECORDING has no name"},
		{[]string{wordsRecording, wordsRecording, "--gpu-samples", gpuSamples}, exitUsage, "accepts 1 arg"},
		{[]string{"--gpu-samples", wordsRecording}, exitInput, wordsRecording + ": not a file of samples of accelerators: as rocprofv3: offset 0x0: "},
		{[]string{wordsRecording, "--gpu-samples", "nothing"}, exitInput, "nothing"},
		{[]string{wordsRecording, "--format", "svg"}, exitUsage, "--format svg: expected text or pprof or otlp or folded or speedscope or firefox or html or json"},
		{[]string{wordsRecording, "-j", "-1"}, exitUsage, "--jobs -1"},
		{[]string{wordsRecording, "--max-stack", "0"}, exitUsage, "--max-stack 0"},
		{[]string{wordsRecording, "--http", "localhost"}, exitUsage, "--http localhost: expected HOST:PORT"},
		{[]string{wordsRecording, "--http", "localhost:0", "-o", "x"}, exitUsage, "neither --format nor -o"},
		{[]string{wordsRecording, "--http", "localhost:0", "--format", "text"}, exitUsage, "neither --format nor -o"},
		{[]string{wordsRecording, "--event", "cycles"}, exitInput, "no event cycles, expected one of: cpu-clock, page-faults"},
		{[]string{wordsRecording, "--kallsyms", "nothing"}, exitInput, "nothing"},
		{[]string{wordsRecording, "--http", "192.0.2.1:1"}, exitInput, "192.0.2.1:1"},
		{[]string{"nothing"}, exitInput, "nothing"},
		{[]string{text}, exitInput, text},
	} {
		cmd := command(append([]string{"profile", "--in-process"}, c.args...)...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		var exit *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if got := cmd.ProcessState.ExitCode(); got != c.status || !strings.Contains(stderr.String(), c.says) || stdout.Len() > 0 {
			t.Errorf("%q: status %d, expected %d and %q\n%s%s", c.args, got, c.status, c.says, stdout.String(), stderr.String())
		}
	}
}

func TestProfileFormatsAreCompleted(t *testing.T) {
	out, err := command("__complete", "profile", "--format", "").Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := "text\npprof\notlp\nfolded\nspeedscope\nfirefox\nhtml\njson\n:4\n"; string(out) != want {
		t.Errorf("%q, expected %q", out, want)
	}
}

// terminal is both ends of a terminal.
func terminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close() })
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}

func TestProfileOnATerminal(t *testing.T) {
	for _, c := range []struct {
		format string
		status int
		says   string
	}{
		{"pprof", exitUsage, "expected -o FILE"},
		{"text", exitDone, "\x1b[33minsert(Node*, unsigned int)"},
	} {
		ours, theirs := terminal(t)
		cmd := command("profile", "--in-process", wordsRecording, "--format", c.format)
		cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool { return strings.HasPrefix(v, "NO_COLOR=") })
		cmd.Env = append(cmd.Env, "TERM=xterm")
		cmd.Stdout, cmd.Stderr = theirs, theirs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		theirs.Close()
		out, _ := io.ReadAll(ours) // the end of a terminal is an error
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != c.status || !strings.Contains(string(out), c.says) {
			t.Errorf("%s: status %d, expected %d and %q:\n%s", c.format, got, c.status, c.says, out)
		}
	}
}

// serveProfile serves a recording until the test ends, which must be well.
func serveProfile(t *testing.T) (url string) { return serveProfileIn(t, t.TempDir()) }

// serveProfileIn serves with a home directory and more flags.
func serveProfileIn(t *testing.T, home string, flags ...string) (url string) {
	t.Helper()
	return serveRecording(t, home, wordsRecording, flags...)
}

func serveRecording(t *testing.T, home, recording string, flags ...string) (url string) {
	t.Helper()
	cmd := command(append([]string{"profile", "--in-process", recording, "--http", "localhost:0"}, flags...)...)
	cmd.Env = append(cmd.Env, "HOME="+home, "XDG_CONFIG_HOME=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Error(err)
		}
		rest, _ := io.ReadAll(out)
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != exitSignal+int(syscall.SIGINT) || len(rest) > 0 {
			t.Errorf("interrupted: %v, %q\n%s", err, rest, stderr.String())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "listening ")
	if err != nil || !ok {
		t.Fatalf("%q, %v, expected the address\n%s", line, err, stderr.String())
	}
	return url
}

func TestProfilePagesAreServed(t *testing.T) {
	url := serveProfile(t)
	for _, c := range []struct {
		page   string
		status int
		says   []string
	}{
		{"/", http.StatusOK, []string{"insert(Node*, unsigned int)"}}, // the flame graph
		{"/ui/flamegraph?si=page-faults", http.StatusOK, []string{"make", "page-faults"}},
		{"/ui/top", http.StatusOK, []string{"count_by_sort(int)", "total(Node const*)"}},
		{"/ui/peek?f=insert", http.StatusOK, []string{"count_by_tree(int)"}},
		{"/ui/source?f=insert", http.StatusOK, []string{"words.cc"}},
		{"/ui/download", http.StatusOK, nil},
		{"/nothing", http.StatusNotFound, nil},
	} {
		answer, err := http.Get(url + c.page)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != c.status {
			t.Errorf("%s: status %d, %v, expected %d", c.page, answer.StatusCode, err, c.status)
		}
		for _, s := range c.says {
			if !bytes.Contains(body, []byte(s)) {
				t.Errorf("%s does not have %q", c.page, s)
			}
		}
		if strings.HasSuffix(c.page, "download") {
			if _, err := profile.ParseData(body); err != nil {
				t.Errorf("%s: %v", c.page, err)
			}
		}
	}
}
