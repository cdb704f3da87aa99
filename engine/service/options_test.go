// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"encoding/json"
	"net/url"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/unwindd/unwindd/engine/service/fleet"
	"github.com/unwindd/unwindd/engine/service/job"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// sampleValues are values of parameters that are not "1", by their names.
var sampleValues = map[protoreflect.Name]string{"format": "text", "name": "core", "build_id": "0102", "time": "1,2"}

// optionsIn returns the options of a job that a worker has got.
func optionsIn(j *job.Job) proto.Message {
	switch {
	case j.Evaluate != nil:
		return j.Evaluate.EvaluateOptions
	case j.Symbolize != nil:
		return j.Symbolize.SymbolizeRequest
	case j.Walk != nil:
		return j.Walk.WalkOptions
	}
	return j.Options()
}

// TestEveryOptionIsTaken has each option of each request set by a parameter of HTTP, and follows it
// over the wire into the job of a worker, and into a task of a fleet. TestEveryOptionHasItsFlag of
// the command is about flags and documents.
func TestEveryOptionIsTaken(t *testing.T) {
	s := &Server{}
	s.limits.Store(&DefaultLimits)
	for _, usual := range []proto.Message{&pb.StackOptions{}, &pb.ProfileOptions{Format: "text"}, &pb.SnapshotOptions{}, &pb.EvaluateOptions{}, &pb.SymbolizeRequest{BuildId: []byte{1, 2}}} {
		fields := usual.ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			field := fields.Get(i)
			if field.Name() == "addresses" {
				continue // they are the input
			}
			options := proto.Clone(usual)
			value := sampleValues[field.Name()]
			if value == "" {
				value = "1"
			}
			if err := setParameters(options, url.Values{parameterName(field): {value}}); err != nil {
				t.Errorf("%s: %v", field.FullName(), err)
				continue
			}
			want := options.ProtoReflect().Get(field)
			if !options.ProtoReflect().Has(field) {
				t.Errorf("%s is not set by a parameter %s", field.FullName(), parameterName(field))
			}
			got := atWorker(t, s, overWire(t, options))
			if !got.ProtoReflect().Get(field).Equal(want) {
				t.Errorf("a worker has %s as %v, expected %v", field.FullName(), got.ProtoReflect().Get(field), want)
			}
		}
	}
	got := atWorker(t, s, overWire(t, &pb.WalkOptions{Stack: &pb.StackOptions{Format: "text", Top: 3}, Verbose: true, Color: true, WithPath: true, HeadSize: 7, MostBytes: 8}))
	stack := &pb.StackOptions{Name: "target", Format: "text", Top: 3, Depth: 4, Elements: 200, SignatureVersion: 2}
	if want := (&pb.WalkOptions{Stack: stack, Verbose: true, Color: true, WithPath: true, HeadSize: 7, MostBytes: 8}); !proto.Equal(got, want) {
		t.Errorf("a worker has %v, expected %v", got, want)
	}
}

// overWire returns options that were sent by gRPC.
func overWire(t *testing.T, options proto.Message) proto.Message {
	t.Helper()
	b, err := proto.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	got := options.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(b, got); err != nil {
		t.Fatal(err)
	}
	return got
}

// atWorker returns the options of the job that a worker gets for options, and checks that a fleet's
// worker gets the same.
func atWorker(t *testing.T, s *Server, options proto.Message) proto.Message {
	t.Helper()
	work, err := s.work(options)
	if err != nil {
		t.Fatalf("%v: %v", options, err)
	}
	b, err := json.Marshal(work.Job)
	if err != nil {
		t.Fatal(err)
	}
	var j job.Job
	if err := json.Unmarshal(b, &j); err != nil {
		t.Fatal(err)
	}
	if wire := work.Job.Options(); wire != nil {
		task, err := fleet.NewTask(work.Job.Name(), wire)
		if err != nil {
			t.Fatal(err)
		}
		other, err := s.taskWork(&task)
		if err != nil || !proto.Equal(other.Job.Options(), wire) {
			t.Errorf("a fleet's worker gets %v of %s, expected %v (%v)", other, task.Options, wire, err)
		}
	}
	if got := optionsIn(&j); got != nil && proto.Equal(got, optionsIn(work.Job)) {
		return got
	}
	t.Fatalf("a worker gets %s for %v", b, options)
	return nil
}
