// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/unwindd/unwindd/sdk/archpb"
)

// describedOnly serves Describe, as generated code of any language leaves the rest, and counts
// the calls that it does not serve.
type describedOnly struct {
	pb.UnimplementedArchitectureServer
	mu    sync.Mutex
	calls map[string]int
}

func (d *describedOnly) missing(call string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls == nil {
		d.calls = map[string]int{}
	}
	d.calls[call]++
	return status.Error(codes.Unimplemented, "")
}

func (d *describedOnly) Describe(context.Context, *pb.DescribeRequest) (*pb.Description, error) {
	return encodeDescription(testDescription()), nil
}

func (d *describedOnly) OpenTarget(*pb.OpenTargetRequest, grpc.ServerStreamingServer[pb.OpenTargetPart]) error {
	return d.missing("OpenTarget")
}

func (d *describedOnly) OpenObject(*pb.OpenObjectRequest, grpc.ServerStreamingServer[pb.OpenObjectPart]) error {
	return d.missing("OpenObject")
}

func (d *describedOnly) FrameRules(context.Context, *pb.FrameRulesRequest) (*pb.FrameRulesAnswer, error) {
	return nil, d.missing("FrameRules")
}

func (d *describedOnly) BindThreads(context.Context, *pb.BindThreadsRequest) (*pb.BindThreadsAnswer, error) {
	return nil, d.missing("BindThreads")
}

func (d *describedOnly) Translate(context.Context, *pb.TranslateRequest) (*pb.TranslateAnswer, error) {
	return nil, d.missing("Translate")
}

func (d *describedOnly) ClassifyReturn(context.Context, *pb.ClassifyReturnRequest) (*pb.ClassifyReturnAnswer, error) {
	return nil, d.missing("ClassifyReturn")
}

func (d *describedOnly) Disassemble(context.Context, *pb.DisassembleRequest) (*pb.DisassembleAnswer, error) {
	return nil, d.missing("Disassemble")
}

// A base is an architecture of Go that says no more than describedOnly does.
type base struct{ Base }

func (base) Describe(context.Context) (*Description, error) { return testDescription(), nil }

// everyCall makes each call but Describe, and returns the answers by its name. Those without an
// answer have their error.
func everyCall(a Architecture) map[string]any {
	ctx, e := context.Background(), &testEngine{}
	var with Registers
	with.Set(9, []byte{0xef, 0xbe, 0, 0, 0, 0, 0, 0})
	answers := map[string]any{}
	add := func(call string, answer any, err error) {
		if answers[call] = answer; err != nil {
			answers[call] = errors.Is(err, ErrNotImplemented)
		}
	}
	target, err := a.OpenTarget(ctx, e, &OpenTargetRequest{})
	add("OpenTarget", target, err)
	object, err := a.OpenObject(ctx, e, &OpenObjectRequest{})
	add("OpenObject", object, err)
	rules, err := a.FrameRules(ctx, e, &FrameRulesRequest{Functions: make([]CodeRange, 3)})
	add("FrameRules", rules, err)
	threads, err := a.BindThreads(ctx, e, &BindThreadsRequest{Threads: []ThreadState{{Registers: with}, {}}})
	add("BindThreads", threads, err)
	translated, err := a.Translate(ctx, e, &TranslateRequest{})
	add("Translate", translated, err)
	returns, err := a.ClassifyReturn(ctx, &ClassifyReturnRequest{PCs: []uint64{1, 2}, Offsets: []uint32{0, 1, 2}, Code: []byte{1, 2}})
	add("ClassifyReturn", returns, err)
	instructions, err := a.Disassemble(ctx, &DisassembleRequest{})
	add("Disassemble", instructions, err)
	return answers
}

func TestCallsThatAreNotServedAreAnsweredByBase(t *testing.T) {
	checkLeaks(t)
	want := everyCall(WithBase(base{}, nil))
	if len(want) != 7 || want["Translate"] != true || want["Disassemble"] != true {
		t.Fatalf("Base: %v", want)
	}
	for what, description := range map[string]*Description{"described": testDescription(), "not described": nil} {
		server := &describedOnly{}
		arch := WithBase(dialServer(t, server), description)
		for range 3 {
			if diff := cmp.Diff(want, everyCall(arch)); diff != "" {
				t.Errorf("%s: %s", what, diff)
			}
		}
		counts := map[string]int{
			"OpenTarget": 1, "OpenObject": 1, "FrameRules": 1, "BindThreads": 1, "ClassifyReturn": 1, // the answers are Base's from then on
			"Translate": 3, "Disassemble": 3,
		}
		if diff := cmp.Diff(counts, server.calls); diff != "" {
			t.Errorf("%s: calls: %s", what, diff)
		}
	}
}

// TestRefusalOfOneRequestIsNotRemembered: a method of package sdk says whose answer it is.
func TestRefusalOfOneRequestIsNotRemembered(t *testing.T) {
	checkLeaks(t)
	calls := 0
	c := dial(t, &testArch{frameRules: func(_ context.Context, _ Engine, req *FrameRulesRequest) (*FrameRulesAnswer, error) {
		if calls++; calls == 1 {
			return nil, ErrNotImplemented
		}
		return &FrameRulesAnswer{Functions: []FrameRules{{Reason: "its own"}}}, nil
	}})
	arch, req := WithBase(c, nil), &FrameRulesRequest{Functions: make([]CodeRange, 1)}
	for i, want := range []string{"the architecture does not read code", "its own"} {
		a, err := arch.FrameRules(context.Background(), nil, req)
		if err != nil || len(a.Functions) != 1 || a.Functions[0].Reason != want {
			t.Errorf("call %d: %+v %v, expected %q", i, a, err, want)
		}
	}
}

func TestUnservedCallHasAReason(t *testing.T) {
	checkLeaks(t)
	_, err := dialServer(t, &describedOnly{}).Translate(context.Background(), nil, &TranslateRequest{})
	if want := "Translate: the architecture does not implement this call"; err == nil || err.Error() != want {
		t.Errorf("%v, expected %s", err, want)
	}
}
