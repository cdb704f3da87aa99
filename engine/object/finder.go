// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/unwindd/unwindd/internal/host"
)

// A Finder opens the files that a target names. It opens regular ELF or PE files with the build
// ID that the target has; a file without a build ID, or for a target that has none, is used
// unchecked, and that is a problem. Its fields are not changed once it is used; it may be used
// concurrently.
type Finder struct {
	// Sysroot is the directory beneath which the target's paths are; "" is "/".
	// Symbolic links are followed inside it and never lead out of it.
	Sysroot string
	// Drives is the directory beneath Sysroot that has a link to each drive of Windows, as "c:": the
	// dosdevices of Wine. "": paths of Windows are looked for without their drive only.
	Drives string
	// Exe is the executable of the target; "": the file at the target's path.
	Exe string
	// Provided are user-provided files for modules of the target, by their paths there or base
	// names.
	Provided map[string]string
	// Elsewhere has files of this machine that certainly belong to the target, by their paths
	// in the target: a living process keeps files open that have no name any more.
	Elsewhere map[string]string
	// DebugDirs are directories of separate debug files and of code, besides
	// /usr/lib/debug under Sysroot: with its layout, or without subdirectories.
	DebugDirs []string
	// BuildIDDirs are caches of perf with files by build ID (perf-buildid-cache(1)).
	BuildIDDirs []string
	// Folders are directories of files that came with the target, such as the
	// core's own.
	Folders []string
	// Formats are formats of code objects that are no ELF files; nil: none.
	Formats Formats
	// Store shares the objects that the Finder opens; nil: they are not shared.
	Store *Store
	// Remote has files of other machines, and is asked for files by build ID that are in no
	// place here; nil: there is none.
	Remote Remote
	// Symbols are stores of symbol files and code, Breakpad's and Microsoft's: they are asked
	// after Remote, and for files with other identifiers; nil: there are none.
	Symbols Remote
	// IsUnseen: the reader of messages does not see this machine. Files are named by their
	// paths in the target, without the places where they were looked for. Folders and Exe do
	// not go with it.
	IsUnseen bool
	// Owner has the files of a target of another machine, and is asked for separate debug
	// files instead of this machine's folders; nil: the target is of this machine.
	Owner Owner

	// Told bounds the text about searches for the files of one target; nil: it is not bounded.
	Told *Told

	// Indexes remembers the contents of folders for other finders, too; nil: the finder remembers them for itself.
	Indexes *FolderIndexes

	folders   map[string]*folderIndex      // under foldersMu
	rightCase map[string]map[string]string // likewise; see namesIn
	loaders   map[string][]string          // likewise, by root; see loaderDirs
	program   []loaderDir                  // see WithProgram
}

// FolderIndexes remembers the code objects in folders, for the finders of many targets that look through the same
// ones. Files that come later are not seen.
type FolderIndexes struct {
	mu      sync.Mutex
	folders map[string]*folderIndex
}

// NewFolderIndexes returns FolderIndexes of no folder.
func NewFolderIndexes() *FolderIndexes {
	return &FolderIndexes{folders: map[string]*folderIndex{}}
}

// Told counts the bytes of text about places that had no file, for all modules of a target: a small record can name
// a long path that other records name too, and each makes a text for each place.
type Told struct{ bytes atomic.Int64 }

// maxTold bounds that text. The modules of a large program make 4 MiB of it.
const maxTold = 16 << 20

// keeps reports whether a text, and that about places that were tried, is kept.
func (t *Told) keeps(what string, tried []Attempt) bool {
	if t == nil {
		return true
	}
	n := len(what)
	for _, a := range tried {
		n += len(a.Path) + len(a.Reason)
	}
	return t.bytes.Add(int64(n)) <= maxTold
}

// foldersMu is not in the Finder so that a Finder can be copied.
var foldersMu sync.Mutex

// Found is the result of a Finder.
type Found struct {
	Object *Object // nil where there is none; else the caller closes it
	Path   string  // of the file
	// Checked: the file is known to be the right one, by its build ID or, for a
	// separate debug file, by the CRC-32 in .gnu_debuglink.
	Checked bool
	// Problem is why there is no object, with the places that were tried. Beside an
	// object it is why that could not be checked, or why Exe was not taken; else "".
	Problem string
	// Tried are the files that were looked at and not taken, in order.
	Tried []Attempt
}

