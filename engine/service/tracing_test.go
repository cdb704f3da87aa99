// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

const (
	// callerTrace is the trace of a caller, whose span is callerSpan.
	callerTrace = "0af7651916cd43dd8448eb211c80319c"
	callerSpan  = "b7ad6b7169203331"
	traceParent = "00-" + callerTrace + "-" + callerSpan + "-01"
)

// traced starts a server whose spans are recorded.
func traced(t *testing.T) (*testServer, *tracetest.SpanRecorder) {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	o := testOptions(t)
	o.Traces = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	return start(t, o), spans
}

// span waits for the first span of a name.
func span(t *testing.T, spans *tracetest.SpanRecorder, name string) (found sdktrace.ReadOnlySpan) {
	t.Helper()
	until(t, "the span "+name, func() bool {
		for _, s := range spans.Ended() {
			if s.Name() == name {
				found = s
				return true
			}
		}
		return false
	})
	return found
}

// spanAttribute is the value of an attribute.
func spanAttribute(s sdktrace.ReadOnlySpan, name string) (v attribute.Value) {
	for _, a := range s.Attributes() {
		if string(a.Key) == name {
			return a.Value
		}
	}
	return v
}

// checkSpans looks at the spans of one request for a stack, whose caller has a trace.
func checkSpans(t *testing.T, spans *tracetest.SpanRecorder) {
	t.Helper()
	root := span(t, spans, "stack")
	if got := root.SpanContext().TraceID().String(); got != callerTrace || root.Parent().SpanID().String() != callerSpan {
		t.Errorf("trace %s, parent %s, expected the caller's", got, root.Parent().SpanID())
	}
	if spanAttribute(root, "unwindd.kind").AsString() != "stack" || root.SpanKind() != trace.SpanKindServer {
		t.Errorf("%v", root)
	}
	if status := spanAttribute(root, "unwindd.status").AsString(); status != "ok" {
		t.Errorf("status %q", status)
	}
	if n, least := spanAttribute(root, "http.request.body.size").AsInt64(), len(file(t, crashCore)); n < int64(least) {
		t.Errorf("%d bytes received, expected %d or more", n, least)
	}
	if spanAttribute(root, "unwindd.caller").AsString() == "" {
		t.Error("no caller")
	}
	for _, name := range []string{"receive", "queue", "run"} {
		s := span(t, spans, name)
		if s.Parent().SpanID() != root.SpanContext().SpanID() || s.StartTime().Before(root.StartTime()) || s.EndTime().After(root.EndTime()) {
			t.Errorf("%v is not within %v", s, root)
		}
	}
	run := span(t, spans, "run")
	if stacks, frames := spanAttribute(run, "unwindd.stacks").AsInt64(), spanAttribute(run, "unwindd.frames").AsInt64(); stacks < 1 || frames < 2 {
		t.Errorf("%d stacks with %d frames", stacks, frames)
	}
}

// TestRequestsByHTTPAreTraced has one with a trace, one without that fails, and one for the
// health of the server.
func TestRequestsByHTTPAreTraced(t *testing.T) {
	s, spans := traced(t)
	s.ask(t, http.MethodPost, "/v1/stack", bytes.NewReader(file(t, crashCore)), "traceparent", traceParent)
	checkSpans(t, spans)
	before := len(spans.Ended())
	s.ask(t, http.MethodPost, "/v1/stack", strings.NewReader("no core"))
	s.ask(t, http.MethodGet, "/healthz", nil)
	var bad []sdktrace.ReadOnlySpan
	until(t, "the span of what fails", func() bool {
		bad = nil
		for _, one := range spans.Ended()[before:] {
			if spanAttribute(one, "unwindd.status").AsString() == "unreadable" {
				bad = append(bad, one)
			}
			if spanAttribute(one, "url.path").AsString() == "/healthz" {
				t.Error("health checks have spans")
			}
		}
		return len(bad) > 0
	})
	if len(bad) != 1 || bad[0].SpanContext().TraceID().String() == callerTrace {
		t.Errorf("%d spans of a request that fails, in trace %s", len(bad), bad[0].SpanContext().TraceID())
	}
}

// TestRequestsByGRPCAreTraced has one with a trace.
func TestRequestsByGRPCAreTraced(t *testing.T) {
	s, spans := traced(t)
	call, err := pb.NewUnwinddClient(s.dial(t)).Stack(metadata.AppendToOutgoingContext(t.Context(), "traceparent", traceParent))
	if err != nil {
		t.Fatal(err)
	}
	_ = call.Send(&pb.StackRequest{Part: &pb.StackRequest_Options{Options: &pb.StackOptions{}}})
	for b := file(t, crashCore); len(b) > 0; {
		n := min(len(b), 1<<20)
		_ = call.Send(&pb.StackRequest{Part: &pb.StackRequest_Data{Data: b[:n]}})
		b = b[n:]
	}
	_ = call.CloseSend() // the report says what went wrong
	if _, _, err := readReport(call); err != nil {
		t.Fatal(err)
	}
	checkSpans(t, spans)
}
