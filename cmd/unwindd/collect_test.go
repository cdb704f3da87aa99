// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/internal/host"
)

// sleepers starts processes that sleep, and returns their IDs.
func sleepers(t *testing.T, count int) (pids []string) {
	t.Helper()
	if !host.IsLinux {
		t.Skip("reading living processes needs Linux")
	}
	for range count {
		cmd := exec.Command("sleep", "600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		for processName(cmd.Process.Pid) != "sleep" { // the kernel names it after the files are closed that Start waits for
			time.Sleep(time.Millisecond)
		}
		pids = append(pids, strconv.Itoa(cmd.Process.Pid))
	}
	return pids
}

// collect runs `unwindd collect` and returns its summary.
func collect(t *testing.T, args ...string) collection {
	t.Helper()
	stdout, stderr, status := unwindd(t, append([]string{"collect", "--format", "json"}, args...)...)
	var c collection
	if err := json.Unmarshal([]byte(stdout), &c); status != 0 || err != nil {
		t.Fatalf("unwindd collect %q: status %d, %v\n%s", args, status, err, stderr)
	}
	return c
}

func TestProcessesAreCollectedAtOneMoment(t *testing.T) {
	pids := sleepers(t, 3)
	dir := filepath.Join(t.TempDir(), "made")
	c := collect(t, "--pids", strings.Join(pids, ",")+",4194309", "-o", dir)
	if c.Version != 1 || c.Host == "" || len(c.Snapshots) != 3 || len(c.Moments) != 1 || len(c.Left) != 1 {
		t.Fatalf("%+v", c)
	}
	if m := c.Moments[0]; m.Moment != 1 || m.Count != 3 || m.Spread < 0 || m.Time.IsZero() {
		t.Errorf("%+v", m)
	}
	if l := c.Left[0]; l.PID != 4194309 || l.Reason != "there is no such process" {
		t.Errorf("%+v", l)
	}
	for i, s := range c.Snapshots {
		info, err := os.Stat(s.Path)
		if err != nil {
			t.Fatal(err)
		}
		want := filepath.Join(dir, fmt.Sprintf("%s.sleep.%s.snapshot", fileNamePart(c.Host), pids[i]))
		if s.Path != want || info.Size() != s.Bytes || info.Mode().Perm() != 0o600 || s.Threads != 1 || s.Frames == 0 || s.Time.Before(c.Moments[0].Time) {
			t.Errorf("%+v, %v, expected %s", s, info.Mode(), want)
		}
	}
	if list, _ := os.ReadDir(dir); len(list) != 3 {
		t.Errorf("%v is in the folder", list)
	}
	stdout, _, status := unwindd(t, "stack", dir)
	if status != 0 {
		t.Errorf("status %d", status)
	}
	mustSay(t, stdout, `thread `+pids[0]+` "sleep"`, `thread `+pids[2]+` "sleep"`, "nanosleep")
}

func TestProcessesAreCollectedAtSeveralMoments(t *testing.T) {
	pids := sleepers(t, 2)
	dir := t.TempDir()
	stdout, stderr, status := unwindd(t, "collect", "--pids", pids[0], "--pids", pids[1], "-o", dir, "--repeat", "3", "--interval", "1ms")
	if status != 0 {
		t.Fatalf("status %d, %s", status, stderr)
	}
	mustSay(t, stdout, "moment 1: 2 processes, stopped at ", "moment 3: 2 processes", " after the first", dir+": 6 snapshots, ", " bytes")
	if strings.Contains(stdout, ".snapshot") {
		t.Errorf("each snapshot is listed:\n%s", stdout)
	}
	if list, _ := os.ReadDir(dir); len(list) != 6 {
		t.Errorf("%d files are in the folder, expected 6", len(list))
	}
	stdout, _, _ = unwindd(t, "collect", "--pids", pids[0], "-o", dir, "-v")
	mustSay(t, stdout, ".sleep."+pids[0]+".snapshot: ", "1 threads", "1 process, stopped at ", dir+": 1 snapshot, ")
}

// TestCollectionsOfManyProcessesFitAScreen: equal reasons and moments beyond the first few are one line each.
func TestCollectionsOfManyProcessesFitAScreen(t *testing.T) {
	pids := sleepers(t, 1)
	missing := "4194309,4194310,4194311"
	_, stderr, _ := unwindd(t, "collect", "--pids", pids[0]+","+missing+",no such name", "-o", t.TempDir())
	mustSay(t, stderr, "not collected: 3 processes: there is no such process\n", "not collected: no such name: no process has that name\n")
	_, stderr, _ = unwindd(t, "collect", "--pids", pids[0]+","+missing, "-o", t.TempDir(), "-v")
	mustSay(t, stderr, "not collected: process 4194309: there is no such process\n", "not collected: process 4194311: ")

	c := collection{}
	for i := range 100 {
		c.Moments = append(c.Moments, collectedMoment{Moment: i + 1, Count: 2, Spread: float64(i) / 1000})
	}
	texts := c.momentTexts(100, false)
	if last := texts[len(texts)-1]; len(texts) != maxListed || !strings.HasPrefix(last, "81 more moments, up to ") || !strings.Contains(last, "at most 99ms after the first") {
		t.Errorf("%d lines, the last is %s", len(texts), last)
	}
	if texts = c.momentTexts(100, true); len(texts) != 100 {
		t.Errorf("with -v there are %d lines", len(texts))
	}
	for i := range 30 {
		for moment := range 3 {
			c.Left = append(c.Left, leftProcess{i + 1, "p", moment + 1, "reason " + strconv.Itoa(i/2)})
		}
	}
	var all complaints
	for i := range c.Left {
		all.add(c.Left[i].Reason, c.Left[i].about())
	}
	if len(all.list) != 15 || len(all.list[14].about) != 2 {
		t.Errorf("%d reasons, the last one about %v", len(all.list), all.list[len(all.list)-1].about)
	}
}

