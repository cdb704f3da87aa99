// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/unwindd/unwindd/engine/service/job"
	"github.com/unwindd/unwindd/engine/service/objects"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// kept says which files of a build ID are kept.
func (s *Server) kept(id []byte) *pb.ObjectFiles {
	return &pb.ObjectFiles{Executable: s.store.Find(id, objects.Executable) != "", Debuginfo: s.store.Find(id, objects.DebugInfo) != ""}
}

// put keeps a file, which send writes, if it is of a build ID: a worker reads that of it.
// wasThere says that all of it was kept before.
func (s *Server) put(ctx context.Context, of *request, id []byte, send func(io.Writer) error) (wasThere bool, err error) {
	part, err := s.store.Create()
	if err != nil {
		return false, err
	}
	defer part.Close()
	to := &limited{Writer: part, most: s.now().Body, budget: s.budget}
	defer to.giveBack()
	if err := send(to); err != nil {
		return false, err
	}
	return s.keepPart(ctx, of, part, id)
}

// keepPart keeps a file that was sent, if it is of a build ID.
func (s *Server) keepPart(ctx context.Context, of *request, part *objects.Part, id []byte) (wasThere bool, err error) {
	a, err := s.begin(ctx, of, &job.Job{Identify: &job.Identify{}}, part.File, "object")
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
	if s.handover != nil {
		s.handover.link.share(ctx, id, kinds)
	}
	return false, nil
}

// limited writes at most a number of bytes, and takes them from the budget of all requests.
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

// giveBack gives the bytes back to the budget: they are kept with other objects now, or gone.
func (l *limited) giveBack() { l.budget.used.Add(-l.written) }
