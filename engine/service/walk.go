// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/service/internal/objects"
	"github.com/unwindd/unwindd/engine/service/internal/remote"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// This file walks targets that stay with the caller: the worker's questions go to the
// caller, except for files that are stored here.

// Walk implements servicepb.UnwinddServer.
func (c *calls) Walk(st grpc.BidiStreamingServer[pb.WalkRequest, pb.WalkResponse]) error {
	return c.counted(st.Context(), "walk", func(req *request) error {
		first, err := st.Recv()
		if err != nil || first.GetOptions() == nil {
			return orProblem(err, badRequest.new("the first message has no options"))
		}
		s := c.server
		work, err := s.work(first.GetOptions())
		if err != nil {
			return err
		}
		w := newWalk(s, req, st)
		defer w.close()
		if err := w.receiveHead(first.GetOptions().GetHeadSize()); err != nil {
			return err
		}
		work.Input, work.Asker = w.head.File, w.ask
		a, err := s.begin(w.ctx, req, work)
		if err != nil {
			return w.why(err)
		}
		defer a.Close()
		go func() {
			<-a.done
			w.worked()
		}()
		if err := w.report(a); err != nil {
			return w.why(err)
		}
		w.keep(req)
		return nil
	})
}

// errGone ends questions that are not answered any more.
var errGone = errors.New("the caller is gone")

// patienceWithAll bounds how long a walk takes: the time for the work, and so many times the
// time that a caller has for an answer.
const patienceWithAll = 10

// maxQuestions bounds the open questions of a walk.
const maxQuestions = 32

// walk is a walk that is under way.
type walk struct {
	server *Server
	req    *request
	stream grpc.BidiStreamingServer[pb.WalkRequest, pb.WalkResponse]
	ctx    context.Context // ended when the caller does not answer
	end    context.CancelCauseFunc
	head   *upload
	places chan struct{} // for questions

	sending sync.Mutex
	came    atomic.Int64 // bytes of parts of files; an answer that is whole counts as leastBytes

	mu      sync.Mutex
	sent    int64       // bytes from the caller
	number  uint64      // of the last question
	late    *time.Timer // ends the walk; nil before the first question
	waiting map[uint64]*pending
	files   []*walkFile
	partial map[uint32]*walkFile // by module: code objects of which a part came
}

// pending is a question that the caller has to answer.
type pending struct {
	answer *pb.Answer    // the last part
	file   *walkFile     // that comes; nil: no file was requested
	done   chan struct{} // closed once answer is there
}

// walkFile is a file of a module that the caller sent.
type walkFile struct {
	*objects.Part
	size    int64            // bytes that came
	buildID []byte           // claimed by the worker's question; none: the file is not stored
	whole   uint64           // the size that the file is said to have
	next    int64            // where the next part goes of a file that comes whole
	there   []*pb.FileExtent // of a file of which parts came; none: all of it is there
}

// write writes a part of the file.
func (f *walkFile) write(a *pb.FileAnswer) error {
	data := a.GetData()
	if !a.GetPlaced() {
		_, err := f.WriteAt(data, f.next)
		f.next += int64(len(data))
		return err
	}
	size := uint64(len(data))
	if a.GetOffset() > f.whole || size > f.whole-a.GetOffset() {
		return badRequest.new(fmt.Sprintf("%d bytes at offset %d of a file of %d bytes", size, a.GetOffset(), f.whole))
	}
	if n := len(f.there); n > 0 && f.there[n-1].Offset+f.there[n-1].Size == a.GetOffset() {
		f.there[n-1].Size += size
	} else if f.there = append(f.there, &pb.FileExtent{Offset: a.GetOffset(), Size: size}); n >= maxExtents {
		return badRequest.new(fmt.Sprintf("a file in more than %d parts", maxExtents))
	}
	_, err := f.WriteAt(data, int64(a.GetOffset())) //nolint:gosec // below its size
	return err
}

