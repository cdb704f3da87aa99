// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"archive/zip"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/flate"

	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// Contents is the content of a snapshot to be written.
type Contents struct {
	Modules []Module
	// Threads keep their order. The names of their registers and address spaces come from
	// Write's Options.Describe.
	Threads []*trace.Thread
	Memory  []Memory
	// Crash is the crash; nil if the target has no more than the signals of its threads.
	Crash *trace.Crash
	// Process is the process, of which readers take some members; nil if it is not known.
	Process *trace.Process
	// Labels are the labels of the process: its rank, its job. Not its environment, which has secrets.
	Labels map[string]string
	// Mappings are the mappings around the addresses that explain the crash, by address.
	Mappings []target.Mapping
}

// Module is a code object that was loaded.
type Module struct {
	*target.Module
	// Keep puts the code object into the snapshot, if it is known. Without it a reader
	// looks for a file by the path and the build ID.
	Keep bool
	// Companions are the files beside the code object that are kept with it.
	Companions []Companion
}

// Companion is a file beside a code object.
type Companion struct {
	Suffix string // of its name, including the dot
	Data   []byte
}

// Memory is a range of memory of an instance of an address space.
type Memory struct {
	Space   locexpr.AddressSpace
	Thread  *trace.Thread // the owner of the instance; nil for the default space
	Address uint64
	Data    []byte
	// Lane is the lane of the thread that the instance belongs to, if IsOfLane.
	Lane     uint32
	IsOfLane bool
}

// Members that compress by more than this ratio are compressed only as long as all of them
// together are small: readers take such archives for bombs.
const (
	plainRatio = inflatedRatio * 3 / 4
	mostDense  = inflatedFloor / 2
)

// maxText bounds snapshot.json while it is written: it is in memory as a whole.
const maxText = 256 << 20

// maxWritten bounds the members of a snapshot, so that its directory stays
// within maxDirectory.
const maxWritten = 1 << 19

// Write writes a snapshot. Equal contents give equal bytes. Memory that a reader gets from a
// code object is left out: the code object is kept, or identified by its build ID.
//
// Contents that a reader would reject or misread are an error: lists beyond the bounds of the
// format, registers and address spaces without a name, pieces of memory that overlap.
func Write(w io.Writer, c *Contents, options Options) error {
	out := &writer{
		zip: zip.NewWriter(w), names: map[[sha256.Size]byte]string{},
		archs: archs{describe: options.Describe, byName: map[string]*arch{}},
	}
	// Bytes of code objects and of other snapshots may lie in mapped files.
	err := object.Guard(func() error { return out.write(c) })
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	return nil
}

// writer writes one snapshot.
type writer struct {
	zip      *zip.Writer
	names    map[[sha256.Size]byte]string // of members, by the hash of their content
	counts   map[string]int               // members of a folder
	inflated uint64                       // bytes of deflated members
	dense    uint64                       // bytes of members with a high ratio of compression
	archs    archs
	text     bytes.Buffer // snapshot.json
	deflate  *flate.Writer
	packed   bytes.Buffer
}

func (w *writer) write(c *Contents) error {
	for _, limit := range []struct {
		what       string
		have, most int
	}{{"modules", len(c.Modules), maxModules}, {"threads", len(c.Threads), maxThreads}, {"memory", len(c.Memory), maxWritten}} {
		if limit.have > limit.most {
			return fmt.Errorf("%s: %d elements, expected at most %d", limit.what, limit.have, limit.most)
		}
	}
	w.text.WriteString(`{"format_version":` + strconv.Itoa(FormatVersion))
	for _, err := range []error{w.crash(c.Crash), w.process(c.Process), w.labels(c.Labels), w.mappings(c.Mappings)} {
		if err != nil {
			return err
		}
	}
	if err := w.modules(c.Modules); err != nil {
		return err
	}
	if err := w.threads(c.Threads); err != nil {
		return err
	}
	if err := w.memory(c); err != nil {
		return err
	}
	w.text.WriteString("}\n")
	if w.text.Len() > maxText {
		return fmt.Errorf("%s would have %d bytes, expected at most %d", documentName, w.text.Len(), maxText)
	}
	if err := w.store(documentName, w.text.Bytes()); err != nil {
		return err
	}
	return w.zip.Close()
}

