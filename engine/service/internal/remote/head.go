// SPDX-License-Identifier: Apache-2.0

// Package remote walks targets of other machines. The machine of the target sends the
// target's head (Head), and answers questions (Responder); the machine that walks it has a
// target.Target, which asks for memory and files when they are needed.
//
// A head is not a snapshot: it has the target's own description of itself, so that a report
// is the same wherever it is written.
package remote

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"

	"github.com/fxamacker/cbor/v2"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// headVersion is the version of heads that are read and written.
const headVersion = 1

// Head describes a target without its memory and its files.
type Head struct {
	Version    int
	Info       trace.Target
	Threads    []trace.Thread
	Modules    []Module
	MemorySize uint64 // of target.Sized
	// Packed are the problems of the packed file that the target came in.
	Packed []string
}

// Module is a target.Module without its code object.
type Module struct {
	Path       string
	BuildID    []byte
	IsAssumed  bool // BuildID is of the file that was found
	Symbols    trace.SymbolID
	Version    string
	Base, Size uint64
	Arch       string
	Processor  string
	File       string
	Problem    string
	Tried      []object.Attempt
	Segments   []trace.Segment
	Object     *Object // nil: none was found
	Companions []string
	HasSource  bool // the source module of the code is there
}

// Object describes a code object, or another file, before it is sent.
type Object struct {
	Name      string
	Size      uint64
	BuildID   []byte
	InFile    bool // Name is the path of a file, else it is an image
	IsForeign bool // it is neither ELF nor PE
	// HasDebug: the machine of the target has a separate debug file. TriedDebug are the files
	// there that were looked at and not taken.
	HasDebug   bool
	TriedDebug []object.Attempt
}

// Bounds on the lists of a head.
const (
	maxModules = 1 << 14
	maxThreads = 1 << 20 // and elements of any list
)

// MaxHead bounds the bytes of a head.
const MaxHead = 1 << 30

// HeadOf makes the head of a target, with the labels of its process.
func HeadOf(t *engine.Target, labels map[string]string) *Head {
	info := t.Info()
	info.Facts = withLabels(info.Facts, labels)
	h := &Head{Version: headVersion, Info: info, Packed: t.InputProblems()}
	if s, ok := t.Process().State().(target.Sized); ok {
		h.MemorySize = s.MemorySize()
	}
	h.Threads = make([]trace.Thread, 0, len(t.Threads()))
	for _, th := range t.Threads() {
		h.Threads = append(h.Threads, *th)
	}
	for _, m := range t.Process().Loaded() {
		out := Module{
			Path: m.Path, BuildID: m.BuildID, IsAssumed: m.IsAssumed, Symbols: m.Symbols, Version: m.Version, Base: m.Base, Size: m.Size, Arch: m.Arch, Processor: m.Processor,
			File: m.File, Problem: m.Problem, Tried: m.Tried, Segments: m.Segments, HasSource: m.SourceModule != nil,
		}
		if m.Object != nil {
			out.Object = objectOf(m.Object)
			out.Object.HasDebug, out.Object.TriedDebug = m.Code.GlanceDebug()
			list, _ := m.Code.Companions() // unused ones are not sent
			for i := range list {
				out.Companions = append(out.Companions, list[i].Suffix())
			}
		}
		h.Modules = append(h.Modules, out)
	}
	return h
}

// withLabels returns facts with the labels of the target, whose environment is not sent.
func withLabels(own *trace.Facts, labels map[string]string) *trace.Facts {
	if len(labels) == 0 {
		return own
	}
	var f trace.Facts
	if own != nil {
		f = *own
	}
	f.Process.Labels = labels
	return &f
}

// objectOf describes an object.
func objectOf(o *object.Object) *Object {
	return &Object{
		Name: o.Name(), Size: o.FileSize(), BuildID: bytes.Clone(o.BuildID()), InFile: o.Path() != "" && o.Path() == o.Name(), IsForeign: o.IsForeign(),
	}
}

// Encode returns a head as CBOR.
func (h *Head) Encode() ([]byte, error) { return encoding.Marshal(h) }

var encoding = func() cbor.EncMode {
	mode, err := cbor.EncOptions{Time: cbor.TimeRFC3339NanoUTC, Sort: cbor.SortNone}.EncMode()
	if err != nil {
		panic(err) // the options are constant
	}
	return mode
}()