// File returns Path where Object has code, and "" where it is only a debug file.
func (f *Found) File() string {
	if f.Object == nil || f.Object.DebugOnly() {
		return ""
	}
	return f.Path
}

// An Attempt is a file that was looked at and not taken.
type Attempt struct {
	Path   string
	Reason string
	Kind   AttemptKind
	// IsRemote is true where Path is on a server or in a store (Finder.Remote, Finder.Symbols),
	// which was asked for it.
	IsRemote bool
}

// NotThereLately is the Reason of an Attempt whose servers were not asked again, because none had
// the file a short time ago.
const NotThereLately = "no server had it a short time ago"

// AttemptKind is the kind of the reason of an Attempt.
type AttemptKind int

// The kinds.
const (
	Absent     AttemptKind = iota // there is no such file
	Unreadable                    // it cannot be opened, is damaged, or is no code object
	Mismatched                    // it belongs to another object
)

const maxFolderEntries = 1000

// deleted is appended by the kernel to the path of a mapped file that has no name any more.
const deleted = " (deleted)"

// Find opens the file at a path of the target. It tries, in this order:
//
//   - Exe (where isExe), and the file of Provided, which are taken unchecked;
//   - the file that Elsewhere has for the path;
//   - the path under Sysroot; where it begins with a directory that systems merge with one of
//     /usr, or with that one, also the other path;
//   - Folders for the base name, and for the build ID;
//   - DebugDirs for both;
//   - BuildIDDirs for the build ID;
//   - the directories in which loaders look for libraries (WithProgram);
//   - Remote for the build ID.
//
// The first file whose build ID matches is taken; where there is none, the first that could not
// be checked, which has to be at its path. Where there is no code a debug file with the build ID
// is taken, of which DebugOnly is true. buildID is empty where the target has none. A path of
// Windows is looked for without its drive, and in either case of its letters.
func (f *Finder) Find(name string, buildID []byte, isExe bool) Found {
	return f.find(&search{store: f.Store, formats: f.Formats, want: buildID}, name, isExe)
}

// FindCode is Find for a file that only stores of symbols may have elsewhere, by its code
// identifier, as files of Windows: Symbols is asked for that, and Remote is not asked. codeID is
// "" where there is none. Where there is no code the PDB file is taken, of which pdb is the path
// where it was built; "": none is known.
func (f *Finder) FindCode(name string, buildID []byte, codeID, pdb string, isExe bool) Found {
	return f.find(&search{store: f.Store, formats: f.Formats, want: buildID, isCode: true, codeID: codeID, pdb: pdb}, name, isExe)
}

// find does the work of Find.
func (f *Finder) find(s *search, name string, isExe bool) Found {
	defer s.close()
	clean := strings.TrimSuffix(name, deleted)
	refused := ""
	for _, file := range f.provided(clean, isExe) {
		n := len(s.tried)
		if o := s.try(hostPlace(file)); o != nil || s.unchecked != nil {
			return s.found(o, refused)
		}
		if len(s.tried) > n {
			refused = fmt.Sprintf("%s was not used: %s", file, s.tried[n].Reason)
		}
	}
	if o := s.look(f, name, clean); o != nil {
		return s.found(o, refused)
	}
	if s.unchecked != nil {
		return s.found(nil, refused)
	}
	what := "no file"
	if name != "" {
		what = name + ": no file"
	}
	if len(s.want) > 0 {
		what += fmt.Sprintf(" with build ID %x", s.want)
	}
	if f.IsUnseen {
		what = notHere(name, s.want)
	}
	if f.Told.keeps(what, s.tried) {
		what += s.listed(f)
	} else { // the module's path is beside the problem
		what = fmt.Sprintf("no file in %d places, which are not listed: the target has named files whose places have more than %d bytes", len(s.tried), maxTold)
		s.tried = nil
	}
	if s.findDebugOnly(f, clean); s.debugOnly != nil {
		return s.foundDebug(what)
	}
	return Found{Problem: what, Tried: s.tried}
}

