// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"

	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// A lyingServer answers each call as it says.
type lyingServer struct {
	hostileServer
	answers func(*pb.SymbolizeQuestionsRequest, grpc.ServerStreamingServer[pb.Report]) error
}

// SymbolizeQuestions implements servicepb.UnwinddServer.
func (s *lyingServer) SymbolizeQuestions(r *pb.SymbolizeQuestionsRequest, st grpc.ServerStreamingServer[pb.Report]) error {
	return s.answers(r, st)
}

// askServer has the command ask a server, which an address is appended for.
func askServer(t *testing.T, server pb.UnwinddServer, args ...string) outcome {
	t.Helper()
	socket := filepath.Join(shortDir(t), "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	pb.RegisterUnwinddServer(g, server)
	go func() { _ = g.Serve(l) }()
	defer g.Stop()
	return runInto(t, append(slices.Clone(args), "--server", "unix:"+socket))
}

// recordingCommand has a server make a profile.
var recordingCommand = []string{"profile", "../../examples/profile/perf.data", "-o", "OUT"}

// TestOlderServersAreNamed has servers that know stacks alone, or not even those: the command says so, and writes
// nothing.
func TestOlderServersAreNamed(t *testing.T) {
	stacks := &hostileServer{walk: func(st grpc.BidiStreamingServer[pb.WalkRequest, pb.WalkResponse]) error {
		_ = st.Send(said("{\n \"version\": 1,\n \"target\": {}}\n"))
		return st.Send(reportEnd)
	}}
	for _, server := range []pb.UnwinddServer{stacks, pb.UnimplementedUnwinddServer{}} {
		for _, args := range [][]string{
			{"snapshot", serverCore, "-o", "OUT"}, {"compare", serverCore, mixed, "-o", "OUT"}, recordingCommand,
			append(slices.Clone(recordingCommand), "--format", "json"), {"symbolize", "--obj", filepath.Join(crashDir, "server"), "0x401100"},
		} {
			if w := askServer(t, server, args...); w.status != exitInput || !strings.Contains(w.said, "it is of an older release") || w.file != "" || w.printed != "" {
				t.Errorf("%v: status %d, %q, %q%q", args, w.status, w.said, w.file, w.printed)
			}
		}
	}
}

// TestHostileReports has servers answer with what no server writes: it is refused, or is plain text.
func TestHostileReports(t *testing.T) {
	answering := func(data string, end *pb.ReportEnd) *hostileServer {
		return &hostileServer{walk: func(st grpc.BidiStreamingServer[pb.WalkRequest, pb.WalkResponse]) error {
			_ = st.Send(said(data))
			return st.Send(&pb.WalkResponse{Part: &pb.WalkResponse_End{End: end}})
		}}
	}
	escapes := strings.NewReplacer("\n", "", "\t", "").Replace(strings.ToValidUTF8(poison, "")) // of lines
	for name, c := range map[string]struct {
		server pb.UnwinddServer
		args   []string
		status int
		words  string
	}{
		"problems of a snapshot":    {answering("PK", &pb.ReportEnd{Problems: []string{"no" + escapes}}), []string{"snapshot", serverCore, "-o", "OUT"}, exitDone, `no\x1b[31m`},
		"no part":                   {answering("garbage", &pb.ReportEnd{}), []string{"compare", serverCore, mixed}, exitInput, "no target could be read"},
		"the summary of a profile":  {answering("text\n", &pb.ReportEnd{Summary: []byte("it" + escapes)}), recordingCommand, exitDone, `it\x1b[31m`},
		"the text of a profile":     {answering("it"+escapes+"\n", &pb.ReportEnd{}), recordingCommand[:2], exitDone, `it\x1b[31m`},
		"sections that are not all": {answering("a 1\n", &pb.ReportEnd{Sections: []*pb.ReportSection{{Name: "../../x", Size: 1 << 62}, {Name: "y", Size: 1 << 63}}}), append(slices.Clone(recordingCommand), "--format", "folded"), exitDone, "OUT...-..-x"},
		"names with escapes": {&lyingServer{answers: func(_ *pb.SymbolizeQuestionsRequest, st grpc.ServerStreamingServer[pb.Report]) error {
			// An answer with a message: {4: TEXT}.
			text := "it" + escapes
			_ = st.Send(&pb.Report{Part: &pb.Report_Data{Data: append([]byte{0xa1, 0x04, 0x78, byte(len(text))}, text...)}})
			return st.Send(&pb.Report{Part: &pb.Report_End{End: &pb.ReportEnd{}}})
		}}, []string{"symbolize", "BUILDID:0102030405060708 0x1"}, exitDone, `it\x1b[31m`},
	} {
		w := askServer(t, c.server, c.args...)
		if w.status != c.status || !strings.Contains(w.printed+w.said, c.words) {
			t.Errorf("%s: status %d, %q%q, expected %d with %q", name, w.status, w.said, w.printed, c.status, c.words)
		}
		mustBePlain(t, name+": output", w.printed)
		mustBePlain(t, name+": errors", w.said)
	}
}

// TestHostileQuestionsAboutRecordings has a server ask the machine of a recording for other files than it lists.
func TestHostileQuestionsAboutRecordings(t *testing.T) {
	questions := []*pb.Question{
		{About: &pb.Question_Memory{Memory: &pb.MemoryQuestion{Size: 1, Most: 4096}}},
		{About: &pb.Question_File{File: &pb.FileQuestion{Kind: pb.FileQuestion_SECOND_FILE, Module: 1}}},
		{About: &pb.Question_File{File: &pb.FileQuestion{Module: 1 << 20}}},
		{About: &pb.Question_File{File: &pb.FileQuestion{Kind: pb.FileQuestion_COMPANION, Suffix: "/../../../../../../../../etc/passwd"}}},
		{About: &pb.Question_Debug{Debug: &pb.DebugQuestion{Module: 1 << 31}}},
	}
	answers := make(chan *pb.Answer, len(questions))
	w := askServer(t, &hostileServer{walk: asking(questions, answers)}, recordingCommand...)
	close(answers)
	n := 0
	for a := range answers {
		if n++; a.GetFailure() == "" {
			t.Errorf("question %d is answered: %.300v", a.GetNumber(), a)
		}
	}
	if n != len(questions) || w.status != exitDone {
		t.Errorf("%d answers, status %d: %s", n, w.status, w.said)
	}
}
