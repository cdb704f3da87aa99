// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// The bounds of the lists of a snapshot. The size of the file bounds the memory of all: see
// memoryPool.
const (
	maxModules  = 1 << 14
	maxSegments = 1 << 18 // of all modules
	maxThreads  = 1 << 20
	maxSpaces   = 64      // of a thread
	maxFrames   = 1 << 16 // of a launcher
	maxPieces   = 1 << 20
	maxDetails  = 64        // of a thread's stop
	maxTrapID   = 1<<16 - 1 // a trap instruction's operand has 16 bits

	maxMappings   = 1 << 10
	maxParameters = 15 // EXCEPTION_MAXIMUM_PARAMETERS of Windows
)

// FormatVersion is the version of the format that is read and written.
const FormatVersion = 1

// document is the content of snapshot.json, whose members may be in any order, before names in
// it are looked up.
type document struct {
	modules  []moduleEntry
	segments int // of all modules
	pieces   []pieceEntry
	crash    *crashEntry
	process  *processEntry
	labels   map[string]string
	mappings []mappingEntry
	// thread takes the threads one by one, and does not keep the entry: there may be a
	// million.
	thread  func(t *threadEntry) error
	pool    *memoryPool
	version string // the text of format_version; "" if there is none
}

type moduleEntry struct {
	path, arch, processor string
	buildID               []byte
	badID                 string // the error in build_id
	symbols               trace.SymbolID
	version               string
	image                 imageEntry
	file, source          string
	segments              []segmentEntry
}

// imageEntry is the range of a module's whole image; zero if it is not known.
type imageEntry struct{ start, size jsontext.Hex }

// crashEntry is the crash.
type crashEntry struct {
	trace.Crash
	address, code jsontext.Hex
	callAddress   jsontext.Hex
	parameters    []jsontext.Hex
	first         *firstEntry // nil if there is none
}

// firstEntry is the earlier crash that a signal handler caught.
type firstEntry struct {
	trace.FirstCrash
	address, pc jsontext.Hex
}

// mappingEntry is a mapping around an address that explains the crash.
type mappingEntry struct {
	start, size, offset jsontext.Hex
	rights, file        string
}

type segmentEntry struct {
	section              string
	address, size, start jsontext.Hex
}

type threadEntry struct {
	id, name, arch, processor string
	ownID, lanes              uint64
	hasCrashed, isRunning     bool
	notStopped                string // why it has no registers; "": it was stopped
	signal                    int
	stop                      *stopEntry
	registers                 jsontext.Raw // the object of registers; without Data if there is none
	spaces                    []spaceEntry
	wave                      *waveEntry   // nil, or ownWave
	launch                    *launchEntry // nil, or ownLaunch
	ownWave                   waveEntry
	ownLaunch                 launchEntry
	state                     string
	callers                   []uint64
	badCaller                 string // the error in callers
	lead                      uint32
	states                    []laneEntry
}

// laneEntry is a lane that has registers of its own.
type laneEntry struct {
	lane      uint32
	registers jsontext.Raw
}

type stopEntry struct {
	reason                string
	address               jsontext.Hex
	trapID                uint32
	hasTrapID             bool
	isPCExact, hasPCExact bool
	details               []string
}

type spaceEntry struct {
	name string
	base jsontext.Hex
}

type waveEntry = sdk.Wave

type launchEntry struct {
	thread, kind, evidence string
	frames                 []uint64
	badFrame               string
}

type pieceEntry struct {
	file, space string
	address     jsontext.Hex
	scope       scope
}