// joinedExtents sorts extents, and joins those that follow one another.
func joinedExtents(list []*pb.FileExtent) (out []*pb.FileExtent) {
	slices.SortFunc(list, func(a, b *pb.FileExtent) int { return cmp.Compare(a.GetOffset(), b.GetOffset()) })
	for _, e := range list {
		if n := len(out); n > 0 && out[n-1].Offset+out[n-1].Size >= e.Offset {
			out[n-1].Size = max(out[n-1].Size, e.Offset+e.Size-out[n-1].Offset)
			continue
		}
		out = append(out, e)
	}
	return out
}

// maxExtents bounds the parts of a file that do not follow one another.
const maxExtents = 1 << 12

// begin makes the file as long as it is said to be: what is not there of it takes no disk.
func (f *walkFile) begin(most int64) error {
	if f.whole > uint64(most) { //nolint:gosec // positive
		return &tooLargeError{most}
	}
	return f.Truncate(int64(f.whole)) //nolint:gosec // below most
}

func newWalk(s *Server, req *request, st grpc.BidiStreamingServer[pb.WalkRequest, pb.WalkResponse]) *walk {
	w := &walk{server: s, req: req, stream: st, places: make(chan struct{}, maxQuestions), waiting: map[uint64]*pending{}, partial: map[uint32]*walkFile{}}
	w.ctx, w.end = context.WithCancelCause(st.Context())
	return w
}

// why returns why a walk failed: a caller who is gone or is at fault is the reason, whatever
// the worker made of the questions that were not answered.
func (w *walk) why(err error) error {
	if cause := context.Cause(w.ctx); cause != nil {
		return cause
	}
	return err
}

// close frees the resources of the walk.
func (w *walk) close() {
	w.end(nil)
	if w.head != nil {
		_ = w.head.Close()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	own := w.server.budget.of(w.req.caller)
	for _, f := range w.files {
		own.give(f.size)
		_ = f.Close()
		own.shut()
	}
	w.files = nil
}

// boundAll ends the walk when its caller takes too long for all answers together: it keeps a worker.
func (w *walk) boundAll() {
	l := w.server.now()
	w.late = time.AfterFunc(l.Time+patienceWithAll*l.Idle, func() {
		w.end(timedOut.new(fmt.Sprintf("the caller took too long for its answers: all of them together have %d times the %v that one has", patienceWithAll, l.Idle)))
	})
}

// worked ends the bound of all answers, when the worker has none to wait for.
func (w *walk) worked() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.late != nil {
		w.late.Stop()
	}
}

// receiveHead receives the head, and starts receiving answers.
func (w *walk) receiveHead(size uint64) (err error) {
	s := w.server
	if size == 0 || size > remote.MaxHead || size > uint64(s.now().Body) { //nolint:gosec // positive
		return badRequest.new(fmt.Sprintf("a head of %d bytes, expected at most %d", size, min(remote.MaxHead, s.now().Body)))
	}
	if w.head, err = newUpload(s.spoolDir(), s.budget.of(w.req.caller), s.now().Body); err != nil {
		return err
	}
	w.req.gate.setPace(bytesInTime)
	for uint64(w.head.size) < size { //nolint:gosec // positive
		m, err := w.stream.Recv()
		if errors.Is(err, io.EOF) {
			return badRequest.new("the stream ended before the head did")
		}
		if err != nil {
			return err
		}
		if len(m.GetHead()) == 0 || uint64(w.head.size)+uint64(len(m.GetHead())) > size { //nolint:gosec // positive
			return badRequest.new(fmt.Sprintf("expected the head of %d bytes", size))
		}
		s.metrics.received(int64(len(m.GetHead())))
		if _, err := w.head.Write(m.GetHead()); err != nil {
			return err
		}
	}
	w.sent = w.head.size
	w.req.gate.setPace(inOwnTime)
	go func() { w.end(w.receive()) }()
	return nil
}

// receive receives answers, until the caller is gone.
func (w *walk) receive() error {
	for {
		m, err := w.stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil // it has the report, or does not want it any more
		}
		if err != nil {
			return err
		}
		a := m.GetAnswer()
		if a == nil {
			return badRequest.new("expected an answer")
		}
		if err := w.take(a); err != nil {
			return err
		}
	}
}

