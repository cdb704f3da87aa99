// SPDX-License-Identifier: Apache-2.0

package otlpexport

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

const long = 20 * time.Second

// partial is an answer that rejects profiles.
func partial(rejected uint64, message string) []byte {
	var in []byte
	in = protowire.AppendVarint(protowire.AppendTag(in, 1, protowire.VarintType), rejected)
	in = protowire.AppendString(protowire.AppendTag(in, 2, protowire.BytesType), message)
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), in)
}

// client is a client that does not wait between attempts, but notes how long it would.
func client(t *testing.T, url string, o Options) (c *Client, pauses *[]time.Duration) {
	t.Helper()
	e, err := ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = New(e, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	pauses = new([]time.Duration)
	c.pause = func(ctx context.Context, d time.Duration) error {
		*pauses = append(*pauses, d)
		return ctx.Err()
	}
	return c, pauses
}

// An httpAnswer is what a made collector says: HTTP.
type httpAnswer struct {
	status     int
	kind       string
	body       string
	retryAfter string
}

var taken = httpAnswer{status: 200, kind: protobufType}

// serve answers each request by the next answer; the last one again.
func serve(t *testing.T, answers ...httpAnswer) (url string, requests *atomic.Int32) {
	requests = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := answers[min(int(requests.Add(1)), len(answers))-1]
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		body, err := io.ReadAll(z)
		if err != nil || string(body) != "request" {
			t.Errorf("the body is %q, %v", body, err)
		}
		if r.Method != http.MethodPost || r.URL.Path != httpPath || r.Header.Get("Content-Type") != protobufType {
			t.Errorf("%s %s of %s", r.Method, r.URL, r.Header.Get("Content-Type"))
		}
		w.Header().Set("Content-Type", a.kind)
		if a.retryAfter != "" {
			w.Header().Set("Retry-After", a.retryAfter)
		}
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
	}))
	t.Cleanup(s.Close)
	return s.URL, requests
}

func TestHTTPAnswers(t *testing.T) {
	failed, _ := proto.Marshal(&rpcstatus.Status{Message: "no \x1b[31mspace"})
	busy := httpAnswer{status: 503, kind: "text/plain", body: "busy"}
	for name, c := range map[string]struct {
		answers  []httpAnswer
		want     Answer
		err      string
		requests int
		pause    time.Duration // the first, at least
	}{
		"taken":             {answers: []httpAnswer{taken}, requests: 1},
		"rejected":          {answers: []httpAnswer{{200, protobufType, string(partial(2, "too\nold")), ""}}, want: Answer{2, `too\nold`}, requests: 1},
		"warned":            {answers: []httpAnswer{{200, protobufType + "; x=y", string(partial(0, "soon full")), ""}}, want: Answer{0, "soon full"}, requests: 1},
		"busy once":         {answers: []httpAnswer{busy, taken}, requests: 2, pause: firstPause},
		"asks to wait":      {answers: []httpAnswer{{429, "", "", "7"}, taken}, requests: 2, pause: 7 * time.Second},
		"asks for too long": {answers: []httpAnswer{{429, "", "", "3600"}}, err: "429 Too Many Requests; it asks to wait 1h0m0s, which is more than 30s", requests: 1},
		"busy for good":     {answers: []httpAnswer{busy}, err: "5 attempts, at last: 503 Service Unavailable: busy", requests: 5, pause: firstPause},
		"bad request":       {answers: []httpAnswer{{400, protobufType, string(failed), ""}}, err: `400 Bad Request: no \x1b[31mspace`, requests: 1},
		"internal error":    {answers: []httpAnswer{{500, "text/html", "<html>", ""}}, err: "500 Internal Server Error", requests: 1},
		"too large":         {answers: []httpAnswer{{413, "text/plain", "", ""}}, err: "413 Request Entity Too Large", requests: 1},
		"no collector":      {answers: []httpAnswer{{200, "text/html", "<html>", ""}}, err: `its answer is "text/html", expected application/x-protobuf`, requests: 1},
		"no message":        {answers: []httpAnswer{{200, protobufType, "\x0a\xff", ""}}, err: "its answer is no ExportProfilesServiceResponse", requests: 1},
		"no partial":        {answers: []httpAnswer{{200, protobufType, "\x0a\x01\xff", ""}}, err: "its answer is no ExportProfilesServiceResponse", requests: 1},
		"endless":           {answers: []httpAnswer{{200, protobufType, strings.Repeat("x", 1<<20), ""}}, err: "its answer has more than", requests: 1},
		"elsewhere":         {answers: []httpAnswer{{307, "", "", ""}}, err: "it redirects", requests: 1},
	} {
		t.Run(name, func(t *testing.T) {
			url, requests := serve(t, c.answers...)
			s, pauses := client(t, url, Options{Timeout: long})
			got, err := s.Send(t.Context(), []byte("request"), nil)
			if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%+v, %v, expected %+v, %s", got, err, c.want, c.err)
			}
			if int(requests.Load()) != c.requests {
				t.Errorf("%d requests, expected %d", requests.Load(), c.requests)
			}
			if c.pause > 0 && (len(*pauses) == 0 || (*pauses)[0] < c.pause || (*pauses)[0] > 2*c.pause) {
				t.Errorf("pauses %v, expected the first to be about %v", *pauses, c.pause)
			}
		})
	}
}