// look tries the places of the file, and the places of its build ID, in their order.
func (s *search) look(f *Finder, name, clean string) *Object {
	for _, p := range f.elsewhere(name) {
		if o := s.try(p); o != nil {
			return o
		}
	}
	if name != "" {
		// The file that is now at the path of a deleted one is another, unless its
		// build ID is the same.
		isOther := clean != name
		for p := range f.places(clean) {
			s.mustCheck = isOther || p.isForeign
			if o := s.try(p); o != nil {
				return o
			}
			isOther = false
		}
	}
	s.mustCheck = true
	for p := range f.placesByID(s, clean) {
		if o := s.try(p); o != nil {
			return o
		}
	}
	return s.fetch(f, name)
}

// elsewhere returns the places in Elsewhere for a path of the target, or for a part of a file.
func (f *Finder) elsewhere(name string) (list []place) {
	if file, ok := f.Elsewhere[name]; ok {
		list = append(list, hostPlace(file))
	}
	if file, part, ok := cutEmbedded(name); ok {
		for _, name := range []string{file, file + deleted} {
			if here, ok := f.Elsewhere[name]; ok {
				list = append(list, place{file: here, entry: part})
			}
		}
	}
	return list
}

// placesByID yields the places for a file that only its build ID identifies: folders and
// directories by build ID, directories that have its name, and directories of libraries.
func (f *Finder) placesByID(s *search, name string) iter.Seq[place] {
	return func(yield func(place) bool) {
		if len(s.want) > 0 {
			for _, dir := range f.flat() {
				for _, file := range f.folder(dir).files(s.want) {
					if !yield(f.placeAs(file, path.Join(DebugDir, filepath.Base(file)))) {
						return
					}
				}
			}
			for _, p := range append(f.placesOfID(s.want, codeLayouts), f.cachedPlaces(s.want, cachedCode)...) {
				if p.guess = true; !yield(p) {
					return
				}
			}
		}
		base := baseName(name)
		isBare := !path.IsAbs(name) && name != "" && !s.isCode
		if _, _, isPart := cutEmbedded(name); isPart || !IsPlainName(base) || len(s.want) == 0 && !isBare {
			return
		}
		list := f.flatPlaces(base)
		if !s.isCode {
			list = append(list, f.loaderPlaces(base)...)
		}
		for _, p := range list {
			if p.guess = true; !yield(p) {
				return
			}
		}
	}
}

// provided returns the user-provided files for a file of the target.
func (f *Finder) provided(name string, isExe bool) (files []string) {
	if isExe && f.Exe != "" {
		files = append(files, f.Exe)
	}
	for _, key := range userNames(name) {
		if file := f.Provided[key]; file != "" {
			return append(files, file)
		}
	}
	return files
}

// userNames returns the names by which the user may name a file of the target.
func userNames(name string) []string {
	name = strings.TrimSuffix(name, deleted)
	return []string{name, baseName(name), name[strings.LastIndexByte(name, '!')+1:]}
}

// UnusedModules returns problems for the user-provided files that belong to no module of a target.
// has reports whether the target has a module with such a path.
func UnusedModules(modules map[string]string, has func(is func(name string) bool) bool) (problems []string) {
	for name, file := range modules {
		if !has(func(path string) bool { return slices.Contains(userNames(path), name) }) {
			problems = append(problems, fmt.Sprintf("%s was not used: no module is called %s", file, name))
		}
	}
	slices.Sort(problems)
	return problems
}

// notHere returns the problem of a missing file for a user who does not see this machine, with the
// remedy.
func notHere(name string, id []byte) string {
	what := "its file is not here"
	if name != "" {
		what = name + ": " + what
	}
	if len(id) == 0 {
		return what + ", and nothing says the build ID by which it could be put"
	}
	return fmt.Sprintf("%s: put it by its build ID, %x", what, id)
}

// HasCode reports whether there is a code object at one of the paths that Find looks at
// for a name, whatever its build ID. It is for many names of which few have code: unlike Find it
// does not list the places that were tried.
func (f *Finder) HasCode(name string) bool {
	for p := range f.places(strings.TrimSuffix(name, deleted)) {
		if o, err := f.Store.openCode(p, f.Formats); err == nil {
			_ = o.Close()
			return true
		}
	}
	return false
}

// ExeID returns the build ID of Exe; nil where there is none. Find reports why Exe cannot be
// opened.
func (f *Finder) ExeID() []byte {
	if f.Exe == "" {
		return nil
	}
	o, err := f.Store.openCode(hostPlace(f.Exe), f.Formats)
	if err != nil {
		return nil
	}
	defer o.Close()
	return bytes.Clone(o.BuildID())
}

