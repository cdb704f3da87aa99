// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/unpack"
	"github.com/unwindd/unwindd/engine/object"
)

// perf record --switch-output begins a new file from time to time, and renames the one
// before: perf.data.2024043018025117, by the moment down to a hundredth of a second.
// Each is a recording, but the mappings and names of processes are only in the file of
// their time: without the files before it, a file may have samples of unknown processes.
const seriesDigits = 16

// seriesNames returns the files of a divided recording, the oldest first; none where
// the path itself is a file.
func seriesNames(path string) (names []string) {
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil
	}
	for _, e := range entries { // by name, and so by time
		digits, ok := strings.CutPrefix(e.Name(), filepath.Base(path)+".")
		if ok && len(digits) == seriesDigits && strings.Trim(digits, "0123456789") == "" && e.Type().IsRegular() {
			names = append(names, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	return names
}

// openSeries opens files as one recording: the newest, and the files before it of the
// same run of perf.
func openSeries(path string, names []string, o unpack.Options) (*File, error) {
	all := &File{path: path, unpacking: o, maxRuns: MaxRuns, counts: map[RecordType]uint64{}}
	if len(names) > maxParts {
		all.problems.add("%d files of the recording, of which the last %d are read", len(names), maxParts)
		names = names[len(names)-maxParts:]
	}
	for _, name := range slices.Backward(names) {
		if err := all.openEarlier(name); err != nil && len(all.areas) == 0 {
			all.Close()
			return nil, fmt.Errorf("%s: %w", name, err)
		} else if err != nil {
			all.problems.add("%s is not read: %v", filepath.Base(name), err)
		}
	}
	slices.Reverse(all.areas)
	for i := range all.areas {
		all.areas[i].isLater = i > 0
	}
	if err := object.Guard(func() error { all.readRecords(); return nil }); err != nil {
		all.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

var errOtherRun = errors.New("it is of another run of perf record")

// openEarlier adds a file that is older than the ones added before. The newest one
// decides which run of perf the others must be of.
func (f *File) openEarlier(name string) error {
	m, err := object.Map(name)
	if errors.Is(err, object.ErrEmpty) {
		return fmt.Errorf("%w: the file is empty", ErrNotPerfData)
	}
	if err != nil {
		return err
	}
	one := &File{path: name, unpacking: f.unpacking, mapping: m}
	err = object.Guard(func() error { return one.readStart(m.Data()) })
	if err == nil && len(f.areas) > 0 && !one.attrs.isOfSameRun(&f.attrs) {
		err = errOtherRun
	}
	if err != nil {
		return errors.Join(err, m.Close())
	}
	f.mapped = append(f.mapped, m)
	a := one.areas[0]
	a.name = filepath.Base(name)
	for _, p := range one.problems.list.Kept() {
		f.problems.add("%s: %s", a.name, p)
	}
	if len(f.areas) == 0 {
		f.order, f.isPipe, f.attrs, f.features, f.buildIDs = one.order, one.isPipe, one.attrs, one.features, one.buildIDs
		f.tracepoints = one.tracepoints
	} else {
		f.addEarlier(one)
	}
	f.areas = append(f.areas, a)
	return nil
}

// addEarlier adds the features of an earlier file.
func (f *File) addEarlier(one *File) {
	x, y := &f.features, &one.features
	if y.FirstSample > 0 {
		x.FirstSample = y.FirstSample
	}
	for _, b := range y.BuildIDs {
		if len(x.BuildIDs) < maxBuildIDs && f.buildIDs[b.Path] == nil {
			x.BuildIDs = append(x.BuildIDs, b)
		}
	}
	if f.buildIDs == nil {
		f.buildIDs = map[string][]byte{}
	}
	for path, id := range one.buildIDs {
		if f.buildIDs[path] == nil {
			f.buildIDs[path] = id
		}
	}
}

// isOfSameRun reports whether two files have the same events: the kernel gives no id
// twice.
func (a *attrs) isOfSameRun(b *attrs) bool {
	same := func(x, y Attr) bool { return x.Type == y.Type && x.Config == y.Config && x.hasSameFields(&y) }
	return slices.EqualFunc(a.list, b.list, same) && len(a.ids) > 0 && maps.Equal(a.ids, b.ids)
}