// The members that are read; a test compares them with docs/snapshot.schema.json.
var (
	documentFields = []jsontext.Field[document]{
		{Name: "format_version", Read: func(r *jsontext.Reader, d *document) error {
			raw, err := r.Raw()
			d.version = string(raw.Data)
			return err
		}},
		{Name: "modules", Read: func(r *jsontext.Reader, d *document) error {
			return jsontext.Each(r, maxModules, moduleFields, func(m *moduleEntry) error {
				if d.segments += len(m.segments); d.segments > maxSegments {
					return r.Fail(r.Offset(), "the modules have more than %d segments", maxSegments)
				}
				d.modules = append(d.modules, *m)
				return d.pool.count(r, moduleBytes+len(m.segments)*segmentBytes+len(m.buildID))
			})
		}},
		{Name: "crash", Read: func(r *jsontext.Reader, d *document) error {
			d.crash = &crashEntry{}
			return jsontext.Members(r, d.crash, crashFields)
		}},
		{Name: "labels", Read: readLabels},
		{Name: "process", Read: func(r *jsontext.Reader, d *document) error {
			d.process = &processEntry{}
			return jsontext.Members(r, d.process, processFields)
		}},
		{Name: "mappings", Read: func(r *jsontext.Reader, d *document) error {
			return jsontext.List(r, &d.mappings, maxMappings, mappingFields)
		}},
		{Name: "threads", Read: readThreads},
		{Name: "memory", Read: func(r *jsontext.Reader, d *document) error {
			return jsontext.Each(r, maxPieces, pieceFields, func(p *pieceEntry) error {
				d.pieces = append(d.pieces, *p)
				return d.pool.count(r, pieceBytes)
			})
		}},
	}
	imageFields = []jsontext.Field[imageEntry]{
		{Name: "start", Read: jsontext.SetHex(func(i *imageEntry) *jsontext.Hex { return &i.start })},
		{Name: "size", Read: jsontext.SetHex(func(i *imageEntry) *jsontext.Hex { return &i.size })},
	}
	moduleFields = []jsontext.Field[moduleEntry]{
		{Name: "path", Read: jsontext.SetName(func(m *moduleEntry) *string { return &m.path })},
		{Name: "build_id", Read: readBuildID},
		{Name: "debug_file", Read: jsontext.SetName(func(m *moduleEntry) *string { return &m.symbols.DebugFile })},
		{Name: "debug_id", Read: jsontext.SetName(func(m *moduleEntry) *string { return &m.symbols.DebugID })},
		{Name: "code_id", Read: jsontext.SetName(func(m *moduleEntry) *string { return &m.symbols.CodeID })},
		{Name: "version", Read: jsontext.SetName(func(m *moduleEntry) *string { return &m.version })},
		{Name: "image", Read: func(r *jsontext.Reader, m *moduleEntry) error { return jsontext.Members(r, &m.image, imageFields) }},
		{Name: "arch", Read: jsontext.SetName(func(m *moduleEntry) *string { return &m.arch })},
		{Name: "processor", Read: jsontext.SetName(func(m *moduleEntry) *string { return &m.processor })},
		{Name: "file", Read: jsontext.SetName(func(m *moduleEntry) *string { return &m.file })},
		{Name: "source_module", Read: jsontext.SetName(func(m *moduleEntry) *string { return &m.source })},
		{Name: "segments", Read: func(r *jsontext.Reader, m *moduleEntry) error {
			return jsontext.List(r, &m.segments, maxSegments, segmentFields)
		}},
	}
	segmentFields = []jsontext.Field[segmentEntry]{
		{Name: "section", Read: jsontext.SetName(func(s *segmentEntry) *string { return &s.section })},
		{Name: "address", Read: jsontext.SetHex(func(s *segmentEntry) *jsontext.Hex { return &s.address })},
		{Name: "size", Read: jsontext.SetHex(func(s *segmentEntry) *jsontext.Hex { return &s.size })},
		{Name: "start", Read: jsontext.SetHex(func(s *segmentEntry) *jsontext.Hex { return &s.start })},
	}
	threadFields = []jsontext.Field[threadEntry]{
		{Name: "id", Read: readOwnID},
		{Name: "name", Read: jsontext.SetName(func(t *threadEntry) *string { return &t.name })},
		{Name: "arch", Read: jsontext.SetName(func(t *threadEntry) *string { return &t.arch })},
		{Name: "processor", Read: jsontext.SetName(func(t *threadEntry) *string { return &t.processor })},
		{Name: "own_id", Read: func(r *jsontext.Reader, t *threadEntry) (err error) { t.ownID, err = r.Integer(math.MaxInt32); return }},
		{Name: "lanes", Read: func(r *jsontext.Reader, t *threadEntry) (err error) { t.lanes, err = r.Integer(math.MaxUint32); return }},
		{Name: "crashed", Read: func(r *jsontext.Reader, t *threadEntry) (err error) { t.hasCrashed, err = r.Boolean(); return }},
		{Name: "running", Read: func(r *jsontext.Reader, t *threadEntry) (err error) { t.isRunning, err = r.Boolean(); return }},
		{Name: "not_stopped", Read: jsontext.SetName(func(t *threadEntry) *string { return &t.notStopped })},
		{Name: "signal", Read: func(r *jsontext.Reader, t *threadEntry) error {
			n, err := r.Integer(math.MaxInt32)
			t.signal = int(n)
			return err
		}},
		{Name: "stop", Read: func(r *jsontext.Reader, t *threadEntry) error {
			t.stop = &stopEntry{}
			return jsontext.Members(r, t.stop, stopFields)
		}},
		{Name: "registers", Read: func(r *jsontext.Reader, t *threadEntry) error {
			// The registers' names are read later: the architecture may
			// follow them.
			if r.Next() != '{' {
				return r.Unexpected("an object")
			}
			var err error
			t.registers, err = r.Raw()
			return err
		}},
		{Name: "spaces", Read: readSpaces},
		{Name: "wave", Read: func(r *jsontext.Reader, t *threadEntry) error {
			t.wave = &t.ownWave
			return jsontext.Members(r, t.wave, waveFields)
		}},
		{Name: "launched_by", Read: func(r *jsontext.Reader, t *threadEntry) error {
			t.launch = &t.ownLaunch
			return jsontext.Members(r, t.launch, launchFields)
		}},
		{Name: "state", Read: jsontext.SetName(func(t *threadEntry) *string { return &t.state })},
		{Name: "callers", Read: func(r *jsontext.Reader, t *threadEntry) (err error) {
			t.callers, t.badCaller, err = readPCs(r, "callers")
			return err
		}},
		{Name: "lead", Read: func(r *jsontext.Reader, t *threadEntry) error {
			n, err := r.Integer(math.MaxUint32)
			t.lead = uint32(n)
			return err
		}},
		{Name: "lane_states", Read: func(r *jsontext.Reader, t *threadEntry) error {
			return jsontext.List(r, &t.states, sdk.MaxLanes, laneFields)
		}},
	}
	laneFields = []jsontext.Field[laneEntry]{
		{Name: "lane", Read: func(r *jsontext.Reader, l *laneEntry) error {
			n, err := r.Integer(math.MaxUint32)
			l.lane = uint32(n)
			return err
		}},
		{Name: "registers", Read: func(r *jsontext.Reader, l *laneEntry) (err error) {
			if r.Next() != '{' {
				return r.Unexpected("an object")
			}
			raw, err := r.Raw()
			l.registers = jsontext.Raw{Data: slices.Clone(raw.Data), Offset: raw.Offset}
			return err
		}},
	}
	stopFields = []jsontext.Field[stopEntry]{
		{Name: "reason", Read: jsontext.SetName(func(s *stopEntry) *string { return &s.reason })},
		{Name: "address", Read: jsontext.SetHex(func(s *stopEntry) *jsontext.Hex { return &s.address })},
		{Name: "trap_id", Read: func(r *jsontext.Reader, s *stopEntry) error {
			n, err := r.Integer(maxTrapID)
			s.trapID, s.hasTrapID = uint32(n), true
			return err
		}},
		{Name: "pc_exact", Read: func(r *jsontext.Reader, s *stopEntry) (err error) {
			s.isPCExact, err = r.Boolean()
			s.hasPCExact = true
			return
		}},
		{Name: "details", Read: func(r *jsontext.Reader, s *stopEntry) error {
			return r.Array(func(i int) error {
				if i >= maxDetails {
					return r.Fail(r.Offset(), "the list has more than %d elements", maxDetails)
				}
				text, err := r.Identifier()
				s.details = append(s.details, text)
				return err
			})
		}},
	}
	spaceFields = []jsontext.Field[spaceEntry]{
		{Name: "base", Read: jsontext.SetHex(func(s *spaceEntry) *jsontext.Hex { return &s.base })},
	}
	waveFields = []jsontext.Field[waveEntry]{
		{Name: "agent", Read: jsontext.SetID(func(w *waveEntry) *string { return &w.Agent })},
		{Name: "queue", Read: jsontext.SetID(func(w *waveEntry) *string { return &w.Queue })},
		{Name: "dispatch", Read: jsontext.SetID(func(w *waveEntry) *string { return &w.Dispatch })},
		{Name: "kernel", Read: jsontext.SetName(func(w *waveEntry) *string { return &w.Kernel })},
		{Name: "group", Read: func(r *jsontext.Reader, w *waveEntry) (err error) {
			w.Group, err = r.Group()
			w.HasGroup = true
			return
		}},
		{Name: "in_group", Read: func(r *jsontext.Reader, w *waveEntry) error {
			n, err := r.Integer(math.MaxUint32)
			w.InGroup, w.HasInGroup = uint32(n), true
			return err
		}},
		{Name: "cluster", Read: func(r *jsontext.Reader, w *waveEntry) (err error) {
			w.Cluster, err = r.Group()
			w.HasCluster = true
			return
		}},
	}
	launchFields = []jsontext.Field[launchEntry]{
		{Name: "thread", Read: jsontext.SetID(func(l *launchEntry) *string { return &l.thread })},
		{Name: "kind", Read: jsontext.SetName(func(l *launchEntry) *string { return &l.kind })},
		{Name: "evidence", Read: jsontext.SetName(func(l *launchEntry) *string { return &l.evidence })},
		{Name: "frames", Read: readLaunchFrames},
	}
	pieceFields = []jsontext.Field[pieceEntry]{
		{Name: "file", Read: jsontext.SetName(func(p *pieceEntry) *string { return &p.file })},
		{Name: "space", Read: jsontext.SetName(func(p *pieceEntry) *string { return &p.space })},
		{Name: "address", Read: jsontext.SetHex(func(p *pieceEntry) *jsontext.Hex { return &p.address })},
		{Name: "scope", Read: func(r *jsontext.Reader, p *pieceEntry) error { return jsontext.Members(r, &p.scope, scopeFields) }},
	}
	scopeFields = []jsontext.Field[scope]{
		{Name: "wave", Read: setScope(waveBit, func(s *scope) *string { return &s.wave })},
		{Name: "agent", Read: setScope(agentBit, func(s *scope) *string { return &s.agent })},
		{Name: "queue", Read: setScope(queueBit, func(s *scope) *string { return &s.queue })},
		{Name: "dispatch", Read: setScope(dispatchBit, func(s *scope) *string { return &s.dispatch })},
		{Name: "group", Read: func(r *jsontext.Reader, s *scope) (err error) {
			s.members |= groupBit
			s.group, err = r.Group()
			return
		}},
		{Name: "lane", Read: func(r *jsontext.Reader, s *scope) error {
			n, err := r.Integer(math.MaxUint32)
			s.members |= laneBit
			s.lane = uint32(n)
			return err
		}},
	}
)

