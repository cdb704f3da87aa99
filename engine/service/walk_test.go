// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/service/internal/remote"
	"github.com/unwindd/unwindd/engine/service/job"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/subject"
)

// openCrash opens the core of the tests, here.
func openCrash(t *testing.T, exe string) *engine.Target {
	t.Helper()
	e, err := engine.New(engine.Options{Plugins: inProcess(), Exe: exe})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	own, err := e.Open(crashCore)
	if err != nil {
		t.Fatal(err)
	}
	return own
}

// A walker is a call of Walk that a test makes by hand.
type walker struct {
	grpc.BidiStreamingClient[pb.WalkRequest, pb.WalkResponse]
	t *testing.T
}

// begin sends options and a head.
func (s *testServer) walk(t *testing.T, o *pb.WalkOptions, head []byte) *walker {
	t.Helper()
	st, err := pb.NewUnwinddClient(s.dial(t)).Walk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := &walker{st, t}
	if o != nil {
		w.send(&pb.WalkRequest{Part: &pb.WalkRequest_Options{Options: o}})
	}
	if len(head) > 0 {
		w.send(&pb.WalkRequest{Part: &pb.WalkRequest_Head{Head: head}})
	}
	return w
}

func (w *walker) send(m *pb.WalkRequest) {
	w.t.Helper()
	_ = w.Send(m) // where the call has ended, receiving says why
}

// wantStatus receives until the call ends, by a status whose message has words. answer, where
// it is not nil, is told each question.
func (w *walker) wantStatus(code codes.Code, words string, answer func(q *pb.Question)) {
	w.t.Helper()
	for {
		m, err := w.Recv()
		if err != nil {
			if s := status.Convert(err); s.Code() != code || !strings.Contains(s.Message(), words) {
				w.t.Errorf("%v, expected %v with %q", err, code, words)
			}
			return
		}
		if m.GetEnd() != nil {
			w.t.Errorf("it ends well, expected %v with %q", code, words)
			return
		}
		if q := m.GetQuestion(); q != nil && answer != nil {
			answer(q)
		}
	}
}

func headOf(t *testing.T, own *engine.Target) (*pb.WalkOptions, []byte) {
	t.Helper()
	head, err := remote.HeadOf(own, own.Labels(nil)).Encode()
	if err != nil {
		t.Fatal(err)
	}
	return &pb.WalkOptions{HeadSize: uint64(len(head))}, head
}

// TestWalkRefuses has callers that are wrong, or hostile: each ends its own call, and the
// next one is answered.
func TestWalkRefuses(t *testing.T) {
	options := testOptions(t)
	options.Idle, options.Body = 300*time.Millisecond, 1<<20
	s := start(t, options)
	own := openCrash(t, crashExe)
	good, head := headOf(t, own)
	reply := func(w *walker, about func(q *pb.Question) *pb.Answer) func(q *pb.Question) {
		return func(q *pb.Question) {
			if a := about(q); a != nil {
				w.send(&pb.WalkRequest{Part: &pb.WalkRequest_Answer{Answer: a}})
			}
		}
	}

	s.walk(t, nil, head).wantStatus(codes.InvalidArgument, "no options", nil)
	s.walk(t, &pb.WalkOptions{}, nil).wantStatus(codes.InvalidArgument, "a head of 0 bytes", nil)
	s.walk(t, &pb.WalkOptions{HeadSize: 1 << 60}, nil).wantStatus(codes.InvalidArgument, "expected at most 1048576", nil)
	s.walk(t, &pb.WalkOptions{HeadSize: 3}, head).wantStatus(codes.InvalidArgument, "the head of 3 bytes", nil)
	s.walk(t, good, nil).wantStatus(codes.DeadlineExceeded, "nothing came", nil)
	s.walk(t, &pb.WalkOptions{HeadSize: 5}, []byte("hello")).wantStatus(codes.FailedPrecondition, "not the head of a target", nil)
	s.walk(t, &pb.WalkOptions{HeadSize: 5, Stack: &pb.StackOptions{Format: "xml"}}, nil).wantStatus(codes.InvalidArgument, "--format xml", nil)
	s.walk(t, good, head).wantStatus(codes.DeadlineExceeded, "nothing came", nil) // it answers nothing

	w := s.walk(t, good, head)
	w.wantStatus(codes.InvalidArgument, "not open", reply(w, func(q *pb.Question) *pb.Answer { return &pb.Answer{Number: q.Number + 1000} }))
	w = s.walk(t, good, head)
	w.wantStatus(codes.FailedPrecondition, "it is mine", reply(w, func(q *pb.Question) *pb.Answer {
		return &pb.Answer{Number: q.Number, About: &pb.Answer_Failure{Failure: "it is mine"}}
	}))
	w = s.walk(t, good, head)
	w.wantStatus(codes.FailedPrecondition, "without content", reply(w, func(q *pb.Question) *pb.Answer { return &pb.Answer{Number: q.Number} }))
	w = s.walk(t, good, head)
	w.wantStatus(codes.ResourceExhausted, "1048576 bytes", func(q *pb.Question) {
		for range 40 {
			w.send(&pb.WalkRequest{Part: &pb.WalkRequest_Answer{Answer: &pb.Answer{Number: q.Number, About: &pb.Answer_File{File: &pb.FileAnswer{Data: make([]byte, 50<<10)}}}}})
		}
	})
	w = s.walk(t, good, head)
	w.wantStatus(codes.FailedPrecondition, "expected", reply(w, func(q *pb.Question) *pb.Answer { // another file
		return &pb.Answer{Number: q.Number, About: &pb.Answer_File{File: &pb.FileAnswer{Data: file(t, examples+"profile/words"), Ended: true}}}
	}))
	w = s.walk(t, good, head)
	w.send(&pb.WalkRequest{Part: &pb.WalkRequest_Head{Head: head}})
	w.wantStatus(codes.InvalidArgument, "expected an answer", nil)

	if s.kept("", buildID(t)).Executable {
		t.Error("a file is kept that nobody sent")
	}
	if list, _ := filepath.Glob(filepath.Join(options.State, "objects", "part-*")); len(list) > 0 {
		t.Errorf("it leaves %v", list)
	}
	var out bytes.Buffer
	s.clientWalk(t, own, &out)
	if !strings.Contains(out.String(), "read_body.cold") {
		t.Error(out.String())
	}
}

