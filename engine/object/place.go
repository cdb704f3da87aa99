// SPDX-License-Identifier: Apache-2.0

package object

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
)

// A place is a file that may be there, or a code object in one.
type place struct {
	file  string // its path on this machine
	root  string // the directory beneath which it is opened; "" where its path is the user's
	name  string // its path beneath root
	entry string // the name of the code object in the file; "" for the file itself
	guess bool   // nothing says that a file of this name is there for the target
	as    string // the path that it is called by instead; "": file
}

// hostPlace is a path as the user gave it.
func hostPlace(name string) place { return place{file: name} }

// path is the path of the file that it is called by, or FILE#NAME, FILE!MEMBER, FILE+0xOFFSET.
func (p *place) path() string {
	file := cmp.Or(p.as, p.file)
	if p.entry == "" || isPart(p.entry) {
		return file + p.entry
	}
	return file + "#" + p.entry
}

// identify gives the identity of the file that is there, by the same way as mapFile.
func (p *place) identify() (id identity, err error) {
	if p.root == "" {
		id, err = identify(p.file)
	} else {
		id, err = identifyUnder(p.root, p.name, p.file)
	}
	if err != nil {
		return id, p.named(err)
	}
	return id, nil
}

func (p *place) mapFile() (*Mapping, error) {
	m, err := p.mapHere()
	if err != nil {
		return nil, p.named(err)
	}
	if p.as != "" {
		m.path, m.resolved, m.isElsewhere = p.as, "", true
	}
	return m, nil
}

// named is an error of the file by what it is called.
func (p *place) named(err error) error {
	if p.as == "" {
		return err
	}
	var ofPath *fs.PathError
	if errors.As(err, &ofPath) {
		return &fs.PathError{Op: ofPath.Op, Path: p.as, Err: ofPath.Err}
	}
	for _, known := range []error{ErrNotRegular, ErrEmpty} {
		if errors.Is(err, known) {
			return fmt.Errorf("%s: %w", p.as, known)
		}
	}
	return err
}

func (p *place) mapHere() (*Mapping, error) {
	if p.root == "" {
		return mapPath(p.file, p.as == "")
	}
	return mapUnder(p.root, p.name)
}

// object makes an object of the place's file, and closes the mapping on error.
func (p *place) object(m *Mapping, formats Formats) (*Object, error) {
	if isPart(p.entry) {
		return openPart(m, p.path(), p.entry)
	}
	if p.entry != "" {
		dir := "" // nothing of a thin archive leads out of the root
		if p.root == "" {
			dir = folderOf(m)
		}
		return openEntry(m, p.path(), p.entry, formats, dir)
	}
	return openMappingWith(m, formats)
}