// writeList writes an array of the document, one element a line.
func writeList[T any](w *writer, name string, elements []T, element func(i int, e T) (any, error)) error {
	fmt.Fprintf(&w.text, ",\n%q:[", name)
	first := true
	for i, e := range elements {
		v, err := element(i, e)
		if err != nil {
			return fmt.Errorf("%s[%d]: %w", name, i, err)
		}
		if v == nil {
			continue
		}
		b, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("%s[%d]: %w", name, i, err)
		}
		if !first {
			w.text.WriteByte(',')
		}
		first = false
		w.text.WriteByte('\n')
		w.text.Write(b)
		if w.text.Len() > maxText {
			return fmt.Errorf("%s[%d]: %s would have more than %d bytes", name, i, documentName, maxText)
		}
	}
	w.text.WriteByte(']')
	return nil
}

// The document as it is written, with the members of the tables of fields.
type (
	moduleText struct {
		Path      string        `json:"path,omitempty"`
		BuildID   string        `json:"build_id,omitempty"`
		DebugFile string        `json:"debug_file,omitempty"`
		DebugID   string        `json:"debug_id,omitempty"`
		CodeID    string        `json:"code_id,omitempty"`
		Version   string        `json:"version,omitempty"`
		Image     *imageText    `json:"image,omitempty"`
		Arch      string        `json:"arch"`
		Processor string        `json:"processor,omitempty"`
		File      string        `json:"file,omitempty"`
		Source    string        `json:"source_module,omitempty"`
		Segments  []segmentText `json:"segments"`
	}
	imageText struct {
		Start string `json:"start"`
		Size  string `json:"size"`
	}
	segmentText struct {
		Section string `json:"section,omitempty"`
		Address string `json:"address"`
		Size    string `json:"size"`
		Start   string `json:"start"`
	}
	threadText struct {
		ID         string               `json:"id"`
		Name       string               `json:"name,omitempty"`
		OwnID      int64                `json:"own_id,omitempty"`
		Arch       string               `json:"arch"`
		Processor  string               `json:"processor,omitempty"`
		Lanes      uint32               `json:"lanes,omitempty"`
		Crashed    bool                 `json:"crashed,omitempty"`
		Running    bool                 `json:"running,omitempty"`
		NotStopped string               `json:"not_stopped,omitempty"`
		Signal     int                  `json:"signal,omitempty"`
		Stop       *stopText            `json:"stop,omitempty"`
		Registers  map[string]string    `json:"registers"`
		Spaces     map[string]spaceText `json:"spaces,omitempty"`
		Wave       *waveText            `json:"wave,omitempty"`
		LaunchedBy *launchText          `json:"launched_by,omitempty"`
		State      string               `json:"state,omitempty"`
		Callers    []string             `json:"callers,omitempty"`
		Lead       uint32               `json:"lead,omitempty"`
		LaneStates []laneText           `json:"lane_states,omitempty"`
	}
	laneText struct {
		Lane      uint32            `json:"lane"`
		Registers map[string]string `json:"registers"`
	}
	stopText struct {
		Reason  string   `json:"reason"`
		Address string   `json:"address,omitempty"`
		TrapID  *uint32  `json:"trap_id,omitempty"`
		PCExact *bool    `json:"pc_exact,omitempty"`
		Details []string `json:"details,omitempty"`
	}
	spaceText struct {
		Base string `json:"base"`
	}
	waveText struct {
		Agent    string     `json:"agent,omitempty"`
		Queue    string     `json:"queue,omitempty"`
		Dispatch string     `json:"dispatch,omitempty"`
		Kernel   string     `json:"kernel,omitempty"`
		Group    *[3]uint32 `json:"group,omitempty"`
		InGroup  *uint32    `json:"in_group,omitempty"`
		Cluster  *[3]uint32 `json:"cluster,omitempty"`
	}
	launchText struct {
		Thread   string   `json:"thread,omitempty"`
		Kind     string   `json:"kind,omitempty"`
		Evidence string   `json:"evidence"`
		Frames   []string `json:"frames,omitempty"`
	}
	memoryText struct {
		File    string     `json:"file"`
		Space   string     `json:"space,omitempty"`
		Address string     `json:"address"`
		Scope   *scopeText `json:"scope,omitempty"`
	}
	scopeText struct {
		Wave string  `json:"wave"`
		Lane *uint32 `json:"lane,omitempty"`
	}
)

