// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
)

// isSplit reports whether the unit is the skeleton of a split one (DWARF 5, 3.1.2).
func (b *body) isSplit() bool { return b.dwoName != "" && b.file.suffix == "" }

// splitOf returns the split unit of a skeleton; any other unit is returned as it is. Where
// the split unit cannot be found, it records a problem and returns the skeleton.
func (r *Reader) splitOf(b *body) (*body, error) {
	if !b.isSplit() {
		return b, nil
	}
	u, err := b.split.get(func() (*unit, error) { return r.findSplit(b) })
	if err != nil {
		r.problem(fmt.Sprintf("%s: unit at %#x: its functions are in the split file %s: %v", b.section(), b.offset, b.dwoName, err))
		return b, nil
	}
	return u.open()
}

// findSplit looks for a split unit in the object's package, then in its own file.
func (r *Reader) findSplit(b *body) (*unit, error) {
	if !b.hasDwoID {
		return nil, errors.New("the unit has no DW_AT_GNU_dwo_id")
	}
	p, err := r.dwp.get(r.openPackage)
	if err == nil && p != nil {
		var u *unit
		if u, err = p.packaged(0, b.dwoID, b.unit); u != nil {
			return u, nil
		}
	}
	if err != nil {
		r.problem(err.Error())
	}
	var tried []string
	for _, p := range r.splitPaths(b) {
		f, err := r.openSplit(p)
		if err != nil {
			tried = append(tried, err.Error())
			continue
		}
		for _, u := range f.everyUnit() {
			if !u.isType() {
				split, err := f.splitUnit(u, b)
				if err != nil {
					return nil, err
				}
				if split != nil {
					return split, nil
				}
			}
		}
		tried = append(tried, fmt.Sprintf("%s: no unit of ID %#x", f.name, b.dwoID))
	}
	return nil, fmt.Errorf("%s", strings.Join(tried, "; "))
}

// splitUnit returns u as the split unit of a skeleton; nil where it is another's.
func (f *file) splitUnit(u *unit, b *body) (*unit, error) {
	split := u.withSkeleton(b.unit)
	s, err := split.open()
	if err != nil {
		return nil, err
	}
	if !s.hasDwoID || s.dwoID != b.dwoID {
		return nil, nil
	}
	return split, nil
}

// withSkeleton returns a copy of a unit that has a skeleton's addresses. The unit in the
// file's list stays as it is, since it may be read without them.
func (u *unit) withSkeleton(skeleton *unit) *unit {
	h := u.unitHeader
	h.skeleton = skeleton
	return &unit{unitHeader: h}
}

// place is a possible path of a file.
type place struct {
	path string
	// isOfTarget is set for a path on the target, from the debug information; other paths
	// are on this machine.
	isOfTarget bool
}

// splitPaths are the possible paths of a split file: its original path, and paths beside
// the object.
func (r *Reader) splitPaths(b *body) []place {
	var list []place
	if path.IsAbs(b.dwoName) {
		list = append(list, place{b.dwoName, true})
	} else if b.compDir != "" {
		list = append(list, place{path.Join(b.compDir, b.dwoName), path.IsAbs(b.compDir)})
	}
	if o := r.main.object; o != nil && o.Path() != "" {
		dir := filepath.Dir(o.Path())
		if !path.IsAbs(b.dwoName) {
			list = append(list, place{filepath.Join(dir, b.dwoName), false})
		}
		list = append(list, place{filepath.Join(dir, path.Base(b.dwoName)), false})
	}
	return list
}

// openObject opens a file that the debug information leads to, and keeps it open until the
// reader is closed.
func (r *Reader) openObject(p place) (*object.Object, error) {
	finder := r.options.Finder
	if finder == nil {
		finder = &object.Finder{}
	}
	open := finder.OpenBeside
	if p.isOfTarget {
		open = finder.OpenNamed
	}
	o, err := open(p.path)
	if err != nil {
		return nil, err
	}
	return r.keepOpen(o), nil
}

// keepOpen keeps an object open until the reader is closed.
func (r *Reader) keepOpen(o *object.Object) *object.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opened = append(r.opened, o)
	return o
}

// openSplit opens a split file, once.
func (r *Reader) openSplit(p place) (*file, error) {
	r.mu.Lock()
	if r.splits == nil {
		r.splits = make(map[place]*lazy[*file])
	}
	l := r.splits[p]
	if l == nil {
		l = &lazy[*file]{}
		r.splits[p] = l
	}
	r.mu.Unlock()
	return l.get(func() (*file, error) {
		o, err := r.openObject(p)
		if err != nil {
			return nil, err
		}
		f, err := openFile(o, ".dwo")
		if err != nil {
			return nil, err
		}
		if f.reader = r; f.isBigEndian != r.main.isBigEndian {
			return nil, fmt.Errorf("%s: is of another byte order", f.name)
		}
		r.kept.Add(int64(o.MemorySize())) // it is unpacked now
		if _, err = f.allUnits(); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		return f, nil
	})
}

// Close closes the files that the reader opened: split files, packages, supplementary
// files and object files, but not the object itself.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.parts != nil {
		defer r.parts.Close()
	}
	var failed error
	for _, o := range r.opened {
		if err := o.Close(); err != nil {
			failed = err
		}
	}
	r.opened = nil
	return failed
}
