// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/unwindd/unwindd/engine/service/internal/reports"
	"github.com/unwindd/unwindd/engine/service/internal/worker"
	"github.com/unwindd/unwindd/engine/service/job"
	"github.com/unwindd/unwindd/internal/escape"
)

// problem is the reason why a request is not answered: problem details in HTTP (RFC 9457),
// a status in gRPC.
type problem struct {
	Type   string `json:"type"` // a path of the server, where a description is
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	// Request is the ID by which the server's log names the request.
	Request string `json:"request,omitempty"`

	code  codes.Code
	retry time.Duration // after which to come again; 0: never
	cause error         // for the log alone; nil: Detail has it
}

func (p *problem) Error() string { return p.Detail }

// problemKind is a kind of problem.
type problemKind struct {
	name   string
	title  string
	status int
	code   codes.Code
	about  string // the description at the type's path
}

// The kinds of problems.
var (
	badRequest   = &problemKind{"usage", "What was asked for has no meaning", 400, codes.InvalidArgument, "An option or a parameter is unknown, or has a value that it cannot have. The detail names it."}
	unauthorized = &problemKind{"unauthenticated", "The server does not know who asks", 401, codes.Unauthenticated, "This server takes a token (Authorization: Bearer TOKEN), or a client certificate."}
	forbidden    = &problemKind{"forbidden", "The request is not for this server", 403, codes.PermissionDenied, "The request names another host, or a page of another site has made it."}
	notFound     = &problemKind{"not-found", "Nobody here has it", 404, codes.NotFound, "No file with this build ID, or no report with this ID, is kept here, and no server that is asked for files has one."}
	unwanted     = &problemKind{"unwanted", "The file is larger than wanted", 406, codes.OutOfRange, "The caller has said how large a file it takes (X-DEBUGINFOD-MAXSIZE), and this one is larger."}
	tooSlow      = &problemKind{"too-slow", "What is sent does not come", 408, codes.DeadlineExceeded, "Less than 64 KiB came, or were taken, within the time for which the server waits for a caller."}
	mismatch     = &problemKind{"mismatch", "The file is another one", 409, codes.FailedPrecondition, "The file that was put has another build ID than the one that it was put for."}
	tooMuch      = &problemKind{"too-large", "Too much was sent", 413, codes.ResourceExhausted, "The body has more bytes than one request may have. A snapshot of a core is small: unwindd snapshot makes one."}
	unreadable   = &problemKind{"unreadable", "What was sent cannot be read", 422, codes.FailedPrecondition, "The body is no core, minidump, snapshot or recording, or is damaged where nothing can be said without it, or has none of what was asked for."}
	busy         = &problemKind{"busy", "Too many requests are under way", 429, codes.ResourceExhausted, "So many requests wait, of all callers or of this one, that another one is to come later: Retry-After says when."}
	overShare    = &problemKind{"over-share", "The caller has its share already", 429, codes.ResourceExhausted, "No caller has more of the server's connections, requests, memory, files and bytes on disk than what is left for others: one alone has half of them. That changes when its other requests end: Retry-After says when to come again."}
	died         = &problemKind{"died", "The process that read it died", 500, codes.Internal, "What was sent made the process that read it crash, or need more memory than a request may have. No other request is concerned."}
	unreached    = &problemKind{"unreached", "A server that may have it does not give it", 502, codes.Unavailable, "The file is not here. Of the servers that are asked for files one cannot be reached, or answers with something else, so that nothing is said about whether the file exists."}
	ending       = &problemKind{"ending", "The server ends", 503, codes.Unavailable, "The server takes no more requests, and answers those that it has."}
	timedOut     = &problemKind{"timed-out", "It takes too long", 504, codes.DeadlineExceeded, "The request took longer than one may."}
	longAnswer   = &problemKind{"long-answer", "The answer is too large", 507, codes.ResourceExhausted, "The report has more bytes than one may have: ask for fewer threads or frames."}
	noRoom       = &problemKind{"no-room", "The server's disk is full", 507, codes.ResourceExhausted, "There is no room for what was sent, or for the report. That changes, when other requests end or somebody makes room: Retry-After says when to come again."}
	notTaken     = &problemKind{"not-taken", "The collector does not take it now", 503, codes.Unavailable, "Profiles are passed on to a collector, which does not answer, or is overloaded. Retry-After says when to send them again."}
	loop         = &problemKind{"loop", "It came through here before", 421, codes.FailedPrecondition, "The collector to which this server passes profiles on sends them back to it."}
	canceled     = &problemKind{"canceled", "Nobody waits for it", 499, codes.Canceled, "The caller went away, or somebody canceled the job at the fleet that it was handed to."}
	failed       = &problemKind{"failed", "The server failed", 500, codes.Internal, "Something went wrong that is not the caller's. The server's log says more."}
)