// IsExe reports whether Exe, whose build ID is id, stands for a file of a target
// that does not name its executable: it has the file's build ID, or else
// its name.
func (f *Finder) IsExe(id []byte, name string, buildID []byte) bool {
	return f.Exe != "" && (len(id) > 0 && bytes.Equal(id, buildID) || isSameName(name, f.Exe))
}

// isSameName reports whether a path of the target and one of this machine end in the same name.
func isSameName(name, file string) bool {
	if _, ok := cutWindows(name); ok {
		return strings.EqualFold(baseName(name), filepath.Base(file))
	}
	return path.Base(name) == filepath.Base(file)
}

// places yields the places for a path of the target, without Exe. It may be the path of a code
// object inside a file, as OpenNested takes it.
func (f *Finder) places(name string) iter.Seq[place] {
	return func(yield func(place) bool) {
		if !f.eachPlace(name, "", yield) {
			return
		}
		if file, entry, ok := cutNested(name); ok && !f.eachPlace(file, entry, yield) {
			return
		}
		if file, part, ok := cutEmbedded(name); ok {
			f.eachPlace(file, part, yield)
		}
	}
}

// eachPlace yields the places for a file, until yield returns false, which it returns.
func (f *Finder) eachPlace(name, entry string, yield func(place) bool) bool {
	if slashed, ok := cutWindows(name); ok {
		return f.eachWindowsPlace(driveOf(name), slashed, entry, yield)
	}
	p := f.rootPlace(name)
	p.entry = entry
	if !yield(p) {
		return false
	}
	if other, ok := otherUsr(name); ok {
		p := f.rootPlace(other)
		p.entry, p.guess = entry, true
		if !yield(p) {
			return false
		}
	}
	base := path.Base(name)
	if base == "/" || base == "." || base == ".." {
		return true
	}
	for _, dir := range f.Folders {
		if !yield(place{file: filepath.Join(dir, base), entry: entry}) {
			return false
		}
	}
	return true
}

// rootPlace returns the place of a path of the target.
func (f *Finder) rootPlace(name string) place {
	root := f.root()
	p := place{file: root + absolute(name), root: root, name: name}
	if root == "/" {
		p = hostPlace(absolute(name))
		p.isForeign = f.Sysroot == "" && !host.IsLinux
	}
	if f.IsUnseen {
		p.displayed = absolute(name)
	}
	return p
}

// placeAs returns the place of a file of this machine that users who do not see this machine know by
// its name in the target.
func (f *Finder) placeAs(file, name string) place {
	p := hostPlace(file)
	if f.IsUnseen {
		p.displayed = name
	}
	return p
}

// OpenNamed opens a file by its path in the target, as another file of the target
// names it: beneath Sysroot.
func (f *Finder) OpenNamed(name string) (*Object, error) { return f.Store.open(f.rootPlace(name), nil) }

// MapNamed maps a file that is no code object by its path in the target, as debug
// information names its source files: beneath Sysroot.
func (f *Finder) MapNamed(name string) (*Mapping, error) {
	p := f.rootPlace(name)
	return p.mapFile()
}

// MapSource maps a source file that FetchSource gave for a path in the target.
func (f *Finder) MapSource(file, source string) (*Mapping, error) {
	p := f.placeAs(file, source)
	return p.mapFile()
}

// Mapped maps the files that may be a path of the target, of which code objects are
// parts, in the order of Find: Exe where it has the name, then the file of Elsewhere, then the
// path under Sysroot, then the base name in Folders. The caller closes them. Where there is none
// the error of the first is yielded.
func (f *Finder) Mapped(name string) iter.Seq2[*Mapping, error] {
	return func(yield func(*Mapping, error) bool) {
		var first error
		isFound := false
		try := func(p place) bool {
			m, err := p.mapFile()
			if err != nil {
				first = cmp.Or(first, err)
				return true
			}
			isFound = true
			return yield(m, nil)
		}
		if f.IsExe(nil, name, nil) && !try(hostPlace(f.Exe)) {
			return
		}
		for _, p := range f.elsewhere(name) {
			if !try(p) {
				return
			}
		}
		if f.eachPlace(strings.TrimSuffix(name, deleted), "", try) && !isFound {
			yield(nil, first)
		}
	}
}