func TestPausesBecomeLonger(t *testing.T) {
	url, _ := serve(t, httpAnswer{status: 503})
	s, pauses := client(t, url, Options{Timeout: long})
	if _, err := s.Send(t.Context(), []byte("request"), nil); err == nil {
		t.Fatal("no error")
	}
	for i, p := range *pauses {
		if least := firstPause << i; p < least || p > 2*least {
			t.Errorf("pause %d is %v, expected %v or somewhat more", i, p, least)
		}
	}
	if len(*pauses) != maxAttempts-1 {
		t.Errorf("%d pauses, expected %d", len(*pauses), maxAttempts-1)
	}
}

// Collectors that are not there, break off or do not answer.
func TestCollectorsThatDoNotAnswer(t *testing.T) {
	listen := func(serve func(net.Conn)) string {
		l, err := net.Listen("tcp", "localhost:0")
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		t.Cleanup(func() { l.Close(); all.Wait() })
		all.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				all.Go(func() { defer conn.Close(); serve(conn) })
			}
		})
		return l.Addr().String()
	}
	gone := listen(func(net.Conn) {})
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	l.Close()
	hanging := listen(func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	for name, c := range map[string]struct{ url, want string }{
		"closed, http":  {"http://user:secret@" + closed, "connection refused"},
		"closed, grpc":  {"grpc://user:secret@" + closed, "connection refused"},
		"gone, http":    {"http://user:secret@" + gone + "/a?key=secret", ""},
		"gone, grpc":    {"grpc://user:secret@" + gone, "Unavailable"},
		"hanging, http": {"http://user:secret@" + hanging, "no answer within 100ms"},
		"hanging, grpc": {"grpc://user:secret@" + hanging, "no answer within 100ms"},
		"tls, http":     {"https://user:secret@" + hanging, "no answer within 100ms"},
	} {
		t.Run(name, func(t *testing.T) {
			timeout := long
			if strings.Contains(c.want, "within") {
				timeout = 100 * time.Millisecond
			}
			s, pauses := client(t, c.url, Options{Timeout: timeout})
			_, err := s.Send(t.Context(), []byte("request"), nil)
			if err == nil || !strings.Contains(err.Error(), "5 attempts, at last: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, expected 5 attempts and %q", err, c.want)
			}
			if len(*pauses) != maxAttempts-1 {
				t.Errorf("%d pauses", len(*pauses))
			}
			if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "user")) {
				t.Errorf("it tells what is secret: %v", err)
			}
		})
	}
}

func TestSendingEndsWithItsContext(t *testing.T) {
	url, _ := serve(t, httpAnswer{status: 503})
	e, _ := ParseURL(url)
	s, err := New(e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	s.pause = func(ctx context.Context, d time.Duration) error { cancel(); return sleep(ctx, time.Hour) }
	if _, err := s.Send(ctx, []byte("request"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, expected that of the context", err)
	}
}

// grpcCollector answers by a function.
func grpcCollector(t *testing.T, answer func(md metadata.MD, request []byte) ([]byte, error)) string {
	t.Helper()
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.ForceServerCodecV2(encoded{}))
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "opentelemetry.proto.collector.profiles.v1development.ProfilesService", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Export", Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			var request []byte
			if err := decode(&request); err != nil {
				return nil, err
			}
			md, _ := metadata.FromIncomingContext(ctx)
			return answer(md, request)
		}}},
	}, nil)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return l.Addr().String()
}

