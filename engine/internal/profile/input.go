// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/internal/unpack"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// open opens a recording, while the plugin of its architecture starts if it has stacks to walk. problems describe damage of
// the file that it came packed in.
func (k *Maker) open(ctx context.Context, path string, o *trace.ProfileOptions) (f *perfdata.File, problems []string, err error) {
	in, err := k.unpacked(path, o)
	if err != nil {
		return nil, nil, err
	}
	return k.openFrom(ctx, path, in, o)
}

// openFrom is open for a file that was unpacked; nil where it was not.
func (k *Maker) openFrom(ctx context.Context, path string, packed *unpack.Input, o *trace.ProfileOptions) (f *perfdata.File, problems []string, err error) {
	if err := cmp.Or(openRoots(o.Roots), openPerfMaps(o.PerfMaps)); err != nil {
		return nil, nil, err
	}
	switch {
	case packed != nil:
		k.startPlugin(ctx, perfdata.MappedStackMachine(packed.Mapping))
		f, err = perfdata.OpenMapped(path, packed.Mapping, o.Size, k.Unpacking)
		problems = packed.Problems
	default:
		k.startPlugin(ctx, perfdata.StackMachine(path))
		f, err = perfdata.OpenStart(path, o.Size, k.Unpacking)
	}
	if err != nil {
		return nil, nil, err
	}
	f.SetRoots(o.Roots)
	return f, problems, nil
}

// unpacked returns the recording in a packed file, or in the options' Input; nil where the path is
// of a recording as perf writes it.
func (k *Maker) unpacked(path string, o *trace.ProfileOptions) (input *unpack.Input, err error) {
	file := o.Input
	if file == nil {
		if !isRegular(path) || !unpack.IsPacked(path) {
			return nil, nil // perfdata has the words for errors
		}
		input, err = unpack.Open(path, k.Unpacking)
	} else {
		input, err = unpack.Read(file, path, k.Unpacking)
	}
	if errors.Is(err, object.ErrEmpty) {
		err = fmt.Errorf("%s: %w: it is empty", path, perfdata.ErrNotPerfData)
	}
	return input, err
}

func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
