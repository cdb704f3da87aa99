// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/target/applereport"
	"github.com/unwindd/unwindd/engine/internal/target/chrometrace"
	"github.com/unwindd/unwindd/engine/internal/target/cuptipc"
	"github.com/unwindd/unwindd/engine/internal/target/nsys"
	"github.com/unwindd/unwindd/engine/internal/target/otlpstacks"
	"github.com/unwindd/unwindd/engine/internal/target/pprofstacks"
	"github.com/unwindd/unwindd/engine/internal/target/stacktext"
	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
	"github.com/unwindd/unwindd/engine/internal/unpack"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// stackFormats are the formats of files with stacks that other profilers wrote. The first that
// accepts a file counts.
var stackFormats = []struct {
	accepts func(data []byte) bool
	read    func(path string, data []byte) (*stacktree.File, error)
}{
	{chrometrace.Accepts, chrometrace.Read},
	{pprofstacks.IsPprof, pprofstacks.Read},
	{otlpstacks.Accepts, otlpstacks.Read},
	{cuptipc.Accepts, cuptipc.Read},
	{nsys.AcceptsDatabase, nsys.ReadDatabase},
	{nsys.AcceptsLines, nsys.ReadLines},
	{applereport.IsTree, applereport.ReadTrees},
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

// readStacks reads a file with stacks that another profiler wrote, and closes it; nil for a file
// of another kind, which stays open.
func readStacks(path string, input *unpack.Input) (f *stacktree.File, err error) {
	err = object.Guard(func() (err error) {
		data := input.Mapping.Data()
		if slices.Contains(recordings, string(data[:min(len(data), len(recordings[0]))])) {
			return nil
		}
		for i := range stackFormats {
			if stackFormats[i].accepts(data) {
				f, err = stackFormats[i].read(path, data)
				return err
			}
		}
		return nil
	})
	if f != nil || err != nil {
		err = errors.Join(err, input.Mapping.Close())
	}
	if err != nil || f == nil {
		return nil, err
	}
	f.Problems = append(f.Problems, input.Problems...)
	return f, nil
}

// errNoStacks is the error for a further file that has no stacks.
var errNoStacks = errors.New("expected a trace, or stacks as text: of several files only the first may be another recording")

// openAllStacks reads the files with stacks of other profilers: further ones, and the first where
// it is one. input is the first where it is none, and was unpacked.
func (k *Maker) openAllStacks(first string, o *trace.ProfileOptions) (list []*stacktree.File, input *unpack.Input, err error) {
	if first != "" {
		input, err = k.unpacked(first, o)
		if err == nil && input == nil && isOtherFile(first) {
			input, err = unpack.Open(first, k.Unpacking)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if input != nil {
		f, err := readStacks(first, input)
		if err != nil {
			return nil, nil, err
		}
		if f != nil {
			list, input = append(list, f), nil
		}
	}
	for _, path := range o.Traces {
		f, err := k.openStacks(path)
		if err != nil {
			if input != nil {
				err = errors.Join(err, input.Mapping.Close())
			}
			return nil, nil, err
		}
		list = append(list, f)
	}
	return list, input, nil
}

// openStacks reads a further file of stacks.
func (k *Maker) openStacks(path string) (*stacktree.File, error) {
	in, err := unpack.Open(path, k.Unpacking)
	if err != nil {
		return nil, err
	}
	f, err := readStacks(path, in)
	if err == nil && f == nil {
		err = errors.Join(fmt.Errorf("%s: %w", path, errNoStacks), in.Mapping.Close())
	}
	return f, err
}

// isOtherFile reports whether a path is of a regular file that is no recording of perf, and not
// empty.
func isOtherFile(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false
	}
	head, err := unpack.Head(path)
	return err == nil && len(head) > 0 && !slices.Contains(recordings, string(head[:min(len(head), len(recordings[0]))]))
}
