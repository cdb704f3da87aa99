// SPDX-License-Identifier: Apache-2.0

//go:build linux

package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/unwindd/unwindd/sdk"
)

func TestProcessStartsOnFirstCallAndEndsWithClose(t *testing.T) {
	defer goleak.VerifyNone(t)
	m, err := NewManager(Options{Self: self(t), Bundled: bundledTest(good)})
	if err != nil {
		t.Fatal(err)
	}
	a, err := m.ForMachine(machine(testMachine))
	if err != nil {
		t.Fatal(err)
	}
	if a.PID() != 0 || a.Generation() != 0 {
		t.Fatalf("process %d, generation %d before the first call", a.PID(), a.Generation())
	}
	got, err := obey(t, a, "pid")
	if err != nil {
		t.Fatal(err)
	}
	pid := a.PID()
	if got != strconv.Itoa(pid) || a.Generation() != 1 || pid == os.Getpid() {
		t.Fatalf("process %d, generation %d, the plugin says it is process %s", pid, a.Generation(), got)
	}
	if p := a.Problems(); len(p) != 0 {
		t.Errorf("problems: %q", p)
	}
	m.Close()
	if !gone(pid) {
		t.Errorf("process %d is alive after Close", pid)
	}
	if _, err := obey(t, a, "pid"); !errors.Is(err, errClosed) {
		t.Errorf("call after Close: %v", err)
	}
}

func TestStartFailuresSayWhatHappened(t *testing.T) {
	for _, c := range []struct {
		mode mode
		want string
	}{
		{exits, `exited with status 3 before it was ready; its standard error: libvendor.so.7 is \x1b[31mmissing`},
		{hangs, "did not start within 1s"},
		{garbage, `wrote "Welcome to the \x1b[1mvendor's\x1b[0m plugin" to standard output, expected ` + handshakeLine},
		{silent, "ended, or closed its standard output, before it wrote " + handshakeLine},
		{shakesAndHangs, "did not start within 1s"},
		{wrongSocket, `listens at "/run/dbus/system_bus_socket", expected a socket in `},
		{wrongNetwork, `listens on network "tcp", expected unix`},
		{olderVersion, fmt.Sprintf("speaks version %d of the plugin protocol, expected %d: it needs to be built again, with package sdk or arch.proto of this version of unwindd",
			sdk.ProtocolVersion-1, sdk.ProtocolVersion)},
		{newerVersion, fmt.Sprintf("speaks version %d of the plugin protocol, expected %d: it is for a later version of unwindd than this one",
			sdk.ProtocolVersion+1, sdk.ProtocolVersion)},
		{wrongSelf, "its description is nonsense: it is not the one compiled in: Registers[1].Bits is 32, expected 64"},
		{badSelf, "the description that is compiled in: Description.PC: 1000"},
		{hangsDescribing, "gave no description within 4s"},
		{diesDescribing, "exited with status 4 when asked for its description"},
	} {
		t.Run(string(c.mode), func(t *testing.T) {
			defer goleak.VerifyNone(t)
			o := Options{Self: self(t), Bundled: bundledTest(c.mode)}
			switch c.mode {
			case hangs, shakesAndHangs:
				o.StartDeadline = time.Second
			case hangsDescribing:
				o.StartDeadline = 4 * time.Second // of which the start needs some
				o.Self = copyOfSelf(t)
			case wrongSelf, badSelf, diesDescribing:
				o.Self = copyOfSelf(t)
			}
			if c.mode == badSelf {
				// Only the process lies.
				o.Bundled[0].Description = func() *sdk.Description { return testDescription(c.mode) }
				c.want = "Description.PC: 1000"
			}
			m, err := NewManager(o)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			a, err := m.Find("test-" + string(c.mode))
			if err != nil {
				t.Fatal(err)
			}
			if limit := &a.transport.(*supervisor).launch.limit; o.StartDeadline != 0 {
				limit.wall = limit.processor
			}
			_, err = obey(t, a, "pid")
			var f *Failure
			if !errors.As(err, &f) || f.Call != "start" || !strings.Contains(f.Reason, c.want) {
				t.Fatalf("got %v\nwant %q", err, c.want)
			}
			want := 1
			if strings.Contains(c.want, " within ") {
				want = 2 // its time is used up: it is given up
			}
			if p := a.Problems(); len(p) != want || !strings.Contains(p[0], "could not be started") {
				t.Errorf("problems: %q", p)
			}
		})
	}
}

