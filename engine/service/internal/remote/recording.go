// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/unwindd/unwindd/engine/internal/profile"
	"github.com/unwindd/unwindd/engine/object"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// This file profiles recordings of other machines: the recording goes to the machine that walks it, as the first of
// the second files, and the files of its processes stay until they are needed.

// Recording is the head of a recording: what its machine knows beside it.
type Recording struct {
	Version int
	Files   []RecordedFile
	Second  []SecondFile
}

// RecordedFile is a file that processes of a recording had mapped.
type RecordedFile struct {
	Path      string
	BuildID   []byte // in the recording; none: it has none
	File      string // where it was found
	Problem   string
	IsChecked bool
	Object    *Object // nil: none was found
}

// Role tells the second files of a profile apart.
type Role int

// The roles.
const (
	RecordingFile Role = iota
	GPUFile
	ObjectsFile
	TraceFile
	KallsymsFile
	PerfMapFile
	lastRole = PerfMapFile
)

// SecondFile is a file beside a recording.
type SecondFile struct {
	Role Role
	PID  int    // of a perf map
	Name string // for messages
	Size uint64
}

// Bounds on the lists of the head of a recording.
const (
	maxRecordedFiles = 1 << 14
	maxSecondFiles   = 1 << 8
)

// RecordingOf makes the head of a recording.
func RecordingOf(files []profile.File, second []SecondFile) (*Recording, error) {
	if len(second) > maxSecondFiles {
		return nil, fmt.Errorf("%d files beside the recording, expected at most %d", len(second), maxSecondFiles)
	}
	h := &Recording{Version: headVersion, Second: second}
	for _, f := range files {
		m := f.Module
		out := RecordedFile{Path: f.Path, BuildID: f.BuildID, File: m.File, Problem: m.Problem, IsChecked: f.IsChecked}
		if m.Object != nil {
			out.Object = objectOf(m)
		}
		h.Files = append(h.Files, out)
	}
	return h, nil
}

// Encode returns a head as CBOR.
func (r *Recording) Encode() ([]byte, error) { return encoding.Marshal(r) }

// DecodeRecording reads the head of a recording.
func DecodeRecording(b []byte) (*Recording, error) {
	r := &Recording{}
	if err := decoding.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHead, err)
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHead, err)
	}
	return r, nil
}

func (r *Recording) check() error {
	switch {
	case r.Version != headVersion:
		return fmt.Errorf("version %d, expected %d: the two are of different releases", r.Version, headVersion)
	case len(r.Files) > maxRecordedFiles:
		return fmt.Errorf("%d files, expected at most %d", len(r.Files), maxRecordedFiles)
	case len(r.Second) > maxSecondFiles:
		return fmt.Errorf("%d files beside the recording, expected at most %d", len(r.Second), maxSecondFiles)
	}
	for i := range r.Files {
		if o := r.Files[i].Object; o != nil && o.Size > math.MaxInt64 {
			return fmt.Errorf("files[%d] has %d bytes", i, o.Size)
		}
	}
	for i, s := range r.Second {
		if s.Role < 0 || s.Role > lastRole || s.PID < 0 || s.PID > math.MaxInt32 {
			return fmt.Errorf("second[%d]: role %d, process %d", i, s.Role, s.PID)
		}
	}
	return nil
}

// RecordedFiles are the files of a recording of another machine. It implements profile.Mapped.
type RecordedFiles struct {
	host  *Host
	head  *Recording
	files map[recordedKey]int // an index, or ambiguous
}

type recordedKey struct{ path, buildID string }

// ambiguous is the index of a path with several files.
const ambiguous = -1

// OpenRecording has the files of a recording, which ask asks for when they are needed. finder finds files of this
// machine, and has the open objects.
func (h *Host) OpenRecording(head *Recording, ask Ask, finder object.Finder) *RecordedFiles {
	h.begin(ask, finder)
	r := &RecordedFiles{host: h, head: head, files: map[recordedKey]int{}}
	for i := range head.Files {
		f := &head.Files[i]
		key := recordedKey{f.Path, string(f.BuildID)}
		if _, isThere := r.files[key]; isThere {
			i = ambiguous
		}
		r.files[key] = i
	}
	return r
}

// Owner implements profile.Mapped.
func (r *RecordedFiles) Owner() object.Owner { return r.host }

// Find implements profile.Mapped.
func (r *RecordedFiles) Find(path string, buildID []byte) (found object.Found, ok bool) {
	i, ok := r.files[recordedKey{path, string(buildID)}]
	if !ok {
		return found, false
	}
	if i == ambiguous {
		return object.Found{Problem: path + ": processes with other roots have other files there, and the recording does not tell them apart"}, true
	}
	f := &r.head.Files[i]
	found = object.Found{Path: f.File, Checked: f.IsChecked, Problem: f.Problem}
	if f.Object == nil {
		return found, len(buildID) == 0 || !r.isHere(buildID)
	}
	o, err := r.host.openObject(uint32(i), f.Object) //nolint:gosec // bounded
	if err != nil {
		found.Problem = fmt.Sprintf("%s: %v", path, err)
		return found, true
	}
	r.host.own(o, uint32(i), f.Object) //nolint:gosec // bounded
	found.Object = o
	return found, true
}

// isHere reports whether this machine has the code of a build ID, which the recording's lacks.
func (r *RecordedFiles) isHere(buildID []byte) bool {
	finder := r.host.finder
	found := finder.Find("", buildID, false)
	if found.Object == nil {
		return false
	}
	_ = found.Object.Close()
	return true
}

// Second brings a second file here.
func (r *RecordedFiles) Second(index int) (path string, err error) {
	path, _, err = r.host.file(&pb.FileQuestion{Kind: pb.FileQuestion_SECOND_FILE, Module: uint32(index), Size: r.head.Second[index].Size}) //nolint:gosec // bounded
	return path, err
}

// Close ends the asking.
func (r *RecordedFiles) Close() { r.host.end() }

// NewRecordingResponder makes a Responder for the files of a recording, and for second files at paths.
func NewRecordingResponder(files []profile.File, second []string) *Responder {
	k := &Responder{debug: map[uint32]*object.Found{}, second: second}
	for i := range files {
		k.modules = append(k.modules, files[i].Module)
	}
	return k
}

// maxEmpty bounds the bytes of a file of which the system does not tell the size.
const maxEmpty = 256 << 20

var errNoMemory = errors.New("a question for memory, which a recording does not have")

// secondFile maps a second file, until the Responder is closed.
func (k *Responder) secondFile(index uint32) (data []byte, err error) {
	if uint64(index) >= uint64(len(k.second)) {
		return nil, fmt.Errorf("a question for second file %d of %d", index, len(k.second))
	}
	f, err := os.Open(k.second[index])
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := object.MapFile(f, k.second[index])
	if errors.Is(err, object.ErrEmpty) { // as the files of /proc are
		return io.ReadAll(io.LimitReader(f, maxEmpty))
	}
	if err != nil {
		return nil, err
	}
	k.mapped = append(k.mapped, m)
	return m.Data(), nil
}

// Of returns the indexes of the second files of a role.
func (r *Recording) Of(role Role) (indexes []int) {
	for i := range r.Second {
		if r.Second[i].Role == role {
			indexes = append(indexes, i)
		}
	}
	return indexes
}
