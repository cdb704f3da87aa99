// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/unwindd/unwindd/engine/internal/otlpexport"
	"github.com/unwindd/unwindd/engine/internal/otlpjson"
	"github.com/unwindd/unwindd/engine/report"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// This file takes profiles of OpenTelemetry (opentelemetry.io/docs/specs/otlp), has their native
// frames named, and passes them on to a collector. The sender is answered when the collector has
// answered: who gets no answer sends again, so that nothing is lost when this server, or the
// collector, ends.

// Bounds of a request.
const (
	maxProfiles = 64 << 20 // bytes, unpacked
	maxJSON     = 16 << 20 // bytes of JSON, which takes sixfold memory
)

// usualPatience is how long a request waits for names if its sender tells no deadline;
// otherwise it is half of the time until that, up to maxPatience. What comes later is passed on
// without them, and the worker goes on, so that the next requests find warm caches.
const (
	usualPatience = 5 * time.Second
	maxPatience   = 30 * time.Second
)

// relay passes profiles on.
type relay struct {
	*Server
	to *report.Collector
	id string // in viaHeader
}

func newRelay(s *Server, to *report.Collector) *relay {
	return &relay{Server: s, to: to, id: rand.Text()[:16]}
}

// ServeProfiles answers exporters of OpenTelemetry, by gRPC and by HTTP, until the listener is
// closed. Options.Collector gets their profiles.
func (s *Server) ServeProfiles(l net.Listener, secure *tls.Config) error {
	return s.serve(l, secure, s.guard(http.HandlerFunc(s.relay.answer)))
}

// The address of profiles, by gRPC and by HTTP.
const (
	profilesCall = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
	profilesPath = "/v1development/profiles"
)

// kindProfiles is the kind of requests that are passed on.
const kindProfiles = "otlp"

// answer answers a request.
func (p *relay) answer(w http.ResponseWriter, r *http.Request) {
	req := requestOf(r.Context())
	if body, ok := r.Body.(*countingReader); ok && body.allowance == nil { // a call of gRPC: it has no gate here
		c := http.NewResponseController(w)
		body.allowance = newAllowance(p.now().Idle, func() { _ = c.SetReadDeadline(longAgo) })
	}
	form, err := formOf(r)
	kind := kindRefused
	var taken otlpexport.Answer
	if err == nil {
		kind = kindProfiles
		taken, err = p.take(r, req, form)
	}
	if err == nil {
		form.answer(w, taken)
		p.end(req, kind, nil)
		return
	}
	problem := retryable(problemOf(err))
	problem.Request = req.id
	p.end(req, kind, problem)
	form.refuse(w, problem)
}

// retryable makes a failure that is not the sender's one after which the request is sent again,
// whatever the sender knows beside OTLP's few statuses.
func retryable(p *problem) *problem {
	if p.Status == http.StatusTooManyRequests || p.Status < http.StatusInternalServerError || p.code == codes.Unimplemented {
		return p
	}
	again := *p
	again.Status, again.code, again.retry = http.StatusServiceUnavailable, codes.Unavailable, max(p.retry, retryAfter)
	return &again
}

// take takes one request.
func (p *relay) take(r *http.Request, req *request, form *otlpForm) (taken otlpexport.Answer, err error) {
	leave, err := p.enter()
	if err != nil {
		return taken, err
	}
	defer leave()
	headers, err := p.passedOn(r.Header)
	if err != nil {
		return taken, err
	}
	ctx, cancel := withDeadline(r)
	defer cancel()
	input, err := p.receiveProfiles(r, req, form)
	if err != nil {
		return taken, err
	}
	if input.size == 0 { // it is valid, and says nothing
		return taken, input.Close()
	}
	b := &parcel{relay: p, req: req, input: input, headers: headers, names: namesRequested}
	return b.pass(ctx)
}

// receiveProfiles takes the message of a request into a file, as protocol buffers.
func (p *relay) receiveProfiles(r *http.Request, req *request, form *otlpForm) (*upload, error) {
	bounded := &boundedReader{r: &openedReader{open: func() (io.Reader, error) { return form.open(r) }}, most: form.most}
	plain := *r
	plain.Body = struct {
		io.Reader
		io.Closer
	}{bounded, r.Body}
	input, err := p.receive(&plain, req)
	switch {
	case bounded.isOver:
		return nil, &tooLargeError{form.most}
	case err != nil || !form.isJSON || input.size == 0:
		return input, err
	}
	defer input.Close()
	memory := p.memory.of(req.caller)
	if err := memory.take(6 * input.size); err != nil {
		return nil, err
	}
	defer memory.give(6 * input.size)
	text, err := input.bytes()
	if err != nil {
		return nil, err
	}
	binary, err := otlpjson.Request(text)
	if err != nil {
		return nil, badRequest.new("the JSON is no request of OpenTelemetry's profiles: " + err.Error())
	}
	converted, err := newUpload(p.spoolDir(), p.budget.of(req.caller), 5*maxJSON)
	if err != nil {
		return nil, err
	}
	if _, err := converted.Write(binary); err != nil {
		_ = converted.Close()
		return nil, err
	}
	return converted, nil
}

