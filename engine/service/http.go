// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/service/internal/objects"
	"github.com/unwindd/unwindd/engine/service/internal/reports"
	"github.com/unwindd/unwindd/engine/service/internal/worker"
	"github.com/unwindd/unwindd/engine/service/job"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// objectsPath is the path of objects, each by its build ID.
const objectsPath = "/v1/objects/"

// routes returns the handler of all paths of HTTP.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	stack, profile := &pb.StackOptions{}, &pb.ProfileOptions{}
	mux.Handle("POST /v1/stack", s.counted("stack", s.job(stack, s.send)))
	mux.Handle("POST /v1/profile", s.counted("profile", s.job(profile, s.send)))
	mux.Handle("POST /v1/reports/stack", s.counted("stack", s.ifKept(s.job(stack, s.keep))))
	mux.Handle("POST /v1/reports/profile", s.counted("profile", s.ifKept(s.job(profile, s.keep))))
	mux.Handle("GET "+reportsPath+"{id}", s.counted("reports", s.getReport))
	mux.Handle("DELETE "+reportsPath+"{id}", s.counted("reports", s.removeReport))
	mux.Handle("GET /{$}", s.counted("page", s.showPage))
	mux.Handle("POST /v1/snapshot", s.counted("snapshot", s.job(&pb.SnapshotOptions{}, s.send)))
	mux.Handle("POST /v1/eval", s.counted("eval", s.job(&pb.EvaluateOptions{}, s.send)))
	mux.Handle("POST /v1/symbolize", s.counted("symbolize", s.symbolize))
	mux.Handle("POST /v1/otlp/symbolize", s.counted("symbolize", s.job(&pb.SymbolizeProfileOptions{Format: "otlp"}, s.send)))
	mux.Handle("POST /v1/pprof/symbolize", s.counted("symbolize", s.job(&pb.SymbolizeProfileOptions{Format: "pprof"}, s.send)))
	mux.Handle("POST /v1/objects", s.counted("objects", s.addObject))
	mux.Handle("PUT "+objectsPath+"{id}", s.counted("objects", s.putObject))
	mux.Handle("GET "+objectsPath+"{id}", s.counted("objects", s.findObject))
	mux.Handle("DELETE "+objectsPath+"{id}", s.counted("objects", s.removeObject))
	mux.Handle("GET /{file}/{id}/{leaf}", s.counted("symbols", s.giveByKey))
	mux.HandleFunc("GET "+problemPath+"{name}", aboutProblem)
	mux.HandleFunc("GET /healthz", s.health)
	mux.Handle("GET /metrics", s.metrics.handler())
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		p := notFound.new(fmt.Sprintf("there is nothing at %s %s", r.Method, r.URL.Path))
		p.Request = requestOf(r.Context()).id
		p.write(w)
	})
	byID := s.counted("debuginfod", s.giveByID)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isBuildID(r) { // the mux would redirect paths of source files with ".." and "//"
			byID.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// setParametersOf sets the fields of options that the parameters of a request name.
func setParametersOf(o proto.Message, r *http.Request) error {
	parameters, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badRequest.new("the parameters cannot be read: " + err.Error())
	}
	return setParameters(o, parameters)
}

// handler answers a request. The error becomes its problem, if nothing was written yet.
type handler func(w http.ResponseWriter, r *http.Request, req *request) error

// counted records that a request is under way, and how it ended.
func (s *Server) counted(kind string, answer handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := requestOf(r.Context())
		leave, err := s.enter()
		if err == nil {
			defer leave()
			err = answer(w, r, req)
		}
		var broken *brokenError
		switch {
		case err == nil:
			s.end(req, kind, nil)
		case errors.As(err, &broken):
			// Part of the report was sent: the connection breaks off, which every client
			// takes for a failure.
			s.end(req, kind, problemOf(broken.error))
			panic(http.ErrAbortHandler)
		default:
			p := problemOf(err)
			p.Request = req.id
			s.end(req, kind, p)
			p.write(w)
		}
	})
}