func hexText(n uint64) string { return "0x" + strconv.FormatUint(n, 16) }

// checkTexts returns an error for a string that is longer than a reader accepts.
func checkTexts(texts ...string) error {
	for _, s := range texts {
		if len(s) > jsontext.MaxText {
			return fmt.Errorf("a string of %d bytes, expected at most %d", len(s), jsontext.MaxText)
		}
	}
	return nil
}

func (w *writer) modules(modules []Module) error {
	var placed []trace.Segment
	for _, m := range modules {
		placed = append(placed, m.Segments...)
	}
	if len(placed) > maxSegments {
		return fmt.Errorf("modules: %d segments, expected at most %d", len(placed), maxSegments)
	}
	slices.SortFunc(placed, func(a, b trace.Segment) int { return cmp.Compare(a.Start, b.Start) })
	for i := range placed {
		s := &placed[i]
		if s.Size == 0 || s.Start+s.Size < s.Start || s.Address+s.Size < s.Address {
			return fmt.Errorf("modules: a segment of %#x bytes from address %#x on at %#x", s.Size, s.Address, s.Start)
		}
		if i > 0 && placed[i-1].Start+placed[i-1].Size > s.Start {
			return fmt.Errorf("modules: the segments at %#x and %#x overlap", placed[i-1].Start, s.Start)
		}
	}
	return writeList(w, "modules", modules, func(_ int, m Module) (any, error) {
		out := moduleText{Path: m.Path, BuildID: hex.EncodeToString(m.BuildID), Arch: m.Arch, Processor: m.Processor, Segments: []segmentText{}}
		out.DebugFile, out.DebugID, out.CodeID, out.Version = m.Symbols.DebugFile, m.Symbols.DebugID, m.Symbols.CodeID, m.Version
		if err := checkTexts(m.Path, m.Arch, m.Processor, out.DebugFile, out.DebugID, out.CodeID, out.Version); err != nil {
			return nil, err
		}
		if m.Size > 0 {
			out.Image = &imageText{hexText(m.Base), hexText(m.Size)}
		}
		var err error
		if m.Keep && m.Object != nil {
			if len(m.Companions) > sdk.MaxCompanions {
				return nil, fmt.Errorf("%d companions, expected at most %d", len(m.Companions), sdk.MaxCompanions)
			}
			suffix := ".elf"
			if !m.Object.IsELF() || slices.ContainsFunc(m.Companions, func(c Companion) bool { return c.Suffix == suffix }) {
				suffix = ".object"
			}
			if out.File, err = w.add("modules", suffix, m.Object.Data(), m.Companions...); err != nil {
				return nil, err
			}
		}
		if m.SourceModule != nil {
			b, err := m.SourceModule()
			if err != nil {
				return nil, err
			}
			if out.Source, err = w.add("modules", ".source", b); err != nil {
				return nil, err
			}
		}
		for _, s := range m.Segments {
			if err := checkTexts(s.Section); err != nil {
				return nil, err
			}
			out.Segments = append(out.Segments, segmentText{s.Section, hexText(s.Address), hexText(s.Size), hexText(s.Start)})
		}
		return out, nil
	})
}

