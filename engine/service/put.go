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

	"github.com/unwindd/unwindd/engine/service/internal/objects"
	"github.com/unwindd/unwindd/engine/service/internal/worker"
	"github.com/unwindd/unwindd/engine/service/job"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// unnamedObject is the name of an object in problems, where its caller gave none.
const unnamedObject = "object"

// kept returns which files of a build ID are stored.
func (s *Server) kept(id []byte) *pb.ObjectFiles {
	return &pb.ObjectFiles{Executable: s.store.Find(id, objects.Executable) != "", Debuginfo: s.store.Find(id, objects.DebugInfo) != ""}
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
	var kinds []string
	if !found.IsDebugFile {
		kinds = append(kinds, objects.Executable)
	}
	if found.HasDebugInfo {
		kinds = append(kinds, objects.DebugInfo)
	}
	wasThere = true
	for _, kind := range kinds {
		wasThere = wasThere && s.store.Find(id, kind) != ""
	}
	if wasThere || len(kinds) == 0 {
		return id, wasThere, nil
	}
	if err := part.Keep(id, kinds...); err != nil {
		return nil, false, err
	}
	if s.offload != nil {
		s.offload.connection.share(ctx, id, kinds)
	}
	return id, false, nil
}

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
		return nil, errors.New("a worker has identified a file, and does not say what it is")
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