// readDocument reads snapshot.json as a stream, and passes each of its threads to thread.
func readDocument(m *member, thread func(t *threadEntry) error, pool *memoryPool) (*document, error) {
	d := &document{thread: thread, pool: pool}
	err := readStream(m, pool, func(r *jsontext.Reader) error {
		r.Interned = map[string]string{}
		return jsontext.Members(r, d, documentFields)
	})
	if err == nil {
		err = checkVersion(d.version)
	}
	if err != nil {
		// Of another version nothing else is expected to be valid.
		if first := readVersion(m, pool); first != nil {
			err = first
		}
		return nil, err
	}
	return d, nil
}

// readStream reads the whole text of a member. An error of the member itself is returned rather
// than an error in its text.
func readStream(m *member, pool *memoryPool, read func(r *jsontext.Reader) error) error {
	stream, err := m.stream()
	if err != nil {
		return err
	}
	r := jsontext.NewStream(stream, int(min(maxValue, pool.limit))) //nolint:gosec // at most maxValue
	if err = read(r); err == nil {
		err = r.End()
	}
	var failed *jsontext.Error
	if broken := r.Err(); broken != nil && !errors.As(broken, &failed) {
		return broken
	} else if broken != nil {
		err = broken
	}
	if err != nil {
		return fmt.Errorf("%s: %w", documentName, err)
	}
	return nil
}