func (w *writer) threads(threads []*trace.Thread) error {
	return writeList(w, "threads", threads, func(_ int, t *trace.Thread) (any, error) {
		out := threadText{
			ID: t.ID, OwnID: t.OwnID, Name: t.Name, Arch: t.Arch, Processor: t.Processor, Lanes: t.Lanes, Crashed: t.Crashed, Running: t.IsRunning, Signal: t.Signal,
			Registers: map[string]string{},
		}
		if t.IsUnstopped {
			out.NotStopped = t.Problem
		}
		if err := checkTexts(t.ID, t.Name, t.Arch, t.Processor, out.NotStopped); err != nil {
			return nil, err
		}
		if t.Lanes > sdk.MaxLanes || t.Signal < 0 {
			return nil, fmt.Errorf("lanes %d, signal %d: expected at most %d lanes, and no negative signal", t.Lanes, t.Signal, sdk.MaxLanes)
		}
		a := w.archs.find(t.Arch)
		if a.desc == nil && (len(t.Registers.Numbers) > 0 || len(t.Spaces) > 0) {
			return nil, errors.New(a.problem)
		}
		if err := registerTexts(a, t.Registers, &out); err != nil {
			return nil, err
		}
		for _, s := range t.Spaces {
			space, ok := a.desc.Space(s.Space)
			if !ok || space.Number == locexpr.DefaultSpace || out.Spaces[space.Name] != (spaceText{}) {
				return nil, fmt.Errorf("a base of address space %d, which architecture %s has no second time, or not with a base", s.Space, t.Arch)
			}
			if out.Spaces == nil {
				out.Spaces = map[string]spaceText{}
			}
			out.Spaces[space.Name] = spaceText{hexText(s.Base)}
		}
		if len(out.Spaces) > maxSpaces {
			return nil, fmt.Errorf("%d address spaces, expected at most %d", len(out.Spaces), maxSpaces)
		}
		if v := t.Wave; v != nil {
			if err := checkTexts(v.Agent, v.Queue, v.Dispatch, v.Kernel); err != nil {
				return nil, err
			}
			out.Wave = &waveText{Agent: v.Agent, Queue: v.Queue, Dispatch: v.Dispatch, Kernel: v.Kernel}
			if v.HasGroup {
				out.Wave.Group = &v.Group
			}
			if v.HasInGroup {
				out.Wave.InGroup = &v.InGroup
			}
			if v.HasCluster {
				out.Wave.Cluster = &v.Cluster
			}
		}
		if err := stopTexts(t, &out); err != nil {
			return nil, err
		}
		if err := launchTexts(t, &out); err != nil {
			return nil, err
		}
		err := laneTexts(a, t, &out)
		return out, err
	})
}

// laneTexts writes the recorded callers of a thread, and its lanes that have registers of
// their own.
func laneTexts(a *arch, t *trace.Thread, out *threadText) error {
	if len(t.Callers) > maxFrames || len(t.LaneStates) > sdk.MaxLanes {
		return fmt.Errorf("%d callers and %d lanes, expected at most %d and %d", len(t.Callers), len(t.LaneStates), maxFrames, sdk.MaxLanes)
	}
	out.State, out.Lead = t.State, t.Lead
	for _, pc := range t.Callers {
		out.Callers = append(out.Callers, hexText(pc))
	}
	for i := range t.LaneStates {
		l := &t.LaneStates[i]
		if i > 0 && l.Lane <= t.LaneStates[i-1].Lane || l.Lane >= max(t.Lanes, 1) {
			return fmt.Errorf("lane_states[%d]: lane %d, expected the lanes below %d in their order", i, l.Lane, max(t.Lanes, 1))
		}
		texts := threadText{Lanes: out.Lanes, Registers: map[string]string{}}
		if err := registerTexts(a, l.Registers, &texts); err != nil {
			return fmt.Errorf("lane_states[%d]: %w", i, err)
		}
		out.LaneStates = append(out.LaneStates, laneText{l.Lane, texts.Registers})
	}
	return checkTexts(t.State)
}

func stopTexts(t *trace.Thread, out *threadText) error {
	s := t.Stop
	if s == nil {
		return nil
	}
	reason, ok := sdk.FindStopReason(s.Reason)
	switch {
	case !ok:
		return fmt.Errorf("%q is why it stopped, expected %s", jsontext.Clip(s.Reason), stopReasons())
	case s.HasAddress && !reason.HasAddress, s.HasTrapID && !reason.HasTrapID:
		return fmt.Errorf("it stopped by %s, which has no address or trap ID", s.Reason)
	case s.HasTrapID && s.TrapID > maxTrapID:
		return fmt.Errorf("it stopped by trap %d, expected at most %d", s.TrapID, maxTrapID)
	}
	out.Stop = &stopText{Reason: s.Reason, Details: s.Details}
	if s.HasAddress {
		out.Stop.Address = hexText(s.Address)
	}
	if s.HasTrapID {
		out.Stop.TrapID = &s.TrapID
	}
	if s.HasPCExact {
		out.Stop.PCExact = &s.PCExact
	}
	if len(s.Details) > maxDetails {
		return fmt.Errorf("%d details of why it stopped, expected at most %d", len(s.Details), maxDetails)
	}
	return checkTexts(s.Details...)
}

