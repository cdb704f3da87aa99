// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/unwindd/unwindd/engine/service/internal/objects"
	"github.com/unwindd/unwindd/engine/service/internal/worker"
	"github.com/unwindd/unwindd/engine/service/job"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// kept returns which files of a build ID are stored.
func (s *Server) kept(id []byte) *pb.ObjectFiles {
	return &pb.ObjectFiles{Executable: s.store.Find(id, objects.Executable) != "", Debuginfo: s.store.Find(id, objects.DebugInfo) != ""}
}

// put stores a file, which send writes, if a worker finds that it has the build ID.
// wasThere: all of it was stored before.
func (s *Server) put(ctx context.Context, req *request, id []byte, send func(io.Writer) error) (wasThere bool, err error) {
	part, err := s.store.Create()
	if err != nil {
		return false, err
	}
	defer part.Close()
	out := &limited{Writer: part, most: s.now().Body, budget: s.budget}
	defer out.release()
	if err := send(out); err != nil {
		return false, err
	}
	return s.keepPart(ctx, req, part, id)
}

// keepPart stores a file that was sent, if it has the build ID.
func (s *Server) keepPart(ctx context.Context, req *request, part *objects.Part, id []byte) (wasThere bool, err error) {
	a, err := s.begin(ctx, req, &worker.Request{Job: &job.Job{Identify: &job.Identify{}}, Input: part.File, Name: "object"})
	if err != nil {
		return false, err
	}
	defer a.Close()
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return false, err
	}
	<-a.done
	found := a.object
	if found == nil {
		return false, errors.New("a worker has identified a file, and does not say what it is")
	}
	if found.BuildID != hex.EncodeToString(id) {
		return false, mismatch.new(fmt.Sprintf("the file has build ID %s, expected %x", found.BuildID, id))
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
		return wasThere, nil
	}
	if err := part.Keep(id, kinds...); err != nil {
		return false, err
	}
	if s.offload != nil {
		s.offload.connection.share(ctx, id, kinds)
	}
	return false, nil
}

// limited bounds the bytes that are written, and takes them from the budget of all
// requests.
type limited struct {
	io.Writer
	most    int64
	budget  *budget
	written int64
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if l.written+int64(len(p)) > l.most {
		return 0, &tooLargeError{l.most}
	}
	if err := l.budget.take(int64(len(p))); err != nil {
		return 0, err
	}
	l.written += int64(len(p))
	return l.Writer.Write(p)
}

// release returns the bytes to the budget: they are in the store of objects now, or gone.
func (l *limited) release() { l.budget.used.Add(-l.written) }
