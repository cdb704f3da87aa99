// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine/internal/macho"
)

// Archive is an archive of object files (ar.h), whose members are opened by name.
type Archive struct {
	mapping *Mapping
	name    string
	members map[string]archived
	problem error // that ended the list of members
}

// archived is a member of an archive.
type archived struct {
	data     []byte
	modified time.Time
	count    int // how many have the name
}

// OpenArchive opens an archive by its path in the target; of a universal file the one for a machine.
func (f *Finder) OpenArchive(name, machine string) (*Archive, error) {
	return openArchive(f.rootPlace(name), machine)
}

// OpenArchiveBeside is OpenArchive as OpenBeside is OpenNamed.
func (f *Finder) OpenArchiveBeside(name, machine string) (*Archive, error) {
	return openArchive(f.besidePlace(name), machine)
}

// OpenFor is OpenNamed; of a universal file it opens the part for a machine.
func (f *Finder) OpenFor(name, machine string) (*Object, error) {
	return f.openFor(f.rootPlace(name), machine)
}

// OpenForBeside is OpenFor as OpenBeside is OpenNamed.
func (f *Finder) OpenForBeside(name, machine string) (*Object, error) {
	return f.openFor(f.besidePlace(name), machine)
}

func (f *Finder) openFor(p place, machine string) (*Object, error) {
	o, err := f.Store.open(p, nil)
	var universal *UniversalError
	if errors.As(err, &universal) {
		p.entry = machine
		return f.Store.open(p, nil)
	}
	return o, err
}

func openArchive(p place, machine string) (*Archive, error) {
	m, err := p.mapFile()
	if err != nil {
		return nil, err
	}
	a := &Archive{mapping: m, name: p.path(), members: map[string]archived{}}
	err = Guard(func() error {
		data, err := sliceFor(m.data, machine)
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(data, []byte(archiveMagic)) {
			return errors.New("it is no archive of object files")
		}
		a.problem = a.read(data)
		return nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", a.name, err), m.Close())
	}
	return a, nil
}

// sliceFor returns the part of a universal file for a machine; the whole of another file.
func sliceFor(data []byte, machine string) ([]byte, error) {
	if !macho.IsUniversal(data) {
		return data, nil
	}
	list, err := macho.Slices(data)
	for i := range list {
		if s := &list[i]; s.Name() == machine {
			return data[s.Offset : s.Offset+s.Size], nil
		}
	}
	return nil, errors.Join(fmt.Errorf("a universal file: %w for %s", errNoMachine, machine), err)
}

// read lists the members; the error is why there are no more.
func (a *Archive) read(data []byte) error {
	var long []byte
	for offset := uint64(len(archiveMagic)); offset < uint64(len(data)); {
		m, err := readMember(data, offset, long, false)
		if err != nil {
			return fmt.Errorf("offset %#x: %w", offset, err)
		}
		switch {
		case m.name == "//":
			long = m.data
		case !m.isIndex:
			seconds, _ := strconv.ParseInt(strings.TrimRight(string(data[offset+16:offset+28]), " "), 10, 64) // 0 where there are none
			a.members[m.name] = archived{m.data, time.Unix(seconds, 0), a.members[m.name].count + 1}
		}
		offset = m.next
	}
	return nil
}

// Open makes an object of the member of a name, and returns when the member was written to last, as the archive has it.
// The object is valid until the archive is closed.
func (a *Archive) Open(name string) (*Object, time.Time, error) {
	m, ok := a.members[filepath.Base(name)]
	path := a.name + "(" + name + ")"
	switch {
	case !ok && a.problem != nil:
		return nil, m.modified, fmt.Errorf("%s: no such member is found: %w", path, a.problem)
	case !ok:
		return nil, m.modified, fmt.Errorf("%s: no such member", path)
	case m.count > 1:
		return nil, m.modified, fmt.Errorf("%s: %d members have that name", path, m.count)
	}
	o, err := New(path, m.data)
	return o, m.modified, err
}

// Close closes the file.
func (a *Archive) Close() error { return a.mapping.Close() }