// brokenError is the error of a report that breaks off: a part of it was sent.
type brokenError struct{ error }

// job returns a handler that runs a job on the body of a request, and passes its report to give.
// Parameters set the job's options, which are a message like usual.
func (s *Server) job(usual proto.Message, give func(http.ResponseWriter, *answer, reports.Header) error) handler {
	return func(w http.ResponseWriter, r *http.Request, req *request) error {
		options := proto.Clone(usual)
		if err := setParametersOf(options, r); err != nil {
			return err
		}
		work, err := s.work(options)
		if err != nil {
			return err
		}
		input, err := s.receive(r, req)
		if err != nil {
			return err
		}
		defer input.Close()
		a, err := s.beginOn(r.Context(), req, work, input)
		if err != nil {
			return err
		}
		defer a.Close()
		defer input.closeAfter(a)
		return give(w, a, reports.Header{Name: work.Name, Type: contentType(work.Job)})
	}
}

// receive takes the body of a request into a file.
func (s *Server) receive(r *http.Request, req *request) (*upload, error) {
	own := s.budget.of(req.caller)
	if most := own.atMost(s.now().Body); r.ContentLength > most {
		return nil, &tooLargeError{most}
	}
	input, err := s.newInput(own, req.caller, s.now().Body)
	if err != nil {
		return nil, err
	}
	var n int64
	err = s.within(r.Context(), "receive", func(context.Context, trace.Span) (err error) {
		n, err = io.Copy(input, bodyReader{r.Body})
		return err
	})
	s.metrics.received(n)
	if err != nil {
		_ = input.Close()
		return nil, cutShort(err)
	}
	return input, nil
}

// cutShort makes the error of a body that ended too early, or is malformed, the caller's.
func cutShort(err error) error {
	var body *bodyError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.Canceled), !errors.As(err, &body):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return badRequest.new("the body ended before its length")
	}
	return badRequest.new("the body cannot be read: " + body.Error())
}

// bodyError is an error of reading a body.
type bodyError struct{ error }

func (e *bodyError) Unwrap() error { return e.error }

// bodyReader tells errors of a body from errors of the place where it goes.
type bodyReader struct{ io.Reader }

// Read implements io.Reader. Its errors are bodyErrors, except the end of the body.
func (r bodyReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &bodyError{err}
	}
	return n, err
}

// Trailers of an answer, for facts that its report does not have.
const (
	trailerStatus = "Unwindd-Status" // ok, or unwalked: nothing could be walked for lack of an architecture
	trailerDetail = "Unwindd-Detail" // why, or what a report lacks
)

// send sends a report while it comes.
func (s *Server) send(w http.ResponseWriter, a *answer, h reports.Header) error {
	w.Header().Set("Content-Type", h.Type)
	w.Header().Set("Trailer", trailerStatus+", "+trailerDetail)
	b := copyBuffers.Get().(*[copyBuffer]byte)
	defer copyBuffers.Put(b)
	buf := b[:]
	for {
		n, err := a.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return &brokenError{canceled.new("the caller took nothing more: " + err.Error())}
			}
			s.metrics.sent(n)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return &brokenError{err}
		}
	}
	<-a.done
	w.Header().Set(trailerStatus, "ok")
	if problems := strings.Join(a.facts.Problems, "; "); problems != "" {
		w.Header().Set(trailerDetail, fmt.Sprintf("%.4000s", strconv.QuoteToASCII(problems)))
	}
	if a.facts.Unwalked != "" {
		w.Header().Set(trailerStatus, "unwalked")
		w.Header().Set(trailerDetail, strconv.QuoteToASCII(a.facts.Unwalked))
	}
	return nil
}

