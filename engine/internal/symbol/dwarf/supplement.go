// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
)

// link names a supplementary file.
type link struct {
	section string
	path    string
	id      []byte // its build ID, or the checksum in its .debug_sup
}

// readLink reads .gnu_debugaltlink, which is a path and a build ID, or .debug_sup
// (DWARF 5, 7.3.6).
func (f *file) readLink() (*link, error) {
	if f.object == nil {
		return nil, nil
	}
	data, err := sectionData(f.object, ".gnu_debugaltlink")
	if err != nil {
		return nil, err
	}
	if path, id, ok := bytes.Cut(data, []byte{0}); ok && len(path) > 0 {
		return &link{".gnu_debugaltlink", copied(path), id}, nil
	}
	if data, err = sectionData(f.object, ".debug_sup"); err != nil || len(data) == 0 {
		return nil, err
	}
	supplementary, path, id, err := readSup(data, f.isBigEndian)
	if err != nil || supplementary {
		return nil, err
	}
	return &link{".debug_sup", path, id}, nil
}

// readSup reads .debug_sup.
func readSup(data []byte, big bool) (supplementary bool, path string, checksum []byte, err error) {
	c := newCursor(data, big, 0, uint64(len(data)))
	version := c.uint(2)
	supplementary = c.uint(1) != 0
	path = copied(c.text())
	checksum = c.bytes(c.uleb())
	if c.failed || version != 5 {
		return false, "", nil, bad(".debug_sup", 0, "version %d and %#x bytes, expected version 5, a path and a checksum", version, len(data))
	}
	return supplementary, path, checksum, nil
}

// supplement opens the file's supplementary file.
func (f *file) supplement() (*file, error) {
	return f.sup.get(func() (*file, error) {
		l, err := f.readLink()
		if err != nil {
			return nil, err
		}
		if l == nil {
			return nil, errors.New("the object names no supplementary file (.gnu_debugaltlink, .debug_sup)")
		}
		var tried []string
		for _, p := range f.linkPaths(l) {
			s, err := f.openLinked(l, p)
			if err == nil {
				return s, nil
			}
			tried = append(tried, err.Error())
		}
		s, more := f.fetchLinked(l)
		if s != nil {
			return s, nil
		}
		tried = append(tried, more...)
		return nil, fmt.Errorf("no supplementary file (%s): %s", l.section, strings.Join(tried, "; "))
	})
}

// linkPaths are the possible paths of a supplementary file.
func (f *file) linkPaths(l *link) []place {
	list := []place{{l.path, true}}
	if !path.IsAbs(l.path) {
		list[0] = place{filepath.Join(filepath.Dir(f.object.Path()), l.path), false}
	}
	if l.section == ".gnu_debugaltlink" && len(l.id) > 1 {
		name := fmt.Sprintf(".build-id/%x/%x.debug", l.id[:1], l.id[1:])
		list = append(list, place{path.Join(object.DebugDir, name), true})
		if finder := f.reader.options.Finder; finder != nil {
			for _, dir := range finder.DebugDirs {
				list = append(list, place{filepath.Join(dir, name), false})
			}
		}
	}
	return list
}

func (f *file) openLinked(l *link, p place) (*file, error) {
	o, err := f.reader.openObject(p)
	if err != nil {
		return nil, err
	}
	return f.useLinked(l, o)
}

// useLinked accepts an object as the supplementary file, if it is.
func (f *file) useLinked(l *link, o *object.Object) (*file, error) {
	if err := checkLinked(l, o); err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name(), err)
	}
	s, err := openFile(o, "")
	if err != nil {
		return nil, err
	}
	s.reader = f.reader
	s.reader.supplementary.Store(o)
	if s.rest.info == nil { // else they are read on demand
		if _, err = s.allUnits(); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return s, nil
}

// fetchLinked requests a supplementary file from the finder's Remote. A .debug_sup has a
// checksum and no build ID, by which a Remote finds files.
func (f *file) fetchLinked(l *link) (s *file, tried []string) {
	finder := f.reader.options.Finder
	if finder == nil || l.section != ".gnu_debugaltlink" {
		return nil, nil
	}
	o, attempts := finder.FetchDebug(l.id)
	for _, a := range attempts {
		tried = append(tried, a.Path+": "+a.Reason)
	}
	if o == nil {
		return nil, tried
	}
	s, err := f.useLinked(l, f.reader.keepOpen(o))
	if err != nil {
		return nil, append(tried, err.Error())
	}
	return s, nil
}

func checkLinked(l *link, o *object.Object) error {
	id := o.BuildID()
	if l.section == ".debug_sup" {
		data, err := sectionData(o, ".debug_sup")
		if err != nil {
			return err
		}
		supplementary, _, checksum, err := readSup(data, isBigEndian(o))
		if err != nil {
			return err
		}
		if !supplementary {
			return errors.New("is not a supplementary file")
		}
		id = checksum
	}
	if !bytes.Equal(id, l.id) {
		return fmt.Errorf("its ID is %x, expected %x", id, l.id)
	}
	return nil
}