func launchTexts(t *trace.Thread, out *threadText) error {
	l := t.LaunchedBy
	if l == nil {
		return nil
	}
	switch l.Evidence {
	case trace.LaunchRecorded, trace.LaunchWaiting, trace.LaunchQueue:
	default:
		return fmt.Errorf("evidence %q of who launched it", jsontext.Clip(l.Evidence))
	}
	if len(l.Frames) > maxFrames {
		return fmt.Errorf("%d frames of its launcher, expected at most %d", len(l.Frames), maxFrames)
	}
	out.LaunchedBy = &launchText{Thread: l.Thread, Kind: l.Kind, Evidence: l.Evidence}
	for _, pc := range l.Frames {
		out.LaunchedBy.Frames = append(out.LaunchedBy.Frames, hexText(pc))
	}
	return checkTexts(l.Thread, l.Kind)
}

// registerTexts writes registers by their names. If several share a name, the lane count that
// distinguishes them is written too.
func registerTexts(a *arch, registers sdk.Registers, out *threadText) error {
	if len(registers.Numbers) > sdk.MaxRegisters {
		return fmt.Errorf("%d registers, expected at most %d", len(registers.Numbers), sdk.MaxRegisters)
	}
	if err := registers.Validate(); err != nil {
		return err
	}
	for _, number := range registers.Numbers {
		info, ok := a.desc.Register(number)
		if !ok {
			return fmt.Errorf("architecture %s has no register %d", a.desc.Name, number)
		}
		if info.Lanes == 0 || info.Lanes == out.Lanes {
			continue
		}
		if out.Lanes != 0 {
			return fmt.Errorf("register %d (%s) is of threads with %d lanes, the thread has %d", number, info.Name, info.Lanes, out.Lanes)
		}
		out.Lanes = info.Lanes
	}
	for _, number := range registers.Numbers {
		info, _ := a.desc.Register(number)
		value, _ := registers.Get(number)
		text, err := FormatRegister(info, a.desc.ByteOrder, value)
		if err != nil {
			return err
		}
		name := ""
		for _, try := range []string{info.Name, info.Alias} {
			if found, problem := a.register([]byte(try), []byte(text), out.Lanes); try != "" && problem == "" && found.Number == number {
				name = try
				break
			}
		}
		if name == "" {
			return fmt.Errorf("register %d: its name %s is another's", number, info.Name)
		}
		out.Registers[name] = text
	}
	return nil
}

// FormatRegister writes the value of a register, its bytes in the byte order of
// the architecture, as ParseRegister reads it.
func FormatRegister(info sdk.RegisterInfo, order sdk.ByteOrder, value []byte) (string, error) {
	b := slices.Clone(value)
	if order == sdk.BigEndian {
		slices.Reverse(b)
	}
	size := (int(info.Bits) + 7) / 8
	if IsVector(info) {
		if n := len(b); n != size && (n == 0 || n > size || n%partBytes != 0) {
			return "", fmt.Errorf("%s has %d bytes, expected %d", info.Name, n, size)
		}
		return hex.EncodeToString(b), nil
	}
	slices.Reverse(b)
	digits := strings.TrimLeft(hex.EncodeToString(b), "0")
	if digits == "" {
		digits = "0"
	}
	text := "0x" + digits
	if _, err := ParseRegister(info, order, text); err != nil {
		return "", err
	}
	return text, nil
}

