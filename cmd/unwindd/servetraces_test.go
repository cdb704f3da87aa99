// SPDX-License-Identifier: Apache-2.0

package main

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/engine/service/servicepb"
)

// A spanCollector takes spans, as a collector of OpenTelemetry does.
type spanCollector struct {
	collectorpb.UnimplementedTraceServiceServer

	mu        sync.Mutex
	spans     []*tracepb.Span
	resources []string // attributes, as NAME=VALUE
}

// Export implements collectorpb.TraceServiceServer.
func (c *spanCollector) Export(_ context.Context, r *collectorpb.ExportTraceServiceRequest) (*collectorpb.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range r.ResourceSpans {
		for _, a := range of.Resource.Attributes {
			c.resources = append(c.resources, a.Key+"="+a.Value.GetStringValue())
		}
		for _, scope := range of.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
	return &collectorpb.ExportTraceServiceResponse{}, nil
}

// ServeHTTP takes what comes by OTLP/HTTP.
func (c *spanCollector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = z
	}
	b, err := io.ReadAll(body)
	var request collectorpb.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(b, &request) != nil {
		http.Error(w, "expected spans", http.StatusBadRequest)
		return
	}
	answer, _ := c.Export(r.Context(), &request)
	b, _ = proto.Marshal(answer)
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(b)
}

// span is the one span of a name.
func (c *spanCollector) span(t *testing.T, name string) *tracepb.Span {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var found *tracepb.Span
	var names []string
	for _, s := range c.spans {
		names = append(names, s.Name)
		if s.Name == name && found == nil {
			found = s
		}
	}
	if found == nil {
		t.Fatalf("spans %v, expected %s", names, name)
	}
	return found
}

// spanAttribute is the value of an attribute as text, or a number.
func spanAttribute(s *tracepb.Span, name string) (text string, number int64) {
	for _, a := range s.Attributes {
		if a.Key == name {
			return a.Value.GetStringValue(), a.Value.GetIntValue()
		}
	}
	return "", -1
}

// callerTrace is the trace of a caller.
const callerTrace = "0af7651916cd43dd8448eb211c80319c"

// check looks at the spans of one request for a stack, whose caller has a trace.
func (c *spanCollector) check(t *testing.T, received int64) {
	t.Helper()
	root := c.span(t, "stack")
	if got := hex.EncodeToString(root.TraceId); got != callerTrace || hex.EncodeToString(root.ParentSpanId) != "b7ad6b7169203331" {
		t.Errorf("trace %s, parent %x, expected the caller's", got, root.ParentSpanId)
	}
	if kind, _ := spanAttribute(root, "unwindd.kind"); kind != "stack" || root.Kind != tracepb.Span_SPAN_KIND_SERVER {
		t.Errorf("%v", root)
	}
	if status, _ := spanAttribute(root, "unwindd.status"); status != "ok" {
		t.Errorf("status %q", status)
	}
	if _, n := spanAttribute(root, "http.request.body.size"); n < received {
		t.Errorf("%d bytes received, expected %d or more", n, received)
	}
	if caller, _ := spanAttribute(root, "unwindd.caller"); !strings.HasPrefix(caller, "uid ") {
		t.Errorf("caller %q", caller)
	}
	for _, name := range []string{"receive", "queue", "run"} {
		s := c.span(t, name)
		if string(s.ParentSpanId) != string(root.SpanId) || s.StartTimeUnixNano < root.StartTimeUnixNano || s.EndTimeUnixNano > root.EndTimeUnixNano {
			t.Errorf("%v is not within %v", s, root)
		}
	}
	if _, n := spanAttribute(c.span(t, "run"), "unwindd.stacks"); n < 1 {
		t.Errorf("%d stacks", n)
	}
	if _, n := spanAttribute(c.span(t, "run"), "unwindd.frames"); n < 2 {
		t.Errorf("%d frames", n)
	}
}