// problemKinds has all kinds by their names.
var problemKinds = func() map[string]*problemKind {
	kinds := map[string]*problemKind{}
	for _, k := range []*problemKind{
		badRequest, unauthorized, forbidden, notFound, unwanted, tooSlow, mismatch, tooMuch, unreadable, busy, overShare, died, unreached, ending, timedOut, longAnswer, noRoom, notTaken, loop,
		canceled, failed,
	} {
		kinds[k.name] = k
	}
	return kinds
}()

// problemPath is the folder of the server's descriptions of problem types.
const problemPath = "/v1/problems/"

// new makes a problem of a kind.
func (k *problemKind) new(detail string) *problem {
	return &problem{Type: problemPath + k.name, Title: k.title, Status: k.status, Detail: detail, code: k.code}
}

// name returns the name of the problem's kind; "ok" for nil.
func (p *problem) name() string {
	if p == nil {
		return "ok"
	}
	return strings.TrimPrefix(p.Type, problemPath)
}

// retryAfter is the time after which a caller of a busy server is to come again.
const retryAfter = 2 * time.Second

// failureKinds maps failures of workers to kinds of problems.
var failureKinds = map[worker.Kind]*problemKind{
	worker.Usage: badRequest, worker.Input: unreadable, worker.Absent: notFound, worker.Canceled: canceled, worker.TimedOut: timedOut,
	worker.TooLarge: longAnswer, worker.NoRoom: noRoom, worker.Crashed: died,
}

// problemOf turns an error into a problem.
func problemOf(err error) *problem {
	var p *problem
	var f *worker.Failure
	var large *tooLargeError
	var tooLong *http.MaxBytesError
	var over *shareError
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.As(err, &f) && f.Kind == worker.NoRoom:
		p = noRoom.new("the server's disk is full")
		p.retry, p.cause = retryAfter, err // which names a folder of this machine
		return p
	case errors.As(err, &f):
		return failureKinds[f.Kind].new(f.Detail)
	case errors.Is(err, reports.ErrTooLarge):
		return longAnswer.new(err.Error())
	case errors.As(err, &large), errors.As(err, &tooLong):
		return tooMuch.new(err.Error())
	case errors.Is(err, job.ErrUsage):
		return badRequest.new(err.Error())
	case errors.As(err, &over) && over.isOwn:
		p = overShare.new(err.Error())
		p.retry = retryAfter
		return p
	case errors.Is(err, errBusy), errors.Is(err, errNoRoom):
		p = busy.new(err.Error())
		p.retry = retryAfter
		return p
	case errors.Is(err, errEnding):
		p = ending.new(err.Error())
		p.retry = retryAfter
		return p
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, errSilent):
		return tooSlow.new("nothing came for longer than the server waits, or less than 64 KiB")
	case errors.Is(err, context.Canceled), status.Code(err) == codes.Canceled: // gRPC's error of it
		return canceled.new("the caller went away")
	case errors.Is(err, context.DeadlineExceeded), status.Code(err) == codes.DeadlineExceeded:
		return timedOut.new("the caller's deadline passed")
	}
	// Its text may tell about this machine.
	p = failed.new("the server's log says why")
	p.cause = err
	return p
}

// errEnding: the server takes no more requests. errSilent: a caller sends nothing.
var (
	errEnding = errors.New("the server ends")
	errSilent = errors.New("nothing came")
)

// write answers a request by the problem.
func (p *problem) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if p.retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int(p.retry/time.Second)))
	}
	if p.code == codes.Unauthenticated {
		h.Set("WWW-Authenticate", `Bearer realm="unwindd"`)
	}
	w.WriteHeader(p.Status)
	if b, err := escape.AppendJSON(nil, p, ""); err == nil {
		_, _ = w.Write(b) // the caller may be gone
	}
}

// answer answers a request, which may be a call of gRPC, by the problem.
func (p *problem) answer(w http.ResponseWriter, r *http.Request) {
	if isCall(r) {
		p.writeCall(w)
	} else {
		p.write(w)
	}
}

// writeCall answers a call of gRPC by the problem.
func (p *problem) writeCall(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", callType)
	h.Set("Grpc-Status", strconv.Itoa(int(p.code)))
	h.Set("Grpc-Message", url.PathEscape(p.Detail))
	if details, err := proto.Marshal(p.GRPCStatus().Proto()); err == nil {
		h.Set("Grpc-Status-Details-Bin", base64.RawStdEncoding.EncodeToString(details)) // when to come again
	}
	w.WriteHeader(http.StatusOK)
}

// GRPCStatus is for gRPC, where a problem is the error of a message that does not come.
func (p *problem) GRPCStatus() *status.Status { return status.Convert(p.status()) }

// status returns the problem as a status of gRPC.
func (p *problem) status() error {
	s := status.New(p.code, p.Detail)
	if p.retry > 0 {
		if detailed, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(p.retry)}); err == nil {
			s = detailed
		}
	}
	return s.Err()
}
