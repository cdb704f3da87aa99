// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/unwindd/unwindd/internal/escape"
)

// A request is one that is under way.
type request struct {
	id     string
	caller string
	began  time.Time
	span   trace.Span

	sent, received atomic.Int64 // bytes of bodies
	waited         atomic.Int64 // nanoseconds in the queue

	mu     sync.Mutex
	job    string // the ID of the fleet's that it was handed over as; "": it was not
	ending requestEnd
	again  func() // writes the line of a request whose handler has returned; nil: it has not
}

// A requestEnd is what was asked for, "" where that is not worth a line, and how it ended.
type requestEnd struct {
	kind    string
	problem *problem // nil: none
}

// kindRefused is what a request that was not let in asked for.
const kindRefused = "refused"

// end notes how a request ended. Its line is logged when all of the answer was written. The
// method of a call of gRPC may go on for a moment when its caller has gone away and its
// handler has returned.
func (s *Server) end(of *request, kind string, p *problem) {
	of.mu.Lock()
	of.ending = requestEnd{kind, p}
	again := of.again
	of.mu.Unlock()
	s.metrics.request(kind, p.name(), time.Since(of.began))
	if again != nil {
		again()
	}
}

// ended is how the request ended, as far as that is known.
func (r *request) ended() requestEnd {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ending
}

// begun is the record of a request that comes, and what takes its answer. ended is called when
// the handler has returned, or panics.
func (s *Server) begun(of *request, w http.ResponseWriter, r *http.Request) (counting *countingWriter, counted *http.Request, ended func()) {
	var ctx context.Context
	ctx, of.span = s.spanOf(r)
	counting = &countingWriter{ResponseWriter: w, of: of, status: http.StatusOK}
	counted = r.WithContext(context.WithValue(ctx, requestKey, of))
	counted.Body = &countingReader{r.Body, of}
	return counting, counted, func() {
		status := counting.status
		s.log(of, r, status)
		s.finishSpan(of, r, status)
		of.mu.Lock()
		defer of.mu.Unlock()
		of.again = func() { s.log(of, r, status) }
	}
}

// log writes the line of a request. One that asks for nothing but the state of the server has
// none, but for debugging.
func (s *Server) log(of *request, r *http.Request, status int) {
	if of.ended().kind == "" {
		s.Log.Debug("other", append(of.fields(status), "method", foreign(r.Method), "path", foreign(r.URL.Path))...)
		return
	}
	s.logEnd(of, status)
}

// setJob notes as which job of a fleet the request was handed over.
func (r *request) setJob(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.job = id
}

func (r *request) jobID() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.job
}

// fields are what a line of the log says of a request that has ended.
func (r *request) fields(status int) []any {
	fields := r.describe()
	if id := r.jobID(); id != "" {
		fields = append(fields, "job", id)
	}
	return append(fields, "status", status, "received", r.received.Load(), "sent", r.sent.Load(),
		"queued", seconds(time.Duration(r.waited.Load())), "took", seconds(time.Since(r.began)))
}

// logEnd writes the line of a request that asked for something.
func (s *Server) logEnd(of *request, status int) {
	fields := of.fields(status)
	switch how := of.ended(); {
	case how.problem == nil:
		s.Log.Info(how.kind, fields...)
	default:
		fields = append(fields, "problem", how.problem.name(), "detail", foreign(how.problem.Detail))
		if how.problem.cause != nil {
			fields = append(fields, "cause", foreign(how.problem.cause.Error()))
		}
		s.Log.Warn(how.kind, fields...)
	}
}

// describe says which request it is, for a line of the log.
func (r *request) describe() []any {
	fields := []any{"request", r.id, "caller", foreign(r.caller)}
	if r.span.SpanContext().HasTraceID() {
		fields = append(fields, "trace", r.span.SpanContext().TraceID().String())
	}
	return fields
}

// requestID is the ID of the request that a context is of.
func requestID(ctx context.Context) string {
	if r := requestOf(ctx); r != nil {
		return r.id
	}
	return ""
}

// maxForeign bounds, in bytes, what a line of the log has of a text that others have made.
const maxForeign = 1000

// foreign is a text that others have made as a line of the log has it: on one line, without
// control characters, and not endless.
func foreign(text string) string {
	if len(text) > maxForeign {
		text = text[:maxForeign] + "..."
	}
	return escape.Text(text)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3fs", d.Seconds()) }

// A countingWriter counts the bytes of an answer.
type countingWriter struct {
	http.ResponseWriter
	of     *request
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *countingWriter) WriteHeader(status int) {
	if status >= http.StatusOK {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.of.sent.Add(int64(n))
	return n, err
}

// Flush implements http.Flusher, which gRPC asks for.
func (w *countingWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Unwrap is for http.ResponseController.
func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// A countingReader counts the bytes of a body.
type countingReader struct {
	io.ReadCloser
	of *request
}

// Read implements io.Reader.
func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.of.received.Add(int64(n))
	return n, err
}
