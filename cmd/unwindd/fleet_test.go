// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/recorded"
)

// A fleetWorker is a worker that runs as a command does.
type fleetWorker struct {
	command *exec.Cmd
	stderr  bytes.Buffer
	ended   chan error
}

// fleetEnvironment is the environment of processes that share a folder.
func fleetEnvironment(dir string) []string {
	return append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "XDG_STATE_HOME="+dir, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "DEBUGINFOD_URLS=", "NO_COLOR=1")
}

// fleetDir is a folder for workers, of a short path: those of sockets are bounded.
func fleetDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fleet-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// startWorker starts a worker, and waits until it works.
func startWorker(t *testing.T, dir string, flags ...string) *fleetWorker {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &fleetWorker{ended: make(chan error, 1)}
	w.command = exec.Command(self, append([]string{"worker", "--queue-size", "1G"}, flags...)...) //nolint:gosec // this executable
	w.command.Env, w.command.Stderr = fleetEnvironment(dir), &w.stderr
	out, err := w.command.StdoutPipe()
	if err == nil {
		err = w.command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	go func() { w.ended <- w.command.Wait() }()
	t.Cleanup(func() {
		_ = w.command.Process.Kill()
		<-w.ended
		if t.Failed() {
			t.Log(w.stderr.String())
		}
	})
	if err != nil || !strings.HasPrefix(line, "working for nats://127.0.0.1:") {
		t.Fatalf("it says %q: %v, %s", line, err, w.stderr.String())
	}
	return w
}

// inFleet runs a command of a folder's fleet.
func inFleet(t *testing.T, dir, work string, args ...string) (out string, status int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, args...) //nolint:gosec // this executable
	var stdout, stderr bytes.Buffer
	c.Dir, c.Env, c.Stdout, c.Stderr = work, fleetEnvironment(dir), &stdout, &stderr
	err = c.Run()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	if stderr.Len() > 0 {
		t.Logf("%v: %s", args, stderr.String())
	}
	return stdout.String(), c.ProcessState.ExitCode()
}

// fleetFiles are files in a folder: their copies are called as documents call them.
func fleetFiles(t *testing.T) string {
	t.Helper()
	work := t.TempDir()
	example := filepath.Dir(serverCore)
	for name, source := range map[string]string{
		"core": serverCore, "server": filepath.Join(example, "server"), "server.dmp": filepath.Join(example, "server.dmp"), "crash.dmp": filepath.Join(example, "server.dmp"), "mixed.snapshot": mixed,
		"perf.data": "../../examples/profile/perf.data",
	} {
		b, err := os.ReadFile(source)
		if err == nil {
			err = os.WriteFile(filepath.Join(work, name), b, 0o700) //nolint:gosec // an executable among them
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return work
}

// TestAFleetPrintsWhatTheCommandPrints has jobs done by a worker that has the queue, and has
// none of this machine's files. It leaves nothing when it ends.
func TestAFleetPrintsWhatTheCommandPrints(t *testing.T) {
	oracle.All(t)
	t.Parallel()
	dir, work := fleetDir(t), fleetFiles(t)
	worker := startWorker(t, dir, "--queue-listen", "localhost:0", "--workers", "1")
	root := t.TempDir()
	for _, c := range []struct{ local, submit []string }{
		{[]string{"stack", "core", "--exe", "server", "--locals", "--crashed"}, []string{"--priority", "high"}},
		{[]string{"stack", "mixed.snapshot", "--format", "json"}, []string{"--priority", "low"}},
		{[]string{"stack", "core", "--signature"}, nil},
		{[]string{"profile", "perf.data"}, []string{"--parts", "3"}},
	} {
		want, wantStatus := inFleet(t, dir, work, append(c.local, "--sysroot", root)...)
		args := append([]string{"submit", "--wait", "--again", "--sysroot", root}, c.submit...)
		got, status := inFleet(t, dir, work, append(args, c.local[1:]...)...)
		if withoutPlaces(got) != withoutPlaces(want) || status != wantStatus || want == "" {
			t.Errorf("%v: status %d, expected %d\n%s\nexpected\n%s", c, status, wantStatus, got, want)
		}
	}
	if status := worker.end(t); status != 0 {
		t.Errorf("exit status %d", status)
	}
	for _, left := range []string{"unwindd/s-*", "unwindd/spool/*"} {
		if list, _ := filepath.Glob(filepath.Join(dir, left)); len(list) > 0 {
			t.Errorf("it leaves %v", list)
		}
	}
}

// placesOfFiles are what is said of where files are, or are not.
var placesOfFiles = regexp.MustCompile(`(?m)^ *(problem:.*|debug file.*|modules?)$|^ +0x[0-9a-f]+ /.*$|"(path|debug_file|problem|kernel|problems)": ?("[^"]*"|\[[^\]]*\]),?`)

func withoutPlaces(text string) string { return placesOfFiles.ReplaceAllString(text, "") }

// end ends the worker as systemd does.
func (w *fleetWorker) end(t *testing.T) int {
	t.Helper()
	if err := w.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-w.ended:
		w.ended <- err
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
	return w.command.ProcessState.ExitCode()
}

// TestFleetRefuses uses flags of the fleet that have no meaning.
func TestFleetRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args  []string
		words string
	}{
		{[]string{"worker", "--queue", "nats://127.0.0.1:1", "--queue-listen", "localhost:0"}, "--queue-listen"},
		{[]string{"worker", "--queue-listen", "0.0.0.0:0"}, "others reach this address"},
		{[]string{"worker", "--queue", "nats://127.0.0.1:1", "--workers", "0"}, "--workers 0"},
		{[]string{"worker", "--workers", "0", "--log-level", "x"}, "--log-level x"},
		{[]string{"worker", "--workers", "0", "--queue-listen", "0.0.0.0:0"}, "others reach this address"},
		{[]string{"worker", "--workers", "-1"}, "--workers"},
		{[]string{"worker", "--queue-replicas", "9"}, "--queue-replicas"},
		{[]string{"worker", "--queue-cert", "x"}, "expected both"},
		{[]string{"submit"}, "expected TARGET..."},
		{[]string{"submit", "core"}, "no queue"},
		{[]string{"submit", "core", "--group"}, "--wait"},
		{[]string{"submit", "core", "--priority", "now"}, "--priority now"},
		{[]string{"submit", "core", "--as", "x"}, "--as x"},
		{[]string{"submit", "core", "--format", "x"}, "--format x"},
		{[]string{"submit", "core", "--label", "rank=1"}, "expected --as compare"},
		{[]string{"submit", "core", "--as", "compare", "--label", "rank"}, "--label rank"},
		{[]string{"submit", "core", "--repeat", "2"}, "expected --collect"},
		{[]string{"submit", "--collect", "x", "--repeat", "0"}, "--repeat 0"},
		{[]string{"results", "x"}, "no job's ID"},
		{[]string{"results", "--cancel"}, "expected IDs"},
		{[]string{"results", "--state", "x"}, "--state x"},
		{[]string{"results", "--queue", "nats://127.0.0.1:1"}, "the queue does not answer"},
	} {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		command := exec.Command(self, c.args...) //nolint:gosec // this executable
		command.Env = fleetEnvironment(dir)
		out, _ := command.CombinedOutput()
		if status := command.ProcessState.ExitCode(); status == 0 || !strings.Contains(string(out), c.words) {
			t.Errorf("%v: status %d, %s, expected %q", c.args, status, out, c.words)
		}
	}
}

