// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/engine/service/fleet"
	"github.com/unwindd/unwindd/engine/service/internal/objects"
	"github.com/unwindd/unwindd/engine/service/internal/worker"
	"github.com/unwindd/unwindd/engine/service/job"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// unnamedObject is the name of an object in problems, where its caller gave none.
const unnamedObject = "object"

// kept returns which files of a build ID are stored for a caller: his own, or another's.
func (s *Server) kept(caller string, id []byte) *pb.ObjectFiles {
	view := s.store.Of(caller)
	return &pb.ObjectFiles{Executable: view.Find(id, objects.Executable) != "", Debuginfo: view.Find(id, objects.DebugInfo) != ""}
}

// sentObject is a file of code or debug information that a caller sends.
type sentObject struct {
	name string // in problems
	id   []byte // the build ID that it has to have; nil: any

	identify job.Identify // further questions
}

// put stores a file, which send writes, under the build ID that a worker finds in it.
// wasThere: all of it was stored before.
func (s *Server) put(ctx context.Context, req *request, o sentObject, send func(io.Writer) error) (id []byte, wasThere bool, err error) {
	part, err := s.store.Create()
	if err != nil {
		return nil, false, err
	}
	defer part.Close()
	own := s.budget.of(req.caller)
	if err := own.open(); err != nil {
		return nil, false, err
	}
	defer own.shut()
	out := &limited{Writer: part, most: own.atMost(s.now().Body), share: own}
	defer out.release()
	if err := send(out); err != nil {
		return nil, false, err
	}
	return s.keepPart(ctx, req, o, part)
}

// keepPart stores a file that was sent, if it has the build ID that it has to have.
func (s *Server) keepPart(ctx context.Context, req *request, o sentObject, part *objects.Part) (id []byte, wasThere bool, err error) {
	found, err := s.identify(ctx, req, o, part.File)
	if err != nil {
		return nil, false, err
	}
	switch id, err = hex.DecodeString(found.BuildID); {
	case err != nil:
		return nil, false, err
	case o.id != nil && !bytes.Equal(id, o.id):
		return nil, false, mismatch.new(fmt.Sprintf("the file has build ID %x, expected %x", id, o.id))
	case len(id) < objects.MinID || len(id) > objects.MaxID:
		return nil, false, unreadable.new(fmt.Sprintf("%s: its build ID has %d bytes, expected %d to %d", o.name, len(id), objects.MinID, objects.MaxID))
	}
	kinds := kindsOf(found)
	if len(kinds) == 0 {
		return id, true, nil
	}
	if wasThere, err = part.Keep(req.caller, id, kinds...); err != nil {
		return nil, false, err
	}
	s.changed(ctx, id)
	return id, wasThere, nil
}

// kindsOf returns the kinds of a file.
func kindsOf(o *job.Object) (kinds []string) {
	if !o.IsDebugFile {
		kinds = append(kinds, objects.Executable)
	}
	if o.HasDebugInfo {
		kinds = append(kinds, objects.DebugInfo)
	}
	return kinds
}

// changed has the files of a build ID looked for anew: one was put, or removed.
func (s *Server) changed(ctx context.Context, id []byte) {
	s.pool.Forget(id)
	s.differing.forget()
	if s.offload != nil {
		s.offload.connection.share(ctx, id)
	}
}

// remove removes the files of a build ID that a caller put; of an operator, whatever callers put.
func (s *Server) remove(ctx context.Context, caller string, id []byte) error {
	remove, whose := s.store.Of(caller).Remove, "by you"
	if isOperator(ctx) {
		remove, whose = s.store.Remove, "here"
	}
	ok, err := remove(id)
	if err != nil {
		return err
	}
	if !ok {
		return notFound.new(fmt.Sprintf("no file of build ID %x was put %s", id, whose))
	}
	s.changed(ctx, id)
	return nil
}

// differing are the callers with files of their own that others do not get.
type differing struct {
	mu    sync.Mutex
	known map[string]bool // by caller; since the last change
}

func (d *differing) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known = nil
}

// differs reports whether a caller has files of his own that others do not get.
func (s *Server) differs(caller string) bool {
	d := &s.differing
	d.mu.Lock()
	defer d.mu.Unlock()
	is, ok := d.known[caller]
	if ok {
		return is
	}
	is, err := s.store.Of(caller).Differs()
	if err != nil {
		return true
	}
	if d.known == nil {
		d.known = map[string]bool{}
	}
	d.known[caller] = is
	return is
}

// isOperator reports whether the caller is the server's own user, or root, by a Unix socket.
func isOperator(ctx context.Context) bool {
	user, ok := ctx.Value(peerKey).(string)
	return ok && (user == userName(os.Getuid()) || user == userName(0))
}

// userName returns the name of a caller by a Unix socket.
func userName(uid int) string { return fmt.Sprintf("uid %d", uid) }

// checkFile implements fleet.Check. A process of its own reads the file.
func (s *Server) checkFile(ctx context.Context, f *os.File, id []byte, kind string) error {
	o, err := s.checks.Do(ctx, &worker.Request{Job: &job.Job{Identify: &job.Identify{}}, Input: f, Name: unnamedObject, Output: nothing{}})
	var failure *worker.Failure
	switch {
	case errors.As(err, &failure) && slices.Contains(faultsOfFiles, failure.Kind):
		return &fleet.WrongFile{Reason: failure.Detail}
	case err != nil:
		return err
	case o.Object == nil:
		return errUnidentified
	case o.Object.BuildID != hex.EncodeToString(id):
		return &fleet.WrongFile{Reason: fmt.Sprintf("the file has build ID %.200s, expected %x", o.Object.BuildID, id)}
	case !slices.Contains(kindsOf(o.Object), kind):
		return &fleet.WrongFile{Reason: fmt.Sprintf("the file of build ID %x is no %s", id, kind)}
	}
	return nil
}

// faultsOfFiles are the failures of reading a file that come again with it.
var faultsOfFiles = []worker.Kind{worker.Input, worker.Crashed, worker.TimedOut}

// nothing takes the report of a job that has none.
type nothing struct{}

// Write implements io.Writer.
func (nothing) Write(p []byte) (int, error) { return len(p), nil }

// Restart implements worker.Output.
func (nothing) Restart() bool { return true }

// errUnidentified is the error of a worker that does not do what it has to.
var errUnidentified = errors.New("a worker has identified a file, and does not say what it is")

// identify has a worker read which code object a file is.
func (s *Server) identify(ctx context.Context, req *request, o sentObject, file *os.File) (*job.Object, error) {
	a, err := s.begin(ctx, req, &worker.Request{Job: &job.Job{Identify: &o.identify}, Input: file, Name: o.name})
	if err != nil {
		return nil, err
	}
	defer a.Close()
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return nil, err
	}
	<-a.done
	if a.object == nil {
		return nil, errUnidentified
	}
	return a.object, nil
}

// limited bounds the bytes that are written, and takes them from the budget of all
// requests.
type limited struct {
	io.Writer
	most    int64
	share   share
	written int64
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if l.written+int64(len(p)) > l.most {
		return 0, &tooLargeError{l.most}
	}
	if err := l.share.take(int64(len(p))); err != nil {
		return 0, err
	}
	l.written += int64(len(p))
	return l.Writer.Write(p)
}

// release returns the bytes to the budget: they are in the store of objects now, or gone.
func (l *limited) release() { l.share.give(l.written) }
