// SPDX-License-Identifier: Apache-2.0

package object

import (
	"debug/elf"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// DebugDir is the directory in which systems have separate debug files.
const DebugDir = "/usr/lib/debug"

// FindDebug opens the separate debug file of an object. It looks, under
// /usr/lib/debug of Sysroot and in DebugDirs, for .build-id/xx/yyyy.debug; then
// for the name in .gnu_debuglink beside the object, in .debug beside it, and
// under the debug directories at the object's path; then in Folders and in
// DebugDirs themselves, by that name and by build ID, and in BuildIDDirs. An object with a build ID but no .gnu_debuglink is
// looked for as if its name with ".debug" were the link. An object in a directory that
// systems merge with one of /usr is looked for as if it were in the other one too. Last,
// Remote is asked for an object that has no debug information itself.
//
// The dSYM of a Mach-O file is looked for beside it, and beside the bundles that it is in, instead, and in Folders
// and DebugDirs, which may be a dSYM themselves, have several, or be an archive of Xcode.
//
// The PDB file that a PE file without debug information names is looked for beside it, in Folders
// and DebugDirs, by its path under Sysroot, and in Symbols.
//
// A file is taken when it has the object's build ID, or, where either has none, when it has the
// CRC-32 in .gnu_debuglink. A PDB file has the image's GUID and age.
func (f *Finder) FindDebug(o *Object) Found {
	if f.Owner != nil {
		return f.Owner.FindDebug(o)
	}
	s := newDebugSearch(o)
	s.store = f.Store
	if len(s.id) == 0 && !s.linked {
		return Found{Problem: o.Name() + ": no separate debug file is named: the file has neither a build ID nor .gnu_debuglink"}
	}
	for _, p := range f.debugPlaces(s) {
		if found := s.try(p); found != nil {
			return Found{Object: found, Path: found.Path(), Checked: true, Tried: s.tried}
		}
	}
	if len(s.id) > 0 {
		for _, dir := range f.flat() {
			for _, file := range f.folder(dir).byID[string(s.id)] {
				p := f.placeAs(file, path.Join(DebugDir, filepath.Base(file)))
				p.guess = true // the object itself may lie there too
				if found := s.try(p); found != nil {
					return Found{Object: found, Path: found.Path(), Checked: true, Tried: s.tried}
				}
			}
		}
		if found := s.fetch(f); found != nil {
			return Found{Object: found, Path: found.Path(), Checked: true, Tried: s.tried}
		}
	}
	what := o.Name() + ": no separate debug file"
	if f.IsUnseen && len(s.id) > 0 {
		what += fmt.Sprintf(" is here: put it by its build ID, %x", s.id)
	}
	return Found{Problem: what + s.listed(f), Tried: s.tried}
}

// Unused returns the files that a search for a separate debug file found and could not take, where
// it took none.
func (f *Found) Unused() []Attempt {
	if f.Object != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(f.Tried), func(a Attempt) bool { return a.Kind == Absent })
}

// flat returns the directories in which debug files lie beside one another.
func (f *Finder) flat() []string { return append(slices.Clone(f.Folders), f.DebugDirs...) }

// debugPlaces returns the places of a debug file, except those by build ID in flat directories.
func (f *Finder) debugPlaces(s *debugSearch) (list []place) {
	if s.pdb != "" && !s.linked {
		return f.pdbPlaces(s.pdb, s.files(f))
	}
	inDebugDirs := func(name string) {
		list = append(list, f.rootPlace(path.Join(DebugDir, name)))
		for _, dir := range f.DebugDirs {
			list = append(list, f.placeAs(filepath.Join(dir, name), path.Join(DebugDir, name)))
		}
	}
	list = append(list, f.placesOfID(s.object.buildIDName(), debugLayouts)...)
	list = append(list, f.cachedPlaces(s.object.buildIDName(), cachedDebug)...)
	named := len(list)
	for _, file := range s.files(f) {
		if s.object.macho != nil {
			list = append(list, f.dsymPlaces(file)...)
			continue
		}
		dir, name := filepath.Dir(file), s.link
		if !s.linked {
			name = filepath.Base(file) + ".debug"
		}
		inTarget, isIn := f.inTarget(dir)
		if isIn {
			list = append(list, f.rootPlace(path.Join(inTarget, name)), f.rootPlace(path.Join(inTarget, ".debug", name)))
		} else {
			list = append(list, hostPlace(filepath.Join(dir, name)), hostPlace(filepath.Join(dir, ".debug", name)))
		}
		if path.IsAbs(filepath.ToSlash(inTarget)) {
			inDebugDirs(path.Join(inTarget, name))
		}
		if other, ok := otherUsr(inTarget); ok {
			if isIn {
				list = append(list, f.rootPlace(path.Join(other, name)), f.rootPlace(path.Join(other, ".debug", name)))
			}
			inDebugDirs(path.Join(other, name))
		}
		list = append(list, f.flatPlaces(name)...)
	}
	if s.object.mapping == nil && s.linked { // an image, which is in no directory
		list = append(list, f.flatPlaces(s.link)...)
	}
	for i := named; i < len(list); i++ {
		list[i].guess = !s.linked
	}
	return list
}

