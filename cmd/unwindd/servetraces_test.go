// SPDX-License-Identifier: Apache-2.0

package main

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
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
	for _, spans := range r.ResourceSpans {
		for _, a := range spans.Resource.Attributes {
			c.resources = append(c.resources, a.Key+"="+a.Value.GetStringValue())
		}
		for _, scope := range spans.ScopeSpans {
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

// TestServeTraces has collectors that take spans by HTTP and by gRPC, as the variables of
// OpenTelemetry say.
func TestServeTraces(t *testing.T) {
	const trace = "0af7651916cd43dd8448eb211c80319c"
	check := func(t *testing.T, c *spanCollector, env ...string) {
		d := startDaemon(t, shortDir(t), append(env, "OTEL_SERVICE_NAME=walker", "OTEL_RESOURCE_ATTRIBUTES=place=here"))
		d.walk(t, "traceparent", "00-"+trace+"-b7ad6b7169203331-01")
		d.signal(t, syscall.SIGTERM)
		d.wait(t)
		isRequest := func(s *tracepb.Span) bool { return s.Name == "stack" && hex.EncodeToString(s.TraceId) == trace }
		if !slices.ContainsFunc(c.spans, isRequest) {
			t.Errorf("the request is not among the %d spans", len(c.spans))
		}
		if got := strings.Join(c.resources, " "); !strings.Contains(got, "service.name=walker") || !strings.Contains(got, "place=here") {
			t.Errorf("the spans are of %s", got)
		}
	}
	t.Run("HTTP", func(t *testing.T) {
		t.Parallel()
		c := &spanCollector{}
		server := httptest.NewServer(c)
		defer server.Close()
		check(t, c, "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL)
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
		check(t, c, "OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://"+l.Addr().String())
	})
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
			if status := d.wait(t); status != 0 {
				t.Errorf("exit status %d", status)
			}
			if !strings.Contains(d.log.String(), "not all traces were sent") && !strings.Contains(d.log.String(), "traces are not sent") {
				t.Error("it does not say that traces are lost")
			}
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