// bytes returns the written bytes. A worker may read the file at the same time.
func (u *upload) bytes() ([]byte, error) {
	b := make([]byte, u.size)
	_, err := u.ReadAt(b, 0)
	return b, err
}

// boundedReader fails behind most bytes. What is malformed is the body's fault.
type boundedReader struct {
	r      io.Reader
	most   int64
	isOver bool
}

// Read implements io.Reader.
func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	var body *bodyError
	if err != nil && !errors.Is(err, io.EOF) && !errors.As(err, &body) {
		err = &bodyError{err}
	}
	if b.most -= int64(n); b.most < 0 {
		b.isOver = true
		return 0, &bodyError{errors.New("it is too long")}
	}
	return n, err
}

// parcel is a request while it is passed on.
type parcel struct {
	*relay
	req     *request
	input   *upload // as it came
	headers map[string]string
	names   string // namesRequested, or why it goes without them
}

// namesRequested is that a worker has looked for names.
const namesRequested = "requested"

// pass passes a request on, with names if they come in time.
func (b *parcel) pass(ctx context.Context) (taken otlpexport.Answer, err error) {
	n := b.name(ctx)
	defer n.close()
	named, err := n.wait(ctx)
	if err != nil {
		return taken, err
	}
	if named != nil {
		taken, err = b.forward(ctx, named.size, named.read)
		if err == nil {
			b.count(named.answer)
		}
		_ = named.Close()
		var failed *otlpexport.Failure
		if !errors.As(err, &failed) || !failed.IsTooLarge {
			return taken, b.failure(err)
		}
		b.unnamed("too-large", "the collector takes no request of this size: it had "+fmt.Sprint(named.size)+" bytes with names")
	}
	taken, err = b.forward(ctx, b.input.size, b.input.bytes)
	return taken, b.failure(err)
}

// unnamed records that a request is passed on as it came.
func (b *parcel) unnamed(reason, detail string) {
	b.names = reason
	b.Log.Warn("profiles are passed on without names", append(b.req.describe(), "reason", reason, "detail", foreign(detail))...)
}

// count counts the frames of a parcel that was named.
func (b *parcel) count(a *answer) {
	b.metrics.named(&a.named)
	if problems := a.facts.Problems; len(problems) > 0 {
		b.Log.Debug("frames have no names", append(b.req.describe(), "why", foreign(strings.Join(problems, "; ")))...)
	}
}

// forward sends the bytes of a request to the collector.
func (b *parcel) forward(ctx context.Context, size int64, read func() ([]byte, error)) (taken otlpexport.Answer, err error) {
	memory := b.memory.of(b.req.caller)
	if err := memory.take(size); err != nil {
		return taken, err
	}
	defer memory.give(size)
	request, err := read()
	if err != nil {
		return taken, err
	}
	began := time.Now()
	taken, err = b.to.Forward(ctx, request, b.headers)
	b.metrics.forwarded(outcomeOfForward(taken, err), time.Since(began))
	if err == nil {
		b.metrics.passedOn(b.names, countProfiles(request))
	}
	return taken, err
}

// outcomeOfForward returns what became of a request that was sent to the collector.
func outcomeOfForward(taken otlpexport.Answer, err error) string {
	var failed *otlpexport.Failure
	switch {
	case err == nil && taken.Rejected > 0:
		return "rejected"
	case err == nil:
		return "taken"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "gone"
	case errors.As(err, &failed) && failed.IsTooLarge:
		return "too-large"
	case errors.As(err, &failed) && failed.IsInvalid:
		return "refused"
	}
	return "failed"
}

// The fields that lead to profiles (opentelemetry/proto/profiles/v1development/profiles.proto).
const (
	requestResources protowire.Number = 1
	resourceScopes   protowire.Number = 2
	scopeProfiles    protowire.Number = 2
)

// countProfiles counts the profiles of a request, up to where that is malformed.
func countProfiles(request []byte) int {
	return countMessages(request, requestResources, resourceScopes, scopeProfiles)
}

// countMessages counts the messages at a path of fields.
func countMessages(b []byte, path ...protowire.Number) (count int) {
	if len(path) == 0 {
		return 1
	}
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeField(b)
		if n < 0 {
			return count
		}
		if number == path[0] && kind == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(b)
			inner, _ := protowire.ConsumeBytes(b[tag:])
			count += countMessages(inner, path[1:]...)
		}
		b = b[n:]
	}
	return count
}

