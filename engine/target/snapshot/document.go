package snapshot

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/unwindd/unwindd/engine/target"
)

// The bounds of the lists of a snapshot. With those of a text of 256 MiB they
// bound the memory that reading it takes.
const (
	maxModules  = 1 << 14
	maxSegments = 1 << 18 // of all modules
	maxThreads  = 1 << 20
	maxSpaces   = 64      // of a thread
	maxFrames   = 1 << 16 // of a launcher
	maxPieces   = 1 << 20
	maxInterned = 1 << 16
	maxTrapID   = 1<<16 - 1 // trap instructions have 16 bits for it
)

// formatVersion is the version of the format that is read.
const formatVersion = 1

// document is snapshot.json as it is written, before any name in it is looked
// up: its members may stand in any order.
type document struct {
	modules  []moduleEntry
	segments int // of all modules
	pieces   []pieceEntry
	// thread takes the threads one after the other: of a million of them both
	// forms are not kept.
	thread func(r *reader, t *threadEntry) error
}

type moduleEntry struct {
	path, arch, processor string
	buildID               []byte
	badID                 string // why build_id could not be read
	file, source          string
	segments              []segmentEntry
}

type segmentEntry struct {
	section              string
	address, size, start number
}

type threadEntry struct {
	id, name, arch, processor string
	lanes                     uint64
	crashed                   bool
	signal                    int
	stop                      *stopEntry
	registers                 int // offset of the object with the registers; 0: none
	spaces                    []spaceEntry
	wave                      *waveEntry
	launch                    *launchEntry
}

type stopEntry struct {
	reason              string
	address             number
	trapID              uint32
	hasTrapID           bool
	pcExact, hasPCExact bool
}

type spaceEntry struct {
	name string
	base number
}

type waveEntry = target.Wave

type launchEntry struct {
	thread, kind, evidence string
	frames                 []uint64
	badFrame               string
}

type pieceEntry struct {
	file, space string
	address     number
	scope       scope
}

// number is a hexadecimal number that may be absent or wrong.
type number struct {
	value uint64
	wrong string // why it cannot be used; "" when it can
	given bool
}

// problem says why a number cannot be used; "" when it can.
func (n number) problem() string {
	if !n.given {
		return "is missing"
	}
	return n.wrong
}

// parseNumber reads a hexadecimal number with its 0x.
func parseNumber(text []byte) (n number) {
	n.given = true
	digits, ok := hexDigits(text)
	if !ok {
		n.wrong = fmt.Sprintf("is %q, expected 0x and hexadecimal digits", clip(string(text)))
		return n
	}
	var err error
	if n.value, err = strconv.ParseUint(string(digits), 16, 64); err != nil {
		n.wrong = fmt.Sprintf("is %s, expected at most 64 bits", clip(string(text)))
	}
	return n
}

// hexDigits returns what follows the 0x of a hexadecimal number.
func hexDigits(text []byte) ([]byte, bool) {
	if len(text) < 3 || text[0] != '0' || text[1]|0x20 != 'x' {
		return nil, false
	}
	for _, c := range text[2:] {
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
			return nil, false
		}
	}
	return text[2:], true
}

// A reader reads snapshot.json.
type reader struct {
	jsonReader
	interned map[string]string
}

// name reads a string that many values share.
func (r *reader) name() (string, error) {
	at := r.at
	b, err := r.text()
	if err != nil {
		return "", err
	}
	if len(b) > maxText {
		return "", r.fail(at, "a string of %d bytes, expected at most %d", len(b), maxText)
	}
	if s, ok := r.interned[string(b)]; ok {
		return s, nil
	}
	s := string(b)
	if len(r.interned) < maxInterned {
		r.interned[s] = s
	}
	return s, nil
}

// identifier reads an ID: a string, or a whole number that stands for its
// decimal digits.
func (r *reader) identifier() (string, error) {
	if c := r.next(); c == '"' {
		return r.name()
	}
	if c := r.next(); c < '0' || c > '9' {
		return "", r.unexpected("a string")
	}
	n, err := r.integer(math.MaxUint64)
	return strconv.FormatUint(n, 10), err
}

// hexNumber reads a string with a hexadecimal number.
func (r *reader) hexNumber() (number, error) {
	b, err := r.text()
	if err != nil {
		return number{}, err
	}
	return parseNumber(b), nil
}

// list reads an array of at most a number of elements.
func list[T any](r *reader, into *[]T, most int, fields []field[T]) error {
	return r.array(func(i int) error {
		if i >= most {
			return r.fail(r.at, "the list has more than %d elements", most)
		}
		var element T
		if err := members(r, &element, fields); err != nil {
			return err
		}
		*into = append(*into, element)
		return nil
	})
}

// The setters of members with simple values.

func setName[T any](at func(*T) *string) func(*reader, *T) error {
	return func(r *reader, into *T) (err error) { *at(into), err = r.name(); return }
}

func setID[T any](at func(*T) *string) func(*reader, *T) error {
	return func(r *reader, into *T) (err error) { *at(into), err = r.identifier(); return }
}

