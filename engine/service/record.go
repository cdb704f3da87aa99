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
	"google.golang.org/grpc/codes"

	"github.com/unwindd/unwindd/internal/escape"
)

// request is the record of a request that is under way.
type request struct {
	id     string
	caller string
	// address names from where it came: a caller with a token may have several.
	address string
	kind    callerKind // how the caller shows who it is
	began   time.Time
	span    trace.Span

	gate *gate // of a call of gRPC; nil: it is none

	sent, received atomic.Int64 // bytes of bodies
	waited         atomic.Int64 // nanoseconds in the queue

	mu     sync.Mutex
	job    string // the ID of the fleet's job that it was handed over as; "": it was not
	ending requestEnd
	again  func() // writes the line once more, after the handler has returned; nil before
}

// requestEnd is the kind of a request, "" where it is not worth a line, and its end.
type requestEnd struct {
	kind    string
	problem *problem // nil: none
}

// kindRefused is the kind of a request that was not let in.
const kindRefused = "refused"

// end records how a request ended. Its line is logged when all of the answer was written.
// The method of a call of gRPC may go on for a moment when its caller has gone away and its
// handler has returned.
func (s *Server) end(req *request, kind string, p *problem) {
	req.mu.Lock()
	req.ending = requestEnd{kind, p}
	again := req.again
	req.mu.Unlock()
	s.metrics.request(kind, p.name(), time.Since(req.began))
	s.metrics.ofCaller(req, p.name())
	if again != nil {
		again()
	}
}

// ended returns how the request ended, as far as that is known.
func (r *request) ended() requestEnd {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ending
}

// begun attaches a record to a request, and wraps its body and its answer to count their
// bytes, and to wait for the caller within bounds. ended is called when the handler has
// returned, or panics.
func (s *Server) begun(req *request, w http.ResponseWriter, r *http.Request) (counting *countingWriter, counted *http.Request, ended func()) {
	var ctx context.Context
	ctx, req.span = s.spanOf(r)
	c, idle := http.NewResponseController(w), s.now().Idle
	body := &countingReader{ReadCloser: r.Body, req: req, isRead: r.Body == http.NoBody}
	counting = &countingWriter{ResponseWriter: w, req: req, status: http.StatusOK, body: body, control: c, idle: idle, isOld: r.ProtoMajor == 1}
	counting.allowance = newAllowance(idle, func() { _ = c.SetWriteDeadline(longAgo) })
	body.allowance = newAllowance(idle, func() { _ = c.SetReadDeadline(longAgo) })
	counted = r.WithContext(context.WithValue(ctx, requestKey, req))
	counted.Body = body
	return counting, counted, func() {
		body.allowance.shut()
		counting.finish()
		status := counting.status
		s.metrics.moved(req)
		s.log(req, r, status)
		s.finishSpan(req, r, status)
		req.mu.Lock()
		defer req.mu.Unlock()
		req.again = func() { s.log(req, r, status) }
	}
}

// log writes the line of a request. A request for the state of the server has one only for
// debugging.
func (s *Server) log(req *request, r *http.Request, status int) {
	if req.ended().kind == "" {
		s.Log.Debug("other", append(req.fields(status), "method", foreign(r.Method), "path", foreign(r.URL.Path))...)
		return
	}
	s.logEnd(req, status)
}

// setJob records as which job of a fleet the request was handed over.
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

// fields returns the fields of the log's line on a request that has ended.
func (r *request) fields(status int) []any {
	fields := r.describe()
	if id := r.jobID(); id != "" {
		fields = append(fields, "job", id)
	}
	return append(fields, "status", status, "received", r.received.Load(), "sent", r.sent.Load(),
		"queued", seconds(time.Duration(r.waited.Load())), "took", seconds(time.Since(r.began)))
}

// logEnd writes the line of a request that has a kind.
func (s *Server) logEnd(req *request, status int) {
	fields := req.fields(status)
	switch how := req.ended(); {
	case how.problem == nil:
		s.Log.Info(how.kind, fields...)
	default:
		fields = append(fields, "problem", how.problem.name(), "detail", foreign(how.problem.Detail))
		if how.problem.cause != nil {
			fields = append(fields, "cause", foreign(how.problem.cause.Error()))
		}
		log := s.Log.Warn
		if how.problem.code == codes.NotFound { // clients of debuginfod ask every server for every file
			log = s.Log.Info
		}
		log(how.kind, fields...)
	}
}

// describe identifies the request, for a line of the log.
func (r *request) describe() []any {
	fields := []any{"request", r.id, "caller", foreign(r.caller)}
	if r.span.SpanContext().HasTraceID() {
		fields = append(fields, "trace", r.span.SpanContext().TraceID().String())
	}
	return fields
}

// requestID returns the ID of a context's request.
func requestID(ctx context.Context) string {
	if r := requestOf(ctx); r != nil {
		return r.id
	}
	return ""
}

// maxForeign bounds the bytes of a foreign text in a line of the log.
const maxForeign = 1000

// foreign makes a text from outside fit for the log: on one line, without control
// characters, and not endless.
func foreign(text string) string {
	if len(text) > maxForeign {
		text = text[:maxForeign] + "..."
	}
	return escape.Text(text)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3fs", d.Seconds()) }

// countingWriter counts the bytes of an answer, and waits for a caller that takes it.
type countingWriter struct {
	http.ResponseWriter
	req       *request
	status    int
	body      *countingReader
	control   *http.ResponseController
	allowance *allowance
	idle      time.Duration
	isOld     bool // HTTP/1
}

// WriteHeader implements http.ResponseWriter.
func (w *countingWriter) WriteHeader(status int) {
	if status >= http.StatusOK {
		w.status = status
		w.boundRest()
	}
	w.ResponseWriter.WriteHeader(status)
}

// boundRest bounds the time for what the handler has left of the body, which net/http reads
// before and after an answer, so that the connection can have another request.
func (w *countingWriter) boundRest() {
	if w.isOld && !w.body.isRead {
		_ = w.control.SetReadDeadline(time.Now().Add(w.idle)) // not every connection has deadlines
	}
}

// finish bounds the time for what net/http still has of the answer.
func (w *countingWriter) finish() {
	w.allowance.shut()
	w.boundRest()
	_ = w.control.SetWriteDeadline(time.Now().Add(2 * w.idle)) // the rest of the body comes first
}

// Write implements http.ResponseWriter.
func (w *countingWriter) Write(p []byte) (int, error) {
	if w.req.sent.Load() == 0 {
		w.boundRest()
	}
	w.allowance.wait()
	n, err := w.ResponseWriter.Write(p)
	w.allowance.rest()
	w.allowance.count(n)
	w.req.sent.Add(int64(n))
	return n, err
}

// Flush implements http.Flusher, which gRPC needs.
func (w *countingWriter) Flush() {
	w.allowance.wait()
	_ = w.control.Flush()
	w.allowance.rest()
}

// Unwrap is for http.ResponseController.
func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// countingReader counts the bytes of a body, and waits for a caller that sends it.
type countingReader struct {
	io.ReadCloser
	req       *request
	allowance *allowance
	isRead    bool // all of it
}

// Read implements io.Reader.
func (r *countingReader) Read(p []byte) (int, error) {
	r.allowance.wait()
	n, err := r.ReadCloser.Read(p)
	r.allowance.rest()
	r.allowance.count(n)
	r.req.received.Add(int64(n))
	if err != nil {
		r.isRead = true // there is no more of it
	}
	return n, err
}