func TestPluginIsGivenUpAfterFiveFailures(t *testing.T) {
	a := testArchOf(t, exits, Options{})
	began := time.Now()
	for range maxInARow {
		if _, err := obey(t, a, "pid"); err == nil {
			t.Fatal("it started")
		}
	}
	if d := time.Since(began); d < firstBackOff*(2+4+8+16) {
		t.Errorf("five starts took %v: no back-off", d)
	}
	_, err := obey(t, a, "pid")
	var f *Failure
	if !errors.As(err, &f) || !strings.Contains(f.Reason, "given up after 5 failures: start: exited with status 3") {
		t.Errorf("got %v", err)
	}
}

// What hangs to the end of its deadline by the clock costs the most.
func TestPluginIsGivenUpAfterTwoHangs(t *testing.T) {
	a := testArchOf(t, good, Options{CallDeadline: 100 * time.Millisecond})
	for range 2 {
		if _, err := obey(t, a, "hang"); err == nil || !strings.Contains(err.Error(), "no answer within 1s") {
			t.Fatal(err)
		}
	}
	if _, err := obey(t, a, "echo x"); err == nil || !strings.Contains(err.Error(), "given up after 2 failures: no answer within 1s to Disassemble") {
		t.Errorf("got %v", err)
	}
}

func TestKilledBetweenCallsCostsNothing(t *testing.T) {
	a := testArchOf(t, good, Options{})
	for i := range 7 {
		if _, err := obey(t, a, "echo x"); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		pid := a.PID()
		kill(t, pid)
	}
	if g := a.Generation(); g != 7 {
		t.Errorf("generation %d, expected 7", g)
	}
	p := a.Problems()
	if len(p) == 0 || !strings.Contains(p[0], "was killed by signal 9 (killed) between calls; restarted") {
		t.Errorf("problems: %q", p)
	}
}

func TestKilledDuringCallIsAskedAgain(t *testing.T) {
	a := testArchOf(t, good, Options{})
	if _, err := obey(t, a, "pid"); err != nil {
		t.Fatal(err)
	}
	pid := a.PID()
	go func() {
		time.Sleep(200 * time.Millisecond)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}()
	got, err := obey(t, a, "sleep 1s")
	if err != nil || got != "slept" {
		t.Fatalf("%q, %v", got, err)
	}
	want := fmt.Sprintf("plugin good (pid %d) was killed by signal 9 (killed) during Disassemble; restarted", pid)
	if p := a.Problems(); len(p) != 1 || p[0] != want {
		t.Errorf("problems: %q\nexpected %q", p, want)
	}
}

func TestCallThatKillsFailsAndTheRestGoesOn(t *testing.T) {
	a := testArchOf(t, good, Options{})
	for command, want := range map[string]string{
		"exit":  "exited with status 7, and when asked once more again",
		"crash": "was killed by signal 9 (killed), and when asked once more again",
	} {
		_, err := obey(t, a, command)
		var f *Failure
		if !errors.As(err, &f) || f.Call != "Disassemble" || f.Plugin != "good" || !strings.Contains(f.Reason, want) {
			t.Errorf("%s: %v", command, err)
		}
		if got, err := obey(t, a, "echo x"); err != nil || got != "x" {
			t.Errorf("after %s: %q, %v", command, got, err)
		}
	}
}

func TestHangIsKilledAtTheDeadlineAndNotAskedAgain(t *testing.T) {
	a := testArchOf(t, good, Options{CallDeadline: 300 * time.Millisecond})
	if _, err := obey(t, a, "pid"); err != nil {
		t.Fatal(err)
	}
	pid := a.PID()
	began := time.Now()
	_, err := obey(t, a, "hang")
	var f *Failure
	if !errors.As(err, &f) || f.Reason != "no answer within 3s" || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if d := time.Since(began); d < 3*time.Second || d > time.Minute {
		t.Errorf("it took %v", d)
	}
	if !gone(pid) {
		t.Error("the hung process is alive")
	}
	if got, err := obey(t, a, "echo x"); err != nil || got != "x" {
		t.Errorf("after the hang: %q, %v", got, err)
	}
	want := fmt.Sprintf("plugin good (pid %d) gave no answer to Disassemble within 3s and was killed; restarted", pid)
	if p := a.Problems(); len(p) != 1 || p[0] != want {
		t.Errorf("problems: %q\nexpected %q", p, want)
	}
}

