// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/service/fleet"
	"github.com/unwindd/unwindd/engine/service/objects"
	"github.com/unwindd/unwindd/engine/target/perfdata"
)

// This file submits recordings.

const (
	// partBytes is the size of a recording for which a part pays. Each part's worker gets all of
	// the recording, which takes longer than walking it (docs/scaling.md): a smaller one is not
	// faster in parts.
	partBytes = 512 << 20
	// usualParts is the default bound of the parts of a recording.
	usualParts = 16
)

// partsOf returns the number of parts of a recording, by --parts, else by its size. A
// recording that is packed, or is a folder or a series, is not divided.
func (f *submitFlags) partsOf(size int64, isPlain bool) int {
	switch {
	case !isPlain:
		return 1
	case f.parts > 0:
		return f.parts
	}
	return int(min(size/partBytes+1, usualParts))
}

// isPlainRecording reports whether a file begins as a recording does.
func isPlainRecording(file io.ReaderAt) bool {
	var b [8]byte
	_, err := file.ReadAt(b[:], 0)
	return err == nil && (string(b[:]) == "PERFILE2" || string(b[:]) == "2ELIFREP")
}

// sendRecorded sends the code that processes with samples had mapped, and its debug information,
// where the recording has the build IDs.
func (f *submitFlags) sendRecorded(ctx context.Context, q *fleet.Queue, e *engine.Engine, path string) error {
	mapped, _ := mappedCode(path) // the job's result will have the error
	finder := e.Finder(path)
	for _, m := range mapped {
		found := finder.Find(m.Path, m.BuildID, false)
		if found.Object == nil {
			continue
		}
		var err error
		if found.Checked { // else it may be another file
			err = f.sendCode(ctx, q, m.BuildID, found.Object, func() object.Found { return finder.FindDebug(found.Object) })
		}
		if err := errors.Join(err, found.Object.Close()); err != nil {
			return err
		}
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
				if m.Executable && len(m.BuildID) >= objects.MinID && len(m.BuildID) <= objects.MaxID && !files[key] {
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