func setNumber[T any](at func(*T) *number) func(*reader, *T) error {
	return func(r *reader, into *T) (err error) { *at(into), err = r.hexNumber(); return }
}

// The members that are read, and no others. docs/snapshot.schema.json describes
// the same; a test compares them.
var (
	documentFields = []field[document]{
		{"format_version", func(r *reader, _ *document) error { return r.skip() }}, // readVersion has read it
		{"modules", func(r *reader, d *document) error {
			return r.array(func(i int) error {
				if i >= maxModules {
					return r.fail(r.at, "the list has more than %d elements", maxModules)
				}
				var m moduleEntry
				if err := members(r, &m, moduleFields); err != nil {
					return err
				}
				if d.segments += len(m.segments); d.segments > maxSegments {
					return r.fail(r.at, "the modules have more than %d segments", maxSegments)
				}
				d.modules = append(d.modules, m)
				return nil
			})
		}},
		{"threads", readThreads},
		{"memory", func(r *reader, d *document) error { return list(r, &d.pieces, maxPieces, pieceFields) }},
	}
	moduleFields = []field[moduleEntry]{
		{"path", setName(func(m *moduleEntry) *string { return &m.path })},
		{"build_id", readBuildID},
		{"arch", setName(func(m *moduleEntry) *string { return &m.arch })},
		{"processor", setName(func(m *moduleEntry) *string { return &m.processor })},
		{"file", setName(func(m *moduleEntry) *string { return &m.file })},
		{"source_module", setName(func(m *moduleEntry) *string { return &m.source })},
		{"segments", func(r *reader, m *moduleEntry) error { return list(r, &m.segments, maxSegments, segmentFields) }},
	}
	segmentFields = []field[segmentEntry]{
		{"section", setName(func(s *segmentEntry) *string { return &s.section })},
		{"address", setNumber(func(s *segmentEntry) *number { return &s.address })},
		{"size", setNumber(func(s *segmentEntry) *number { return &s.size })},
		{"start", setNumber(func(s *segmentEntry) *number { return &s.start })},
	}
	threadFields = []field[threadEntry]{
		{"id", setID(func(t *threadEntry) *string { return &t.id })},
		{"name", setName(func(t *threadEntry) *string { return &t.name })},
		{"arch", setName(func(t *threadEntry) *string { return &t.arch })},
		{"processor", setName(func(t *threadEntry) *string { return &t.processor })},
		{"lanes", func(r *reader, t *threadEntry) (err error) { t.lanes, err = r.integer(math.MaxUint32); return }},
		{"crashed", func(r *reader, t *threadEntry) (err error) { t.crashed, err = r.boolean(); return }},
		{"signal", func(r *reader, t *threadEntry) error {
			n, err := r.integer(math.MaxInt32)
			t.signal = int(n)
			return err
		}},
		{"stop", func(r *reader, t *threadEntry) error {
			t.stop = &stopEntry{}
			return members(r, t.stop, stopFields)
		}},
		{"registers", func(r *reader, t *threadEntry) error {
			// What the names mean is known with the architecture, which may
			// stand behind them.
			if r.next() != '{' {
				return r.unexpected("an object")
			}
			t.registers = r.at
			return r.skip()
		}},
		{"spaces", readSpaces},
		{"wave", func(r *reader, t *threadEntry) error {
			t.wave = &waveEntry{}
			return members(r, t.wave, waveFields)
		}},
		{"launched_by", func(r *reader, t *threadEntry) error {
			t.launch = &launchEntry{}
			return members(r, t.launch, launchFields)
		}},
	}
	stopFields = []field[stopEntry]{
		{"reason", setName(func(s *stopEntry) *string { return &s.reason })},
		{"address", setNumber(func(s *stopEntry) *number { return &s.address })},
		{"trap_id", func(r *reader, s *stopEntry) error {
			n, err := r.integer(maxTrapID)
			s.trapID, s.hasTrapID = uint32(n), true
			return err
		}},
		{"pc_exact", func(r *reader, s *stopEntry) (err error) {
			s.pcExact, err = r.boolean()
			s.hasPCExact = true
			return
		}},
	}
	spaceFields = []field[spaceEntry]{
		{"base", setNumber(func(s *spaceEntry) *number { return &s.base })},
	}
	waveFields = []field[waveEntry]{
		{"agent", setID(func(w *waveEntry) *string { return &w.Agent })},
		{"queue", setID(func(w *waveEntry) *string { return &w.Queue })},
		{"dispatch", setID(func(w *waveEntry) *string { return &w.Dispatch })},
		{"kernel", setName(func(w *waveEntry) *string { return &w.Kernel })},
		{"group", func(r *reader, w *waveEntry) (err error) {
			w.Group, err = r.group()
			w.HasGroup = true
			return
		}},
		{"in_group", func(r *reader, w *waveEntry) error {
			n, err := r.integer(math.MaxUint32)
			w.InGroup, w.HasInGroup = uint32(n), true
			return err
		}},
	}
	launchFields = []field[launchEntry]{
		{"thread", setID(func(l *launchEntry) *string { return &l.thread })},
		{"kind", setName(func(l *launchEntry) *string { return &l.kind })},
		{"evidence", setName(func(l *launchEntry) *string { return &l.evidence })},
		{"frames", readLaunchFrames},
	}
	pieceFields = []field[pieceEntry]{
		{"file", setName(func(p *pieceEntry) *string { return &p.file })},
		{"space", setName(func(p *pieceEntry) *string { return &p.space })},
		{"address", setNumber(func(p *pieceEntry) *number { return &p.address })},
		{"scope", func(r *reader, p *pieceEntry) error { return members(r, &p.scope, scopeFields) }},
	}
	scopeFields = []field[scope]{
		{"wave", setScope(waveBit, func(s *scope) *string { return &s.wave })},
		{"agent", setScope(agentBit, func(s *scope) *string { return &s.agent })},
		{"queue", setScope(queueBit, func(s *scope) *string { return &s.queue })},
		{"dispatch", setScope(dispatchBit, func(s *scope) *string { return &s.dispatch })},
		{"group", func(r *reader, s *scope) (err error) {
			s.members |= groupBit
			s.group, err = r.group()
			return
		}},
	}
)