func TestStoppedProcessIsAHang(t *testing.T) {
	a := testArchOf(t, good, Options{CallDeadline: 300 * time.Millisecond})
	if _, err := obey(t, a, "pid"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(a.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(processState(t, a.PID()), "T (stopped)") {
		time.Sleep(10 * time.Millisecond)
	}
	if _, err := obey(t, a, "echo x"); err == nil || !strings.Contains(err.Error(), "no answer within 3s") {
		t.Errorf("a stopped process: %v", err)
	}
	if got, err := obey(t, a, "echo x"); err != nil || got != "x" {
		t.Errorf("after it: %q, %v", got, err)
	}
}

func TestCancelledCallLeavesTheProcess(t *testing.T) {
	a := testArchOf(t, good, Options{})
	if _, err := obey(t, a, "pid"); err != nil {
		t.Fatal(err)
	}
	pid := a.PID()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	_, err := a.Disassemble(ctx, order("hang"))
	var f *Failure
	if !errors.Is(err, context.Canceled) || errors.As(err, &f) {
		t.Errorf("got %v", err)
	}
	if _, err := obey(t, a, "echo x"); err != nil || a.PID() != pid {
		t.Errorf("process %d, was %d: %v", a.PID(), pid, err)
	}
}

func TestErrorsOfThePluginAreItsOwn(t *testing.T) {
	a := testArchOf(t, good, Options{})
	_, err := obey(t, a, "error")
	var f *Failure
	if !errors.As(err, &f) || !strings.Contains(f.Reason, errTest.Error()) {
		t.Errorf("got %v", err)
	}
	place := errTest.Error() + ", at plugin.init.func"
	if _, err := obey(t, a, "panic"); !errors.As(err, &f) || !strings.Contains(f.Reason, "panicked: "+place) ||
		!strings.Contains(f.Reason, " (commands_test.go:") || !strings.Contains(f.Reason, ", called by plugin.(*testArch).Disassemble (main_test.go:") {
		t.Errorf("got %v", err)
	}
	_, err = a.Translate(t.Context(), nil, &sdk.TranslateRequest{})
	if !errors.As(err, &f) || !errors.Is(err, sdk.ErrNotImplemented) {
		t.Errorf("Translate: %v", err)
	}
	if g := a.Generation(); g != 1 {
		t.Errorf("generation %d: an error is no reason to restart", g)
	}
}

// TestNoEngineIsOfferedWhereNoneIsAsked: an architecture that asks nothing of the
// engine is given none, and no connection is made for it.
func TestNoEngineIsOfferedWhereNoneIsAsked(t *testing.T) {
	req := functionNamed("memory")
	for _, md := range []mode{good, alone} {
		a := testArchOf(t, md, Options{})
		answer, err := a.FrameRules(t.Context(), memory("live"), req)
		var f *Failure
		switch {
		case md == good && (err != nil || answer.Functions[0].Reason != "4 bytes: live"):
			t.Errorf("%s: %+v, %v", md, answer, err)
		case md == alone && (!errors.As(err, &f) || !strings.Contains(f.Reason, "the caller offers no engine")):
			t.Errorf("%s: %+v, %v", md, answer, err)
		}
	}
}

// TestPluginThatGoPluginServes: what a plugin of an older package sdk is.
func TestPluginThatGoPluginServes(t *testing.T) {
	a := vendorArchOf(t, byGoPlugin, Options{})
	if got, err := obey(t, a, "echo x"); err != nil || got != "x" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestOutputIsLogged: what a plugin writes to standard output and error is logged, whoever
// serves it.
func TestOutputIsLogged(t *testing.T) {
	for _, md := range []mode{good, byGoPlugin} {
		var log lockedBuffer
		a := vendorArchOf(t, md, Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Debug})})
		if _, err := obey(t, a, "say x"); err != nil {
			t.Error(err)
		}
		for end := time.Now().Add(10 * time.Second); !log.has("out x") || !log.has("err x"); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %s", md, log.text.String())
			}
		}
	}
}

// A lockedBuffer is written to by others.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) has(s string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Contains(b.text.String(), s)
}