// memory writes the pieces, in the order of instances and addresses, without the bytes that code
// objects have.
func (w *writer) memory(c *Contents) error {
	names, err := w.instances(c)
	if err != nil {
		return err
	}
	order, err := memoryOrder(c.Memory, names)
	if err != nil {
		return err
	}
	files := objectMemory(c.Modules)
	var left []int // the index of the piece of each part
	var parts []Memory
	for _, i := range order {
		if c.Memory[i].Space != locexpr.DefaultSpace {
			left, parts = append(left, i), append(parts, c.Memory[i])
			continue
		}
		for _, m := range without(files, c.Memory[i]) {
			left, parts = append(left, i), append(parts, m)
		}
	}
	if len(parts) > maxWritten {
		return fmt.Errorf("memory: %d pieces, expected at most %d", len(parts), maxWritten)
	}
	return writeList(w, "memory", parts, func(k int, m Memory) (any, error) {
		out := names[left[k]]
		out.Address = hexText(m.Address)
		var err error
		out.File, err = w.add("memory", ".bin", m.Data)
		return out, err
	})
}

// instances returns the name of the instance of an address space for each piece of memory. A
// piece that readers would reject or misread is an error.
func (w *writer) instances(c *Contents) ([]memoryText, error) {
	ids := map[string]int{}
	for _, t := range c.Threads {
		ids[t.ID]++
	}
	names := make([]memoryText, len(c.Memory))
	for i := range c.Memory {
		m := &c.Memory[i]
		if len(m.Data) == 0 || m.Address+uint64(len(m.Data)) < m.Address || len(m.Data) > maxMember {
			return nil, fmt.Errorf("memory[%d]: %d bytes at address %#x", i, len(m.Data), m.Address)
		}
		if m.Space == locexpr.DefaultSpace {
			continue
		}
		if m.Thread == nil || m.Thread.ID == "" || ids[m.Thread.ID] != 1 {
			return nil, fmt.Errorf("memory[%d]: address space %d, address %#x: of no thread, or of one whose ID is not its alone", i, m.Space, m.Address)
		}
		a := w.archs.find(m.Thread.Arch)
		if a.desc == nil {
			return nil, fmt.Errorf("memory[%d]: %s", i, a.problem)
		}
		space, ok := a.desc.Space(m.Space)
		members := waveBit
		if m.IsOfLane {
			members |= laneBit
		}
		if !ok || !members.distinguishes(space.Scope) {
			return nil, fmt.Errorf("memory[%d]: architecture %s has no address space %d that a thread has an instance of", i, a.desc.Name, m.Space)
		}
		names[i].Space, names[i].Scope = space.Name, &scopeText{Wave: m.Thread.ID}
		if m.IsOfLane {
			names[i].Scope.Lane = &m.Lane
		}
	}
	return names, nil
}

// memoryOrder returns the indexes of the pieces in the order of instances and
// addresses. Pieces of one instance that overlap are an error.
func memoryOrder(memory []Memory, names []memoryText) ([]int, error) {
	type owner struct {
		space, wave string
		lane        int64 // -1: of all lanes
	}
	instance := func(i int) (o owner) {
		o.lane = -1
		if s := names[i].Scope; s != nil {
			o.space, o.wave = names[i].Space, s.Wave
			if s.Lane != nil {
				o.lane = int64(*s.Lane)
			}
		}
		return o
	}
	compare := func(i, j int) int {
		a, b := instance(i), instance(j)
		return cmp.Or(cmp.Compare(a.space, b.space), cmp.Compare(a.wave, b.wave), cmp.Compare(a.lane, b.lane))
	}
	order := make([]int, len(memory))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(compare(i, j), cmp.Compare(memory[i].Address, memory[j].Address))
	})
	for k := 1; k < len(order); k++ {
		i, before := order[k], order[k-1]
		if compare(before, i) == 0 && memory[i].Address-memory[before].Address < uint64(len(memory[before].Data)) {
			return nil, fmt.Errorf("memory[%d] and memory[%d] overlap at address %#x", before, i, memory[i].Address)
		}
	}
	return order, nil
}

// objectMemory returns the memory that every reader gets from the code objects of these modules.
func objectMemory(modules []Module) target.FileBytes {
	var known []*target.Module
	for _, m := range modules {
		if m.Object != nil && (m.Keep || m.Confirmed()) {
			known = append(known, m.Module)
		}
	}
	return target.NewFileBytes(known)
}

// smallest is the least number of bytes that are left out, as each further piece takes some
// bytes itself.
const smallest = 64

