package object

// A Remote has files by build ID that are on other machines, as the servers of
// debuginfod have them. A Finder asks it for what it does not find on this machine.
// It may be used concurrently.
type Remote interface {
	// Fetch brings a file onto this machine and returns its path. The path is ""
	// where nobody has the file. tried are the places that did not give it, each
	// with the reason.
	Fetch(f RemoteFile) (path string, tried []Attempt)
}

// A RemoteFile is what a Remote is asked for.
type RemoteFile struct {
	Kind    RemoteKind
	BuildID []byte // of the code object
	Source  string // of RemoteSource: the file's absolute path, as debug information has it
}

// RemoteKind says what of a code object is asked for.
type RemoteKind string

// The kinds.
const (
	RemoteDebuginfo  RemoteKind = "debuginfo"  // the file with its debug information
	RemoteExecutable RemoteKind = "executable" // the file that is loaded
	RemoteSource     RemoteKind = "source"     // a source file that it was compiled from
)

// minRemoteID is the shortest build ID, in bytes, that names a file to others. Linkers
// write 8 bytes and more; a shorter one is made by hand.
const minRemoteID = 2

// fetch asks the Remote; "" where there is none.
func (f *Finder) fetch(kind RemoteKind, buildID []byte, source string) (path string, tried []Attempt) {
	if f.Remote == nil || len(buildID) < minRemoteID || len(buildID) > maxBuildID {
		return "", nil
	}
	return f.Remote.Fetch(RemoteFile{kind, buildID, source})
}

// FetchDebug opens the file with debug information that has a build ID, as the Remote
// has it: of a supplementary file, for one, which no object is at hand for. It does not
// look on this machine.
func (f *Finder) FetchDebug(buildID []byte) (*Object, []Attempt) {
	file, tried := f.fetch(RemoteDebuginfo, buildID, "")
	if file == "" {
		return nil, tried
	}
	s := search{store: f.Store, want: buildID, tried: tried}
	return s.tryAny(hostPlace(file)), s.tried
}

// FetchSource asks the Remote for a source file of the code object with a build ID, by
// the absolute path that debug information has. The path is "" where there is none.
func (f *Finder) FetchSource(buildID []byte, source string) (path string, tried []Attempt) {
	return f.fetch(RemoteSource, buildID, source)
}

// tryAny opens a file and returns it where its build ID is the right one, whether it
// is code or debug information.
func (s *search) tryAny(p place) *Object {
	o, err := s.store.openCode(p, nil)
	if err != nil {
		s.tried = append(s.tried, newAttempt(p, err))
		return nil
	}
	if reason := otherID(o.BuildID(), s.want); reason != "" {
		s.tried = append(s.tried, Attempt{p.path(), reason, Mismatched})
		_ = o.Close()
		return nil
	}
	return o
}
