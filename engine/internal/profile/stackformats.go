// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"errors"
	"os"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/target/stacktext"
	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
	"github.com/unwindd/unwindd/engine/internal/unpack"
	"github.com/unwindd/unwindd/engine/object"
)

// stackFormats are the formats of files with stacks that other profilers wrote. The first that
// accepts a file counts.
var stackFormats = []struct {
	accepts func(data []byte) bool
	read    func(path string, data []byte) (*stacktree.File, error)
}{
	{byHead(stacktext.IsScript), stacktext.ReadScript},
	{byHead(stacktext.IsFolded), stacktext.ReadFolded},
}

// headBytes is how many first bytes tell the format of a text.
const headBytes = 64 << 10

// byHead adapts a function that tells a format by the first bytes of a file; isWhole: there are
// no more.
func byHead(accepts func(head []byte, isWhole bool) bool) func(data []byte) bool {
	return func(data []byte) bool { return accepts(data[:min(len(data), headBytes)], len(data) <= headBytes) }
}

// recordings are the first bytes of recordings of perf, of either byte order.
var recordings = []string{"PERFILE2", "2ELIFREP"}

// openStacks reads a file with stacks that another profiler wrote, packed or not; nil for a file
// of another kind, and where there is none.
func (k *Maker) openStacks(path string) (*stacktree.File, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, nil //nolint:nilerr,nilnil // the reader of recordings says it
	}
	head, err := unpack.Head(path)
	if err != nil || len(head) < 8 || slices.Contains(recordings, string(head[:8])) {
		return nil, nil //nolint:nilerr,nilnil // likewise
	}
	in, err := unpack.Open(path, k.Unpacking)
	if errors.Is(err, object.ErrEmpty) {
		return nil, nil //nolint:nilnil // likewise
	}
	if err != nil {
		return nil, err
	}
	defer in.Mapping.Close()
	var f *stacktree.File
	err = object.Guard(func() (err error) {
		data := in.Mapping.Data()
		for i := range stackFormats {
			if stackFormats[i].accepts(data) {
				f, err = stackFormats[i].read(path, data)
				return err
			}
		}
		return nil
	})
	if err != nil || f == nil {
		return nil, err
	}
	f.Problems = append(f.Problems, in.Problems...)
	return f, nil
}

// errNoStacks is the error for a further file that has no stacks.
var errNoStacks = errors.New("expected a trace or stacks as text: of several files, at most the first may be a recording of perf")

// openAllStacks reads the files with stacks of other profilers: further ones, and the first where
// it is one; rest is the first where it is none.
func (k *Maker) openAllStacks(first string, further []string) (list []*stacktree.File, rest string, err error) {
	for i, path := range append([]string{first}, further...) {
		if path == "" {
			continue
		}
		f, err := k.openStacks(path)
		switch {
		case err != nil:
			return nil, "", err
		case f != nil:
			list = append(list, f)
		case i == 0:
			rest = path
		default:
			if _, err := os.Stat(path); err != nil {
				return nil, "", err
			}
			return nil, "", &os.PathError{Op: "read", Path: path, Err: errNoStacks}
		}
	}
	return list, rest, nil
}