// OpenBeside opens a file by its path on this machine, one that was made of the
// path of a file that the Finder opened. Beneath Sysroot symbolic links do not
// lead out of it.
func (f *Finder) OpenBeside(name string) (*Object, error) {
	return f.Store.open(f.besidePlace(name), f.Formats)
}

// besidePlace returns the place of the file of OpenBeside.
func (f *Finder) besidePlace(name string) place {
	if f.IsUnseen {
		for _, dir := range f.DebugDirs {
			if rest, ok := strings.CutPrefix(name, filepath.Clean(dir)+"/"); ok {
				return f.placeAs(name, path.Join(DebugDir, rest))
			}
		}
	}
	if f.root() != "/" {
		if inTarget, isIn := f.inTarget(filepath.Dir(name)); isIn {
			return f.rootPlace(path.Join(inTarget, filepath.Base(name)))
		}
	}
	if f.Owner != nil || f.IsUnseen { // the path belongs to another machine
		return f.rootPlace(name)
	}
	return hostPlace(name)
}

// root returns Sysroot, or its default.
func (f *Finder) root() string {
	if f.Sysroot == "" {
		return "/"
	}
	return filepath.ToSlash(filepath.Clean(f.Sysroot))
}

// A search looks at files one after another.
type search struct {
	store     *Store
	formats   Formats
	want      []byte // build ID; empty when not known
	mustCheck bool   // take nothing unchecked
	isCode    bool   // Symbols may have it by codeID; see FindCode
	codeID    string // "": it has none
	pdb       string // the path of its PDB file where it was built; "": it is not known
	tried     []Attempt
	seen      seenPlaces // that were tried
	unchecked *Object    // the first file that could not be checked
	why       string     // it could not be checked
	debugOnly *Object    // a debug file with the build ID, where there is no code
}

// close closes the objects that the search did not return.
func (s *search) close() {
	for _, o := range []*Object{s.unchecked, s.debugOnly} {
		if o != nil {
			_ = o.Close()
		}
	}
}

// foundDebug returns the debug file of the build ID instead of the code; problem is why that is
// not there.
func (s *search) foundDebug(problem string) Found {
	o := s.debugOnly
	s.debugOnly = nil
	return Found{
		Object: o, Path: o.Path(), Checked: true, Tried: s.tried,
		Problem: fmt.Sprintf("%s; names and lines are those of its debug file %s, which has no code", problem, o.Path()),
	}
}

// findDebugOnly looks for the debug file of a build ID.
func (s *search) findDebugOnly(f *Finder, name string) {
	switch {
	case len(s.want) == 0 || s.debugOnly != nil:
		return
	case s.pdb != "":
		s.findPDB(f, name)
		return
	case s.isCode:
		return
	}
	for _, p := range append(f.placesOfID(s.want, debugLayouts), f.cachedPlaces(s.want, cachedDebug)...) {
		s.keepDebugOnly(p)
	}
	if s.debugOnly == nil {
		file, tried := f.fetch(RemoteDebuginfo, s.want, "", "")
		if s.tried = append(s.tried, tried...); file != "" {
			s.keepDebugOnly(f.placeAs(file, fmt.Sprintf("%x.debug", s.want)))
		}
	}
}

// keepDebugOnly keeps the debug file at a place if it has the build ID.
func (s *search) keepDebugOnly(p place) {
	if s.debugOnly != nil || s.seen.add(p.file, p.entry) {
		return
	}
	o, err := s.store.openCode(p, nil)
	for _, one := range p.slices(err) {
		s.keepDebugOnly(one)
	}
	switch {
	case err != nil:
		if a := newAttempt(p, err); a.Kind != Absent {
			s.tried = append(s.tried, a)
		}
	case o.DebugOnly() && o.HasID(s.want):
		s.debugOnly = o
	default:
		s.tried = append(s.tried, Attempt{Path: p.path(), Reason: cmp.Or(o.otherID(s.want), "is no debug file"), Kind: Mismatched})
		_ = o.Close()
	}
}

// seenPlaces is a set of files and entries. It is small, except for files in folders.
type seenPlaces struct {
	count int
	few   [4][2]string
	more  map[[2]string]bool
}

