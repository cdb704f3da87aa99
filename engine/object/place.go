// SPDX-License-Identifier: Apache-2.0

package object

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
)

// A place is a path at which a file may be, or a code object in a file.
type place struct {
	file      string // its path on this machine
	root      string // the directory beneath which it is opened; "": the user gave the path
	name      string // its path beneath root
	entry     string // the name of the code object in the file; "" for the file itself
	guess     bool   // a file of this name may be there for another reason
	displayed string // the path in messages; "": file
	isForeign bool   // the target's path on a machine that does not run such targets
}

// hostPlace returns the place of a path that the user gave.
func hostPlace(name string) place { return place{file: name} }

// path returns the path of the file in messages, or FILE#NAME, FILE!MEMBER, FILE+0xOFFSET.
func (p *place) path() string {
	file := cmp.Or(p.displayed, p.file)
	if p.entry == "" || isPart(p.entry) {
		return file + p.entry
	}
	return file + "#" + p.entry
}

// identify returns the identity of the file that is there, found as by mapFile.
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
	if p.displayed != "" {
		m.path, m.resolved, m.isElsewhere = p.displayed, "", true
	}
	return m, nil
}

// named returns an error of the file with its path in messages.
func (p *place) named(err error) error {
	if p.displayed == "" {
		return err
	}
	var ofPath *fs.PathError
	if errors.As(err, &ofPath) {
		return &fs.PathError{Op: ofPath.Op, Path: p.displayed, Err: ofPath.Err}
	}
	for _, known := range []error{ErrNotRegular, ErrEmpty} {
		if errors.Is(err, known) {
			return fmt.Errorf("%s: %w", p.displayed, known)
		}
	}
	return err
}

func (p *place) mapHere() (*Mapping, error) {
	if p.root == "" {
		return mapPath(p.file, p.displayed == "")
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
