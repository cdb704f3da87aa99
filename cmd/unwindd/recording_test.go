// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unwindd/unwindd/internal/oracle"
)

// spinning returns the path of a program that executes for milliseconds of the clock, once it has read
// a line.
func spinning(t *testing.T) string {
	t.Helper()
	source := oracle.Checkout(t, "engine/internal/target/process/testdata/victim.c")
	return filepath.Join(oracle.Build{Sources: []string{source}, Commands: [][]string{
		{"gcc", "-g", "-O1", "-fno-optimize-sibling-calls", "-pthread", "-o", "waiting", source},
	}}.Make(t), "waiting")
}

// recordAs runs `unwindd profile` with standard input, as folded stacks.
func recordAs(t *testing.T, input string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := command(append([]string{"profile", "--in-process", "--format", "folded"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errs
	_ = cmd.Run()
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// recordersHere are the recorders that this machine has.
func recordersHere(t *testing.T) []string {
	t.Helper()
	if _, err := planPerf(t.Context(), &recordSubject{}); err != nil {
		t.Logf("without perf: %v", err)
		return []string{"live"}
	}
	return []string{"live", "perf"}
}

// TestAProgramIsRecorded: the program has the standard files, its failure is said, and its profile
// follows its output.
func TestAProgramIsRecorded(t *testing.T) {
	oracle.Tools(t, "gcc")
	program := spinning(t)
	t.Setenv("TMPDIR", t.TempDir())
	for _, recorder := range recordersHere(t) {
		kept := filepath.Join(t.TempDir(), "kept.data")
		out, said, status := recordAs(t, "go\n", "--recorder", recorder, "--keep", kept, "--", "sh", "-c", `"$0" spin 300; echo done >&2; exit 3`, program)
		if status != exitDone || !strings.HasPrefix(out, "ready\n") || !strings.Contains(out, "\nwaiting;_start;") {
			t.Errorf("%s: status %d, %s", recorder, status, out)
		}
		mustSay(t, said, "unwindd: recording sh by ", "\ndone\n", "unwindd: sh ended with status 3\n")
		again, said, status := recordAs(t, "", kept)
		if status != exitDone || "ready\n"+again != out {
			t.Errorf("%s: what was kept: status %d, %s%s", recorder, status, again, said)
		}
		out, said, status = recordAs(t, "", "--recorder", recorder, "--duration", "300ms", "--", program, "busy", "1")
		if status != exitDone || !strings.Contains(out, ";spin_inner ") || strings.Contains(out, "wait_inner") || strings.Contains(said, "ended") {
			t.Errorf("%s: for a time: status %d, %s%s", recorder, status, out, said)
		}
		pid := victim(t, "busy", "2")
		out, said, status = recordAs(t, "", "--recorder", recorder, "--duration", "300ms", "--pid", pid)
		if status != exitDone || !strings.Contains(out, ";spin_inner ") || strings.Contains(out, "wait_inner") || !strings.Contains(said, "recording process "+pid+" (waiting) by ") {
			t.Errorf("%s: a process: status %d, %s%s", recorder, status, out, said)
		}
	}
	if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) > 0 {
		t.Errorf("%s was left behind", left[0].Name())
	}
}

// TestInterruptedRecordings: the first SIGINT ends the recording, SIGTERM ends everything.
func TestInterruptedRecordings(t *testing.T) {
	oracle.Tools(t, "gcc")
	program := spinning(t)
	for _, recorder := range recordersHere(t) {
		for _, c := range []struct {
			signal syscall.Signal
			status int
		}{{syscall.SIGINT, 0}, {syscall.SIGTERM, 143}} {
			cmd := command("profile", "--in-process", "--recorder", recorder, "--format", "folded", "--", program, "busy", "1")
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			cmd.Stderr = &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ready := make([]byte, 6)
			if _, err := io.ReadFull(out, ready); err != nil {
				t.Fatalf("%s: %v, %s", recorder, err, said.String())
			}
			time.Sleep(300 * time.Millisecond)
			if err := cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			rest, _ := io.ReadAll(out) // ends with the program, too
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != c.status {
				t.Errorf("%s, %v: status %d, expected %d: %s", recorder, c.signal, got, c.status, said.String())
			}
			if isReport := strings.Contains(string(rest), ";spin_inner "); isReport != (c.status == 0) {
				t.Errorf("%s, %v: report %v: %s%s", recorder, c.signal, isReport, rest, said.String())
			}
		}
	}
}

func TestThreadsThatWaitSayForWhat(t *testing.T) {
	oracle.Tools(t, "gcc")
	pid := victim(t, "busy", "1")
	out, said, status := recordAs(t, "", pid, "--idle", "--repeat", "10", "--every", "2ms")
	if status != exitDone || !strings.Contains(said, "40 samples of 4 threads") {
		t.Errorf("status %d, %s%s", status, out, said)
	}
	if !strings.Contains(out, ";wait_inner;__libc_pause;[waits in pause] ") || strings.Contains(out, "spin_inner;[") {
		t.Errorf("%s", out)
	}
	out, said, status = recordAs(t, "", pid, "--repeat", "10", "--every", "2ms")
	if status != exitDone || strings.Contains(out, "wait_inner") || !strings.Contains(out, ";spin_inner ") {
		t.Errorf("status %d, %s%s", status, out, said)
	}
}

// TestWhoHoldsALockIsSaid: each of the threads has its time on the lock and the thread that holds it,
// in what perf reads, too.
func TestWhoHoldsALockIsSaid(t *testing.T) {
	oracle.Tools(t, "gcc")
	pid := victim(t, "locked", "2")
	kept := filepath.Join(t.TempDir(), "kept.data")
	out, said, status := recordAs(t, "", pid, "--idle", "--repeat", "5", "--every", "2ms", "--keep", kept)
	if status != exitDone || !strings.Contains(said, "15 samples of 3 threads") {
		t.Errorf("status %d, %s", status, said)
	}
	want := regexp.MustCompile(`(?m);locker;.*;\[waits for the mutex at 0x[0-9a-f]+ held by thread ` + pid + `\] \d+$`)
	if !want.MatchString(out) || !strings.Contains(out, "[waits in pause] ") {
		t.Errorf("no %v in\n%s", want, out)
	}
	if again, said, _ := recordAs(t, "", kept, "-j", "1"); again != out {
		t.Errorf("what was kept: %s%s", again, said)
	}
	oracle.Tools(t, "perf")
	if n := strings.Count(oracle.Run(t, "perf", "script", "-i", kept, "-F", "tid,event,period", "--max-stack", "1"), "wall:"); n != 15 {
		t.Errorf("perf script has %d samples", n)
	}
}

func TestProcessesAreFoundByName(t *testing.T) {
	oracle.Tools(t, "gcc")
	one, two := victim(t, "threads", "1"), victim(t, "threads", "1")
	pids, err := processesOf([]string{"waiting", one})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, pid := range pids {
		found[strconv.Itoa(pid)]++
	}
	if found[one] != 1 || found[two] != 1 {
		t.Errorf("processes %v, expected %s and %s once", pids, one, two)
	}
	tid, err := strconv.Atoi(one)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := leadersOf([]int{tid, tid}); err != nil || len(got) != 1 || got[0] != tid {
		t.Errorf("%v, %v", got, err)
	}
}

func TestPerfsCommandLine(t *testing.T) {
	p := &perfPlan{path: "/usr/bin/perf", event: "cycles:u", graph: "dwarf,16384", hasIDs: true, but: []string{"not the kernel, because"}}
	f := &recordFlags{duration: 1500 * time.Millisecond}
	for _, c := range []struct {
		subject recordSubject
		want    string
	}{
		{recordSubject{program: []string{"a", "-b", "c d"}, path: "/bin/a"}, "record -e cycles:u -F 499 --call-graph dwarf,16384 -k CLOCK_MONOTONIC -o OUT --buildid-mmap --quiet -- /bin/a -b c d"},
		{recordSubject{pids: []int{1, 2}}, "record -e cycles:u -F 499 --call-graph dwarf,16384 -k CLOCK_MONOTONIC -o OUT --buildid-mmap --pid 1,2 -- sleep 1.500"},
	} {
		if got := strings.Join(p.arguments(&c.subject, f, "OUT"), " "); got != c.want {
			t.Errorf("%s, expected %s", got, c.want)
		}
	}
	if got := p.words(f); got != "by perf: cycles:u at 499 Hz, stacks by dwarf,16384 (not the kernel, because)" {
		t.Error(got)
	}
	for text, want := range map[string][3]int{
		"perf version 6.1.192\n": {6, 1, 1}, "perf version 5.15.gdf0cc57e057f\n": {5, 15, 1}, "WARNING: perf not found for kernel 6.5": {}, "perf version": {},
	} {
		major, minor, ok := perfVersion(text)
		if major != want[0] || minor != want[1] || ok != (want[2] == 1) {
			t.Errorf("%q: %d.%d, %v", text, major, minor, ok)
		}
	}
	var status statusError
	if _, err := programOf("no-such-program-here"); !errors.As(err, &status) || status.status != exitNotFound {
		t.Errorf("%v", err)
	}
}
