// SPDX-License-Identifier: Apache-2.0

package object

// An Owner has the files of a target that is on another machine. A Finder asks it in the
// place of this machine's folders, so that what is found, and what is said of it, is what
// that machine's own Finder would find and say. It may be used concurrently.
type Owner interface {
	// FindDebug is Finder.FindDebug on the other machine.
	FindDebug(o *Object) Found
	// GlanceDebug is FindDebug without anything being brought here: has says whether there
	// is a file, tried what was looked at and not taken.
	GlanceDebug(o *Object) (has bool, tried []Attempt)
	// Key tells apart what is found of an object: where two keys are equal, so is that.
	Key(o *Object) string
}

// GlanceDebug says whether there is a separate debug file of an object on this machine, or
// on that of its Owner: no server and no store is asked. tried are the files that were
// looked at and not taken.
func (f *Finder) GlanceDebug(o *Object) (has bool, tried []Attempt) {
	if f.Owner != nil {
		return f.Owner.GlanceDebug(o)
	}
	own := *f
	own.Remote, own.Symbols = nil, nil
	found := own.FindDebug(o)
	if found.Object != nil {
		_ = found.Object.Close()
	}
	return found.Object != nil, found.Tried
}

// OpenAs opens the code object that a file is under another path, that of the file on the
// machine that it came from: messages go by it, and so does what is the same object.
func (s *Store) OpenAs(file, path string, formats Formats) (*Object, error) {
	return s.openCode(place{file: file, as: path}, formats)
}

// CheckDebug says why a file cannot be the separate debug file of an object; "" where it
// can be.
func CheckDebug(of, file *Object) string {
	s := debugSearch{of: of, id: of.debugID()}
	s.link, s.crc, s.linked = of.DebugLink()
	if a := s.unusable(file); a != nil {
		return a.Reason
	}
	return ""
}