// take takes an answer, or a part of one.
func (w *walk) take(a *pb.Answer) error {
	n := int64(proto.Size(a))
	w.server.metrics.received(n)
	w.mu.Lock()
	q := w.waiting[a.GetNumber()]
	w.sent += n
	tooMany := w.sent > w.server.now().Body
	w.mu.Unlock()
	switch {
	case q == nil:
		return badRequest.new(fmt.Sprintf("an answer to question %d, which is not open", a.GetNumber()))
	case tooMany:
		return &tooLargeError{w.server.now().Body}
	}
	part, isFile := a.GetAbout().(*pb.Answer_File)
	if isFile {
		if q.file == nil {
			return badRequest.new(fmt.Sprintf("a file as the answer to question %d, which asks for none", a.GetNumber()))
		}
		size := int64(len(part.File.GetData()))
		if err := w.server.budget.of(w.req.caller).take(size); err != nil {
			return err
		}
		q.file.size += size
		if err := q.file.write(part.File); err != nil {
			return err
		}
		if part.File.Data = nil; !part.File.GetEnded() {
			w.came.Add(size)
			return nil
		}
	}
	w.mu.Lock()
	delete(w.waiting, a.GetNumber())
	w.mu.Unlock()
	q.answer = a
	w.came.Add(leastBytes)
	close(q.done)
	return nil
}

// ask implements worker.Asker.
func (w *walk) ask(question []byte) (answer []byte, path string, err error) {
	q := &pb.Question{}
	if err := proto.Unmarshal(question, q); err != nil {
		return nil, "", err
	}
	if path := w.known(q.GetFile()); path != "" && w.partOf(q.GetFile()) == nil {
		answer, err = proto.Marshal(&pb.Answer{About: &pb.Answer_File{File: &pb.FileAnswer{Ended: true}}})
		return answer, path, err
	}
	select {
	case w.places <- struct{}{}:
		defer func() { <-w.places }()
	case <-w.ctx.Done():
		return nil, "", errGone
	}
	a, path, err := w.askCaller(q)
	if err != nil {
		return nil, "", err
	}
	answer, err = proto.Marshal(a)
	return answer, path, err
}

// known returns the path of a file that the caller need not send: it is stored here, or a
// server has it. A file of another size is another file, such as a stripped one.
func (w *walk) known(q *pb.FileQuestion) string {
	var f object.RemoteFile
	switch q.GetKind() {
	case pb.FileQuestion_OBJECT:
		f.Kind = object.RemoteExecutable
	case pb.FileQuestion_DEBUG:
		f.Kind = object.RemoteDebuginfo
	default:
		return ""
	}
	if q == nil || len(q.GetBuildId()) < objects.MinID || len(q.GetBuildId()) > objects.MaxID {
		return ""
	}
	f.BuildID = q.GetBuildId()
	path, _ := w.server.remote(w.req.caller).Fetch(f)
	if path == "" {
		return ""
	}
	if info, err := os.Stat(path); err != nil || info.Size() != int64(q.GetSize()) { //nolint:gosec // a negative size is another file's
		return ""
	}
	return path
}

// askCaller asks the caller.
func (w *walk) askCaller(q *pb.Question) (*pb.Answer, string, error) {
	waits := &pending{done: make(chan struct{})}
	if about := q.GetFile(); about != nil {
		var err error
		if waits.file, err = w.fileFor(about); err != nil {
			return nil, "", err
		}
	}
	w.mu.Lock()
	if w.ctx.Err() != nil { // w.files are not stored any more
		isNew := waits.file != nil && !slices.Contains(w.files, waits.file)
		w.mu.Unlock()
		if isNew {
			_ = waits.file.Close()
			w.server.budget.of(w.req.caller).shut()
		}
		return nil, "", errGone
	}
	if w.number++; w.late == nil {
		w.boundAll()
	}
	q.Number = w.number
	w.waiting[q.Number] = waits
	if waits.file != nil && !slices.Contains(w.files, waits.file) {
		w.files = append(w.files, waits.file)
	}
	w.mu.Unlock()
	if err := w.send(&pb.WalkResponse{Part: &pb.WalkResponse_Question{Question: q}}); err != nil {
		return nil, "", err
	}
	if err := w.await(waits.done); err != nil {
		return nil, "", err
	}
	if waits.file != nil && waits.answer.GetFile() != nil {
		w.fileCame(q.GetFile(), waits)
		return waits.answer, waits.file.Name(), nil
	}
	return waits.answer, "", nil
}