func buildID(t *testing.T) []byte {
	t.Helper()
	id, err := hex.DecodeString(crashID)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// remote is a client as a command has it.
func (s *testServer) remote(t *testing.T) *Client {
	t.Helper()
	c, err := NewClient(ClientOptions{Address: strings.TrimPrefix(s.url, "http://")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// clientWalk walks by the client.
func (s *testServer) clientWalk(t *testing.T, own *engine.Target, out *bytes.Buffer) *Client {
	t.Helper()
	c, j := s.remote(t), job.NewStack()
	j.Format = "json"
	if _, err := c.Walk(t.Context(), own, &j, job.WriteOptions{}, out); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestWalkKeepsFiles walks twice: the file of the executable is sent once, and others have
// it then.
func TestWalkKeepsFiles(t *testing.T) {
	s := start(t, testOptions(t))
	own := openCrash(t, crashExe)
	var first, second bytes.Buffer
	one := s.clientWalk(t, own, &first).Sent()
	until(t, "that the file is kept", func() bool { return s.kept("", buildID(t)).Executable })
	two := s.clientWalk(t, own, &second).Sent()
	exe, err := os.Stat(crashExe)
	if err != nil {
		t.Fatal(err)
	}
	if first.String() != second.String() || one-two < exe.Size() {
		t.Errorf("%d and then %d bytes were sent of a file of %d", one, two, exe.Size())
	}
	if got := s.post(t, "/v1/stack?format=text", file(t, crashCore)); !strings.Contains(got, "content_length") {
		t.Errorf("others do not have it: %s", got)
	}
}

// TestWalkTakesFilesOfTheServer walks a target whose files are at the server alone.
func TestWalkTakesFilesOfTheServer(t *testing.T) {
	s := start(t, testOptions(t))
	s.putCrash(t)
	e, err := engine.New(engine.Options{Plugins: inProcess()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	path := filepath.Join(t.TempDir(), "core") // no file is beside it
	if err := os.WriteFile(path, file(t, crashCore), 0o600); err != nil {
		t.Fatal(err)
	}
	own, err := e.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if own.Process().Modules()[0].Object != nil {
		t.Fatal("its executable is here")
	}
	var out, want bytes.Buffer
	s.clientWalk(t, own, &out)
	s.clientWalk(t, openCrash(t, crashExe), &want)
	if got := frameLines(out.String()); got == "" || got != frameLines(want.String()) {
		t.Errorf("%s\nexpected the frames of\n%s", out.String(), want.String())
	}
}

// frameLines are the lines of functions of a report in JSON.
func frameLines(text string) string {
	var list []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, `"function"`) {
			list = append(list, line)
		}
	}
	return strings.Join(list, "")
}

// TestWalkEndsWithItsCaller has a caller go away in the middle: the worker is free again.
func TestWalkEndsWithItsCaller(t *testing.T) {
	options := testOptions(t)
	options.Workers = 1
	s := start(t, options)
	own := openCrash(t, crashExe)
	good, head := headOf(t, own)
	for range 3 {
		w := s.walk(t, good, head)
		if m, err := w.Recv(); err != nil || m.GetQuestion() == nil {
			t.Fatalf("%v %v", m, err)
		}
		if err := w.CloseSend(); err != nil {
			t.Fatal(err)
		}
		w.wantStatus(codes.Canceled, "", nil)
	}
	var out bytes.Buffer
	s.clientWalk(t, own, &out)
	if own.Info().Kind != trace.ELFCore || !strings.Contains(out.String(), `"kind": "elf-core"`) {
		t.Error(out.String())
	}
}

// walkedHere is what a job writes of a target that no server walks.
func walkedHere(t *testing.T, e *engine.Engine, j *job.Stack, path string) (string, error) {
	t.Helper()
	own, err := e.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	stacks, err := j.Of(t.Context(), own)
	if err != nil {
		return "", err
	}
	defer stacks.Close()
	var out bytes.Buffer
	err = stacks.WriteReport(t.Context(), &out, job.WriteOptions{})
	return out.String(), err
}

// walkedThere is what a server writes of it.
func walkedThere(t *testing.T, c *Client, e *engine.Engine, j *job.Stack, path string) (string, error) {
	t.Helper()
	own, err := e.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	var out bytes.Buffer
	_, err = c.Walk(t.Context(), own, j, job.WriteOptions{}, &out)
	return out.String(), err
}

// TestWalksAreThoseOfThisProcess has a server walk targets of every form, in every form of
// output: what it writes is what this process does.
func TestWalksAreThoseOfThisProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("walks much")
	}
	t.Parallel()
	c := start(t, testOptions(t)).remote(t)
	for _, path := range []string{crashCore, examples + "crash/server.dmp", mixed, examples + "gen/gen.snapshot", examples + "rocm-core/crash.core"} {
		for what, set := range map[string]func(j *job.Stack){
			"plain":             func(*job.Stack) {},
			"locals, registers": func(j *job.Stack) { j.Locals, j.Registers = true, true },
			"code":              func(j *job.Stack) { j.Format, j.Locals, j.Registers, j.Code = "json", true, true, 3 },
			"raw":               func(j *job.Stack) { j.Format, j.Locals, j.Raw, j.Depth = "json", true, true, 9 },
			"lanes":             func(j *job.Stack) { j.Lanes, j.NoFold, j.Locals = true, true, true },
			"a lane":            func(j *job.Stack) { j.Lane = new(uint32(1)) },
			"a page":            func(j *job.Stack) { j.Format, j.Locals, j.Code = "html", true, 5 },
			"breakpad":          func(j *job.Stack) { j.Format = "breakpad" },
			"signature":         func(j *job.Stack) { j.Signature = true },
			"signature as JSON": func(j *job.Stack) { j.Signature, j.Format = true, "json" },
			"crashed":           func(j *job.Stack) { j.Crashed, j.Top = true, 2 },
			"a thread":          func(j *job.Stack) { j.Thread = "w1" },
			"no thread":         func(j *job.Stack) { j.Thread = "nobody" },
			"few frames":        func(j *job.Stack) { j.MaxFrames = new(uint32(3)) },
			"no inlined frames": func(j *job.Stack) { j.NoInlines = true },
			"goroutines":        func(j *job.Stack) { j.Goroutines = new(true) },
			"a variable":        func(j *job.Stack) { j.Globals = []string{"total"} },
		} {
			sameWalk(t, c, path, what, set)
		}
	}
}

// TestWalksOfGoroutinesAreThoseOfThisProcess has a server walk the goroutines of a core.
func TestWalksOfGoroutinesAreThoseOfThisProcess(t *testing.T) {
	core, _ := subject.Crash(t, subject.BuildGoroutines(t, "goroutines", "local"), "panic", "10")
	c := start(t, testOptions(t)).remote(t)
	sameWalk(t, c, core, "JSON", func(j *job.Stack) { j.Format, j.Goroutines = "json", new(true) })
	sameWalk(t, c, core, "text", func(j *job.Stack) {
		j.Goroutines, j.Locals, j.Source = new(true), true, new(uint32(0)) // a server lacks the program's source
	})
}

// sameWalk has a server and this process walk a target.
func sameWalk(t *testing.T, c *Client, path, what string, set func(*job.Stack)) {
	t.Helper()
	j := job.NewStack()
	set(&j)
	if err := j.Check(); err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(j.Engine(engine.Options{Plugins: inProcess()}))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	want, failure := walkedHere(t, e, &j, path)
	got, err := walkedThere(t, c, e, &j, path)
	if got != want || (err == nil) != (failure == nil) || err != nil && !strings.HasSuffix(err.Error(), failure.Error()) {
		t.Errorf("%s, %s: %v, %v\n%s\nexpected\n%s", path, what, err, failure, got, want)
	}
}