// dsymPlaces returns the places of the dSYM of a program, by its path on this machine.
func (f *Finder) dsymPlaces(file string) (list []place) {
	for _, dsym := range dsymPlaces(file) {
		if inTarget, isIn := f.inTarget(filepath.Dir(dsym)); isIn {
			list = append(list, f.rootPlace(path.Join(inTarget, filepath.Base(dsym))))
		} else {
			list = append(list, hostPlace(dsym))
		}
	}
	return list
}

// An idLayout is a layout of directories with files by build ID.
type idLayout struct {
	name  string   // a format of the first byte and of the others
	roots []string // directories of the target, besides DebugDirs
}

// codeLayouts are the layouts for code, which rpm makes of links, and debugLayouts for debug
// files.
var (
	codeLayouts  = []idLayout{{".build-id/%x/%x", []string{"/usr/lib", DebugDir}}}
	debugLayouts = []idLayout{{".build-id/%x/%x.debug", []string{DebugDir}}}
)

// placesOfID returns the places for the file of a build ID.
func (f *Finder) placesOfID(id []byte, layouts []idLayout) (list []place) {
	if len(id) < minRemoteID {
		return nil
	}
	for _, layout := range layouts {
		name := fmt.Sprintf(layout.name, id[:1], id[1:])
		for _, root := range layout.roots {
			list = append(list, f.rootPlace(path.Join(root, name)))
		}
		for _, dir := range f.DebugDirs {
			list = append(list, f.placeAs(filepath.Join(dir, name), path.Join(DebugDir, name)))
		}
	}
	return list
}

// flatPlaces returns the places for a file of a name in flat directories.
func (f *Finder) flatPlaces(name string) (list []place) {
	for _, folder := range f.flat() {
		if isDSYM(folder) {
			folder = filepath.Join(folder, dsymInside)
		}
		list = append(list, f.placeAs(filepath.Join(folder, name), path.Join(DebugDir, name)))
	}
	return list
}

// files returns the paths of the object; none where it is in no file.
func (s *debugSearch) files(f *Finder) []string {
	m := s.object.mapping
	switch {
	case m == nil, m.isElsewhere && !f.IsUnseen:
		return nil
	case m.resolved == "" || m.resolved == m.path:
		return []string{m.path}
	}
	return []string{m.path, m.resolved}
}

// fetch asks the Finder's Remote for the debug file.
func (s *debugSearch) fetch(f *Finder) *Object {
	if s.object.HasDebugInfo() {
		return nil
	}
	name := s.object.Name() + ".debug"
	var file string
	var tried []Attempt
	if s.pdb != "" {
		name = LastPart(s.pdb)
		file, tried = f.fetchPDB(name, s.id)
	} else {
		file, tried = f.fetch(RemoteDebuginfo, s.id, "", "")
	}
	s.tried = append(s.tried, tried...)
	if file == "" {
		return nil
	}
	return s.try(f.placeAs(file, name))
}

// inTarget returns the path of a directory in the target; a directory that is not beneath Sysroot
// is returned as it is, and isIn is false.
func (f *Finder) inTarget(dir string) (name string, isIn bool) {
	root := f.root()
	if root == "/" || f.IsUnseen {
		return dir, path.IsAbs(filepath.ToSlash(dir))
	}
	roots := []string{root}
	// The path of an object without links has none of Sysroot's either.
	if absolute, err := filepath.Abs(root); err == nil {
		if resolved, err := filepath.EvalSymlinks(absolute); err == nil {
			roots = append(roots, resolved)
		}
	}
	for _, root := range roots {
		if rest, ok := strings.CutPrefix(filepath.ToSlash(dir), filepath.ToSlash(root)); ok && (rest == "" || rest[0] == '/') {
			return path.Join("/", rest), true
		}
	}
	return dir, false
}

