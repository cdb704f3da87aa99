// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/service/internal/objects"
)

// SendFiles stores the files of code and debug information of a target at path, which e opens,
// as far as they are on this machine and not in the queue. A target that cannot be opened has
// none: its job's result will have the error.
func (q *Queue) SendFiles(ctx context.Context, e *engine.Engine, path string) error {
	t, err := e.Open(path)
	if err != nil {
		return nil
	}
	defer t.Close()
	for _, m := range t.Process().Loaded() {
		if m.Object == nil || !isObjectID(m.BuildID) || m.File == "" {
			continue
		}
		if err := q.sendCode(ctx, m.BuildID, m.Object, m.Code.FindDebug); err != nil {
			return err
		}
	}
	return nil
}

// SendRecordedFiles is SendFiles for the code that processes with samples had mapped in a
// recording, as far as the recording has the build IDs.
func (q *Queue) SendRecordedFiles(ctx context.Context, e *engine.Engine, path string) error {
	mapped, _ := mappedCode(path) // the job's result will have the error
	finder := e.Finder(path)
	for _, m := range mapped {
		found := finder.Find(m.Path, m.BuildID, false)
		if found.Object == nil {
			continue
		}
		var err error
		if found.Checked { // else it may be another file
			err = q.sendCode(ctx, m.BuildID, found.Object, func() object.Found { return finder.FindDebug(found.Object) })
		}
		if err := errors.Join(err, found.Object.Close()); err != nil {
			return err
		}
	}
	return nil
}

// isObjectID reports whether a store of objects takes files of a build ID.
func isObjectID(id []byte) bool { return len(id) >= objects.MinID && len(id) <= objects.MaxID }

// sendCode stores a code object, and its debug information.
func (q *Queue) sendCode(ctx context.Context, id []byte, o *object.Object, findDebug func() object.Found) error {
	if err := q.sendObject(ctx, id, objects.Executable, o); err != nil {
		return err
	}
	debug := findDebug()
	if debug.Object == nil {
		return nil
	}
	defer debug.Object.Close()
	return q.sendObject(ctx, id, objects.DebugInfo, debug.Object)
}

func (q *Queue) sendObject(ctx context.Context, id []byte, kind string, o *object.Object) error {
	sent, err := q.PutObject(ctx, id, kind, bytes.NewReader(o.Data()))
	if err != nil {
		return err
	}
	if sent {
		q.say("%s: %d bytes were sent to the queue as %s of %x", o.Name(), len(o.Data()), kind, id)
	}
	return nil
}

// mappedCode returns the mappings with code of the processes that have samples, one for each
// file.
func mappedCode(path string) (list []perfdata.Mapping, err error) {
	file, err := perfdata.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	spaces, files := map[uint64]bool{}, map[string]bool{}
	for r := file.Reader(); ; {
		b, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range b.Samples {
			s := b.Samples[i].Space
			if s == nil || spaces[s.Code] {
				continue
			}
			spaces[s.Code] = true
			for m := range s.All() {
				key := m.Path + "\x00" + string(m.BuildID)
				if m.Executable && isObjectID(m.BuildID) && !files[key] {
					files[key] = true
					one := *m
					one.BuildID = slices.Clone(m.BuildID) // the file's memory is released
					list = append(list, one)
				}
			}
		}
		b.Release()
	}
}