// contentTypes has the types of the formats of reports.
var contentTypes = map[string]string{
	"text": "text/plain; charset=utf-8", "json": "application/json", "html": "text/html; charset=utf-8", "markdown": "text/markdown; charset=utf-8", "breakpad": "application/json",
	"folded": "text/plain; charset=utf-8", "speedscope": "application/json", "firefox": "application/json",
	"pprof": "application/octet-stream", "otlp": "application/x-protobuf",
}

func contentType(j *job.Job) string {
	switch {
	case j.Stack != nil:
		return contentTypes[j.Stack.Format]
	case j.Profile != nil:
		return contentTypes[j.Profile.Format]
	case j.Evaluate != nil:
		return contentTypes[j.Evaluate.Format]
	case j.Symbolize != nil:
		return contentTypes["json"]
	case j.SymbolizeProfile != nil:
		return contentTypes[j.SymbolizeProfile.Format]
	case j.Compare != nil:
		return "application/octet-stream"
	}
	return "application/zip"
}

// maxAddresses bounds the addresses of a batch, maxBatch its bytes.
const (
	maxAddresses = 1 << 20
	maxBatch     = 32 << 20
)

// symbolize answers a batch of addresses with a JSON array in llvm-symbolizer's format.
func (s *Server) symbolize(w http.ResponseWriter, r *http.Request, req *request) error {
	var o pb.SymbolizeRequest
	if err := setParametersOf(&o, r); err != nil {
		return err
	}
	addresses := fromParameter(o.Addresses)
	o.Addresses = nil
	work, err := s.work(&o)
	if err != nil {
		return err
	}
	batch, err := s.receiveBatch(w, r, req)
	if err != nil {
		return err
	}
	batch = append(batch, addresses...)
	a, err := s.symbols(r.Context(), req, work, batch)
	if err != nil {
		return err
	}
	defer a.Close()
	w.Header().Set("Content-Type", contentTypes["json"])
	return s.sendArray(w, a, len(batch))
}

// batchCost bounds how many bytes of memory a batch in JSON takes for each of its bytes.
const batchCost = 6

// receiveBatch reads the addresses of a body, when there is memory for that.
func (s *Server) receiveBatch(w http.ResponseWriter, r *http.Request, req *request) ([]address, error) {
	size := r.ContentLength
	if size < 0 {
		size = maxBatch
	}
	own, cost := s.memory.of(req.caller), min(size, maxBatch)*batchCost
	if err := own.await(r.Context(), s.now().Idle, cost); err != nil {
		return nil, err
	}
	defer own.give(cost)
	body := http.MaxBytesReader(w, io.NopCloser(bodyReader{r.Body}), maxBatch)
	batch, err := readBatch(body)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, body) // blanks
	return batch, cutShort(err)
}

// readBatch reads the addresses of a body, at most maxAddresses.
func readBatch(body io.Reader) ([]address, error) {
	var batch struct {
		Addresses batch `json:"addresses"`
	}
	if err := json.NewDecoder(body).Decode(&batch); err != nil {
		var tooLong *http.MaxBytesError
		var unread *bodyError
		switch {
		case errors.As(err, &tooLong):
			return nil, err
		case errors.As(err, &unread):
			return nil, cutShort(err)
		}
		return nil, badRequest.new(`expected {"addresses":["0x1234",...]}: ` + err.Error())
	}
	return batch.Addresses, nil
}

// batch is a list of addresses in JSON.
type batch []address

// UnmarshalJSON implements json.Unmarshaler.
func (b *batch) UnmarshalJSON(text []byte) error {
	if n := bytes.Count(text, []byte(",")) + 1; n > maxAddresses {
		return fmt.Errorf("%d addresses, expected 1 to %d", n, maxAddresses)
	}
	return json.Unmarshal(text, (*[]address)(b))
}