// A debugSearch looks at files one after another.
type debugSearch struct {
	search
	object *Object
	id     []byte
	link   string
	crc    uint32
	linked bool
	pdb    string // the path of a PE file's PDB file, where it was built; "": it names none
}

// newDebugSearch returns the search for the debug file of an object.
func newDebugSearch(o *Object) *debugSearch {
	s := &debugSearch{object: o, id: o.debugID()}
	s.link, s.crc, s.linked = o.DebugLink()
	if o.pe != nil && !o.HasDebugInfo() {
		s.pdb = o.pdbPath()
	}
	return s
}

// try opens a file and returns it where it is the object's debug file.
func (s *debugSearch) try(p place) *Object {
	if s.seen.add(p.file, p.entry) { // by its place: two may be called the same in the target
		return nil
	}
	o, err := s.store.openCode(p, nil)
	for _, one := range p.slices(err) {
		if o := s.try(one); o != nil {
			return o
		}
	}
	if err != nil {
		a := newAttempt(p, err)
		if p.guess && errors.Is(err, ErrNotELF) {
			a.Kind = Absent // a file of any kind may have that name
		}
		s.tried = append(s.tried, a)
		return nil
	}
	if s.object.mapping != nil && o.mapping.id.fileID == s.object.mapping.id.fileID {
		s.tried = append(s.tried, Attempt{Path: p.path(), Reason: "is the file itself", Kind: Absent})
	} else if a := s.unusable(o); a != nil {
		a.Path = p.path()
		if p.guess && !o.described() && len(o.Problems()) == 0 {
			a.Kind = Absent
		}
		s.tried = append(s.tried, *a)
	} else {
		return o
	}
	_ = o.Close()
	return nil
}

// unusable returns why a code object is not the object's debug file; nil when it is.
func (s *debugSearch) unusable(o *Object) *Attempt {
	described := o.described()
	if problems := o.Problems(); !described && len(problems) > 0 {
		return &Attempt{Reason: "is damaged: " + strings.TrimPrefix(problems[0], o.Name()+": "), Kind: Unreadable}
	}
	isKnown := o.pdb == nil || o.Machine() != 0
	if isKnown && (o.Machine() != s.object.Machine() || o.Class() != s.object.Class() || o.ByteOrder() != s.object.ByteOrder()) {
		return &Attempt{Reason: "is for another machine, " + DescribeMachine(o.Machine()), Kind: Mismatched}
	}
	if reason := s.refuse(o); reason != "" {
		return &Attempt{Reason: reason, Kind: Mismatched}
	}
	if !described {
		return &Attempt{Reason: "has neither symbols nor debug information", Kind: Unreadable}
	}
	return nil
}

// refuse returns why a file belongs to another object; "" when it does not.
func (s *debugSearch) refuse(o *Object) string {
	if id := o.debugID(); len(id) > 0 && len(s.id) > 0 {
		return o.otherID(s.id)
	}
	if !s.linked {
		return fmt.Sprintf("has no build ID, expected %x", s.id)
	}
	if uint64(len(o.data)) > maxChecked {
		return fmt.Sprintf("has no build ID, and its CRC-32 is not made of %d bytes", len(o.data))
	}
	sum, err := o.crc()
	if err != nil {
		return err.Error()
	}
	if sum != s.crc {
		return fmt.Sprintf("CRC-32 is %08x, expected %08x", sum, s.crc)
	}
	return ""
}

// described reports whether the object has symbols of its own or debug information.
func (o *Object) described() bool {
	return o.pdb != nil || o.macho != nil && o.macho.SymbolCount() > 0 || o.Section(".symtab") != nil || o.Section(".debug_info") != nil || o.Section(".debug_frame") != nil || o.Section(".debug_line") != nil
}

// HasDebugInfo reports whether the object has debug information itself, with bytes in the file:
// .debug_info or .zdebug_info, or line numbers alone, which compilers of CUDA write without it. A
// PDB file has.
func (o *Object) HasDebugInfo() bool {
	if o.pdb != nil {
		return true
	}
	for _, name := range []string{".debug_info", ".zdebug_info", ".debug_line"} {
		if s := o.Section(name); s != nil {
			return s.Type != elf.SHT_NOBITS && s.Size > 0
		}
	}
	return false
}
