// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/unwindd/unwindd/engine/service/job"
)

// newTracer makes the source of spans. Without a provider there are none, but the log still
// has the traces of callers.
func newTracer(p trace.TracerProvider) trace.Tracer {
	if p == nil {
		p = noop.NewTracerProvider()
	}
	return p.Tracer("github.com/unwindd/unwindd/engine/service")
}

// unwatched are the paths that machines poll, and those at which traces would come: where the
// traces of this server are sent to itself, each refusal would be the next one. They have no spans.
var unwatched = map[string]bool{
	"/healthz": true, "/metrics": true, "/v1/traces": true, "/opentelemetry.proto.collector.trace.v1.TraceService/Export": true,
}

// spanOf begins the span of a request, in the trace of its caller if it names one (W3C
// Trace Context). A call of gRPC has it in the same header.
func (s *Server) spanOf(r *http.Request) (context.Context, trace.Span) {
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	if unwatched[r.URL.Path] {
		return ctx, trace.SpanFromContext(ctx)
	}
	return s.tracer.Start(ctx, r.Method, trace.WithSpanKind(trace.SpanKindServer))
}

// finishSpan ends the span of a request.
func (s *Server) finishSpan(req *request, r *http.Request, status int) {
	if unwatched[r.URL.Path] || !req.span.IsRecording() {
		return
	}
	how := req.ended()
	if how.kind != "" && how.kind != kindRefused {
		req.span.SetName(how.kind)
	}
	req.span.SetAttributes(
		attribute.String("http.request.method", foreign(r.Method)), attribute.String("url.path", foreign(r.URL.Path)),
		attribute.Int("http.response.status_code", status),
		attribute.Int64("http.request.body.size", req.received.Load()), attribute.Int64("http.response.body.size", req.sent.Load()),
		attribute.String("unwindd.request", req.id), attribute.String("unwindd.caller", foreign(req.caller)),
		attribute.String("unwindd.kind", how.kind), attribute.String("unwindd.status", how.problem.name()),
	)
	if p := how.problem; p != nil {
		req.span.SetAttributes(attribute.String("unwindd.detail", foreign(p.Detail)))
		if p.Status >= http.StatusInternalServerError {
			req.span.SetStatus(codes.Error, p.Title)
		}
	}
	req.span.End()
}

// within does a part of a request within a span of its own.
func (s *Server) within(ctx context.Context, name string, do func(context.Context, trace.Span) error) error {
	ctx, span := s.tracer.Start(ctx, name)
	defer span.End()
	err := do(ctx, span)
	if err != nil {
		span.SetStatus(codes.Error, foreign(err.Error()))
	}
	return err
}

// enqueue waits for a place to work at.
func (s *Server) enqueue(ctx context.Context, r *request) error {
	return s.within(ctx, "queue", func(ctx context.Context, _ trace.Span) error {
		began := time.Now()
		err := s.queue.enter(ctx, r.caller)
		waited := time.Since(began)
		r.waited.Add(int64(waited))
		if err == nil {
			s.metrics.waited(waited)
		}
		return err
	})
}

// recordOutcome records in a span the findings of a job.
func recordOutcome(span trace.Span, o *job.Outcome) {
	span.SetAttributes(attribute.Int("unwindd.stacks", o.Counts.Stacks), attribute.Int("unwindd.frames", o.Counts.AllFrames()))
	if o.Unwalked != "" {
		span.SetAttributes(attribute.String("unwindd.unwalked", foreign(o.Unwalked)))
	}
}
