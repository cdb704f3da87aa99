// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/engine/service/internal/worker"
)

// probe is the pin that has a worker try what it must not be able to do.
const probe = "probe"

// probed tries what a worker must not be able to do, with a folder of the server, and says
// what came of it.
func probed(folder string) error {
	var said []string
	try := func(what string, err error) {
		if err == nil {
			what += " succeeded"
		}
		said = append(said, what)
	}
	_, err := os.ReadFile("/etc/passwd")
	try("reading /etc/passwd", err)
	_, err = os.ReadDir(filepath.Dir(folder))
	try("listing the server's folders", err)
	try("writing beside objects", os.WriteFile(filepath.Join(folder, "x"), nil, 0o600))
	try("writing a byte", os.WriteFile(filepath.Join(os.TempDir(), "x"), []byte("x"), 0o600))
	for _, other := range othersFiles {
		_, err = os.ReadFile(filepath.Join(folder, other))
		try("reading "+other, err)
		_, err = os.ReadDir(filepath.Dir(filepath.Join(folder, other)))
		try("listing the folder of "+other, err)
	}
	_, err = os.ReadFile(filepath.Join(filepath.Dir(os.TempDir()), "other", "x"))
	try("reading the folder of another worker", err)
	_, err = os.ReadFile(fmt.Sprintf("/proc/%d/environ", os.Getppid()))
	try("reading the server's environment", err)
	try("killing the server", syscall.Kill(os.Getppid(), 0))
	c, err := net.Dial("tcp", "127.0.0.1:1") //nolint:noctx // it fails at once
	if err == nil {
		_ = c.Close()
	}
	if err != nil && strings.Contains(err.Error(), "connection refused") {
		err = nil // it was tried
	}
	try("connecting to a port", err)
	for name, call := range map[string]uintptr{"drawing a ring": unix.SYS_IO_URING_SETUP, "a file in memory": unix.SYS_MEMFD_CREATE, "a call in no list": unix.SYS_IO_SETUP, "mounting": unix.SYS_MOUNT} {
		_, _, errno := syscall.RawSyscall(call, 0, 0, 0)
		if errno == syscall.ENOSYS || errno == syscall.EPERM {
			try(name, errno)
		} else {
			try(name+fmt.Sprintf(" (%v)", errno), nil) // the kernel looked at it
		}
	}
	try("raising a limit", syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{Cur: 1, Max: 1}))
	return fmt.Errorf("probed: %s", strings.Join(said, ", "))
}

// othersFiles are files of other callers in the folder of a server.
var othersFiles = []string{"spool/sent", "objects/01/02/executable", "objects/part-1", "reports/kept"}

// TestWorkersAreConfined has a worker try what it must not be able to do.
func TestWorkersAreConfined(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes are confined on Linux only")
	}
	o := testOptions(t)
	o.Pins = map[string]string{probe: o.State}
	s := start(t, o)
	other := filepath.Join(s.Run, "w", "other", "x")
	for _, path := range append([]string{other}, absolute(o.State, othersFiles)...) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("secret"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	answer, text := s.ask(t, "POST", "/v1/stack", bytes.NewReader(file(t, mixed)))
	wantProblem(t, answer, text, failed, "the server's log says why")
	said := s.log.String()
	if !strings.Contains(said, "probed: ") || strings.Contains(said, "succeeded") {
		t.Errorf("a worker could do what it must not:\n%s", said)
	}
}

// absolute returns paths beneath a folder.
func absolute(folder string, names []string) (paths []string) {
	for _, name := range names {
		paths = append(paths, filepath.Join(folder, name))
	}
	return paths
}

// TestTargetsNameNoFileOfTheServer walks a core whose executable is where it says, on the
// server's own machine, which the server was not told to look at.
func TestTargetsNameNoFileOfTheServer(t *testing.T) {
	exe, err := filepath.Abs(crashExe)
	if err != nil {
		t.Fatal(err)
	}
	core := file(t, crashCore)
	const name = "/srv/example/server"
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 1))
	short := "/tmp/" + filepath.Base(filepath.Dir(dir)) // as long as the name in the core, or shorter
	if len(short) > len(name) {
		short = short[:len(name)]
	}
	if err := os.Symlink(exe, short); err != nil {
		t.Skip(err)
	}
	defer os.Remove(short)
	core = bytes.ReplaceAll(core, append([]byte(name), 0), append(append([]byte(short), 0), bytes.Repeat([]byte("x"), len(name)-len(short))...))
	s := start(t, testOptions(t))
	if text := s.post(t, "/v1/stack?format=text", core); strings.Contains(text, "read_body") {
		t.Errorf("the server read a file because a core names it:\n%s", text)
	}
}

// workers are the processes of the server's workers.
func workers(t *testing.T) []int {
	t.Helper()
	return children(t, os.Getpid(), worker.Args...)
}

// children are the processes that a process has started with such arguments.
func children(t *testing.T, parent int, args ...string) (pids []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) && fields[0] != "Z" {
			if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && bytes.Contains(line, []byte(strings.Join(args, "\x00"))) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// TestWorkersThatAreKilled has the workers killed at many moments: every request is
// answered, and as always.
func TestWorkersThatAreKilled(t *testing.T) {
	o := testOptions(t)
	o.Workers = 1 // so that no other test's are among them
	s := start(t, o)
	s.putCrash(t)
	core := file(t, crashCore)
	want := s.post(t, "/v1/stack?format=text", core)
	for i := range 40 {
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			if i%4 != 3 {
				return
			}
			time.Sleep(time.Duration(i) * time.Millisecond) // at another moment of each request
			for _, pid := range workers(t) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}()
		if got := s.post(t, "/v1/stack?format=text", core); got != want {
			t.Errorf("%s\nexpected\n%s", got, want)
		}
		<-killed
	}
	if !strings.Contains(s.log.String(), "worker died") {
		t.Error("no worker was killed: nothing was tried")
	}
}

// TestARequestThatNeedsTooMuchMemory costs itself alone.
func TestARequestThatNeedsTooMuchMemory(t *testing.T) {
	if isSanitized {
		t.Skip("the memory of workers is not bounded beside a sanitizer")
	}
	o := testOptions(t)
	o.Memory = 160 << 20
	s := start(t, o)
	// A target of 200,000 threads needs more than the worker may have.
	answer, text := s.ask(t, "POST", "/v1/stack", bytes.NewReader(hungry(t)))
	wantProblem(t, answer, text, died, "the process that read it died")
	s.post(t, "/v1/stack", file(t, mixed))
}

// TestACallerWhoGoesAway ends the work for it.
func TestACallerWhoGoesAway(t *testing.T) {
	o := testOptions(t)
	o.Workers = 1
	s := start(t, o)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/stack?format=text&max-frames=0", bytes.NewReader(hungry(t)))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Timeout: 300 * time.Millisecond, Transport: s.client.Transport}
	if answer, err := client.Do(r); err == nil {
		_ = answer.Body.Close()
		t.Skip("it was answered before the caller went away")
	}
	began := time.Now()
	s.post(t, "/v1/stack", file(t, mixed)) // by the one worker
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the work went on for %v", took)
	}
}

// TestARequestThatTakesTooLong is ended.
func TestARequestThatTakesTooLong(t *testing.T) {
	o := testOptions(t)
	o.Time = 50 * time.Millisecond
	s := start(t, o)
	answer, text := s.ask(t, "POST", "/v1/stack?format=text", bytes.NewReader(hungry(t)))
	wantProblem(t, answer, text, timedOut, "it took longer than 50ms")
}
