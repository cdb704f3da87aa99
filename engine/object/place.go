// SPDX-License-Identifier: Apache-2.0

package object

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

// path is the path of the file, or FILE#NAME.
func (p *place) path() string {
	if p.entry == "" {
		return p.file
	}
	return p.file + "#" + p.entry
}

// identify gives the identity of the file that is there, by the same way as mapFile.
func (p *place) identify() (identity, error) {
	if p.root == "" {
		return identify(p.file)
	}
	return identifyUnder(p.root, p.name, p.file)
}

func (p *place) mapFile() (*Mapping, error) {
	if p.as != "" {
		m, err := mapPath(p.file, false)
		if err == nil {
			m.path, m.isElsewhere = p.as, true
		}
		return m, err
	}
	if p.root == "" {
		return mapPath(p.file, true)
	}
	return mapUnder(p.root, p.name)
}

// object makes an object of the place's file, and closes the mapping on error.
func (p *place) object(m *Mapping, formats Formats) (*Object, error) {
	if p.entry != "" {
		return openEntry(m, p.path(), p.entry, formats)
	}
	return openMappingWith(m, formats)
}
