// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// fuzzedServer is a server whose callers have little time.
func fuzzedServer(f *testing.F) *testServer {
	f.Helper()
	o := testOptions(f)
	o.Workers, o.Idle, o.Time, o.Body, o.Spool = 1, 500*time.Millisecond, 5*time.Second, 1<<20, 16<<20
	return start(f, o)
}

// mustStand checks that nothing is left of requests, and that none made the server fail.
func (s *testServer) mustStand(t *testing.T) {
	t.Helper()
	for late := time.Now().Add(5 * time.Second); s.budget.inUse() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("%d bytes of the spool are still taken", s.budget.inUse())
		}
	}
	if log := s.log.String(); strings.Contains(log, "panic") {
		t.Fatalf("the log has a panic:\n%s", log)
	}
}

// FuzzHTTP sends bytes to the port of a server. What comes back has to be answers by HTTP, of which
// none says that the server failed.
func FuzzHTTP(f *testing.F) {
	s := fuzzedServer(f)
	address := strings.TrimPrefix(s.url, "http://")
	say := func(method, path, more, body string) {
		f.Add([]byte(fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n%s", method, path, more, body)))
	}
	for _, path := range []string{"/", "/healthz", "/metrics", "/v1/objects/" + crashID, "/reports/x", "/v1/problems/busy", "/buildid/" + crashID + "/debuginfo"} {
		say("GET", path, "", "")
	}
	for _, path := range []string{"/v1/stack?format=text&crashed", "/v1/profile", "/v1/snapshot?files", "/v1/eval?arch=x86_64&expr=lit0", "/v1/symbolize?build-id=" + crashID, "/v1/objects?name=x", "/v1/reports/stack", "/v1/otlp/symbolize", "/v1/pprof/symbolize"} {
		say("POST", path, "Content-Length: 5\r\n", "\x7fELF\x02")
		say("POST", path, "Transfer-Encoding: chunked\r\n", "5\r\n\x7fELF\x02\r\n0\r\n\r\n")
	}
	say("PUT", "/v1/objects/"+crashID, "Content-Length: 4\r\n", "\x7fELF")
	say("POST", "/v1/symbolize?build-id="+crashID, "Content-Length: 28\r\n", `{"addresses":["0x00401941"]}`)
	say("POST", "/v1/stack", "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\nGET / HTTP/1.1\r\n\r\n")
	say("DELETE", "/reports/x", "Origin: http://evil.example\r\n", "")
	f.Add([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = c.Write(b) // it may have closed
		_ = c.(*net.TCPConn).CloseWrite()
		answer, err := io.ReadAll(c)
		if os.IsTimeout(err) {
			t.Fatalf("no end after 10 s: %q", answer)
		}
		checkAnswers(t, answer)
		s.mustStand(t)
	})
}

// checkAnswers reads answers by HTTP/1; frames of HTTP/2 are others' to read.
func checkAnswers(t *testing.T, b []byte) {
	t.Helper()
	for r := bufio.NewReader(bytes.NewReader(b)); ; {
		if head, _ := r.Peek(5); string(head) != "HTTP/" {
			return
		}
		answer, err := http.ReadResponse(r, nil)
		if err != nil {
			return // it closed in the middle
		}
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode == http.StatusInternalServerError {
			t.Fatalf("%s: %s", answer.Status, text)
		}
	}
}

// rawCodec sends messages as they are.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (rawCodec) Unmarshal(b []byte, v any) error {
	*v.(*[]byte) = bytes.Clone(b)
	return nil
}

// FuzzCalls sends messages to each method: the first byte chooses it, and each message has its
// length before it, in a byte.
func FuzzCalls(f *testing.F) {
	s := fuzzedServer(f)
	conn, err := grpc.NewClient("passthrough:///"+strings.TrimPrefix(s.url, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"), grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{})))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = conn.Close() })
	methods := pb.File_unwindd_proto.Services().Get(0).Methods()
	paths := []string{"/grpc.health.v1.Health/Check", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"}
	for i := range methods.Len() {
		paths = append(paths, "/unwindd.v1.Unwindd/"+string(methods.Get(i).Name()))
	}
	id, elf := []byte{1, 9, 0x2e, 0xd6}, []byte("\x7fELF\x02\x01\x01")
	messages := [][]proto.Message{
		{&pb.StackRequest{Part: &pb.StackRequest_Options{Options: &pb.StackOptions{Format: "text"}}}, &pb.StackRequest{Part: &pb.StackRequest_Data{Data: elf}}},
		{&pb.WalkRequest{Part: &pb.WalkRequest_Options{Options: &pb.WalkOptions{HeadSize: 4}}}, &pb.WalkRequest{Part: &pb.WalkRequest_Head{Head: []byte{0xa0, 0xa0, 0xa0, 0xa0}}}, &pb.WalkRequest{Part: &pb.WalkRequest_Answer{Answer: &pb.Answer{Number: 1}}}},
		{&pb.SymbolizeRequest{BuildId: id, Addresses: []uint64{1, 1 << 63}}},
		{&pb.PutObjectRequest{Part: &pb.PutObjectRequest_BuildId{BuildId: id}}, &pb.PutObjectRequest{Part: &pb.PutObjectRequest_Data{Data: elf}}},
		{&pb.FindObjectsRequest{BuildIds: [][]byte{id, nil}}},
		{&pb.EvaluateRequest{Part: &pb.EvaluateRequest_Options{Options: &pb.EvaluateOptions{Arch: "x86_64"}}}},
		nil,
	}
	for i := range paths {
		for _, list := range messages {
			b := []byte{byte(i)}
			for _, m := range list {
				text, err := proto.Marshal(m)
				if err != nil {
					f.Fatal(err)
				}
				b = append(append(b, byte(len(text))), text...)
			}
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		path := paths[int(b[0])%len(paths)]
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err := callWith(ctx, conn, path, b[1:])
		switch st := status.Convert(err); st.Code() {
		case codes.Internal, codes.Unknown:
			// What is no message of the protocol is answered by the library.
			if !strings.Contains(st.Message(), "unmarshal") && !strings.Contains(st.Message(), "cardinality violation") {
				t.Fatalf("%s: %v", path, err)
			}
		case codes.DeadlineExceeded:
			if ctx.Err() != nil {
				t.Fatalf("%s: no end after 10 s", path)
			}
		}
		s.mustStand(t)
	})
}

// callWith sends messages, and reads answers until their end.
func callWith(ctx context.Context, conn *grpc.ClientConn, path string, messages []byte) error {
	call, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, path)
	if err != nil {
		return err
	}
	for len(messages) > 0 {
		n := min(int(messages[0]), len(messages)-1)
		m := messages[1 : 1+n]
		messages = messages[1+n:]
		if call.SendMsg(&m) != nil {
			break // the answer says why
		}
	}
	_ = call.CloseSend()
	for {
		var answer []byte
		if err := call.RecvMsg(&answer); err == io.EOF { //nolint:errorlint // as the interface says
			return nil
		} else if err != nil {
			return err
		}
	}
}
