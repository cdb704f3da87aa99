// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"errors"
	"io"
	"math"
	"os"

	"github.com/unwindd/unwindd/internal/host"
)

// Sink takes the bytes of a target that is unpacked.
type Sink interface {
	// WriteAt writes bytes behind all that were written before; between them are zeros.
	io.WriterAt
	// Free returns the number of free bytes where they go, and the place in words, "in DIR";
	// "": it is not known.
	Free() (bytes int64, where string)
	// Finish ends the writing, and returns the file of a size, at its beginning. The caller closes it.
	Finish(size int64) (*os.File, error)
	// Drop gives up the bytes. It is called once, when neither the file nor a mapping of it is used any more.
	Drop()
}

// ErrRefused is wrapped by errors of a Sink that takes no more: what it has is of no use.
var ErrRefused = errors.New("it cannot be unpacked")

// Create makes a Sink: that of the options, or a temporary file.
func Create(o Options) (Sink, error) {
	if o.Create != nil {
		return o.Create()
	}
	var dirs []string
	switch {
	case o.Dir != "":
		dirs = []string{o.Dir}
	case os.Getenv("TMPDIR") != "":
		dirs = []string{os.TempDir()}
	default:
		dirs = []string{"/var/tmp", os.TempDir()}
	}
	var err error
	for _, dir := range dirs {
		var f *os.File
		if f, err = Nameless(dir); err == nil {
			return &temporary{File: f, dir: dir}, nil
		}
	}
	return nil, err
}

// temporary is a Sink that is a file without a name.
type temporary struct {
	*os.File
	dir      string
	finished bool // its caller closes it
}

// Free implements Sink.
func (t *temporary) Free() (bytes int64, where string) {
	free, ok := host.FreeBytes(t.File)
	if !ok {
		return 0, ""
	}
	return int64(min(free, math.MaxInt64)), "in " + t.dir //nolint:gosec // bounded
}

// Finish implements Sink.
func (t *temporary) Finish(size int64) (*os.File, error) {
	if err := t.Truncate(size); err != nil {
		return nil, err
	}
	_, err := t.Seek(0, io.SeekStart)
	t.finished = err == nil
	return t.File, err
}

// Drop implements Sink: the bytes go with the file and its mappings.
func (t *temporary) Drop() {
	if !t.finished {
		_ = t.Close()
	}
}