// readDocument reads snapshot.json, and hands each of its threads to thread.
func readDocument(data []byte, thread func(r *reader, t *threadEntry) error) (*document, error) {
	if err := readVersion(data); err != nil {
		return nil, err
	}
	r := &reader{jsonReader: jsonReader{data: data}, interned: map[string]string{}}
	d := &document{thread: thread}
	if err := members(r, d, documentFields); err != nil {
		return nil, err
	}
	return d, nil
}

// readVersion reads the whole text for its version alone: of another version
// nothing else is expected to be as it is here.
func readVersion(data []byte) error {
	r := jsonReader{data: data}
	version, found := "", false
	err := r.object(func(name []byte) error {
		start := r.at
		if r.next() != 0 {
			start = r.at
		}
		if err := r.skip(); err != nil {
			return err
		}
		if string(name) == "format_version" {
			version, found = string(data[start:r.at]), true
		}
		return nil
	})
	if err == nil {
		err = r.end()
	}
	switch {
	case err != nil:
		return err
	case !found:
		return errors.New("has no format_version, expected 1")
	case version != strconv.Itoa(formatVersion):
		return fmt.Errorf("format_version is %s, expected %d", clip(version), formatVersion)
	}
	return nil
}

// readThreads reads the threads.
func readThreads(r *reader, d *document) error {
	return r.array(func(i int) error {
		if i >= maxThreads {
			return r.fail(r.at, "the list has more than %d elements", maxThreads)
		}
		var t threadEntry
		if err := members(r, &t, threadFields); err != nil {
			return err
		}
		return d.thread(r, &t)
	})
}

func readBuildID(r *reader, m *moduleEntry) error {
	text, err := r.text()
	if err != nil {
		return err
	}
	// The longest that is in use has 32 bytes.
	const most = 1024
	m.buildID = make([]byte, hex.DecodedLen(min(len(text), most)))
	if _, err := hex.Decode(m.buildID, text[:min(len(text), most)]); err != nil || len(text) > most {
		m.buildID = nil
		m.badID = fmt.Sprintf("build_id is %q, expected at most %d pairs of hexadecimal digits", clip(string(text)), most/2)
	}
	return nil
}

func readSpaces(r *reader, t *threadEntry) error {
	return r.object(func(name []byte) error {
		if len(t.spaces) >= maxSpaces {
			return r.fail(r.at, "more than %d address spaces", maxSpaces)
		}
		s := spaceEntry{name: clip(string(name))}
		if err := members(r, &s, spaceFields); err != nil {
			return err
		}
		t.spaces = append(t.spaces, s)
		return nil
	})
}

func readLaunchFrames(r *reader, l *launchEntry) error {
	return r.array(func(i int) error {
		if i >= maxFrames {
			return r.fail(r.at, "the list has more than %d elements", maxFrames)
		}
		n, err := r.hexNumber()
		if err != nil {
			return err
		}
		if n.wrong != "" && l.badFrame == "" {
			l.badFrame = fmt.Sprintf("frames[%d] %s", i, n.wrong)
		}
		l.frames = append(l.frames, n.value)
		return nil
	})
}

// group reads the three coordinates of a work-group.
func (r *reader) group() (g [3]uint32, err error) {
	at, n := r.at, 0
	err = r.array(func(i int) error {
		v, err := r.integer(math.MaxUint32)
		if err != nil {
			return err
		}
		if n = i + 1; i < len(g) {
			g[i] = uint32(v)
		}
		return nil
	})
	if err == nil && n != len(g) {
		err = r.fail(at, "%d coordinates, expected %d", n, len(g))
	}
	return g, err
}

func setScope(bit scopeMembers, at func(*scope) *string) func(*reader, *scope) error {
	return func(r *reader, s *scope) (err error) {
		s.members |= bit
		*at(s), err = r.identifier()
		return
	}
}