// partOf returns the file of a module of which a part came; nil: none did.
func (w *walk) partOf(q *pb.FileQuestion) *walkFile {
	if q.GetKind() != pb.FileQuestion_OBJECT {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.partial[q.GetModule()]
}

// fileFor returns the file that the answer to a question goes to: a new one, or the one of which the caller sends
// more.
func (w *walk) fileFor(q *pb.FileQuestion) (*walkFile, error) {
	f := w.partOf(q)
	isObject := q.GetKind() == pb.FileQuestion_OBJECT
	if f == nil {
		var err error
		if f, err = w.newFile(); err != nil {
			return nil, err
		}
		if q.GetOutline() && isObject {
			f.whole = q.GetSize()
			if err := f.begin(w.server.now().Body); err != nil {
				w.server.budget.of(w.req.caller).shut()
				return nil, errors.Join(err, f.Close())
			}
		}
	}
	if isObject || q.GetKind() == pb.FileQuestion_DEBUG {
		f.buildID = q.GetBuildId()
	}
	f.next = 0
	return f, nil
}

// fileCame tells a worker what it has of a file that came, or of which more came.
func (w *walk) fileCame(q *pb.FileQuestion, p *pending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := p.file
	f.there = joinedExtents(f.there)
	if f.next > 0 || len(f.there) == 1 && f.there[0].Offset == 0 && f.there[0].Size == f.whole { // all of it came
		f.there = nil
	}
	if len(f.there) == 0 {
		if w.partial[q.GetModule()] == f {
			delete(w.partial, q.GetModule())
		}
		return
	}
	w.partial[q.GetModule()] = f
	p.answer.GetFile().There = f.there
}

// newFile begins a file that the caller sends.
func (w *walk) newFile() (*walkFile, error) {
	own := w.server.budget.of(w.req.caller)
	if err := own.open(); err != nil {
		w.end(err)
		return nil, err
	}
	part, err := w.server.store.Create()
	if err != nil {
		own.shut()
		return nil, err
	}
	return &walkFile{Part: part}, nil
}

// await waits for an answer. A caller who answers no question for long ends the walk:
// sending a byte now and then does not keep a worker waiting.
func (w *walk) await(done chan struct{}) error {
	idle := w.server.now().Idle
	silent := time.NewTimer(idle)
	defer silent.Stop()
	for {
		came := w.came.Load()
		select {
		case <-done:
			return nil
		case <-w.ctx.Done():
			return errGone
		case <-silent.C:
			if w.came.Load()-came < leastBytes {
				w.end(errSilent)
				return errSilent
			}
			silent.Reset(idle)
		}
	}
}

// send sends a message, one at a time. A caller that takes none for long ends the walk.
func (w *walk) send(m *pb.WalkResponse) error {
	w.sending.Lock()
	err := w.stream.Send(m)
	w.sending.Unlock()
	if err != nil {
		w.end(err)
	}
	return err
}

// report sends the report.
func (w *walk) report(a *answer) error {
	return sendParts(w.server, a, func(r *pb.Report) error {
		if end := r.GetEnd(); end != nil {
			return w.send(&pb.WalkResponse{Part: &pb.WalkResponse_End{End: end}})
		}
		return w.send(&pb.WalkResponse{Part: &pb.WalkResponse_Data{Data: r.GetData()}})
	})
}

// keep stores the files that the caller sent, where a worker confirms their build IDs. The
// caller, who has its report, may be gone.
func (w *walk) keep(req *request) {
	ctx := context.WithoutCancel(w.stream.Context())
	w.mu.Lock()
	files := w.files
	w.mu.Unlock()
	for _, f := range files {
		if len(f.buildID) == 0 || len(f.there) > 0 { // a part of a file is not kept
			continue
		}
		if _, _, err := w.server.keepPart(ctx, req, sentObject{name: unnamedObject, id: f.buildID}, f.Part); err != nil {
			w.server.Log.Warn("a file of a target is not kept", "request", req.id, "reason", err.Error())
		}
	}
}
