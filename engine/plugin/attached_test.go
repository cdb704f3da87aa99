// SPDX-License-Identifier: Apache-2.0

//go:build linux

package plugin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/unwindd/unwindd/sdk"
)

// A debugged is a plugin that its author started.
type debugged struct {
	*exec.Cmd
	setting string // of sdk.Reattach
	wait    func() error
}

// startDebugged starts this test's executable as a plugin, as its author would in a debugger.
func startDebugged(t *testing.T, name string) *debugged {
	t.Helper()
	d := &debugged{Cmd: exec.Command(self(t))}
	d.Args[0] = filepath.Join("/anywhere", name)
	dir, err := os.MkdirTemp("", "debugged") // one that is killed leaves its socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	d.Env = append(os.Environ(), sdk.Debug+"=1", "TMPDIR="+dir)
	d.Stderr = os.Stderr
	out, err := d.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	d.wait = sync.OnceValue(d.Wait)
	t.Cleanup(func() {
		_ = d.Process.Kill()
		_ = d.wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	// A shell makes the variable of the line.
	set, shellErr := exec.Command("/bin/sh", "-c", line+`printf %s "$`+sdk.Reattach+`"`).Output()
	if err != nil || shellErr != nil {
		t.Fatalf("%q: %v, %v", line, err, shellErr)
	}
	d.setting = string(set)
	return d
}

// attachedTo are options to use the process.
func (d *debugged) attachedTo(t *testing.T, o Options) Options {
	t.Helper()
	var err error
	if o.Attached, err = ParseReattach(d.setting); err != nil {
		t.Fatal(err)
	}
	return o
}

func (d *debugged) arch(t *testing.T, o Options) *Arch {
	t.Helper()
	a, err := manager(t, d.attachedTo(t, o)).Find("test-good")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestAttachedProcessIsUsed: a process that its author started takes the place of the
// plugin of its name, has no deadline, and goes on when the engine is gone.
func TestAttachedProcessIsUsed(t *testing.T) {
	defer goleak.VerifyNone(t)
	d := startDebugged(t, "unwindd-arch-good")
	o := Options{Bundled: bundledTest(good), CallDeadline: time.Millisecond, StartDeadline: time.Millisecond}
	for range 2 {
		m, err := NewManager(d.attachedTo(t, o))
		if err != nil {
			t.Fatal(err)
		}
		a, err := m.ForMachine(machine(testMachine))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := obey(t, a, "pid"); err != nil || got != fmt.Sprint(d.Process.Pid) || a.PID() != d.Process.Pid || a.Origin() != "process "+got {
			t.Errorf("%q, %v, process %d, %s, expected process %d", got, err, a.PID(), a.Origin(), d.Process.Pid)
		}
		// Longer than a plugin would have by the clock, and of processor time.
		for command, want := range map[string]string{"sleep 100ms": "slept", "burn 50ms": "burnt"} {
			if got, err := obey(t, a, command); err != nil || got != want {
				t.Errorf("%s: %q, %v", command, got, err)
			}
		}
		if answer, err := a.FrameRules(t.Context(), memory("live"), functionNamed("memory")); err != nil || answer.Functions[0].Reason != "4 bytes: live" {
			t.Errorf("%+v, %v", answer, err)
		}
		var f *Failure
		if _, err := a.FrameRules(t.Context(), nil, functionNamed("unknown register")); !errors.As(err, &f) || !strings.Contains(f.Reason, "77") {
			t.Errorf("an answer that cannot be: %v", err)
		}
		m.Close()
		if _, err := obey(t, a, "pid"); !errors.Is(err, errClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
	attached, _ := ParseReattach(d.setting)
	_ = d.Process.Signal(os.Interrupt)
	if err := d.wait(); err != nil {
		t.Errorf("the end of the process: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(attached["good"].Addr.String)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory of the socket: %v", err)
	}
}

// TestAttachedProcessMayStand: a process at a breakpoint answers nothing, also not a new
// connection.
func TestAttachedProcessMayStand(t *testing.T) {
	d := startDebugged(t, "unwindd-arch-good")
	a := d.arch(t, Options{CallDeadline: time.Millisecond})
	for name, call := range map[string]func() error{
		"call": func() error { _, err := obey(t, a, "echo x"); return err },
		"connection": func() error {
			m, err := NewManager(d.attachedTo(t, Options{}))
			if err == nil {
				defer m.Close()
				_, err = m.Find("test-good")
			}
			return err
		},
	} {
		if err := d.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		awaitStopped(t, d.Process.Pid)
		done := make(chan error, 1)
		go func() { done <- call() }()
		select {
		case err := <-done:
			t.Errorf("%s: ended while the process stood: %v", name, err)
			done <- err
		case <-time.After(200 * time.Millisecond):
		}
		_ = d.Process.Signal(syscall.SIGCONT)
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// awaitStopped waits until all threads of a process stand: the signal for it takes a
// moment.
func awaitStopped(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		stopped := 0
		for _, f := range files {
			if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(") T ")) {
				stopped++
			}
		}
		if len(files) > 0 && stopped == len(files) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d: %d of %d threads stand", pid, stopped, len(files))
		}
	}
}

func TestAttachedProcessIsProbed(t *testing.T) {
	d := startDebugged(t, "unwindd-arch-good")
	m := manager(t, d.attachedTo(t, Options{CallDeadline: time.Millisecond}))
	p, err := m.Probe(t.Context(), "good")
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
	err = p.Call(t.Context(), func(ctx context.Context, arch sdk.Architecture) error {
		a, err := arch.Disassemble(ctx, order("sleep 50ms"))
		if err == nil && a.Instructions[0].Text != "slept" {
			err = errors.New(a.Instructions[0].Text)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	p.Close()
	if err := d.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process: %v", err)
	}
}

// TestAttachedProcessIsNotStartedAgain: one that has died stays so.
func TestAttachedProcessIsNotStartedAgain(t *testing.T) {
	d := startDebugged(t, "unwindd-arch-good")
	a := d.arch(t, Options{})
	want := fmt.Sprintf("process %d, which %s names, is gone", d.Process.Pid, sdk.Reattach)
	for _, command := range []string{"crash", "echo x"} {
		var f *Failure
		if _, err := obey(t, a, command); !errors.As(err, &f) || !strings.Contains(f.Reason, want) {
			t.Errorf("%s: %v, expected %q", command, err, want)
		}
	}
}

// TestNameOfADebuggedPlugin: debuggers call what they build as they like.
func TestNameOfADebuggedPlugin(t *testing.T) {
	for executable, want := range map[string]string{"unwindd-arch-good": "good", "unwindd-arch-good+1": "good+1"} {
		all, err := ParseReattach(startDebugged(t, executable).setting)
		if _, ok := all[want]; !ok || len(all) != 1 || err != nil {
			t.Errorf("%s: %v, %v, expected %s", executable, all, err, want)
		}
	}
}

func TestWhoIsNotAttachedTo(t *testing.T) {
	d := startDebugged(t, "unwindd-arch-good")
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	theirs := filepath.Join(dir, "theirs")
	if l, err := net.Listen("unix", theirs); err != nil {
		t.Fatal(err)
	} else {
		defer l.Close()
	}
	cases := map[string]func(*sdk.Reattachment){
		"expected process 1 of user": func(r *sdk.Reattachment) { r.Pid = 1 },
		"is no socket":               func(r *sdk.Reattachment) { r.Addr.String = file },
		"no such file or directory":  func(r *sdk.Reattachment) { r.Addr.String = dir + "/none" },
		"is process ":                func(r *sdk.Reattachment) { r.Addr.String = theirs },
	}
	if os.Geteuid() == 0 { // who else can give a file away
		if err := os.Chown(theirs, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		cases["belongs to another user"] = cases["is process "]
		delete(cases, "is process ")
	}
	for want, change := range cases {
		o := d.attachedTo(t, Options{})
		r := o.Attached["good"]
		change(&r)
		o.Attached["good"] = r
		if _, err := manager(t, o).Find("test-good"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
	o := d.attachedTo(t, Options{Pins: map[string]string{"good": strings.Repeat("0", 64)}})
	if _, err := NewManager(o); !errors.Is(err, errPinned) {
		t.Errorf("a plugin that is pinned: %v", err)
	}
}

func TestMalformedReattachments(t *testing.T) {
	const sound = `{"good":{"Protocol":"grpc","ProtocolVersion":2,"Pid":7,"Addr":{"Network":"unix","String":"/s"},"Test":true}}`
	if all, err := ParseReattach(sound); err != nil || all["good"] != (sdk.Reattachment{Protocol: "grpc", ProtocolVersion: 2, Pid: 7, Addr: sdk.Addr{Network: "unix", String: "/s"}}) {
		t.Errorf("%+v, %v", all, err)
	}
	for _, c := range []struct{ old, new, want string }{
		{sound, "", `expected {"NAME":{"Protocol"`},
		{sound, "1", `expected {"NAME":{"Protocol"`},
		{sound, "[]", `expected {"NAME":{"Protocol"`},
		{sound, `{"good":{}}`, `"good": Protocol is "", expected "grpc"`},
		{"}}", "}", `expected {"NAME":{"Protocol"`},
		{`"good"`, `"go/od"`, "expected NAME of unwindd-arch-NAME"},
		{`"grpc"`, `"netrpc"`, `Protocol is "netrpc", expected "grpc"`},
		{`:2,`, `:1,`, "ProtocolVersion is 1, expected 2"},
		{`:7,`, `:-7,`, "Pid is -7, expected"},
		{`"unix"`, `"tcp"`, `Addr.Network is "tcp", expected "unix"`},
		{`"/s"`, `"s"`, `Addr.String is "s", expected the path`},
		{`"/s"`, `7`, `expected {"NAME":{"Protocol"`},
	} {
		value := strings.Replace(sound, c.old, c.new, 1)
		if _, err := ParseReattach(value); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), sdk.Reattach+": ") {
			t.Errorf("%s: %v, expected %q", value, err, c.want)
		}
	}
}

func FuzzParseReattach(f *testing.F) {
	f.Add(attachExample)
	f.Add(`{"good":{"Protocol":"grpc","ProtocolVersion":2,"Pid":7,"Addr":{"Network":"unix","String":"/s"}}}`)
	f.Add(`{"good":null}`)
	f.Fuzz(func(t *testing.T, value string) {
		all, err := ParseReattach(value)
		if err != nil && (all != nil || !strings.HasPrefix(err.Error(), sdk.Reattach+": ")) {
			t.Errorf("%v, %v", all, err)
		}
		for name, r := range all {
			if !isValidName(name) || r.Pid <= 0 || !filepath.IsAbs(r.Addr.String) {
				t.Errorf("%q: %+v", name, r)
			}
		}
	})
}