// sendArray sends lines of JSON as an array of them, while they come.
func (s *Server) sendArray(w http.ResponseWriter, a *answer, lines int) error {
	out := bufio.NewWriterSize(w, maxPart)
	_ = out.WriteByte('[') // Flush returns the first error
	input, seen := bufio.NewReaderSize(a, maxPart), 0
	for {
		part, err := input.ReadSlice('\n')
		line, isWhole := bytes.CutSuffix(part, []byte("\n"))
		_, _ = out.Write(line) // likewise
		if isWhole {
			if seen++; seen < lines {
				_, _ = out.WriteString(",\n") // likewise
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return &brokenError{err}
		}
	}
	if seen != lines {
		return &brokenError{failed.new(fmt.Sprintf("%d answers to %d addresses", seen, lines))}
	}
	_, _ = out.WriteString("]\n") // likewise
	if err := out.Flush(); err != nil {
		return &brokenError{canceled.new("the caller took nothing more: " + err.Error())}
	}
	return nil
}

func fromParameter(list []uint64) (out []address) {
	for _, a := range list {
		out = append(out, address(a))
	}
	return out
}

// symbols begins the answer of a job that writes a line for each address.
func (s *Server) symbols(ctx context.Context, req *request, work *worker.Request, addresses []address) (*answer, error) {
	if len(addresses) == 0 || len(addresses) > maxAddresses {
		return nil, badRequest.new(fmt.Sprintf("%d addresses, expected 1 to %d", len(addresses), maxAddresses))
	}
	input, err := newUpload(s.spoolDir(), s.budget.of(req.caller), maxBatch)
	if err != nil {
		return nil, err
	}
	defer input.Close()
	b := bufio.NewWriter(input)
	for _, a := range addresses {
		if _, err := fmt.Fprintf(b, "0x%x\n", uint64(a)); err != nil {
			return nil, err
		}
	}
	if err := b.Flush(); err != nil {
		return nil, err
	}
	work.Input = input.File
	return s.begin(ctx, req, work)
}

// maxAnswer bounds the bytes of the answer to a batch by gRPC, as text.
const maxAnswer = 32 << 20

// answerCost bounds how many bytes of memory such an answer takes for each of its bytes.
const answerCost = 4

// symbolLines returns the lines of symbols, and the memory that they take.
func (s *Server) symbolLines(ctx context.Context, req *request, work *worker.Request, addresses []address) (lines [][]byte, memory int64, err error) {
	a, err := s.symbols(ctx, req, work, addresses)
	if err != nil {
		return nil, 0, err
	}
	defer a.Close()
	<-a.done // the worker is there for others, and the size is known
	if a.length() > maxAnswer {
		return nil, 0, longAnswer.new(fmt.Sprintf("the answer has more than %d bytes: ask for fewer addresses", maxAnswer))
	}
	own, memory := s.memory.of(req.caller), a.length()*answerCost
	if err := own.await(ctx, s.now().Idle, memory); err != nil {
		return nil, 0, err
	}
	all, err := io.ReadAll(a)
	if err == nil {
		if lines = bytes.Split(bytes.TrimSuffix(all, []byte("\n")), []byte("\n")); len(lines) != len(addresses) {
			err = failed.new(fmt.Sprintf("%d answers to %d addresses", len(lines), len(addresses)))
		}
	}
	if err != nil {
		own.give(memory)
		return nil, 0, err
	}
	return lines, memory, nil
}

// address is an address in JSON: a number, or a number in C's syntax as a string.
type address uint64

// UnmarshalJSON implements json.Unmarshaler.
func (a *address) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), `"`)
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return fmt.Errorf("address %s: expected a number, or one as \"0x1234\"", b)
	}
	*a = address(n)
	return nil
}

// putObject stores a file that was sent.
func (s *Server) putObject(w http.ResponseWriter, r *http.Request, req *request) error {
	id, err := objectID(r)
	if err != nil {
		return err
	}
	_, was, err := s.takeObject(r, req, sentObject{name: unnamedObject, id: id})
	if err != nil {
		return err
	}
	if was {
		w.WriteHeader(http.StatusNoContent)
	} else {
		w.WriteHeader(http.StatusCreated)
	}
	return nil
}

