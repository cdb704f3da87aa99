// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/unwindd/unwindd/engine/service/internal/remote"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// TestSlowCallersHaveTime has a caller take longer for its answers than a request may take to
// be worked on: that is the caller's time. One that sends next to nothing is silent.
func TestSlowCallersHaveTime(t *testing.T) {
	options := testOptions(t)
	options.Time, options.Idle = 2*time.Second, time.Second
	s := start(t, options)
	own := openCrash(t, crashExe)
	good, head := headOf(t, own)

	w, k := s.walk(t, good, head), remote.NewResponder(own)
	defer k.Close()
	var waited time.Duration
	for isEnded := false; !isEnded; {
		m, err := w.Recv()
		if err != nil {
			t.Fatalf("after %v: %v", waited, err)
		}
		isEnded = m.GetEnd() != nil
		q := m.GetQuestion()
		if q == nil {
			continue
		}
		if waited < 2*options.Time {
			time.Sleep(options.Idle * 3 / 4)
			waited += options.Idle * 3 / 4
		}
		if err := k.Answer(q, func(a *pb.Answer) error { return w.Send(&pb.WalkRequest{Part: &pb.WalkRequest_Answer{Answer: a}}) }); err != nil {
			t.Fatal(err)
		}
	}
	if waited < options.Time*5/4 {
		t.Errorf("%v were waited for answers, expected more than %v", waited, options.Time)
	}

	w = s.walk(t, good, head)
	w.wantStatus(codes.DeadlineExceeded, "nothing came", func(q *pb.Question) {
		part := &pb.WalkRequest{Part: &pb.WalkRequest_Answer{Answer: &pb.Answer{Number: q.Number, About: &pb.Answer_File{File: &pb.FileAnswer{Data: []byte{1}}}}}}
		go func() {
			for w.Send(part) == nil {
				time.Sleep(options.Idle / 8)
			}
		}()
	})
}
