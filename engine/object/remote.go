// SPDX-License-Identifier: Apache-2.0

package object

import (
	"cmp"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Remote has files by build ID that are on other machines, as the servers of
// debuginfod have them. A Finder asks it for files that it does not find on this machine.
// It may be used concurrently.
type Remote interface {
	// Fetch brings a file onto this machine and returns its path; "" where no place
	// has it. tried are the places that did not give it, each with the reason.
	Fetch(f RemoteFile) (path string, tried []Attempt)
}

// A RemoteFile is a request to a Remote.
type RemoteFile struct {
	Kind    RemoteKind
	BuildID []byte // of the code object
	Source  string // of RemoteSource: the file's absolute path, as debug information has it
	// Name is the base name of the file, by which stores of symbol files know it; "":
	// unknown. ID is their identifier of the build: for RemoteSymbols the debug
	// identifier, as for RemotePDB, for RemoteCode the code identifier.
	Name, ID string
}

// RemoteKind is the kind of file of a code object.
type RemoteKind string

// The kinds.
const (
	RemoteDebuginfo  RemoteKind = "debuginfo"  // the file with its debug information
	RemoteExecutable RemoteKind = "executable" // the file that is loaded
	RemoteSource     RemoteKind = "source"     // a source file that it was compiled from
	RemoteSymbols    RemoteKind = "symbols"    // Breakpad's symbol file, by Name and ID
	RemotePDB        RemoteKind = "pdb"        // the PDB file, by Name and ID
	RemoteCode       RemoteKind = "code"       // the file that is loaded, by Name and ID
)

// minRemoteID is the shortest build ID, in bytes, that names a file to others. Linkers
// write 8 bytes and more; a shorter one is made by hand.
const minRemoteID = 2

// fetch asks the Remote, and then Symbols, for a file by build ID; "" where neither has it. name is the base name of
// the code object, where it is known.
func (f *Finder) fetch(kind RemoteKind, buildID []byte, name, source string) (path string, tried []Attempt) {
	if len(buildID) < minRemoteID || len(buildID) > maxBuildID {
		return "", nil
	}
	return f.request(RemoteFile{Kind: kind, BuildID: buildID, Name: name, Source: source})
}

// request asks the Remote, and then Symbols, for a file.
func (f *Finder) request(file RemoteFile) (path string, tried []Attempt) {
	for _, r := range []Remote{f.Remote, f.Symbols} {
		if r == nil {
			continue
		}
		found, more := f.ask(r, file)
		if tried = append(tried, more...); found != "" {
			return found, tried
		}
	}
	return "", tried
}

// ask asks a Remote. Which servers it asks, and where it keeps files, concerns this machine.
func (f *Finder) ask(r Remote, file RemoteFile) (path string, tried []Attempt) {
	path, tried = r.Fetch(file)
	for i := range tried {
		tried[i].IsRemote = true
	}
	if !f.IsUnseen {
		return path, tried
	}
	for _, a := range tried {
		if a.Kind != Absent {
			return path, []Attempt{{Path: cmp.Or(file.Name, file.Source, "the file"), Reason: "a server that may have it does not give it", Kind: a.Kind}}
		}
	}
	return path, nil
}

// Answers returns the servers and stores among the places that were tried, each once with its answer:
// "http://a.example: the server does not have it".
func Answers(tried []Attempt) (list []string) {
	for _, a := range tried {
		if !a.IsRemote {
			continue
		}
		answer := a.Path + ": " + a.Reason
		if u, err := url.Parse(a.Path); a.Reason == NotThereLately {
			answer = a.Reason
		} else if err == nil && u.Host != "" {
			answer = u.Scheme + "://" + u.Host + ": " + a.Reason
		}
		if !slices.Contains(list, answer) {
			list = append(list, answer)
		}
	}
	return list
}

// SymbolFiles yields paths of Breakpad symbol files that may belong to a build, until yield returns
// false: name is the base name of the file that the symbols were made from, and id its debug
// identifier. They are NAME.sym in Folders, whose build is not checked, and the file of Symbols.
// tried are the places in Symbols that did not have it.
func (f *Finder) SymbolFiles(name, id string, yield func(path string) bool) (tried []Attempt) {
	if !IsPlainName(name) {
		return nil
	}
	for _, dir := range f.Folders {
		if path := filepath.Join(dir, SymbolFileName(name)); !yield(path) {
			return nil
		}
	}
	if f.Symbols == nil {
		return nil
	}
	path, tried := f.ask(f.Symbols, RemoteFile{Kind: RemoteSymbols, Name: name, ID: id})
	if path != "" {
		yield(path)
	}
	return tried
}

// FetchCode asks Symbols for the file of code with a code identifier; "" where it is not
// there.
func (f *Finder) FetchCode(name, id string) (path string, tried []Attempt) {
	if f.Symbols == nil || !IsPlainName(name) {
		return "", nil
	}
	return f.ask(f.Symbols, RemoteFile{Kind: RemoteCode, Name: name, ID: id})
}

// SymbolFileName returns the name of the Breakpad symbol file for a file of a base name: NAME.sym,
// also for NAME.pdb.
func SymbolFileName(name string) string {
	if n := len(name) - len(".pdb"); n > 0 && strings.EqualFold(name[n:], ".pdb") {
		name = name[:n]
	}
	return name + ".sym"
}

// maxPlainName bounds the names that IsPlainName takes, in bytes: file systems have 255,
// of which a suffix needs some.
const maxPlainName = 240

// IsPlainName reports whether a name, such as one in a dump, stays in its directory on any
// system.
func IsPlainName(name string) bool {
	if name == "" || name == "." || name == ".." || len(name) > maxPlainName || !utf8.ValidString(name) {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return r == '/' || r == '\\' || !unicode.IsPrint(r) })
}

// FetchDebug opens the Remote's file with debug information of a build ID, such as a supplementary
// file, for which there is no object. It does not look on this machine.
func (f *Finder) FetchDebug(buildID []byte) (*Object, []Attempt) {
	return f.fetchID(RemoteDebuginfo, buildID, ".debug")
}

// FetchExecutable opens the Remote's code of a build ID. It does not look on this machine.
func (f *Finder) FetchExecutable(buildID []byte) (*Object, []Attempt) {
	return f.fetchID(RemoteExecutable, buildID, "")
}

// fetchID opens the Remote's file of a build ID, whose name is that and a suffix.
func (f *Finder) fetchID(kind RemoteKind, buildID []byte, suffix string) (*Object, []Attempt) {
	file, tried := f.fetch(kind, buildID, "", "")
	if file == "" {
		return nil, tried
	}
	s := search{store: f.Store, want: buildID, tried: tried}
	return s.tryAny(f.placeAs(file, fmt.Sprintf("%x%s", buildID, suffix))), s.tried
}

// FetchSource asks the Remote for a source file of the code object with a build ID, by
// the absolute path that debug information has. The path is "" where there is none.
func (f *Finder) FetchSource(buildID []byte, source string) (path string, tried []Attempt) {
	return f.fetch(RemoteSource, buildID, "", source)
}

// tryAny opens a file and returns it where its build ID is the right one, whether it
// is code or debug information.
func (s *search) tryAny(p place) *Object {
	o, err := s.store.openCode(p, nil)
	if err != nil {
		s.tried = append(s.tried, newAttempt(p, err))
		return nil
	}
	if reason := o.otherID(s.want); reason != "" {
		s.tried = append(s.tried, Attempt{Path: p.path(), Reason: reason, Kind: Mismatched})
		_ = o.Close()
		return nil
	}
	return o
}
