// SPDX-License-Identifier: Apache-2.0

package object

import (
	"path"
	"path/filepath"

	"github.com/unwindd/unwindd/engine/internal/pe"
)

// This file finds PDB files. An image has the path to which its linker wrote the file, of which the
// name is right on all machines.

// pdbPath returns the path of the PDB file on the machine that built a PE file; "" where the file
// names none. MinGW's linker writes an empty path for --build-id.
func (o *Object) pdbPath() string {
	var id pe.Identity
	if err := Guard(func() (err error) { id, err = o.pe.Identity(); return err }); err != nil || !id.HasCodeView {
		return ""
	}
	if !IsPlainName(LastPart(id.PDB)) {
		return ""
	}
	return id.PDB
}

// pdbPlaces returns the places of a PDB file by its path where it was built and by the paths of its
// image, except those in stores.
func (f *Finder) pdbPlaces(built string, images []string) (list []place) {
	name := LastPart(built)
	for _, image := range images {
		dir := filepath.Dir(image)
		if inTarget, isIn := f.inTarget(dir); isIn {
			list = append(list, f.rootPlace(f.inRightCase(path.Join(filepath.ToSlash(inTarget), name))))
		} else {
			list = append(list, hostPlace(filepath.Join(dir, name)))
		}
	}
	list = append(list, f.flatPlaces(name)...)
	if slashed, ok := cutWindows(built); ok {
		list = append(list, f.rootPlace(f.inRightCase(slashed)))
	} else if path.IsAbs(built) {
		list = append(list, f.rootPlace(built))
	}
	return list
}

// fetchPDB asks the Remote, and then Symbols, for the PDB file of a name and a build ID.
func (f *Finder) fetchPDB(name string, id []byte) (file string, tried []Attempt) {
	if len(id) != guidAndAge {
		return "", nil
	}
	return f.request(RemoteFile{Kind: RemotePDB, BuildID: id, Name: name, ID: symbolName(id)})
}

// findPDB looks for the PDB file of code that is at a path of the target.
func (s *search) findPDB(f *Finder, name string) {
	base := LastPart(s.pdb)
	if !IsPlainName(base) || len(s.want) != guidAndAge {
		return
	}
	for _, p := range f.pdbPlaces(s.pdb, nil) {
		s.keepDebugOnly(p)
	}
	if slashed, ok := cutWindows(name); ok {
		s.keepDebugOnly(f.rootPlace(f.inRightCase(path.Join(path.Dir(slashed), base))))
	} else if path.IsAbs(name) {
		s.keepDebugOnly(f.rootPlace(path.Join(path.Dir(name), base)))
	}
	if s.debugOnly != nil {
		return
	}
	file, tried := f.fetchPDB(base, s.want)
	if s.tried = append(s.tried, tried...); file != "" {
		s.keepDebugOnly(f.placeAs(file, base))
	}
}
