// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/engine/service/fleet"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// begin begins a task with a text, or a file, as a worker of a fleet does.
func begin(t *testing.T, s *testServer, kind string, options proto.Message, in io.Reader) (fleet.Report, error) {
	t.Helper()
	task, err := fleet.NewTask(kind, options)
	if err != nil {
		t.Fatal(err)
	}
	return s.Doer().Begin(t.Context(), &task, func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	})
}

// TestJobsOfAFleetAreRequests has jobs done as requests are, and their failures told apart:
// those that are the job's fault, and those that another worker may not have.
func TestJobsOfAFleetAreRequests(t *testing.T) {
	o := testOptions(t)
	o.Body = 1 << 20
	s := start(t, o)
	f, err := os.Open(mixed)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := begin(t, s, "stack", &pb.StackOptions{Format: "text", Name: "a.snapshot"}, f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	about := r.About()
	if err != nil || !strings.HasPrefix(string(text), "snapshot a.snapshot: signal 11") || about.Name != "a.snapshot" || !strings.HasPrefix(about.Type, "text/plain") {
		t.Errorf("%v, %+v: %s", err, about, text)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		kind    string
		options proto.Message
		in      string
		name    string
	}{
		{"stack", &pb.StackOptions{}, "no core", "unreadable"},
		{"stack", &pb.StackOptions{}, strings.Repeat("x", 1<<20+1), "too-large"},
		{"stack", &pb.StackOptions{Format: "pdf"}, "", "usage"},
		{"stack", &pb.StackOptions{}, "", "usage"},
		{"profile", &pb.StackOptions{Crashed: true}, "", "usage"},
		{"evil", &pb.StackOptions{}, "", "usage"},
		{"profile", &pb.ProfileOptions{}, "no recording", "unreadable"},
		{"snapshot", &pb.SnapshotOptions{}, "no core", "unreadable"},
	} {
		_, err := begin(t, s, c.kind, c.options, strings.NewReader(c.in))
		var f *fleet.Fault
		if !errors.As(err, &f) || f.Name != c.name || f.Again {
			t.Errorf("%s of %.20q: %v, expected a fault %s", c.kind, c.in, err, c.name)
		}
	}
	until(t, "all bytes are given back", func() bool { return s.budget.inUse() == 0 })
}
