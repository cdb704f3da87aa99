// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/unwindd/unwindd/engine/internal/profilenames"
	"github.com/unwindd/unwindd/engine/object"
)

// profileFiles are the files of the mappings of profiles, and the names that were found in them. They are
// kept from one profile to the next.
type profileFiles struct {
	mu     sync.Mutex // of a whole profile
	now    func() time.Time
	clock  int // counts profiles
	under  sync.Mutex
	byFile map[fileKey]*profileFile // under, as the fields until of files
}

// fileKey is by what a mapping's file is looked for.
type fileKey struct{ gnu, golang, hash, name string }

// profileFile is the file of a mapping, or why there is none.
type profileFile struct {
	*File                // nil: there is none
	problem string       // why there is none
	symbols *symbolNames // a symbol file of Breakpad; nil: none
	names   nameTable
	until   time.Time // when to look again for a file that is missing; zero: never
	used    int       // the clock of the last profile
	once    sync.Once
}

// The bounds of names and files that are kept from one profile to the next.
const (
	keptNames    = 64 << 20 // bytes of names
	keptFiles    = 512      // files that are open
	keptMissing  = 1 << 14
	keptTables   = 1 << 30 // bytes of tables of debug information
	searchFactor = 10      // how many times as long as the search took a missing file is believed to be missing
	maxBelieved  = time.Minute
)

func (k *profileFiles) time() time.Time {
	if k.now != nil {
		return k.now()
	}
	return time.Now()
}

// find returns the file of a mapping. It may be called concurrently.
func (k *profileFiles) find(n *profileNamer, m *profilenames.Mapping) *profileFile {
	key := fileKey{m.GNU, m.Go, m.Hash, m.File}
	k.under.Lock()
	if k.byFile == nil {
		k.byFile = map[fileKey]*profileFile{}
	}
	f := k.byFile[key]
	if f == nil || f.used != k.clock && !f.until.IsZero() && k.time().After(f.until) {
		if f != nil {
			_ = f.close() // it was only read
		}
		f = &profileFile{}
		k.byFile[key] = f
	}
	f.used = k.clock
	k.under.Unlock()
	f.once.Do(func() {
		began := k.time()
		f.open(n, m)
		took := k.time().Sub(began)
		k.under.Lock()
		defer k.under.Unlock()
		switch {
		case f.File == nil && f.symbols == nil:
			f.until = began.Add(took + min(searchFactor*took, maxBelieved))
		case !f.isComplete():
			f.until = began.Add(took + maxBelieved)
		}
	})
	return f
}

// isComplete reports whether no other file would give more names.
func (f *profileFile) isComplete() bool {
	return f.symbols != nil || f.Debug != nil || f.Object.HasDebugInfo() || f.Object.Section(".gopclntab") != nil || f.Object.Section(".data.rel.ro.gopclntab") != nil
}

// shrink forgets the names and files that were not used for longest.
func (k *profileFiles) shrink() {
	type kept struct {
		key  fileKey
		file *profileFile
	}
	var list []kept
	for key, f := range k.byFile {
		list = append(list, kept{key, f})
	}
	slices.SortFunc(list, func(a, b kept) int { return cmp.Compare(b.file.used, a.file.used) })
	names, open, missing, tables := 0, 0, 0, uint64(0)
	for _, e := range list {
		if e.file.File == nil && e.file.symbols == nil {
			if missing++; missing > keptMissing {
				delete(k.byFile, e.key)
			}
			continue
		}
		names += e.file.names.size
		tables += e.file.memorySize()
		switch open++; {
		case open > keptFiles, open > 1 && tables > keptTables:
			_ = e.file.close() // it was only read
			delete(k.byFile, e.key)
		case names > keptNames:
			names -= e.file.names.size
			e.file.names = nameTable{}
		}
	}
}

// close closes all files.
func (k *profileFiles) close() (err error) {
	for key, f := range k.byFile {
		err = cmp.Or(err, f.close())
		delete(k.byFile, key)
	}
	return err
}

func (f *profileFile) close() error {
	var err error
	if f.symbols != nil {
		err = f.symbols.file.Close()
	}
	if f.File != nil {
		err = cmp.Or(err, f.File.close())
	}
	f.File, f.symbols = nil, nil
	return err
}

