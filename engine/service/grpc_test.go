// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// dial connects to a server.
func (s *testServer) dial(t *testing.T) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient(strings.TrimPrefix(s.url, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// stack sends a target in parts, and gives the report and its end.
func stackByGRPC(t *testing.T, c pb.UnwinddClient, o *pb.StackOptions, target []byte) (string, *pb.ReportEnd, error) {
	t.Helper()
	st, err := c.Stack(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if o != nil {
		if err := st.Send(&pb.StackRequest{Part: &pb.StackRequest_Options{Options: o}}); err != nil {
			t.Fatal(err)
		}
	}
	for len(target) > 0 {
		n := min(100_000, len(target))
		if err := st.Send(&pb.StackRequest{Part: &pb.StackRequest_Data{Data: target[:n]}}); err != nil {
			break // the answer says why
		}
		target = target[n:]
	}
	if err := st.CloseSend(); err != nil {
		t.Fatal(err)
	}
	return readReport(st)
}

func readReport(st interface{ Recv() (*pb.Report, error) }) (string, *pb.ReportEnd, error) {
	var out bytes.Buffer
	var end *pb.ReportEnd
	for {
		part, err := st.Recv()
		if errors.Is(err, io.EOF) {
			return out.String(), end, nil
		}
		if err != nil {
			return out.String(), end, err
		}
		out.Write(part.GetData())
		if part.GetEnd() != nil {
			end = part.GetEnd()
		}
	}
}

// TestGRPCSaysWhatHTTPSays compares reports of both.
func TestGRPCSaysWhatHTTPSays(t *testing.T) {
	s := start(t, testOptions(t))
	c := pb.NewUnwinddClient(s.dial(t))
	id, _ := hex.DecodeString(crashID)

	put, err := c.PutObject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exe := file(t, crashExe)
	for _, m := range []*pb.PutObjectRequest{{Part: &pb.PutObjectRequest_BuildId{BuildId: id}}, {Part: &pb.PutObjectRequest_Data{Data: exe[:1000]}}, {Part: &pb.PutObjectRequest_Data{Data: exe[1000:]}}} {
		if err := put.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	if answer, err := put.CloseAndRecv(); err != nil || answer.WasThere {
		t.Fatal(answer, err)
	}
	found, err := c.FindObjects(t.Context(), &pb.FindObjectsRequest{BuildIds: [][]byte{id, {1, 2, 3}}})
	if err != nil || len(found.Objects) != 2 || !found.Objects[0].Executable || !found.Objects[0].Debuginfo || found.Objects[1].Executable {
		t.Errorf("%v %v", found, err)
	}

	core := file(t, crashCore)
	text, end, err := stackByGRPC(t, c, &pb.StackOptions{Format: "text", Name: "server.core"}, core)
	if err != nil || end.GetStacks() != 4 || end.GetFrames() != 26 || end.GetUnwalked() != "" {
		t.Errorf("%v %v", end, err)
	}
	if want := s.post(t, "/v1/stack?format=text&name=server.core", core); text != want {
		t.Errorf("%s\nexpected\n%s", text, want)
	}

	symbols, err := c.Symbolize(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, address := range []uint64{0x401100, 0x401911} {
		if err := symbols.Send(&pb.SymbolizeRequest{BuildId: id, Addresses: []uint64{address, 1}}); err != nil {
			t.Fatal(err)
		}
		answer, err := symbols.Recv()
		if err != nil || len(answer.Addresses) != 2 || len(answer.Addresses[1].Frames) != 0 {
			t.Fatalf("%v %v", answer, err)
		}
		if got, want := answer.Addresses[0].Frames[0].Function, []string{"content_length", "read_body"}[i]; got != want {
			t.Errorf("%s, expected %s", got, want)
		}
	}
	if err := symbols.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := symbols.Recv(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// TestProfilesAndSnapshotsByGRPC has a recording and a core answered of.
func TestProfilesAndSnapshotsByGRPC(t *testing.T) {
	s := start(t, testOptions(t))
	c := pb.NewUnwinddClient(s.dial(t))
	profile, err := c.Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = profile.Send(&pb.ProfileRequest{Part: &pb.ProfileRequest_Options{Options: &pb.ProfileOptions{Format: "text"}}})
	_ = profile.Send(&pb.ProfileRequest{Part: &pb.ProfileRequest_Data{Data: file(t, wordsData)}})
	_ = profile.CloseSend() // Recv says what went wrong
	if text, end, err := readReport(profile); err != nil || end == nil || !strings.Contains(text, "83 samples") {
		t.Errorf("%v %v %s", err, end, text)
	}
	snapshot, err := c.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = snapshot.Send(&pb.SnapshotRequest{Part: &pb.SnapshotRequest_Options{Options: &pb.SnapshotOptions{}}})
	_ = snapshot.Send(&pb.SnapshotRequest{Part: &pb.SnapshotRequest_Data{Data: file(t, crashCore)}})
	_ = snapshot.CloseSend() // likewise
	if text, end, err := readReport(snapshot); err != nil || end.GetStacks() != 4 || !strings.HasPrefix(text, "PK") {
		t.Errorf("%v %v %d bytes", err, end, len(text))
	}
}

// TestStatuses has calls that fail, each with its status.
func TestStatuses(t *testing.T) {
	o := testOptions(t)
	o.Body = 1 << 20
	s := start(t, o)
	conn := s.dial(t)
	c := pb.NewUnwinddClient(conn)
	for _, x := range []struct {
		options *pb.StackOptions
		target  string
		code    codes.Code
		words   string
	}{
		{&pb.StackOptions{}, "no target", codes.FailedPrecondition, "not a target"},
		{&pb.StackOptions{}, "", codes.InvalidArgument, "no data"},
		{&pb.StackOptions{Format: "xml"}, "x", codes.InvalidArgument, "--format xml"},
		{nil, "x", codes.InvalidArgument, "the first message has no options"},
		{&pb.StackOptions{}, strings.Repeat("x", 1<<20+1), codes.ResourceExhausted, "more than 1048576 bytes"},
	} {
		_, _, err := stackByGRPC(t, c, x.options, []byte(x.target))
		if got := status.Convert(err); got.Code() != x.code || !strings.Contains(got.Message(), x.words) {
			t.Errorf("%v: expected %v with %q", err, x.code, x.words)
		}
	}
	tokens, err := ReadTokens(strings.NewReader("alice 0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	s.SetTokens(tokens)
	if _, err := c.FindObjects(t.Context(), &pb.FindObjectsRequest{}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("%v", err)
	}
	known := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer 0123456789abcdef")
	if _, err := c.FindObjects(known, &pb.FindObjectsRequest{}); err != nil {
		t.Error(err)
	}
	if answer, err := grpc_health_v1.NewHealthClient(conn).Check(known, &grpc_health_v1.HealthCheckRequest{}); err != nil || answer.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Error(answer, err)
	}
	listed, err := grpc_reflection_v1.NewServerReflectionClient(conn).ServerReflectionInfo(known)
	if err != nil {
		t.Fatal(err)
	}
	_ = listed.Send(&grpc_reflection_v1.ServerReflectionRequest{MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{}})
	if answer, err := listed.Recv(); err != nil || !strings.Contains(answer.String(), "unwindd.v1.Unwindd") {
		t.Error(answer, err)
	}
	_ = listed.CloseSend()
}