// TestProcessesAreFoundByEachOfTheirNames: a program may give its main thread a name, which is the kernel's name of the
// process then.
func TestProcessesAreFoundByEachOfTheirNames(t *testing.T) {
	if !host.IsLinux {
		t.Skip("processes are found in /proc")
	}
	cmd := exec.Command("sh", "-c", "printf pt_main_thread > /proc/$$/comm; echo; read x")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"pt_main_thread": true, "sh": true, filepath.Base(exe): true, "-c": false, "pt_main": false, ".": false, "": false} {
		if got := slices.Contains(processesNamed(name), cmd.Process.Pid); got != want {
			t.Errorf("%q: %t, expected %t", name, got, want)
		}
	}
}

func TestCollectRefuses(t *testing.T) {
	pid := sleepers(t, 2)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		status int
		words  string
	}{
		{nil, 2, "--pids PROCESSES"},
		{[]string{"--pids", pid[0]}, 2, "-o DIR"},
		{[]string{"--pids", pid[0], "-o", "-"}, 2, "-o DIR"},
		{[]string{"--pids", "", "-o", dir}, 2, "expected a name, ALL, or IDs"},
		{[]string{"--pids", "4711,,", "-o", dir}, 2, "expected a name, ALL, or IDs"},
		{[]string{"--pids", "-3", "-o", dir}, 2, "no process's ID"},
		{[]string{"--pids", pid[0], "-o", dir, "--repeat", "0"}, 2, "--repeat 0"},
		{[]string{"--pids", pid[0], "-o", dir, "--interval", "-1s"}, 2, "--interval -1s"},
		{[]string{"--pids", pid[0], "-o", dir, "--format", "html"}, 2, "--format html"},
		{[]string{"--pids", strings.Join(pid, ","), "-o", dir, "--gpu-core", file}, 2, "expected PID=FILE"},
		{[]string{"--pids", pid[0], "-o", dir, "--gpu-core", pid[1] + "=" + file}, 2, "not among those"},
		{[]string{"--pids", pid[0], "-o", dir, "--gpu-core", pid[0] + "=" + dir}, 1, "not a regular file"},
		{[]string{"--pids", pid[0], "-o", filepath.Join(file, "x")}, 1, "not a directory"},
		{[]string{"--pids", "4194309", "-o", dir}, 1, "nothing was collected"},
		{[]string{"--pids", "no such name", "-o", dir}, 1, "no process has that name"},
		{[]string{"--pids", pid[0], "-o", dir, "more"}, 2, "more"},
	} {
		_, stderr, status := unwindd(t, append([]string{"collect"}, c.args...)...)
		if status != c.status || !strings.Contains(stderr, c.words) {
			t.Errorf("%q: status %d, expected %d and %q:\n%s", c.args, status, c.status, c.words, stderr)
		}
	}
	if list, _ := os.ReadDir(dir); len(list) != 1 {
		t.Errorf("%v is left", list)
	}
}

func TestNamesOfSnapshotsMeanNothingToShells(t *testing.T) {
	for text, want := range map[string]string{
		"python3.11": "python3.11", "a b/../c": "a_b_.._c", "": "_", "..": "_", ".hidden": "hidden", "$(x)": "__x_", "Web Content": "Web_Content", "ø": "_",
	} {
		if got := fileNamePart(text); got != want {
			t.Errorf("%q: %q, expected %q", text, got, want)
		}
	}
}

// TestThisProcessIsNotChosen: it cannot stop itself.
func TestThisProcessIsNotChosen(t *testing.T) {
	pids := sleepers(t, 1)
	list, none, err := chooseProcesses([]string{allProcesses, pids[0] + ",sleep"})
	if err != nil || len(none) > 0 {
		t.Fatal(none, err)
	}
	seen := map[int]int{}
	for _, p := range list {
		seen[p.pid]++
	}
	pid, _ := strconv.Atoi(pids[0])
	if seen[os.Getpid()] != 0 || seen[pid] != 1 {
		t.Errorf("this process is there %d times, and %d %d times", seen[os.Getpid()], pid, seen[pid])
	}
}