// failure makes a problem of why the collector did not take a request.
func (b *parcel) failure(err error) error {
	var failed *otlpexport.Failure
	switch {
	case err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errNoRoom):
		return err
	case !errors.As(err, &failed):
		failed = &otlpexport.Failure{}
	case failed.IsTooLarge:
		return tooMuch.new("the collector behind this server takes no request of this size: " + failed.Error())
	case failed.IsInvalid:
		return badRequest.new("the collector behind this server refuses it: " + failed.Error())
	}
	p := notTaken.new("the collector behind this server does not take it now: send it again later")
	p.retry, p.cause = max(retryAfter, failed.Wait), err
	return p
}

// naming is a worker's job of naming a parcel.
type naming struct {
	parcel   *parcel
	patience context.Context
	cancel   context.CancelFunc
	ended    chan struct{} // closed when answer and err are known
	answer   *answer       // nil: there is none
	err      error
}

// name begins to name a parcel. The work goes on when the patience of the sender ends.
func (b *parcel) name(ctx context.Context) *naming {
	n := &naming{parcel: b, ended: make(chan struct{})}
	patience := usualPatience
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(time.Until(deadline)/2, maxPatience)
	}
	n.patience, n.cancel = context.WithTimeout(ctx, patience)
	go func() {
		defer close(n.ended)
		n.answer, n.err = n.do(ctx)
	}()
	return n
}

// do has a worker name the parcel, and waits for the end of that.
func (n *naming) do(ctx context.Context) (*answer, error) {
	work, err := n.parcel.work(&pb.SymbolizeProfileOptions{Format: kindProfiles})
	if err != nil {
		return nil, err
	}
	work.Input = n.parcel.input.File
	if err := n.parcel.enqueue(n.patience, n.parcel.req); err != nil {
		return nil, err
	}
	a, err := n.parcel.run(context.WithoutCancel(ctx), n.parcel.req, work)
	if err == nil {
		<-a.done
	}
	return a, err
}

// wait returns the named parcel; nil: it is to be passed on as it came. The error is why it is not
// to be passed on at all.
func (n *naming) wait(ctx context.Context) (*namedParcel, error) {
	select {
	case <-n.ended:
	case <-n.patience.Done():
	}
	b := n.parcel
	select {
	case <-n.ended:
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(n.err, errBusy):
			return nil, n.err
		case errors.Is(n.err, context.DeadlineExceeded):
			b.unnamed("late", "no worker was free in time")
		case n.err != nil:
			p := problemOf(n.err)
			b.unnamed(p.name(), n.err.Error())
		default:
			return n.named()
		}
		return nil, nil
	default:
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		b.unnamed("late", "the names were not found in time; a worker goes on, for the next ones")
		return nil, nil
	}
}

// namedParcel is a parcel with names.
type namedParcel struct {
	*answer
	size int64
}

// named returns the named parcel; nil: it broke off, or is too large.
func (n *naming) named() (*namedParcel, error) {
	a := n.answer
	a.mu.Lock()
	size, err := a.size, a.err
	a.mu.Unlock()
	switch {
	case !errors.Is(err, io.EOF):
		n.parcel.unnamed(problemOf(err).name(), err.Error())
		return nil, nil
	case n.parcel.memory.of(n.parcel.req.caller).atMost(size) < size:
		n.parcel.unnamed("too-large", fmt.Sprintf("with names it has %d bytes", size))
		return nil, nil
	}
	n.answer = nil // it is the caller's now
	return &namedParcel{a, size}, nil
}

// read returns the bytes of the parcel.
func (n *namedParcel) read() ([]byte, error) {
	b := make([]byte, n.size)
	_, err := io.ReadFull(n.answer, b)
	return b, err
}

// close frees the parcel when the worker is through with it.
func (n *naming) close() {
	n.cancel()
	go func() {
		<-n.ended
		if n.answer != nil {
			_ = n.answer.Close()
		}
		_ = n.parcel.input.Close()
	}()
}

// viaHeader has the servers through which profiles came, so that a loop of them ends. A collector
// between them does not pass it on.
const viaHeader = "unwindd-via"

// maxVia bounds the bytes of viaHeader.
const maxVia = 512

// passedHeaders are the headers of a sender that are passed on: the tenant of Grafana's stores, and
// the trace and the words of whoever sends. Credentials are for this server alone.
var passedHeaders = []string{"x-scope-orgid", "traceparent", "tracestate", "baggage"}

// passedOn returns the headers of a sender for the collector.
func (p *relay) passedOn(h http.Header) (map[string]string, error) {
	via := h.Get(viaHeader)
	if strings.Contains(via, p.id) || len(via) > maxVia {
		return nil, loop.new("the profiles came through this server before: its collector sends them back")
	}
	list := map[string]string{viaHeader: strings.TrimPrefix(via+","+p.id, ",")}
	for _, name := range passedHeaders {
		if text := h.Get(name); text != "" && isPrintable(text) {
			list[name] = text
		}
	}
	return list, nil
}

// isPrintable reports whether a text may be metadata of gRPC.
func isPrintable(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}
