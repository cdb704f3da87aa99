// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/oracle"
)

const (
	// wordsRecording is what perf recorded of a program of two processes; its executable
	// lies beside it.
	wordsRecording = "../../examples/profile/perf.data"
	gpuRecording   = "../../examples/gpu-profile/cpu.data"
	gpuSamples     = "../../examples/gpu-profile/gpu.jsonl"
)

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
	Samples []struct {
		Event, Stopped string
		Frames         []int
	}
	Frames []struct {
		Function string
		Offset   string `json:"module_offset"`
		Inlined  bool
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
		{[]string{}, exitUsage, "profile: there is no ./perf.data: give a RECORDING, or have one made"},
		{[]string{wordsRecording, "--duration", "1s", "--idle"}, exitUsage, "--duration, --idle: it is of what is recorded now: expected a living process, --pid PID, or -- PROGRAM"},
		{[]string{wordsRecording, "--pid", "1"}, exitUsage, "--pid 1 and " + wordsRecording + ": expected one of them"},
		{[]string{"--pid", "no-such-name"}, exitInput, "--pid no-such-name: no process has that name"},
		{[]string{"--pid", "99999999"}, exitInput, "process 99999999: no such process"},
		{[]string{"--tid", "99999999"}, exitInput, "--tid 99999999: there is no such thread"},
		{[]string{"--tid", "main"}, exitUsage, "--tid main: expected the ID of a thread"},
		{[]string{"--pid", "1", "--every", "1ms", "-F", "10"}, exitUsage, "--every and --frequency are both how often"},
		{[]string{"--pid", "1", "--recorder", "gdb"}, exitUsage, "--recorder gdb: expected auto, perf, live"},
		{[]string{"--pid", "1", "--recorder", "perf", "--idle"}, exitUsage, "--idle: perf has no such thing: expected --recorder live"},
		{[]string{"--pid", "1", "--keep", "-"}, exitUsage, "--keep -: expected a file"},
		{[]string{"--pid", "1", "--repeat", "0"}, exitUsage, "--repeat 0: expected 1 or more"},
		{[]string{"--pid", "1", "--duration", "-1s"}, exitUsage, "--duration -1s: expected 0 or more"},
		{[]string{"--", "no-such-program"}, exitNotFound, "no-such-program: there is no such program"},
		{[]string{"--", text}, exitNotExecutable, text + ": it cannot be executed: expected -- PROGRAM ARGS"},
		{[]string{"", "--gpu-samples", gpuSamples}, exitUsage, "RECORDING has no name"},
		{[]string{wordsRecording, wordsRecording, "--gpu-samples", gpuSamples}, exitUsage, wordsRecording + " is a recording of perf: expected one recording"},
		{[]string{"--gpu-samples", wordsRecording}, exitInput, wordsRecording + ": not a file of samples of accelerators: as rocprofv3: offset 0x0: "},
		{[]string{wordsRecording, "--gpu-samples", "nothing"}, exitInput, "nothing"},
		{[]string{wordsRecording, "--format", "svg"}, exitUsage, "--format svg: expected text, pprof, otlp, folded, speedscope, firefox, html or json"},
		{[]string{wordsRecording, "-j", "-1"}, exitUsage, "--jobs -1"},
		{[]string{wordsRecording, "--max-stack", "0"}, exitUsage, "--max-stack 0"},
		{[]string{wordsRecording, "--http", "localhost"}, exitUsage, "--http localhost: expected HOST:PORT"},
		{[]string{wordsRecording, "--http", "localhost:0", "-o", "x"}, exitUsage, "neither --format nor -o"},
		{[]string{wordsRecording, "--http", "localhost:0", "--format", "text"}, exitUsage, "neither --format nor -o"},
		{[]string{wordsRecording, "--event", "cycles"}, exitInput, "no event cycles, expected one of: cpu-clock, page-faults"},
		{[]string{wordsRecording, "--kallsyms", "nothing"}, exitInput, "nothing"},
		{[]string{wordsRecording, "--http", "192.0.2.1:1"}, exitInput, "192.0.2.1:1"},
		{[]string{"--symbolize", "nothing"}, exitInput, "nothing"},
		{[]string{"--symbolize", text}, exitInput, text + ": expected a profile of OpenTelemetry (ProfilesData) or of pprof"},
		{[]string{"--symbolize", text, wordsRecording}, exitUsage, "--symbolize names its profile: expected no recording with it"},
		{[]string{"--symbolize", text, "--format", "pprof"}, exitUsage, "--format has no meaning with --symbolize"},
		{[]string{"--symbolize", text, "--symbols=false"}, exitUsage, "expected no --symbols=false with it"},
		{[]string{"--symbolize", text, "-o", text}, exitUsage, "which is read and would be written over"},
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

func TestProfileOnATerminal(t *testing.T) {
	for _, c := range []struct {
		format string
		status int
		says   string
	}{
		{"pprof", exitUsage, "expected -o FILE"},
		{"text", exitDone, "\x1b[33minsert\x1b"},
	} {
		ours, theirs := oracle.Terminal(t)
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

// TestProfileDoesWhatItsFlagsSay has the samples of one event, of an accelerator, with short
// stacks and without names.
func TestProfileDoesWhatItsFlagsSay(t *testing.T) {
	out, stderr := runProfile(t, gpuRecording, "--gpu-samples", gpuSamples, "--event", "gpu-pc-sampling", "--symbols=false", "--max-stack", "2", "-j", "1", "--format", "json")
	var p profileJSON
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		t.Fatal(err)
	}
	cut := 0
	for _, s := range p.Samples {
		if s.Event != "gpu-pc-sampling" || len(s.Frames) > 2 {
			t.Fatalf("a sample is %+v", s)
		}
		if s.Stopped == "frame-limit" {
			cut++
		}
	}
	for _, f := range p.Frames {
		if f.Function != "" {
			t.Fatalf("a frame is %+v", f)
		}
	}
	if cut == 0 || strings.Contains(stderr, "without a function") {
		t.Errorf("%d stacks of %d are cut: %s", cut, len(p.Samples), stderr)
	}
}

// TestProfilePagesAreServed has the pages of --http until the command is interrupted.
func TestProfilePagesAreServed(t *testing.T) {
	cmd := command("profile", "--in-process", wordsRecording, "--http", "localhost:0", "--sysroot", t.TempDir())
	cmd.Env = append(cmd.Env, "HOME="+t.TempDir(), "XDG_CONFIG_HOME=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }() // where the test fails before
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "listening ")
	if err != nil || !ok {
		t.Fatalf("%q, %v, expected the address\n%s", line, err, stderr.String())
	}
	answer, err := http.Get(url + "/ui/top") //nolint:noctx // the test has a limit
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || answer.StatusCode != http.StatusOK || !bytes.Contains(body, []byte("cpu-clock")) {
		t.Errorf("%s, %v: %.500s", answer.Status, err, body)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Error(err)
	}
	rest, _ := io.ReadAll(out)
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != exitSignal+int(syscall.SIGINT) || len(rest) > 0 {
		t.Errorf("interrupted: %v, %q\n%s", err, rest, stderr.String())
	}
}