func TestGRPCAnswers(t *testing.T) {
	limited := func(code codes.Code, wait time.Duration) error {
		s, err := status.New(code, "slow down").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(wait)})
		if err != nil {
			t.Fatal(err)
		}
		return s.Err()
	}
	for name, c := range map[string]struct {
		first    error
		response []byte
		want     Answer
		err      string
		requests int
		pause    time.Duration
	}{
		"taken":               {requests: 1},
		"rejected":            {response: partial(3, "why"), want: Answer{3, "why"}, requests: 1},
		"unavailable":         {first: status.Error(codes.Unavailable, "busy"), requests: 2, pause: firstPause},
		"asks to wait":        {first: limited(codes.Unavailable, 9*time.Second), requests: 2, pause: 9 * time.Second},
		"exhausted":           {first: status.Error(codes.ResourceExhausted, "received message larger than max"), err: "ResourceExhausted: received message larger than max", requests: 1},
		"exhausted for now":   {first: limited(codes.ResourceExhausted, 5*time.Second), requests: 2, pause: 5 * time.Second},
		"exhausted for long":  {first: limited(codes.ResourceExhausted, time.Hour), err: "it asks to wait 1h0m0s", requests: 1},
		"not implemented":     {first: status.Error(codes.Unimplemented, "unknown service"), err: "Unimplemented: unknown service", requests: 1},
		"not allowed":         {first: status.Error(codes.Unauthenticated, "who?"), err: "Unauthenticated: who?", requests: 1},
		"negative wait":       {first: limited(codes.Aborted, -time.Hour), requests: 2, pause: firstPause},
		"larger than allowed": {response: bytes.Repeat([]byte("x"), maxResponse+1), err: "ResourceExhausted", requests: 1},
	} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			at := grpcCollector(t, func(md metadata.MD, request []byte) ([]byte, error) {
				if requests++; requests == 1 && c.first != nil {
					return nil, c.first
				}
				if string(request) != "request" || strings.Join(md["x-key"], "") != "k" {
					t.Errorf("%q, headers %v", request, md)
				}
				return c.response, nil
			})
			s, pauses := client(t, "grpc://"+at, Options{Timeout: long, Headers: map[string]string{"x-key": "k"}})
			got, err := s.Send(t.Context(), []byte("request"), nil)
			if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%+v, %v, expected %+v, %s", got, err, c.want, c.err)
			}
			if requests != c.requests {
				t.Errorf("%d requests, expected %d", requests, c.requests)
			}
			if c.pause > 0 && (len(*pauses) == 0 || (*pauses)[0] < c.pause || (*pauses)[0] > 2*c.pause) {
				t.Errorf("pauses %v, expected the first to be about %v", *pauses, c.pause)
			}
		})
	}
}

func TestURLs(t *testing.T) {
	for text, want := range map[string]string{
		"grpc://host":                    "grpc://host:4317",
		"grpcs://host:1":                 "grpcs://host:1",
		"grpc://[::1]:4317/":             "grpc://[::1]:4317",
		"http://host":                    "http://host:4318/v1development/profiles",
		"http://host:4318/":              "http://host:4318/v1development/profiles",
		"https://host":                   "https://host:443/v1development/profiles",
		"http://host:4317":               "grpc://host:4317",
		"https://host:4317":              "grpcs://host:4317",
		"http://host:4317/own":           "http://host:4317/own",
		"https://u:p@host/a%20b?key=p":   "https://host:443/a%20b",
		"":                               "",
		"host:4317":                      "",
		"http://":                        "",
		"http://user:secret":             "",
		"http://user:sec/ret@host":       "",
		"ftp://host":                     "",
		"grpc://user:secret@host/path":   "",
		"grpc://user:secret@host?secret": "",
		"http://host:99999999/\x7f":      "",
	} {
		e, err := ParseURL(text)
		if want == "" {
			if err == nil || strings.Contains(err.Error(), "sec") {
				t.Errorf("%q: %v, %v, expected an error without what is secret", text, e, err)
			}
			continue
		}
		if err != nil || e.String() != want {
			t.Errorf("%q: %v, %v, expected %s", text, e, err, want)
		}
	}
	e, err := ParseURL("http://u%3A:p@host")
	if err != nil || e.authorization != "Basic "+base64.StdEncoding.EncodeToString([]byte("u::p")) {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestHeaders(t *testing.T) {
	got, err := ParseHeaders(" Api-Key = a%20b , ,x=y=z,empty=")
	if err != nil || len(got) != 3 || got["api-key"] != "a b" || got["x"] != "y=z" || got["empty"] != "" {
		t.Errorf("%q, %v", got, err)
	}
	for _, text := range []string{"secret", "a b=secret", "x=%zzsecret", "x=secret%0a", "=secret"} {
		if _, err := ParseHeaders(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, expected an error without what is secret", text, err)
		}
	}
}

func TestRetryAfterIsSecondsOrADate(t *testing.T) {
	now := time.Date(2026, 7, 21, 7, 28, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "5": 5 * time.Second, "-5": 0, "x": 0, "99999999999999999999": 0,
		"Tue, 21 Jul 2026 07:28:09 GMT": 9 * time.Second, "Tue, 21 Jul 2026 07:27:00 GMT": 0,
	} {
		if got := parseRetryAfter(text, now); got != want {
			t.Errorf("%q: %v, expected %v", text, got, want)
		}
	}
}

func FuzzResponse(f *testing.F) {
	f.Add(partial(1, "x"))
	f.Add([]byte{0x0a, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := parseResponse(b); err == nil && len(a.Message) > 12*(maxMessage+3) {
			t.Errorf("%d bytes", len(a.Message))
		}
	})
}

// Of an answer that does not end little is read.
func TestEndlessAnswersAreNotRead(t *testing.T) {
	const all = 64 << 20
	var written atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", protobufType)
		for chunk := make([]byte, 64<<10); written.Load() < all; {
			n, err := w.Write(chunk)
			if written.Add(int64(n)); err != nil {
				return
			}
		}
	}))
	c, _ := client(t, s.URL, Options{Timeout: long})
	_, err := c.Send(t.Context(), []byte("request"), nil)
	c.Close()
	s.Close() // waits for the handler
	if err == nil || !strings.Contains(err.Error(), "its answer has more than") || written.Load() >= all {
		t.Errorf("%v after %d bytes", err, written.Load())
	}
}