// readVersion reads the whole text for its version alone, and returns an error for another
// version.
func readVersion(m *member, pool *memoryPool) error {
	version := ""
	err := readStream(m, pool, func(r *jsontext.Reader) error {
		return r.Object(func(name []byte) error {
			if string(name) != "format_version" {
				return r.Skip()
			}
			raw, err := r.Raw()
			version = string(raw.Data)
			return err
		})
	})
	if err == nil {
		err = checkVersion(version)
	}
	return err
}

func checkVersion(version string) error {
	switch version {
	case strconv.Itoa(FormatVersion):
		return nil
	case "":
		return fmt.Errorf("%s: has no format_version, expected %d", documentName, FormatVersion)
	}
	return fmt.Errorf("%s: format_version is %s, expected %d", documentName, jsontext.Clip(version), FormatVersion)
}

// readOwnID reads the ID of a thread.
func readOwnID(r *jsontext.Reader, t *threadEntry) (err error) {
	shared := r.Interned
	r.Interned = nil
	t.id, err = r.Identifier()
	r.Interned = shared
	return err
}

// readThreads reads the threads.
func readThreads(r *jsontext.Reader, d *document) error {
	return jsontext.Each(r, maxThreads, threadFields, func(t *threadEntry) error {
		if err := d.thread(t); err != nil {
			return err
		}
		return d.pool.count(r, 0)
	})
}