// memorySize is about how many bytes the tables of debug information take.
func (f *profileFile) memorySize() (size uint64) {
	if f.File != nil {
		size = f.resolver.MemorySize()
	}
	if f.symbols != nil {
		size += f.symbols.file.MemorySize()
	}
	return size
}

// open looks for the file of a mapping.
func (f *profileFile) open(n *profileNamer, m *profilenames.Mapping) {
	id, problem := identityOf(m)
	if problem != "" {
		f.problem = problem
		return
	}
	exe := n.finder.Exe
	isExe := exe != "" && (m.IsMain() || object.LastPart(m.File) == object.LastPart(exe))
	found := n.finder.Find(m.File, id, isExe)
	switch {
	case m.GNU == "" && m.Go == "" && m.Hash == "" && !isProvided(&n.finder, &found):
		f.problem = "its mapping has no build ID"
	case found.Object == nil && m.Go != "" && m.GNU == "":
		f.problem = found.Problem + ", which is the hash of its Go build ID"
	case found.Object == nil:
		f.problem = found.Problem
	case !found.Checked && !isProvided(&n.finder, &found):
		f.problem = whyOther(m, &found)
	}
	if f.problem != "" && found.Object != nil {
		_ = found.Object.Close() // it was only read
	} else if found.Object != nil {
		finder := n.finder
		f.File = n.s.newFileOf(&finder, found.Object)
	}
	f.findSymbols(n, m, id)
}

// identityOf returns the build ID by which the file of a mapping is looked for, or why that cannot be; nil: it
// has none.
func identityOf(m *profilenames.Mapping) (id []byte, problem string) {
	switch {
	case m.GNU != "":
		id, err := hex.DecodeString(strings.ToLower(m.GNU))
		if err != nil || len(id) < minBuildID || len(id) > maxBuildID {
			return nil, "its build ID is not 2 to 64 bytes in hexadecimal"
		}
		return id, ""
	case m.Go != "":
		// Go's linker makes the GNU build ID of that (cmd/link -B gobuildid, the default since Go 1.24).
		sum := sha256.Sum256([]byte(m.Go))
		return sum[:goBuildID], ""
	}
	return nil, ""
}

// isProvided reports whether the user named the file for the mapping.
func isProvided(f *object.Finder, found *object.Found) bool {
	if found.Object == nil || found.Path == "" {
		return false
	}
	return found.Path == f.Exe || slices.Contains(slices.Collect(maps.Values(f.Provided)), found.Path)
}

// whyOther returns why a file without a GNU build ID is not known to be the file of a mapping; "": it is.
func whyOther(m *profilenames.Mapping, found *object.Found) string {
	switch o := found.Object; {
	case m.Hash != "" && strings.EqualFold(fileHash(o), m.Hash), m.Go != "" && goBuildIDOf(o) == m.Go:
		return ""
	case m.Go != "":
		return found.Path + " was not used: it does not have this Go build ID"
	case m.Hash != "":
		return found.Path + " was not used: its hash is another one"
	}
	return found.Path + " was not used: it has no build ID"
}

// hashedEnds is how many bytes of the beginning and of the end of a file its hash is of.
const hashedEnds = 4096

// fileHash is the hash by which OpenTelemetry's eBPF profiler knows files (process.executable.build_id.htlhash):
// half of the SHA-256 of their beginning, their end, and their size.
func fileHash(o *object.Object) string {
	data := o.Data()
	ends := min(len(data), hashedEnds)
	h := sha256.New()
	h.Write(data[:ends])
	h.Write(data[len(data)-ends:])
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(data))))
	return hex.EncodeToString(h.Sum(nil)[:sha256.Size/2])
}

// goNote is the type of the note with the build ID of Go's linker, whose owner is Go.
const goNote = 4

// goBuildIDOf is the build ID of Go's linker; "" where there is none.
func goBuildIDOf(o *object.Object) (id string) {
	for n, err := range o.Notes() {
		if err == nil && n.Owner == "Go" && n.Type == goNote {
			return string(n.Data)
		}
	}
	return ""
}

// The sizes of build IDs in bytes.
const (
	minBuildID = 2
	maxBuildID = 64
	goBuildID  = 20
)
