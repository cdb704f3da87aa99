// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/engine/service/fleet"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// fleetWorker is the argument that makes this executable a worker of a fleet; the URL of its
// queue and a folder follow.
const fleetWorker = "fleet-worker"

// fleetPace is a pace of tests.
var fleetPace = fleet.Pace{Silence: 2 * time.Second, Pause: 20 * time.Millisecond}

// fleetWorkerMain works until it is killed.
func fleetWorkerMain(url, dir string) error {
	ctx := context.Background()
	q, err := fleet.Connect(ctx, fleet.Options{URL: url, Keep: fleet.Keep{Bytes: 1 << 30}})
	if err != nil {
		return err
	}
	files, err := fleet.OpenObjects(q, filepath.Join(dir, "kept"), 1<<30, nil)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	o := Options{
		Limits: DefaultLimits, Self: self, State: filepath.Join(dir, "state"), Run: filepath.Join(dir, "run"), Log: hclog.NewNullLogger(),
		Remote: files,
	}
	o.Workers = 2
	s, err := New(o)
	if err != nil {
		return err
	}
	w, err := fleet.NewWorker(ctx, q, s.Doer(), fleet.WorkOptions{Name: "mortal", Jobs: o.Workers, Pace: fleetPace})
	if err != nil {
		return err
	}
	fmt.Println("working")
	return w.Run(ctx, ctx)
}

// mortalWorker has a worker that is killed, again and again, until stop is called, at
// moments that become later. killed is how often it was.
func mortalWorker(t *testing.T, f *testFleet) (stop func() (killed int)) {
	t.Helper()
	dir := filepath.Dir(testOptions(t).State)
	ctx, cancel := context.WithCancel(context.Background())
	told := make(chan int, 1)
	go func() {
		killed := 0
		defer func() { told <- killed }()
		for ; ctx.Err() == nil; killed++ {
			cmd := exec.CommandContext(ctx, os.Args[0], fleetWorker, f.options().URL, dir) //nolint:gosec // this executable
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = bufio.NewReader(out).ReadString('\n') // it may be killed before
			select {
			case <-ctx.Done():
			case <-time.After(time.Duration(1+killed%10) * 50 * time.Millisecond):
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}()
	return func() int {
		cancel()
		killed := <-told
		told <- killed
		return killed
	}
}

// TestJobsOutliveTheirWorkers has jobs done by one worker that lives, and another that is
// killed again and again: each has the report of a server without a fleet.
func TestJobsOutliveTheirWorkers(t *testing.T) {
	f := startFleet(t)
	s := f.work(t, testOptions(t))
	stop := mortalWorker(t, f)
	t.Cleanup(func() { stop() })
	rounds := 8
	if testing.Short() {
		rounds = 2
	}
	want, ids := map[string]string{}, []string(nil)
	for _, c := range []struct {
		kind, path string
		options    func(name string) proto.Message
	}{
		{"stack", crashCore, func(name string) proto.Message {
			return &pb.StackOptions{Format: "text", Name: name, Crashed: true, Locals: true}
		}},
		{"stack", mixed, func(name string) proto.Message { return &pb.StackOptions{Format: "json", Name: name, Lanes: true} }},
		{"stack", examples + "crash/server.dmp", func(name string) proto.Message { return &pb.StackOptions{Format: "text", Name: name, Registers: true} }},
		{"profile", wordsData, func(name string) proto.Message { return &pb.ProfileOptions{Format: "folded", Name: name} }},
		{"profile", wordsData, func(name string) proto.Message { return &pb.ProfileOptions{Format: "json", Name: name} }},
	} {
		for i := range rounds {
			options, body := c.options(fmt.Sprintf("target.%d", i)), file(t, c.path)
			how := fleet.How{Priority: []string{"high", "low"}[i%2]}
			if c.kind == "profile" {
				how.Parts = 1 + i%4
			}
			here, err := begin(t, s, c.kind, options, bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			report, err := io.ReadAll(here)
			if err := here.Close(); err != nil {
				t.Error(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			task, err := fleet.NewTask(c.kind, options)
			if err != nil {
				t.Fatal(err)
			}
			job, err := f.Submit(t.Context(), task, bytes.NewReader(body), how)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, job.ID)
			want[job.ID] = string(report)
		}
	}
	err := f.Wait(t.Context(), ids, func(r *fleet.Result) error {
		var report bytes.Buffer
		if err := f.Report(t.Context(), r, &report); err != nil {
			return fmt.Errorf("%s: %+v: %w", r.State, r.Problem, err)
		}
		if diff := cmp.Diff(want[r.ID], report.String()); diff != "" {
			t.Errorf("a server (-) and the fleet (+) say\n%.3000s", diff)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if killed := stop(); killed == 0 {
		t.Error("no worker was killed: nothing was tried")
	} else {
		t.Logf("%d jobs, %d workers were killed", len(ids), killed)
	}
}
