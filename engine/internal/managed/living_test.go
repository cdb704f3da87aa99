// SPDX-License-Identifier: Apache-2.0

package managed_test

import (
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// startMachine starts testdata/machine.c, and returns its process.
func startMachine(t testing.TB, args ...string) (pid int) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "machine")
	if out, err := exec.Command(oracle.Tool(t, "gcc"), "-g", "-O1", "-pthread", "-w", "-o", program, "testdata/machine.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(program, args...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	return cmd.Process.Pid
}

// machine is the plugin of the machine.
type machine struct {
	fake
	torn int // frames that never were
}

func newMachine() *machine {
	m := &machine{fake: fake{
		about: sdk.RuntimeDescription{
			Name: "machine", Version: "1", Recognises: []sdk.RuntimeRecogniser{{Symbol: "machine_states"}}, Symbols: []string{"machine_states"},
		},
		answer: sdk.OpenRuntimeAnswer{HasFrames: true},
	}}
	m.frames = m.find
	return m
}

// find finds the frames of threads, which stand for the frame of execute.
func (m *machine) find(e sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
	a := &sdk.ManagedFramesAnswer{Stacks: make([]sdk.ManagedStack, len(req.Threads))}
	opened := m.request.Load()
	ids := map[uint64]string{}
	for _, th := range opened.Threads {
		ids[th.Thread] = th.ID
	}
	memory := sdk.NewMemoryReader(context.Background(), e, sdk.LittleEndian, 64)
	word := func(address uint64) uint64 {
		n, err := memory.Uint(address, 8)
		if err != nil {
			return 0
		}
		return n
	}
	tops := map[string]uint64{}
	for s, left := word(opened.Symbols[0].Address), 1000; s != 0 && left > 0; s, left = word(s), left-1 {
		tops[strconv.FormatUint(word(s+16)&0xffffffff, 10)] = word(s + 8)
	}
	for i, th := range req.Threads {
		at := -1
		for k, f := range th.Frames {
			if f.Function == "execute" {
				at = k
			}
		}
		top := tops[ids[th.Thread]]
		if at < 0 || top == 0 {
			continue
		}
		run := sdk.ManagedRun{First: uint32(at), Count: 1} //nolint:gosec // small
		for f := top; f != 0; f = word(f) {
			number, line, check := word(f+8)&0xffffffff, word(f+8)>>32, word(f+16)&0xffffffff
			if check != ^number&0xffffffff || line != 10*number || len(run.Frames) > 100 {
				m.torn++
				a.Stacks[i].Problem = fmt.Sprintf("frame %#x: number %d, line %d, check %#x", f, number, line, check)
				break
			}
			frame := sdk.ManagedFrame{Function: fmt.Sprintf("f%d", number), File: "machine.scr", Line: uint32(line), Kind: sdk.Interpreted} //nolint:gosec // small
			if req.Variables {
				frame.Variables = []sdk.ManagedVariable{{Name: "v", Text: strconv.FormatUint(word(word(f+24))&0xffffffff, 10)}}
			}
			run.Frames = append(run.Frames, frame)
		}
		if len(run.Frames) > 0 {
			a.Stacks[i].Runs = []sdk.ManagedRun{run}
		}
	}
	return a, nil
}

// machineEngine returns an engine with the machine's plugin in this process.
func machineEngine(t testing.TB, m *machine) *engine.Engine {
	t.Helper()
	return newEngine(t, engine.Options{InProcess: []sdk.Architecture{x86_64.New()}, InProcessRuntimes: []sdk.Runtime{m}})
}