var decoding = func() cbor.DecMode {
	mode, err := cbor.DecOptions{
		MaxArrayElements: maxThreads, MaxMapPairs: 1 << 16, MaxNestedLevels: 32, UTF8: cbor.UTF8DecodeInvalid, // names have any bytes
		IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
	}.DecMode()
	if err != nil {
		panic(err) // likewise
	}
	return mode
}()

// ErrHead is wrapped by the errors of malformed heads.
var ErrHead = errors.New("not the head of a target")

// DecodeHead reads a head, and checks what the walk relies on.
func DecodeHead(b []byte) (*Head, error) {
	h := &Head{}
	if err := decoding.Unmarshal(b, h); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHead, err)
	}
	if err := h.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHead, err)
	}
	return h, nil
}

func (h *Head) check() error {
	switch {
	case h.Version != headVersion:
		return fmt.Errorf("version %d, expected %d: the two are of different releases", h.Version, headVersion)
	case len(h.Modules) > maxModules:
		return fmt.Errorf("%d modules, expected at most %d", len(h.Modules), maxModules)
	}
	for i := range h.Threads {
		if err := checkThread(i, &h.Threads[i]); err != nil {
			return fmt.Errorf("threads[%d]: %w", i, err)
		}
	}
	for i := range h.Modules {
		if err := h.Modules[i].check(); err != nil {
			return fmt.Errorf("modules[%d]: %w", i, err)
		}
	}
	return nil
}

func checkThread(i int, t *trace.Thread) error {
	if t.Handle != uint64(i) { //nolint:gosec // an index
		return fmt.Errorf("handle %d, expected the index", t.Handle)
	}
	if t.Goroutine != nil || t.Executes != nil {
		return errors.New("a goroutine, which no target has")
	}
	if t.Lanes > sdk.MaxLanes {
		return fmt.Errorf("%d lanes, expected at most %d", t.Lanes, sdk.MaxLanes)
	}
	if len(t.Registers.Numbers) > sdk.MaxRegisters || len(t.Registers.Data) > sdk.MaxRegisterData {
		return fmt.Errorf("%d registers of %d bytes", len(t.Registers.Numbers), len(t.Registers.Data))
	}
	if err := checkPlaces(t.Saved, t.Memory); err != nil {
		return err
	}
	hasLead := len(t.LaneStates) == 0
	for i := range t.LaneStates {
		l := &t.LaneStates[i]
		if l.Lane >= max(t.Lanes, 1) || i > 0 && l.Lane <= t.LaneStates[i-1].Lane {
			return fmt.Errorf("the state of lane %d, expected the %d lanes in their order", l.Lane, max(t.Lanes, 1))
		}
		hasLead = hasLead || l.Lane == t.Lead
		if err := errors.Join(checkPlaces(l.Saved, l.Memory), l.Registers.Validate()); err != nil {
			return fmt.Errorf("lane %d: %w", l.Lane, err)
		}
	}
	if !hasLead {
		return fmt.Errorf("no state of lane %d, by which it is walked", t.Lead)
	}
	return t.Registers.Validate()
}

// checkPlaces checks where registers and memory are.
func checkPlaces(saved []sdk.SavedRegisters, memory []sdk.SpaceMemory) error {
	for _, s := range saved {
		if s.Count > sdk.MaxRegisters || s.First > math.MaxUint32-s.Count {
			return fmt.Errorf("registers %d to %d in memory", s.First, uint64(s.First)+uint64(s.Count))
		}
	}
	for _, m := range memory {
		if m.Start+m.Size < m.Start || m.Address+m.Size < m.Address {
			return fmt.Errorf("its memory of %#x bytes at %#x reaches past the last address", m.Size, m.Start)
		}
	}
	return nil
}

func (m *Module) check() error {
	for _, s := range m.Segments {
		if s.Start+s.Size < s.Start || s.Address+s.Size < s.Address {
			return fmt.Errorf("its segment of %#x bytes at %#x reaches past the last address", s.Size, s.Start)
		}
	}
	if m.Base+m.Size < m.Base {
		return fmt.Errorf("its image of %#x bytes at %#x reaches past the last address", m.Size, m.Base)
	}
	if m.Object != nil && m.Object.Size > math.MaxInt64 {
		return fmt.Errorf("its code object has %d bytes", m.Object.Size)
	}
	return nil
}

// key distinguishes the findings about an object on its machine.
func (o *Object) key() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%v", o.HasDebug)
	for _, a := range o.TriedDebug {
		fmt.Fprintf(&b, "\x00%d\x00%s\x00%s", a.Kind, hex.EncodeToString([]byte(a.Path)), a.Reason)
	}
	return b.String()
}