// TestDocumentedFleet runs the commands of docs/fleet.md, in their order, with one worker.
func TestDocumentedFleet(t *testing.T) {
	oracle.Tools(t, "curl")
	text, err := os.ReadFile("../../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	dir, work := fleetDir(t), fleetFiles(t)
	startWorker(t, dir, "--queue-listen", "localhost:0")
	env := append(fleetEnvironment(dir), commandEnvironment(t)[0])
	commands := 0
	for _, block := range consoleBlocks.FindAllStringSubmatch(string(text), -1) {
		for _, step := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			command, want, _ := strings.Cut(step, "\n")
			if server, ok := strings.CutSuffix(command, " &"); ok {
				if strings.HasPrefix(server, "unwindd serve ") { // the worker is started already
					documentedServer(t, work, env, server)
				}
				continue
			}
			commands++
			got := oracle.With{Dir: work, Env: env}.Run(t, "sh", "-c", command)
			if !pattern(want).MatchString(strings.TrimSuffix(got, "\n")) {
				t.Errorf("$ %s\n%s\nthe document shows\n%s", command, got, want)
			}
		}
	}
	if commands < 4 {
		t.Errorf("%d commands, expected 4 or more", commands)
	}
}

// documentedServer starts a server that a document starts, and waits until it has its fleet.
func documentedServer(t *testing.T, dir string, env []string, line string) {
	t.Helper()
	c := exec.Command("sh", "-c", "exec "+line) //nolint:gosec // of a document
	said := &lines{}
	c.Dir, c.Env, c.Stderr = dir, env, said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	await(t, line+": "+said.String(), func() bool { return strings.Contains(said.String(), "the queue of the fleet answers") })
}

// pattern is what a document shows, in which "..." stands for anything.
func pattern(shown string) *regexp.Regexp {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSuffix(shown, "\n")), `\.\.\.`, "(?s:.*)") + "$")
}

// TestARecordingIsProfiledElsewhere has a recording of this machine profiled in parts by workers
// that see none of its files.
func TestARecordingIsProfiledElsewhere(t *testing.T) {
	program := recorded.Program(t, "deepcpp", 0.2)
	recording := recorded.Once(t, "elsewhere.data", func(path string) {
		// Without --buildid-mmap perf has build IDs only of files in which a sample was taken. One
		// through which a call went on is not sent then, and its frames are guessed. The names of
		// this machine's kernel are for readers here alone.
		recorded.Perf(t, path, []string{"-F", "3000", "-e", "cpu-clock:u", "--call-graph", "dwarf,16384", "--buildid-mmap"}, program...)
	})
	dir := fleetDir(t)
	nothing := t.TempDir()
	startWorker(t, dir, "--queue-listen", "localhost:0", "--workers", "2", "--sysroot", nothing)
	for format, parts := range map[string]string{"text": "1", "json": "3"} {
		want, _ := inFleet(t, dir, filepath.Dir(recording), "profile", filepath.Base(recording), "--format", format)
		got, _ := inFleet(t, dir, filepath.Dir(recording), "submit", "--wait", "--again", filepath.Base(recording), "--format", format, "--parts", parts)
		if diff := cmp.Diff(withoutPlaces(want), withoutPlaces(got)); diff != "" || len(want) < 1000 {
			t.Errorf("%s in %s parts, -expected +got:\n%.3000s", format, parts, diff)
		}
	}
}