func TestConcurrentCallsSurviveKills(t *testing.T) {
	a := testArchOf(t, good, Options{})
	if _, err := obey(t, a, "pid"); err != nil {
		t.Fatal(err)
	}
	const kills = 6
	ctx, cancel := context.WithCancel(t.Context())
	var answers atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				want := strconv.Itoa(i)
				got, err := a.Disassemble(t.Context(), order("echo "+want))
				if err != nil {
					// A kill during each of two attempts is a failure.
					var f *Failure
					if !errors.As(err, &f) || !strings.Contains(f.Reason, "once more") {
						t.Error(err)
						return
					}
					continue
				}
				answers.Add(1)
				if got.Instructions[0].Text != want {
					t.Errorf("got the answer of another call: %q, expected %q", got.Instructions[0].Text, want)
				}
			}
		})
	}
	// Each kill waits for answers of the process, however slow its start was.
	for killed, seen := 0, int64(0); killed < kills && !t.Failed(); {
		if n := answers.Load(); n < seen+20 || a.PID() == 0 {
			time.Sleep(time.Millisecond)
			continue
		}
		_ = syscall.Kill(a.PID(), syscall.SIGKILL)
		killed++
		seen = answers.Load()
	}
	cancel()
	wg.Wait()
	if g := a.Generation(); g < kills {
		t.Errorf("%d kills, generation %d", kills, g)
	}
	if _, err := obey(t, a, "echo x"); err != nil {
		t.Error(err)
	}
}

// Calls that end together with their process are one failure of it.
func TestCallsUnderWayFailOnceWithTheirProcess(t *testing.T) {
	const calls = 8
	a := testArchOf(t, good, Options{})
	s := a.transport.(*supervisor)
	var wg sync.WaitGroup
	for range calls {
		wg.Go(func() {
			var f *Failure
			if _, err := obey(t, a, "hang"); !errors.As(err, &f) || !strings.Contains(f.Reason, "once more") {
				t.Errorf("got %v", err)
			}
		})
	}
	for generation := uint64(1); generation <= 2; generation++ {
		for underWay := 0; underWay < calls; time.Sleep(time.Millisecond) {
			s.mu.Lock()
			if underWay = 0; s.generation == generation {
				underWay = s.calls["Disassemble"]
			}
			s.mu.Unlock()
		}
		_ = syscall.Kill(a.PID(), syscall.SIGKILL)
	}
	wg.Wait()
	if n := s.inARow; n != 1 {
		t.Errorf("%d calls of one process that died count as %d failures, expected 1", calls, n)
	}
}

func TestCloseEndsCallsUnderWay(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, md := range []mode{good, hangs} {
		m, err := NewManager(Options{Self: self(t), Bundled: bundledTest(md)})
		if err != nil {
			t.Fatal(err)
		}
		a, err := m.Find("test-" + string(md))
		if err != nil {
			t.Fatal(err)
		}
		result := make(chan error)
		go func() {
			_, err := a.Disassemble(context.Background(), order("hang"))
			result <- err
		}()
		time.Sleep(500 * time.Millisecond)
		began := time.Now()
		m.Close()
		if err := <-result; !errors.Is(err, errClosed) {
			t.Errorf("%s: %v", md, err)
		}
		if d := time.Since(began); d > 20*time.Second {
			t.Errorf("%s: Close took %v", md, d)
		}
	}
}

func TestNoiseOnStandardErrorIsBounded(t *testing.T) {
	a := testArchOf(t, noisy, Options{Self: copyOfSelf(t)})
	if _, err := obey(t, a, "echo x"); err != nil {
		t.Fatal(err)
	}
	p := a.transport.(*supervisor).current
	if n := p.log.total; n > maxStderrTotal+64<<10 {
		t.Errorf("%d bytes were taken in", n)
	}
	if n := len(p.log.lastWords()); n > maxQuoted+3 {
		t.Errorf("%d bytes of last words", n)
	}
}

func processState(t *testing.T, pid int) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestLongTemporaryDirectoryIsNotUsedForSockets(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("x", MaxSocketBase))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", long)
	a := testArchOf(t, good, Options{})
	if got, err := obey(t, a, "echo x"); err != nil || got != "x" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestEventsAreBounded(t *testing.T) {
	l := eventLog{plugin: "p"}
	for i := range maxEvents + 3 {
		l.add(strconv.Itoa(i))
	}
	if got := l.list(); len(got) != maxEvents+1 || got[maxEvents] != "plugin p had 3 more problems" {
		t.Errorf("%d: %q", len(got), got[len(got)-1])
	}
}

// gone waits for a process to be no more, a zombie least of all.
func gone(pid int) bool {
	for range 3000 {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if !gone(pid) {
		t.Fatalf("process %d does not die", pid)
	}
}