// add adds a place, and reports whether it was there.
func (s *seenPlaces) add(file, entry string) bool {
	key := [2]string{file, entry}
	for i := range s.few[:s.count] {
		if s.few[i] == key {
			return true
		}
	}
	if s.count < len(s.few) {
		s.few[s.count] = key
		s.count++
		return false
	}
	if s.more[key] {
		return true
	}
	if s.more == nil {
		s.more = map[[2]string]bool{}
	}
	s.more[key] = true
	return false
}

// try opens a file and returns it where its build ID is the right one.
func (s *search) try(p place) *Object {
	if s.seen.add(p.file, p.entry) {
		return nil
	}
	o, err := s.store.openCode(p, s.formats)
	for _, one := range p.slices(err) {
		if len(s.want) == 0 {
			break // nothing says which one
		}
		if o := s.try(one); o != nil || s.unchecked != nil {
			return o
		}
	}
	if err != nil {
		if a := newAttempt(p, err); !p.guess || a.Kind != Absent {
			s.tried = append(s.tried, a)
		}
		return nil
	}
	var reason string
	id := o.BuildID()
	switch {
	case o.DebugOnly():
		reason = "holds debug information only"
		if s.debugOnly == nil && o.HasID(s.want) {
			s.debugOnly = o
			s.tried = append(s.tried, Attempt{Path: p.path(), Reason: reason, Kind: Mismatched})
			return nil
		}
		if o.IsMachO() && len(id) > 0 && len(s.want) > 0 && !o.HasID(s.want) {
			reason = o.otherID(s.want) // a dSYM that was given
		}
	case o.HasID(s.want):
		return o
	case len(id) > 0 && len(s.want) > 0:
		reason = o.otherID(s.want)
	default:
		reason = "its build ID could not be checked: the target does not tell it"
		if len(s.want) > 0 {
			reason = fmt.Sprintf("its build ID could not be checked: the file has none, expected %x", s.want)
		}
		if s.unchecked == nil && !s.mustCheck {
			s.unchecked, s.why = o, reason
			return nil
		}
	}
	s.tried = append(s.tried, Attempt{Path: p.path(), Reason: reason, Kind: Mismatched})
	_ = o.Close()
	return nil
}

// otherID returns the reason against a file of another build ID; "" where it is the expected one.
func (o *Object) otherID(want []byte) string {
	id := o.BuildID()
	switch {
	case bytes.Equal(id, want):
		return ""
	case o.pdb == nil || len(want) != guidAndAge:
		return fmt.Sprintf("build ID is %x, expected %x", id, want)
	case bytes.Equal(id[:guidAndAge-4], want[:guidAndAge-4]):
		return fmt.Sprintf("its GUID is the expected one, but its age is %d, expected %d", binary.BigEndian.Uint32(id[guidAndAge-4:]), binary.BigEndian.Uint32(want[guidAndAge-4:]))
	}
	return fmt.Sprintf("its GUID and age are %s, expected %s", symbolName(id), symbolName(want))
}

// fetch asks the Finder's Remote and Symbols for the file that is name in the target.
func (s *search) fetch(f *Finder, name string) *Object {
	var file string
	var tried []Attempt
	switch {
	case !s.isCode:
		file, tried = f.fetch(RemoteExecutable, s.want, path.Base(strings.TrimSuffix(name, deleted)), "")
	case s.codeID != "":
		file, tried = f.FetchCode(LastPart(name), s.codeID)
	}
	s.tried = append(s.tried, tried...)
	if file == "" {
		return nil
	}
	s.mustCheck = true
	return s.try(f.placeAs(file, name))
}

// newAttempt returns the attempt of a file that could not be opened.
func newAttempt(p place, err error) Attempt {
	kind := Unreadable
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		kind = Absent
	}
	return Attempt{Path: p.path(), Reason: strings.TrimPrefix(short(err), p.path()+": "), Kind: kind}
}

// found returns the result of a search that took o, or nil and then the unchecked file.
func (s *search) found(o *Object, problem string) Found {
	checked := o != nil
	switch {
	case !checked:
		o, s.unchecked = s.unchecked, nil
		if problem != "" {
			problem += "; "
		}
		problem += o.Path() + ": " + s.why
	case s.unchecked != nil:
		s.tried = append(s.tried, Attempt{Path: s.unchecked.Path(), Reason: s.why, Kind: Mismatched})
	}
	return Found{Object: o, Path: o.Path(), Checked: checked, Problem: problem, Tried: s.tried}
}

