// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"

	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// This file has requests of strangers: what is no HTTP, or no question that anybody has.

// raw sends bytes to the server, and returns the status of the answer; 0: there was none.
func (s *testServer) raw(t *testing.T, text string) (status int, body string) {
	t.Helper()
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(c, text) }() // it may be refused before its end
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	b, _ := io.ReadAll(answer.Body) // the connection may be reset, where not all was read
	return answer.StatusCode, string(b)
}

// TestRequestsOfStrangers has each refused by itself, as the caller's mistake, and a good request
// answered after all.
func TestRequestsOfStrangers(t *testing.T) {
	o := testOptions(t)
	o.Idle = 500 * time.Millisecond
	s := start(t, o)
	const stack, chunked = "POST /v1/stack HTTP/1.1\r\nHost: localhost\r\n", "Transfer-Encoding: chunked\r\n\r\n"
	for name, c := range map[string]struct {
		text   string
		status int
		words  string
	}{
		"two lengths":             {stack + "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde", 400, ""},
		"a negative length":       {stack + "Content-Length: -4\r\n\r\n", 400, ""},
		"a length and chunks":     {stack + "Content-Length: 4\r\n" + chunked + "0\r\n\r\n", 400, "no data"},
		"an unknown encoding":     {stack + "Transfer-Encoding: xchunked\r\n\r\n", 501, ""},
		"a chunk without end":     {stack + chunked + "ffffffffffffffffff\r\nx", 400, "the body cannot be read"},
		"a chunk with extensions": {stack + chunked + "1;" + strings.Repeat("a", 100_000) + "\r\nx", 400, "the body cannot be read"},
		"an object of bad chunks": {"PUT /v1/objects/0102 HTTP/1.1\r\nHost: localhost\r\n" + chunked + "zz\r\nx", 400, "the body cannot be read"},
		"a batch of bad chunks":   {"POST /v1/symbolize?build-id=0102 HTTP/1.1\r\nHost: localhost\r\n" + chunked + "zz\r\nx", 400, "the body cannot be read"},
		"a length of all bytes":   {stack + "Content-Length: 9223372036854775807\r\n\r\nx", 413, "more than"},
		"half a body":             {stack + "Content-Length: 10\r\n\r\nx", 408, "nothing came"},
		"headers without end":     {stack + "X: " + strings.Repeat("a", 200_000), 431, ""},
		"no host":                 {"GET /healthz HTTP/1.1\r\n\r\n", 400, ""},
		"two hosts":               {"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n", 400, ""},
		"a host in the target":    {"GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 403, "evil.example"},
		"a name that is bound":    {"GET /healthz HTTP/1.1\r\nHost: rebound.example:80\r\n\r\n", 403, "rebound.example"},
		"any address":             {"GET /healthz HTTP/1.1\r\nHost: 0.0.0.0\r\n\r\n", 403, "0.0.0.0"},
		"a proxy":                 {"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403, "evil.example"},
		"a method that is none":   {"FLY /v1/stack HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, "FLY"},
		"control characters":      {"\x01 /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, ""},
	} {
		if got, body := s.raw(t, c.text); got != c.status || !strings.Contains(body, c.words) {
			t.Errorf("%s: %d %.300q, expected %d with %q", name, got, body, c.status, c.words)
		}
	}
	s.post(t, "/v1/stack", file(t, mixed))
	if n := s.budget.inUse(); n != 0 {
		t.Errorf("%d bytes of the budget are used when nothing is under way", n)
	}
}

// TestQueriesOfStrangers has parameters of no meaning, and paths that leave their folder.
func TestQueriesOfStrangers(t *testing.T) {
	s := start(t, testOptions(t))
	for _, c := range []struct {
		method, path, body string
		kind               *problemKind
		words              string
	}{
		{"POST", "/v1/stack?crashed;top=1", "x", badRequest, "the parameters cannot be read"},
		{"POST", "/v1/stack?%zz=1", "x", badRequest, "the parameters cannot be read"},
		{"POST", "/v1/symbolize?build-id=0102&%zz", "{}", badRequest, "the parameters cannot be read"},
		{"POST", "/v1/stack?" + strings.Repeat("globals=a&", 5000) + "fly", "x", badRequest, `no parameter "fly"`},
		{"POST", "/v1/stack?top=99999999999", "x", badRequest, "expected a number from 0 to 4294967295"},
		{"POST", "/v1/stack?max-frames=1000000000000000000", "x", badRequest, "max-frames"},
		{"POST", "/v1/stack?depth=1000000000", "x", badRequest, "--depth 1000000000: expected 1 to"},
		{"POST", "/v1/stack?elements=1000000000", "x", badRequest, "--elements 1000000000: expected 1 to"},
		{"POST", "/v1/stack?code=4294967295", "x", badRequest, "--code"},
		{"POST", "/v1/stack?source=4294967295", "x", badRequest, "--source"},
		{"POST", "/v1/stack?lane=4294967295", "x", badRequest, "--lane"},
		{"POST", "/v1/stack?format=../", "x", badRequest, "--format ../"},
		{"POST", "/v1/stack?name=../../etc/passwd", "x", unreadable, "passwd: not a core, minidump or snapshot"},
		{"POST", "/v1/symbolize?build-id=0102", `{"addresses":[-1]}`, badRequest, "expected a number"},
		{"POST", "/v1/symbolize?build-id=0102", `{"addresses":["0x1ffffffffffffffff"]}`, badRequest, "expected a number"},
		{"POST", "/v1/symbolize?build-id=0102", `{"addresses":[1e3]}`, badRequest, "expected a number"},
		{"POST", "/v1/symbolize?build-id=0102", `{"addresses":` + strings.Repeat("[", 1<<20), badRequest, "exceeded max depth"},
		{"POST", "/v1/symbolize?build-id=0102", `{"addresses":[1` + strings.Repeat(",1", maxAddresses) + `]}`, badRequest, "1048577 addresses, expected 1 to 1048576"},
		{"POST", "/v1/symbolize?build-id=0102", `{"addresses":[` + strings.Repeat(" ", maxBatch) + `]}`, tooMuch, ""},
		{"GET", "/v1/objects/%2e%2e%2f%2e%2e", "", badRequest, "expected 2 to 64 bytes"},
		{"PUT", "/v1/objects/%2e%2e%2f%2e%2e", "x", badRequest, "expected 2 to 64 bytes"},
		{"GET", "/v1/objects/" + strings.Repeat("ab", 20_000), "", badRequest, "expected 2 to 64 bytes"},
		{"GET", "/reports/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "", notFound, ""},
		{"GET", "/reports/%00", "", notFound, ""},
		{"DELETE", "/reports/%2e%2e", "", notFound, ""},
		{"GET", "/reports/" + strings.Repeat("A", 5000), "", notFound, ""},
		{"GET", "/etc/passwd", "", notFound, "there is nothing at GET /etc/passwd"},
	} {
		answer, text := s.ask(t, c.method, c.path, strings.NewReader(c.body))
		wantProblem(t, answer, text, c.kind, c.words)
	}
	s.post(t, "/v1/stack", file(t, mixed))
}

// TestPagesOfOtherOrigins has requests that a browser sends without saying of which site they are.
func TestPagesOfOtherOrigins(t *testing.T) {
	s := start(t, testOptions(t))
	own := strings.TrimPrefix(s.url, "http://")
	for origin, isLetIn := range map[string]bool{
		"http://evil.example": false, "null": false, "http://" + own + ".evil.example": false, "http://localhost:1": false, "http://" + own: true,
	} {
		answer, text := s.ask(t, "POST", "/v1/stack", bytes.NewReader(file(t, mixed)), "Origin", origin)
		if isLetIn != (answer.StatusCode == http.StatusOK) {
			t.Errorf("%s: %s", origin, answer.Status)
		}
		if !isLetIn {
			wantProblem(t, answer, text, forbidden, "a page of another site")
		}
	}
}

// TestPutsHaveABudget refuses objects that all requests together have no room for.
func TestPutsHaveABudget(t *testing.T) {
	o := testOptions(t)
	o.Spool = 4 << 20
	s := start(t, o)
	others := s.budget.of("another")
	if err := others.take(2 << 20); err != nil {
		t.Fatal(err)
	}
	answer, text := s.ask(t, "PUT", "/v1/objects/0102", struct{ io.Reader }{strings.NewReader(strings.Repeat("x", 2<<20))})
	wantProblem(t, answer, text, overShare, "has its share of all bytes on disk")
	others.give(2 << 20)
	if n := s.budget.inUse(); n != 0 {
		t.Errorf("%d bytes of the budget are used when nothing is under way", n)
	}
	s.putCrash(t)
}

// TestLargeBatches has as many addresses symbolized as a batch may have: the answer is sent
// while it comes. By gRPC an answer is one message, and is bounded.
func TestLargeBatches(t *testing.T) {
	s := start(t, testOptions(t))
	s.putCrash(t)
	const n = 100_000
	one := s.post(t, "/v1/symbolize?build-id="+crashID, []byte(`{"addresses":["0x401100"]}`))
	line := strings.TrimSuffix(strings.TrimPrefix(one, "["), "]\n")
	want := "[" + strings.Repeat(line+",\n", n-1) + line + "]\n"
	got := s.post(t, "/v1/symbolize?build-id="+crashID, []byte(`{"addresses":[`+strings.Repeat(`"0x401100",`, n-1)+`4198656]}`))
	if got != want {
		t.Errorf("%d bytes, expected %d", len(got), len(want))
	}
	stream, err := pb.NewUnwinddClient(s.dial(t)).Symbolize(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	addresses := make([]uint64, maxAddresses)
	for i := range addresses {
		addresses[i] = 0x401100
	}
	if err := stream.Send(&pb.SymbolizeRequest{BuildId: buildID(t), Addresses: addresses}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "ask for fewer addresses") {
		t.Errorf("%v, expected that the answer is too long", err)
	}
}

// TestCallsOfStrangers has messages that are too large, as they come and as they were compressed,
// and more build IDs than anybody has.
func TestCallsOfStrangers(t *testing.T) {
	s := start(t, testOptions(t))
	c := pb.NewUnwinddClient(s.dial(t))
	large := &pb.StackRequest{Part: &pb.StackRequest_Data{Data: make([]byte, maxMessage+1)}}
	for _, o := range [][]grpc.CallOption{nil, {grpc.UseCompressor(gzip.Name)}} {
		st, err := c.Stack(t.Context(), o...)
		if err != nil {
			t.Fatal(err)
		}
		_ = st.Send(large) // Recv says what went wrong
		if _, err := st.Recv(); status.Code(err) == codes.OK || status.Code(err) == codes.Internal {
			t.Errorf("%v: a message of %d bytes: %v", o, maxMessage+1, err)
		}
	}
	ids := make([][]byte, maxFound+1)
	for i := range ids {
		ids[i] = fmt.Append(nil, i)
	}
	if _, err := c.FindObjects(t.Context(), &pb.FindObjectsRequest{BuildIds: ids}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("%v, expected that these are too many", err)
	}
	if _, err := c.FindObjects(t.Context(), &pb.FindObjectsRequest{BuildIds: ids[:10]}); err != nil {
		t.Error(err)
	}
	s.post(t, "/v1/stack", file(t, mixed))
}

// TestIdleConnections has many callers that say nothing: another one is answered.
func TestIdleConnections(t *testing.T) {
	s := start(t, testOptions(t))
	for range 300 {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "POST /v1/stack HTTP/1.1\r\nHost: local"); err != nil {
			t.Fatal(err)
		}
	}
	s.post(t, "/v1/stack", file(t, mixed))
}