// without returns the parts of a piece of the default space that code objects do not have.
func without(files target.FileBytes, m Memory) []Memory {
	var parts []Memory
	rest := m
	for offset := 0; offset < len(rest.Data); {
		b, _, next := files.At(rest.Address + uint64(offset))
		if len(b) == 0 {
			if next-rest.Address >= uint64(len(rest.Data)) {
				break
			}
			offset = int(next - rest.Address)
			continue
		}
		n := 0
		for n < len(b) && offset+n < len(rest.Data) && b[n] == rest.Data[offset+n] {
			n++
		}
		if n < smallest && offset+n < len(rest.Data) {
			offset += n + 1
			continue
		}
		if offset > 0 {
			parts = append(parts, Memory{Address: rest.Address, Data: rest.Data[:offset]})
		}
		rest.Address, rest.Data, offset = rest.Address+uint64(offset+n), rest.Data[offset+n:], 0
	}
	if len(rest.Data) > 0 {
		parts = append(parts, Memory{Address: rest.Address, Data: rest.Data})
	}
	return parts
}

// add stores bytes once, with their companions, and returns the name of the member that has
// them.
func (w *writer) add(folder, suffix string, data []byte, beside ...Companion) (string, error) {
	sum := sha256.Sum256(data)
	if len(beside) > 0 {
		// With other companions the same code object is another member.
		h := sha256.New()
		h.Write(sum[:])
		for _, c := range beside {
			part := sha256.Sum256(c.Data)
			h.Write(append([]byte(c.Suffix+"\x00"), part[:]...))
		}
		sum = [sha256.Size]byte(h.Sum(nil))
	}
	if name, ok := w.names[sum]; ok {
		return name, nil
	}
	if w.counts == nil {
		w.counts = map[string]int{}
	}
	name := fmt.Sprintf("%s/%d%s", folder, w.counts[folder], suffix)
	w.counts[folder]++
	w.names[sum] = name
	if len(w.names) > maxWritten {
		return "", fmt.Errorf("%d members, expected at most %d", len(w.names), maxWritten)
	}
	for _, c := range beside {
		member, ok := object.Beside(name, c.Suffix)
		if !ok {
			return "", fmt.Errorf("a file beside %s has its name", name)
		}
		if err := w.store(member, c.Data); err != nil {
			return "", err
		}
	}
	return name, w.store(name, data)
}

// store writes a member, deflated if that makes it smaller.
func (w *writer) store(name string, data []byte) error {
	size := uint64(len(data))
	if size > maxMember {
		return fmt.Errorf("member %s: %d bytes, expected at most %d", name, size, maxMember)
	}
	h := &zip.FileHeader{Name: name, Method: zip.Store, CRC32: crc32.ChecksumIEEE(data), UncompressedSize64: size, CompressedSize64: size}
	packed, err := w.pack(data)
	if err != nil {
		return fmt.Errorf("member %s: %w", name, err)
	}
	dense := uint64(0)
	if size > plainRatio*uint64(len(packed)) {
		dense = size
	}
	if len(packed) < len(data) && w.inflated+size <= maxInflated && w.dense+dense <= mostDense {
		h.Method, h.CompressedSize64 = zip.Deflate, uint64(len(packed))
		w.inflated, w.dense = w.inflated+size, w.dense+dense
		data = packed
	}
	f, err := w.zip.CreateRaw(h)
	if err != nil {
		return fmt.Errorf("member %s: %w", name, err)
	}
	if _, err := f.Write(data); err != nil {
		return fmt.Errorf("member %s: %w", name, err)
	}
	return nil
}

// pack compresses by DEFLATE (RFC 1951). The result is valid until the next call.
func (w *writer) pack(data []byte) ([]byte, error) {
	w.packed.Reset()
	if w.deflate == nil {
		var err error
		if w.deflate, err = flate.NewWriter(&w.packed, flate.DefaultCompression); err != nil {
			return nil, err
		}
	}
	w.deflate.Reset(&w.packed)
	if _, err := w.deflate.Write(data); err != nil {
		return nil, err
	}
	if err := w.deflate.Close(); err != nil {
		return nil, err
	}
	return w.packed.Bytes(), nil
}
