// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
)

// recordOne records a process, and reads the recording.
func recordOne(t *testing.T, pid int, repeat int, every time.Duration) (path string, r trace.Recorded, f *perfdata.File, samples []perfdata.Sample) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "perf.data")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	r, err = Record(context.Background(), pid, out, options(), nil, trace.RecordOptions{Repeat: repeat, Every: every})
	if err != nil {
		t.Fatal(err)
	}
	if f, err = perfdata.Open(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	for reader := f.Reader(); ; {
		b, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		samples = append(samples, b.Samples...) // batches are not released
	}
	if p := f.Problems(); len(p) > 0 {
		t.Errorf("problems of the recording: %q", p)
	}
	return path, r, f, samples
}

func TestEveryThreadIsSampledAtEveryMoment(t *testing.T) {
	program, _ := victim(t)
	cmd := start(t, exec.Command(program, "threads", "10"), true)
	path, r, f, samples := recordOne(t, cmd.Process.Pid, 20, 5*time.Millisecond)
	goesOn(t, cmd.Process.Pid)
	if r.Moments != 20 || r.Samples != 220 || len(samples) != 220 || len(r.Problems) > 0 {
		t.Fatalf("%d samples at %d moments, %d were read, problems %q", r.Samples, r.Moments, len(samples), r.Problems)
	}
	if r.Longest <= 0 || r.Stopped < r.Longest {
		t.Errorf("stopped for %v, at most for %v", r.Stopped, r.Longest)
	}
	if a := f.Attrs(); len(a) != 1 || a[0].Name != WallEvent {
		t.Errorf("events %+v", a)
	}
	for i := range samples {
		s := &samples[i]
		if s.PID != cmd.Process.Pid || s.Comm != "victim" || s.Problem != "" || len(s.Stack) < 64 || s.Registers.ABI != perfdata.Registers64 {
			t.Fatalf("sample %d of %d, %q: %d bytes of stack, problem %q", s.PID, s.TID, s.Comm, len(s.Stack), s.Problem)
		}
		if i >= 11 && s.Period != s.Time-samples[i-11].Time {
			t.Errorf("the weight of a sample is %d, %d after the one before", s.Period, s.Time-samples[i-11].Time)
		}
		if s.Space == nil {
			t.Fatal("nothing is known of what the process has mapped")
		}
	}
	// perf reads the same.
	oracle.Tools(t, "perf")
	out := oracle.Run(t, "perf", "script", "-i", path, "-F", "comm,tid,period,event", "--max-stack", "1")
	if n := strings.Count(out, "wall:"); n != 220 {
		t.Errorf("perf script has %d samples of wall", n)
	}
}

func TestAProcessThatEndsWhileItIsRecorded(t *testing.T) {
	program, _ := victim(t)
	cmd := start(t, exec.Command(program, "threads", "2"), true)
	go func() {
		time.Sleep(100 * time.Millisecond)
		_ = cmd.Process.Signal(syscall.SIGKILL)
	}()
	_, r, _, samples := recordOne(t, cmd.Process.Pid, 1000, 5*time.Millisecond)
	if r.Moments == 0 || r.Moments == 1000 || len(samples) < 3*(r.Moments-1) { // it may end while it is stopped
		t.Errorf("%d moments, %d samples", r.Moments, len(samples))
	}
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "no such process") {
		t.Errorf("problems %q", r.Problems)
	}
}

func TestAProcessThatExecutesIsRecordedAfterThat(t *testing.T) {
	program, _ := victim(t)
	script := `sleep 0.15; exec "` + program + `" threads 2`
	cmd := start(t, exec.Command("sh", "-c", script), false)
	_, r, _, samples := recordOne(t, cmd.Process.Pid, 60, 10*time.Millisecond)
	comms := map[string]int{}
	for i := range samples {
		s := &samples[i]
		comms[s.Comm]++
		mapped := false
		for m := range s.Space.All() {
			mapped = mapped || m.Path == program
		}
		if mapped != (s.Comm == "victim") {
			t.Fatalf("%s has the program mapped: %v", s.Comm, mapped)
		}
	}
	if comms["sh"] == 0 || comms["victim"] == 0 || len(r.Problems) > 0 {
		t.Errorf("samples by name: %v, problems %q", comms, r.Problems)
	}
}

func TestARecordingHasAsMuchAsThereIsRoomFor(t *testing.T) {
	program, _ := victim(t)
	cmd := start(t, exec.Command(program, "threads", "2"), true)
	out, err := os.Create(filepath.Join(t.TempDir(), "perf.data"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	r, err := Record(context.Background(), cmd.Process.Pid, out, options(), nil, trace.RecordOptions{Repeat: 1000, MaxBytes: 100_000})
	if err != nil || r.Moments == 1000 || len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "of 1000 moments") {
		t.Errorf("%d moments, problems %q, %v", r.Moments, r.Problems, err)
	}
	if _, err := Record(context.Background(), 1<<22+5, out, options(), nil, trace.RecordOptions{Repeat: 1}); !errors.Is(err, ErrEnded) {
		t.Errorf("a process that there is not: %v", err)
	}
}

// BenchmarkRecord tells what a moment costs the process and who records it, by the clock.
func BenchmarkRecord(b *testing.B) {
	program, _ := victim(b)
	for _, threads := range []int{1, 100} {
		b.Run(strconv.Itoa(threads), func(b *testing.B) {
			cmd := start(b, exec.Command(program, "threads", strconv.Itoa(threads)), true)
			out, err := os.Create(filepath.Join(b.TempDir(), "perf.data"))
			if err != nil {
				b.Fatal(err)
			}
			defer out.Close()
			r, err := Record(context.Background(), cmd.Process.Pid, out, options(), nil, trace.RecordOptions{Repeat: b.N})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(r.Stopped.Microseconds())/float64(r.Moments), "µs-stopped/op")
			info, _ := out.Stat()
			b.ReportMetric(float64(info.Size())/float64(r.Samples), "bytes/sample")
		})
	}
}

// BenchmarkRecordRunning is BenchmarkRecord of threads that execute among ones that wait.
func BenchmarkRecordRunning(b *testing.B) {
	program, _ := victim(b)
	cmd := start(b, exec.Command(program, "busy", "2"), true)
	for name, only := range map[string]bool{"running": true, "idle": false} {
		b.Run(name, func(b *testing.B) {
			out, err := os.Create(filepath.Join(b.TempDir(), "perf.data"))
			if err != nil {
				b.Fatal(err)
			}
			defer out.Close()
			r, err := Record(context.Background(), cmd.Process.Pid, out, options(), nil, trace.RecordOptions{Repeat: b.N, OnlyRunning: only})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(r.Stopped.Microseconds())/float64(r.Moments), "µs-stopped/op")
		})
	}
}
