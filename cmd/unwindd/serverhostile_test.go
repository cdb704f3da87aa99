// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// A hostileServer answers walks as no server should.
type hostileServer struct {
	pb.UnimplementedUnwinddServer
	walk func(grpc.BidiStreamingServer[pb.WalkRequest, pb.WalkResponse]) error
}

// Walk implements servicepb.UnwinddServer: the target's head is received, and then walk goes on.
func (s *hostileServer) Walk(st grpc.BidiStreamingServer[pb.WalkRequest, pb.WalkResponse]) error {
	first, err := st.Recv()
	if err != nil {
		return err
	}
	for n := uint64(0); n < first.GetOptions().GetHeadSize(); {
		m, err := st.Recv()
		if err != nil {
			return err
		}
		n += uint64(len(m.GetHead()))
	}
	return s.walk(st)
}

// askHostile has the command ask a hostile server.
func askHostile(t *testing.T, walk func(grpc.BidiStreamingServer[pb.WalkRequest, pb.WalkResponse]) error, flags ...string) (stdout, stderr string, exit int) {
	t.Helper()
	socket := filepath.Join(shortDir(t), "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	pb.RegisterUnwinddServer(g, &hostileServer{walk: walk})
	go func() { _ = g.Serve(l) }()
	defer g.Stop()
	return unwindd(t, append([]string{"stack", "--server", "unix:" + socket, serverCore}, flags...)...)
}

func said(data string) *pb.WalkResponse {
	return &pb.WalkResponse{Part: &pb.WalkResponse_Data{Data: []byte(data)}}
}

var reportEnd = &pb.WalkResponse{Part: &pb.WalkResponse_End{End: &pb.ReportEnd{}}}

// asking is a server that asks questions, one after the other, passes the answers on, and ends.
func asking(questions []*pb.Question, answers chan<- *pb.Answer) func(grpc.BidiStreamingServer[pb.WalkRequest, pb.WalkResponse]) error {
	return func(st grpc.BidiStreamingServer[pb.WalkRequest, pb.WalkResponse]) error {
		for i, q := range questions {
			q.Number = uint64(i) + 1
			if err := st.Send(&pb.WalkResponse{Part: &pb.WalkResponse_Question{Question: q}}); err != nil {
				return err
			}
			m, err := st.Recv()
			if err != nil {
				return err
			}
			answers <- m.GetAnswer()
		}
		return st.Send(reportEnd)
	}
}

// TestHostileServers has servers write what a terminal would obey, end early, write lines without
// end, and fail in words of their own: the command prints plain text, and says what is wrong.
func TestHostileServers(t *testing.T) {
	for name, c := range map[string]struct {
		walk  func(grpc.BidiStreamingServer[pb.WalkRequest, pb.WalkResponse]) error
		exit  int
		words string // on standard output or standard error
	}{
		"escapes": {func(st grpc.BidiStreamingServer[pb.WalkRequest, pb.WalkResponse]) error {
			_ = st.Send(said("thread 1\x1b]0;title\x07\x9b31m" + strings.NewReplacer("\n", "", "\t", "").Replace(poison) + "\n"))
			return st.Send(reportEnd)
		}, exitDone, `\x1b]0;title\a`},
		"an early end": {func(st grpc.BidiStreamingServer[pb.WalkRequest, pb.WalkResponse]) error {
			return st.Send(said("thread 1\n"))
		}, exitInput, "unexpected EOF"},
		"a line without end": {func(st grpc.BidiStreamingServer[pb.WalkRequest, pb.WalkResponse]) error {
			for st.Send(said(strings.Repeat("x", 1<<20))) == nil { // until the command goes
			}
			return nil
		}, exitInput, "a line of more than"},
		"a failure of escapes": {func(grpc.BidiStreamingServer[pb.WalkRequest, pb.WalkResponse]) error {
			return status.Error(codes.FailedPrecondition, "no"+poison)
		}, exitInput, `no\x1b[31m\rFORGED`},
		"stacks that are none": {func(st grpc.BidiStreamingServer[pb.WalkRequest, pb.WalkResponse]) error {
			_ = st.Send(said("thread 1\n"))
			return st.Send(&pb.WalkResponse{Part: &pb.WalkResponse_End{End: &pb.ReportEnd{Unwalked: "none" + strings.ToValidUTF8(poison, "")}}})
		}, exitUnwalked, `none\x1b[31m`},
		"a message that is too large": {func(st grpc.BidiStreamingServer[pb.WalkRequest, pb.WalkResponse]) error {
			_ = st.Send(said(strings.Repeat("x", 64<<20)))
			return st.Send(reportEnd)
		}, exitInput, "larger than max"},
	} {
		stdout, stderr, exit := askHostile(t, c.walk)
		if exit != c.exit || !strings.Contains(stdout+stderr, c.words) {
			t.Errorf("%s: status %d: %.1000q, expected %d with %q", name, exit, stderr+stdout, c.exit, c.words)
		}
		mustBePlain(t, name+": output", stdout)
		mustBePlain(t, name+": errors", stderr)
	}
}

// TestHostileQuestions has a server ask for what a walk does not need: it is told nothing.
func TestHostileQuestions(t *testing.T) {
	questions := []*pb.Question{
		{About: &pb.Question_Memory{Memory: &pb.MemoryQuestion{Size: 1 << 31, Most: 1 << 31}}},
		{About: &pb.Question_File{File: &pb.FileQuestion{Module: 1 << 30}}},
		{About: &pb.Question_File{File: &pb.FileQuestion{Kind: pb.FileQuestion_COMPANION, Suffix: "/../../../../../../../../etc/passwd"}}},
		{About: &pb.Question_File{File: &pb.FileQuestion{Kind: pb.FileQuestion_SOURCE_MODULE}}},
		{},
	}
	answers := make(chan *pb.Answer, len(questions))
	_, stderr, exit := askHostile(t, asking(questions, answers))
	close(answers)
	n := 0
	for a := range answers {
		if n++; a.GetFailure() == "" {
			t.Errorf("question %d is answered: %.300v", a.GetNumber(), a)
		}
	}
	if n != len(questions) || exit != exitDone {
		t.Errorf("%d answers, status %d: %s", n, exit, stderr)
	}
}