// TestServeTraces has requests by HTTP and by gRPC, and collectors that take spans by both.
func TestServeTraces(t *testing.T) {
	const parent = "00-" + callerTrace + "-b7ad6b7169203331-01"
	t.Run("HTTP", func(t *testing.T) {
		t.Parallel()
		c := &spanCollector{}
		server := httptest.NewServer(c)
		defer server.Close()
		d := startDaemon(t, shortDir(t), []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + server.URL, "OTEL_SERVICE_NAME=walker", "OTEL_RESOURCE_ATTRIBUTES=place=here"})
		d.walk(t, "traceparent", parent)
		d.request(t, http.MethodPost, "/v1/stack", strings.NewReader("no core"))
		d.request(t, http.MethodGet, "/healthz", nil)
		d.signal(t, syscall.SIGTERM)
		d.wait(t)
		c.check(t, int64(len(core(t))))
		if got := strings.Join(c.resources, " "); !strings.Contains(got, "service.name=walker") || !strings.Contains(got, "place=here") {
			t.Errorf("the spans are of %s", got)
		}
		bad := 0
		for _, s := range c.spans {
			if status, _ := spanAttribute(s, "unwindd.status"); status == "unreadable" {
				bad++
				if hex.EncodeToString(s.TraceId) == callerTrace {
					t.Error("a request without a trace is in that of another")
				}
			}
			if path, _ := spanAttribute(s, "url.path"); path == "/healthz" {
				t.Error("health checks have spans")
			}
		}
		if bad != 1 {
			t.Errorf("%d spans of a request that fails", bad)
		}
	})
	t.Run("gRPC", func(t *testing.T) {
		t.Parallel()
		c := &spanCollector{}
		l, err := net.Listen("tcp", "localhost:0") //nolint:noctx // the test has a limit
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		collectorpb.RegisterTraceServiceServer(server, c)
		go func() { _ = server.Serve(l) }()
		defer server.Stop()
		d := startDaemon(t, shortDir(t), []string{"OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://" + l.Addr().String()})
		d.walkByGRPC(metadata.AppendToOutgoingContext(t.Context(), "traceparent", parent), t)
		d.signal(t, syscall.SIGTERM)
		d.wait(t)
		c.check(t, int64(len(core(t))))
	})
}

// walkByGRPC has the example walked.
func (d *daemon) walkByGRPC(ctx context.Context, t *testing.T) {
	t.Helper()
	to, err := grpc.NewClient("unix:"+d.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	call, err := servicepb.NewUnwinddClient(to).Stack(ctx)
	if err != nil {
		t.Fatal(err)
	}
	send := func(r *servicepb.StackRequest) {
		if err := call.Send(r); err != nil {
			t.Fatal(err)
		}
	}
	send(&servicepb.StackRequest{Part: &servicepb.StackRequest_Options{Options: &servicepb.StackOptions{}}})
	for b := core(t); len(b) > 0; {
		n := min(len(b), 1<<20)
		send(&servicepb.StackRequest{Part: &servicepb.StackRequest_Data{Data: b[:n]}})
		b = b[n:]
	}
	if err := call.CloseSend(); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := call.Recv(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestServeDoesNotWaitForACollector has collectors that take connections and answer nothing,
// and that are not there.
func TestServeDoesNotWaitForACollector(t *testing.T) {
	hanging, err := net.Listen("tcp", "localhost:0") //nolint:noctx // the test has a limit
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hanging.Close() }) // it never accepts
	for _, env := range [][]string{
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + hanging.Addr().String()},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + hanging.Addr().String(), "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:1"},
	} {
		t.Run(strings.Join(env, " "), func(t *testing.T) {
			t.Parallel()
			d := startDaemon(t, shortDir(t), env)
			d.walk(t)
			d.walk(t)
			d.signal(t, syscall.SIGTERM)
			began := time.Now()
			if status := d.wait(t); status != 0 {
				t.Errorf("exit status %d", status)
			}
			if !strings.Contains(d.log.String(), "not all traces were sent") && !strings.Contains(d.log.String(), "traces are not sent") {
				t.Error("it does not say that traces are lost")
			}
			t.Logf("it ended in %v", time.Since(began)) // within lastTraces, which wait bounds from above
		})
	}
}

// TestTracesAreSentWhereVariablesSaySo has the variables of OpenTelemetry.
func TestTracesAreSentWhereVariablesSaySo(t *testing.T) {
	for _, c := range []struct{ env, protocol, wrong string }{
		{"", "", ""},
		{"OTEL_SERVICE_NAME=x", "", ""},
		{"OTEL_TRACES_EXPORTER=otlp", "http/protobuf", ""},
		{"OTEL_TRACES_EXPORTER=none OTEL_EXPORTER_OTLP_ENDPOINT=http://x", "", ""},
		{"OTEL_TRACES_EXPORTER=console", "", "OTEL_TRACES_EXPORTER"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://x OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "grpc", ""},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://x OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf", "http/protobuf", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://x OTEL_EXPORTER_OTLP_PROTOCOL=http/json", "", "OTEL_EXPORTER_OTLP_PROTOCOL"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://x OTEL_SDK_DISABLED=true", "", ""},
	} {
		protocol, wrong := tracesProtocol(func(name string) string {
			for _, one := range strings.Fields(c.env) {
				if value, ok := strings.CutPrefix(one, name+"="); ok {
					return value
				}
			}
			return ""
		})
		if protocol != c.protocol || !strings.HasPrefix(wrong, c.wrong) || c.wrong == "" && wrong != "" {
			t.Errorf("%s: %q, %q, expected %q, %q", c.env, protocol, wrong, c.protocol, c.wrong)
		}
	}
}