func readBuildID(r *jsontext.Reader, m *moduleEntry) error {
	text, err := r.Text()
	if err != nil {
		return err
	}
	// The longest in use has 32 bytes.
	const most = 1024
	m.buildID = make([]byte, hex.DecodedLen(min(len(text), most)))
	if _, err := hex.Decode(m.buildID, text[:min(len(text), most)]); err != nil || len(text) > most {
		m.buildID = nil
		m.badID = fmt.Sprintf("build_id is %q, expected at most %d pairs of hexadecimal digits", jsontext.Clip(string(text)), most/2)
	}
	return nil
}

func readSpaces(r *jsontext.Reader, t *threadEntry) error {
	return r.Object(func(name []byte) error {
		if len(t.spaces) >= maxSpaces {
			return r.Fail(r.Offset(), "more than %d address spaces", maxSpaces)
		}
		s := spaceEntry{name: jsontext.Clip(string(name))}
		if err := jsontext.Members(r, &s, spaceFields); err != nil {
			return err
		}
		t.spaces = append(t.spaces, s)
		return nil
	})
}

func readLaunchFrames(r *jsontext.Reader, l *launchEntry) (err error) {
	l.frames, l.badFrame, err = readPCs(r, "frames")
	return err
}

// readPCs reads a list of PCs; wrong is the first error in one.
func readPCs(r *jsontext.Reader, name string) (list []uint64, wrong string, err error) {
	err = r.Array(func(i int) error {
		if i >= maxFrames {
			return r.Fail(r.Offset(), "the list has more than %d elements", maxFrames)
		}
		n, err := r.Hex()
		if err != nil {
			return err
		}
		if n.Wrong != "" && wrong == "" {
			wrong = fmt.Sprintf("%s[%d] %s", name, i, n.Wrong)
		}
		list = append(list, n.Value)
		return nil
	})
	return list, wrong, err
}

func setScope(bit scopeMembers, member func(*scope) *string) func(*jsontext.Reader, *scope) error {
	return func(r *jsontext.Reader, s *scope) (err error) {
		s.members |= bit
		*member(s), err = r.Identifier()
		return
	}
}