// addObject stores a file that was sent under the build ID that it has, and answers with the ID.
func (s *Server) addObject(w http.ResponseWriter, r *http.Request, req *request) error {
	parameters, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badRequest.new("the parameters cannot be read: " + err.Error())
	}
	for name := range parameters {
		if name != "name" {
			return badRequest.new(fmt.Sprintf("there is no parameter %q, expected name", name))
		}
	}
	name := nameOf(parameters.Get("name"), unnamedObject)
	id, was, err := s.takeObject(r, req, sentObject{name: name})
	if err != nil {
		return err
	}
	files := s.kept(req.caller, id)
	if !files.Executable && !files.Debuginfo {
		return unreadable.new(name + ": it has neither code nor debug information")
	}
	w.Header().Set("Content-Type", contentTypes["json"])
	w.Header().Set("Location", fmt.Sprintf("%s%x", objectsPath, id))
	if !was {
		w.WriteHeader(http.StatusCreated)
	}
	return writeObject(w, id, files)
}

// takeObject stores the body of a request as an object.
func (s *Server) takeObject(r *http.Request, req *request, o sentObject) (id []byte, was bool, err error) {
	if most := s.budget.of(req.caller).atMost(s.now().Body); r.ContentLength > most {
		return nil, false, &tooLargeError{most}
	}
	return s.put(r.Context(), req, o, func(out io.Writer) error {
		return s.within(r.Context(), "receive", func(context.Context, trace.Span) error {
			n, err := io.Copy(out, bodyReader{r.Body})
			s.metrics.received(n)
			return cutShort(err)
		})
	})
}

// findObject answers with the files of a build ID that are stored.
func (s *Server) findObject(w http.ResponseWriter, r *http.Request, req *request) error {
	id, err := objectID(r)
	if err != nil {
		return err
	}
	files := s.kept(req.caller, id)
	if !files.Executable && !files.Debuginfo {
		return notFound.new(fmt.Sprintf("no file of build ID %x is kept here", id))
	}
	w.Header().Set("Content-Type", contentTypes["json"])
	return writeObject(w, id, files)
}

// removeObject removes what the caller has put.
func (s *Server) removeObject(w http.ResponseWriter, r *http.Request, req *request) error {
	id, err := objectID(r)
	if err != nil {
		return err
	}
	if err := s.remove(r.Context(), req.caller, id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// writeObject writes which files of a build ID are stored.
func writeObject(w io.Writer, id []byte, files *pb.ObjectFiles) error {
	return report.WriteJSON(w, struct {
		BuildID    string `json:"build_id"`
		Executable bool   `json:"executable"`
		DebugInfo  bool   `json:"debuginfo"`
	}{hex.EncodeToString(id), files.Executable, files.Debuginfo})
}

func objectID(r *http.Request) ([]byte, error) {
	id, err := hex.DecodeString(r.PathValue("id"))
	if err != nil || len(id) < objects.MinID || len(id) > objects.MaxID {
		return nil, badRequest.new(fmt.Sprintf("build ID %q: expected %d to %d bytes in hexadecimal", r.PathValue("id"), objects.MinID, objects.MaxID))
	}
	return id, nil
}

// aboutProblem answers with the description of a type of problem.
func aboutProblem(w http.ResponseWriter, r *http.Request) {
	k := problemKinds[r.PathValue("name")]
	if k == nil {
		notFound.new("there is no problem of this name").write(w)
		return
	}
	w.Header().Set("Content-Type", contentTypes["text"])
	_, _ = fmt.Fprintf(w, "%s (status %d)\n\n%s\n", k.title, k.status, k.about) // the caller may be gone
}

// health answers with ok while the server takes requests.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	leave, err := s.enter()
	if err != nil {
		problemOf(err).write(w)
		return
	}
	leave()
	w.Header().Set("Content-Type", contentTypes["text"])
	_, _ = io.WriteString(w, "ok\n") // likewise
}
