// SPDX-License-Identifier: Apache-2.0

package object

// An Owner has the files of a target that is on another machine. A Finder asks it instead of this
// machine's folders, so that it gives the results and problems of that machine's own Finder. It
// may be used concurrently.
type Owner interface {
	// FindDebug is Finder.FindDebug on the other machine.
	FindDebug(o *Object) Found
	// GlanceDebug is FindDebug without bringing a file here: has: there is a file;
	// tried are the files that were not taken.
	GlanceDebug(o *Object) (has bool, tried []Attempt)
	// Key identifies the results for an object: where two keys are equal, so are they.
	Key(o *Object) string
}

// GlanceDebug reports whether there is a separate debug file of an object on this machine, or on
// its Owner's: no server and no store is asked. tried are the files that were not taken.
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

// OpenAs opens a code object under another path, which the file had on the machine that it came
// from: messages have that path, and it identifies the object.
func (s *Store) OpenAs(file, path string, formats Formats) (*Object, error) {
	return s.openCode(place{file: file, displayed: path}, formats)
}

// CheckDebug returns why a file cannot be the separate debug file of an object; "" where it
// can be.
func CheckDebug(o, file *Object) string {
	if a := newDebugSearch(o).unusable(file); a != nil {
		return a.Reason
	}
	return ""
}