// ranked returns the numbers of the machine's frames in a stack, innermost first.
func ranked(names []string) (numbers []int) {
	for _, name := range names {
		if n, err := strconv.Atoi(strings.TrimPrefix(name, "f")); err == nil && strings.HasPrefix(name, "f") {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// isWhole reports whether numbers are N, N-1 and so on down to 1: what the machine executes at any moment.
func isWhole(numbers []int) bool {
	for i, n := range numbers {
		if n != len(numbers)-i {
			return false
		}
	}
	return true
}

func TestRuntimesOfALivingProcess(t *testing.T) {
	pid := startMachine(t, "3")
	m := newMachine()
	e := machineEngine(t, m)
	found := 0
	for range 20 {
		target, err := e.OpenProcess(pid)
		if err != nil {
			t.Fatal(err)
		}
		m.torn = 0
		var stacks []*trace.Stack
		for s := range target.Stacks(t.Context()) {
			stacks = append(stacks, s)
			var names []string
			for i := range s.Frames {
				if f := &s.Frames[i]; f.Managed() != nil {
					names = append(names, f.Symbols[0].Function)
				}
			}
			if found += len(names); !isWhole(ranked(names)) {
				t.Errorf("thread %s: %q", s.Thread.ID, names)
			}
		}
		if m.torn > 0 || len(target.Problems()) > 0 {
			t.Errorf("%d frames that never were; %q", m.torn, target.Problems())
		}
		_ = target.Close()
	}
	if found < 500 {
		t.Errorf("%d frames at 20 moments, expected 60 stacks of 25 frames on average", found)
	}
}

// TestSnapshotsOfALivingProcessHaveVariables reads the variables of the machine from snapshots, when its threads
// have gone on.
func TestSnapshotsOfALivingProcessHaveVariables(t *testing.T) {
	pid := startMachine(t, "2")
	options := engine.Options{InProcess: []sdk.Architecture{x86_64.New()}, InProcessRuntimes: []sdk.Runtime{newMachine()}}
	for _, isFor := range []bool{true, false} {
		options.ForSnapshot, options.Locals = isFor, nil
		e := newEngine(t, options)
		living, err := e.OpenProcess(pid)
		if err != nil {
			t.Fatal(err)
		}
		s, err := living.Snapshot(t.Context(), engine.SnapshotOptions{})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "machine.snapshot")
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Write(file), file.Close(), living.Close()); err != nil {
			t.Fatal(err)
		}
		options.Locals = &trace.DefaultValueLimits
		target, err := newEngine(t, options).Open(path)
		if err != nil {
			t.Fatal(err)
		}
		right, frames := 0, 0
		for s := range target.Stacks(t.Context()) {
			for i := range s.Frames {
				f := &s.Frames[i]
				if f.Managed() == nil {
					continue
				}
				frames++
				if f.Details.Locals[0][0].Value.Text == strconv.Itoa(1000+f.Symbols[0].Line/10) {
					right++
				}
			}
		}
		if want := frames; frames == 0 || isFor && right != want || !isFor && right != 0 {
			t.Errorf("for a snapshot %v: %d of %d frames have the value of their variable", isFor, right, frames)
		}
		_ = target.Close()
	}
}

func newEngine(t testing.TB, o engine.Options) *engine.Engine {
	t.Helper()
	e, err := engine.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func TestRuntimesAtTheMomentsOfARecording(t *testing.T) {
	pid := startMachine(t, "2")
	m := newMachine()
	e := machineEngine(t, m)
	path := filepath.Join(t.TempDir(), "perf.data")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	done, err := e.RecordProcess(t.Context(), pid, file, trace.RecordOptions{Repeat: 1000, Every: time.Millisecond, OnlyRunning: true})
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Profile(t.Context(), path, trace.ProfileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	managed, wrong := 0, 0
	for i := range p.Samples {
		var names []string
		for _, k := range p.StackFrames(nil, p.Samples[i].Stack) {
			if f := &p.Frames[k]; f.Managed != nil {
				names = append(names, f.Symbols[0].Function)
			}
		}
		if len(names) > 0 {
			managed++
		}
		if !isWhole(ranked(names)) {
			wrong++
			t.Errorf("sample %d: %q", i, names)
		}
	}
	t.Logf("%d samples, %d with frames of the machine, %d stacks that never were; stopped for %v at %d moments, at most %v; opened %d times, %q",
		len(p.Samples), managed, wrong, done.Stopped, done.Moments, done.Longest, m.opened.Load(), p.Problems)
	if managed < len(p.Samples)/2 || len(done.Problems) > 0 {
		t.Errorf("%d of %d samples have frames of the machine; %q", managed, len(p.Samples), done.Problems)
	}
	checkForms(t, p)
}

// checkForms checks that each form of a profile has the functions of the machine.
func checkForms(t *testing.T, p *trace.Profile) {
	t.Helper()
	r, err := report.NewProfile(p)
	if err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(io.Writer) error{
		"folded":     func(w io.Writer) error { return r.WriteFolded(w, "on-cpu") },
		"text":       func(w io.Writer) error { return r.WriteText(w, report.TextOptions{}) },
		"JSON":       r.WriteJSON,
		"OTLP":       r.WriteOTLP,
		"Firefox":    r.WriteFirefox,
		"speedscope": r.WriteSpeedscope,
		"page": func(w io.Writer) error {
			var b bytes.Buffer
			if err := r.WritePage(&b); err != nil {
				return err
			}
			_, data, _ := strings.Cut(b.String(), `id="data">`)
			data, _, _ = strings.Cut(data, "<")
			_, err := io.Copy(w, flate.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(data))))
			return err
		},
		"pprof": func(w io.Writer) error {
			var b bytes.Buffer
			if err := r.WritePprof(&b); err != nil {
				return err
			}
			read, err := profile.Parse(&b)
			if err != nil {
				return err
			}
			_, err = io.WriteString(w, read.String())
			return err
		},
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !strings.Contains(b.String(), "f17") || strings.Contains(b.String(), "f1;execute") {
			t.Errorf("%s lacks f17, or has what it stands for: %.2000s", name, b.String())
		}
		if hasFile := strings.Contains(b.String(), "machine.scr"); !hasFile && name != "folded" {
			t.Errorf("%s lacks the file: %.2000s", name, b.String())
		}
	}
}