// listed returns the places that were tried, for the end of a sentence; for users who do not see
// this machine, only the files that are there and could not be taken.
func (s *search) listed(f *Finder) string {
	tried := s.tried
	if f.IsUnseen {
		tried = (&Found{Tried: tried}).Unused()
	}
	if len(tried) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(": tried ")
	for i, t := range tried {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s (%s)", t.Path, t.Reason)
	}
	return b.String()
}

// short returns an error without the path, which the message has already.
func short(err error) string {
	var pathError *fs.PathError
	switch {
	case errors.As(err, &pathError):
		return pathError.Err.Error()
	case errors.Is(err, ErrNotELF):
		return ErrNotELF.Error()
	case errors.Is(err, ErrNotRegular):
		return ErrNotRegular.Error()
	case errors.Is(err, ErrEmpty):
		return ErrEmpty.Error()
	}
	return err.Error()
}

// A folderIndex knows the code objects in a folder by their build IDs, and its files by
// their names in lower case.
type folderIndex struct {
	byID   map[string][]string // paths
	byName map[string][]string // names
}

// files returns the files that may have an identity; see Object.HasID.
func (x *folderIndex) files(id []byte) []string {
	if len(id) != breakpadID {
		return x.byID[string(id)]
	}
	var files []string
	for known, list := range x.byID {
		if strings.HasPrefix(known, string(id)) {
			files = append(files, list...)
		}
	}
	slices.Sort(files)
	return files
}

// folder indexes a folder, once: the headers of its regular files, of at most
// maxFolderEntries entries.
func (f *Finder) folder(dir string) *folderIndex {
	if f.Indexes != nil {
		f.Indexes.mu.Lock()
		defer f.Indexes.mu.Unlock()
		return f.indexed(f.Indexes.folders, dir)
	}
	foldersMu.Lock()
	defer foldersMu.Unlock()
	if f.folders == nil {
		f.folders = make(map[string]*folderIndex)
	}
	return f.indexed(f.folders, dir)
}

// FoldersOf returns the folders among Folders in which files of an object may be, by its path in the target. Where
// Indexes remembers folders, one without code and without a name that such a file may have is left out: a
// thousand cores in folders of their own have one object for each of their libraries.
func (f *Finder) FoldersOf(name string) []string {
	if f.Indexes == nil {
		return f.Folders
	}
	base := strings.ToLower(path.Base(name))
	return slices.DeleteFunc(slices.Clone(f.Folders), func(dir string) bool { return !f.folder(dir).mayHave(base) })
}

// debugSuffixes end the names of files with debug information or symbols, beside files with the name of the code.
var debugSuffixes = []string{".debug", ".dbg", ".dwo", ".dwp", ".dwz", ".sym", ".pdb"}

// mayHave reports whether a file of an object may be in the folder, by the object's base name in small letters.
func (x *folderIndex) mayHave(base string) bool {
	if len(x.byID) > 0 {
		return true
	}
	for name := range x.byName {
		if strings.HasPrefix(name, base) || slices.Contains(debugSuffixes, filepath.Ext(name)) {
			return true
		}
	}
	return false
}

// indexed returns the index of a folder, which it keeps among known ones.
func (f *Finder) indexed(known map[string]*folderIndex, dir string) *folderIndex {
	if index, ok := known[dir]; ok {
		return index
	}
	index := &folderIndex{byID: map[string][]string{}, byName: map[string][]string{}}
	known[dir] = index
	list := sortedEntries(dir)
	for _, entry := range list {
		if !entry.Type().IsRegular() {
			continue
		}
		lower := strings.ToLower(entry.Name())
		index.byName[lower] = append(index.byName[lower], entry.Name())
		file := filepath.Join(dir, entry.Name())
		for _, id := range f.Store.buildIDs(hostPlace(file)) {
			index.byID[id] = append(index.byID[id], file)
		}
	}
	for _, file := range dsymFiles(dir, list) {
		for _, id := range f.Store.buildIDs(hostPlace(file)) {
			index.byID[id] = append(index.byID[id], file)
		}
	}
	return index
}
