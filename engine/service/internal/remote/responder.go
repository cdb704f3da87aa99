// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/object"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// Responder answers questions about a target of this machine: about its memory, and the
// files of its modules. It reads no other file: a question names a module by its index, and
// the engine has found the module's files. It is for one goroutine.
type Responder struct {
	target  *engine.Target
	modules []*code.Module
	debug   map[uint32]*object.Found
}

// NewResponder makes a Responder for a target, which stays the caller's.
func NewResponder(t *engine.Target) *Responder {
	return &Responder{target: t, modules: t.Process().Loaded(), debug: map[uint32]*object.Found{}}
}

// Close closes the files that were opened for answers.
func (k *Responder) Close() {
	for _, f := range k.debug {
		if f.Object != nil {
			_ = f.Object.Close()
		}
	}
}

// filePart bounds the bytes of a file in an answer.
const filePart = 256 << 10

// Answer answers a question by calling send, several times for a file. The error is send's.
func (k *Responder) Answer(q *pb.Question, send func(*pb.Answer) error) error {
	answer := func(about func(*pb.Answer) error) error {
		a := &pb.Answer{Number: q.GetNumber()}
		if err := about(a); err != nil {
			a.About = &pb.Answer_Failure{Failure: strings.ToValidUTF8(err.Error(), "?")}
		}
		return send(a)
	}
	switch about := q.GetAbout().(type) {
	case *pb.Question_Memory:
		return answer(func(a *pb.Answer) error { return k.memory(about.Memory, a) })
	case *pb.Question_Mapping:
		return answer(func(a *pb.Answer) error { k.mapping(about.Mapping, a); return nil })
	case *pb.Question_Debug:
		return answer(func(a *pb.Answer) error { return k.findDebug(about.Debug.GetModule(), a) })
	case *pb.Question_File:
		name, data, err := k.file(about.File)
		if err == nil {
			return sendFile(q.GetNumber(), &sentFile{name, data, k.extents(about.File)}, send)
		}
		return answer(func(*pb.Answer) error { return err })
	}
	return answer(func(*pb.Answer) error { return errors.New("a question that this release does not know") })
}

// sentFile is a file that is sent.
type sentFile struct {
	name    string
	data    []byte
	extents []object.Extent // that are sent; nil: all of it is
}

// maxExtents bounds the parts of a file that a question asks for.
const maxExtents = 1 << 10

// extents are the parts of a file that a question asks for; nil: all of it.
func (k *Responder) extents(q *pb.FileQuestion) (list []object.Extent) {
	if q.GetOutline() && q.GetKind() == pb.FileQuestion_OBJECT {
		return k.modules[q.GetModule()].Object.Outline()
	}
	if len(q.GetExtents()) > maxExtents {
		return nil
	}
	for _, e := range q.GetExtents() {
		list = append(list, object.Extent{Offset: e.GetOffset(), Size: e.GetSize()})
	}
	return list
}

// sendFile sends a file in parts.
func sendFile(number uint64, f *sentFile, send func(*pb.Answer) error) error {
	parts := f.extents
	isPlaced := parts != nil
	if !isPlaced {
		parts = []object.Extent{{Size: uint64(len(f.data))}}
	}
	for i, e := range parts {
		offset := min(e.Offset, uint64(len(f.data)))
		data := f.data[offset:][:min(e.Size, uint64(len(f.data))-offset)]
		for isFirst := true; isFirst || len(data) > 0; isFirst = false {
			n := min(len(data), filePart)
			part := &pb.FileAnswer{Ended: n == len(data) && i == len(parts)-1, Name: []byte(f.name), Placed: isPlaced, Offset: offset}
			// A file that was truncated meanwhile cannot be read any more.
			err := object.Guard(func() error { part.Data = slices.Clone(data[:n]); return nil })
			a := &pb.Answer{Number: number, About: &pb.Answer_File{File: part}}
			if err != nil {
				a.About = &pb.Answer_Failure{Failure: strings.ToValidUTF8(err.Error(), "?")}
			}
			if sendErr := send(a); sendErr != nil || err != nil {
				return sendErr
			}
			data, offset = data[n:], offset+uint64(n) //nolint:gosec // positive
		}
	}
	return nil
}

// maxRead bounds the bytes of memory of an answer.
const maxRead = 1 << 20

// memory reads memory: as much around the address as is there, so that few questions are
// needed.
func (k *Responder) memory(q *pb.MemoryQuestion, a *pb.Answer) error {
	size, most := uint64(q.GetSize()), uint64(q.GetMost())
	if size > most || most == 0 || most > maxRead || most&(most-1) != 0 {
		return fmt.Errorf("a question for %d bytes of %d, expected a power of two of at most %d", size, most, maxRead)
	}
	var th *trace.Thread
	if q.Thread != nil {
		if q.GetThread() >= uint64(len(k.target.Threads())) {
			return fmt.Errorf("a question for memory of thread %d of %d", q.GetThread(), len(k.target.Threads()))
		}
		th = k.target.Threads()[q.GetThread()]
	}
	if q.Lane != nil && th != nil {
		if th = target.OfLane(th, q.GetLane()); th == nil {
			return fmt.Errorf("a question for memory of lane %d of thread %d, which has no state of its own", q.GetLane(), q.GetThread())
		}
	}
	address := q.GetAddress()
	first, last := address&^(most-1), address|(most-1)
	for _, start := range []uint64{first, max(first, address&^(pageSize-1)), address} {
		buf := make([]byte, last-start+1)
		n, err := k.read(locexpr.AddressSpace(q.GetSpace()), th, start, buf)
		if start+uint64(n) <= address && start != address { //nolint:gosec // positive
			continue // not all of it is there
		}
		out := &pb.MemoryAnswer{Address: start, Data: buf[:n]}
		if n < len(buf) {
			out.Kind, out.Error = errorOf(err)
		}
		a.About = &pb.Answer_Memory{Memory: out}
		return nil
	}
	return nil
}

// pageSize is the size of the smallest pages.
const pageSize = 4096

func (k *Responder) read(space locexpr.AddressSpace, th *trace.Thread, address uint64, buf []byte) (n int, err error) {
	state := k.target.Process().State()
	if s, ok := state.(target.ScopedMemory); ok && th != nil && space != locexpr.DefaultSpace {
		n, err = s.ReadScoped(space, th, address, buf)
	} else {
		n, err = state.ReadMemory(space, address, buf)
	}
	return max(0, min(n, len(buf))), err
}

func errorOf(err error) (pb.MemoryAnswer_Kind, []byte) {
	switch {
	case err == nil:
		return pb.MemoryAnswer_FAILED, []byte("it cannot be read")
	case errors.Is(err, target.ErrNoMemory):
		return pb.MemoryAnswer_ABSENT, []byte(err.Error())
	case errors.Is(err, target.ErrEndOfStack):
		return pb.MemoryAnswer_END_OF_STACK, []byte(err.Error())
	}
	return pb.MemoryAnswer_FAILED, []byte(err.Error())
}

func (k *Responder) mapping(q *pb.MappingQuestion, a *pb.Answer) {
	out := &pb.MappingAnswer{}
	a.About = &pb.Answer_Mapping{Mapping: out}
	if q.GetFile() {
		k.fromFile(q.GetAddress(), out)
		return
	}
	if !q.GetAround() {
		out.Mapped, out.Executable = k.target.Process().State().Mapped(q.GetAddress())
		return
	}
	if m, ok := k.target.Process().State().(target.Mapper); ok {
		below, containing, above := m.Around(q.GetAddress())
		out.Below, out.At, out.Above = messageOf(below), messageOf(containing), messageOf(above)
	}
}

// fromFile tells which module's file has the memory at an address.
func (k *Responder) fromFile(address uint64, out *pb.MappingAnswer) {
	f, ok := k.target.Process().State().(target.FileMemory)
	if !ok {
		out.FromFile = max(-address, 1)
		return
	}
	m, n := f.FromFile(address)
	out.FromFile = n
	if m == nil {
		return
	}
	if i := slices.IndexFunc(k.modules, func(l *code.Module) bool { return l.Module == m }); i >= 0 {
		out.Module = new(uint32(i)) //nolint:gosec // an index
	}
}

func messageOf(m *target.Mapping) *pb.MemoryMapping {
	if m == nil {
		return nil
	}
	return &pb.MemoryMapping{
		Start: m.Start, End: m.End, Readable: m.IsReadable, Writable: m.IsWritable, Executable: m.IsExecutable, File: []byte(m.File), Offset: m.Offset,
	}
}

// module returns the module of an index, which has to have a code object.
func (k *Responder) module(index uint32) (*code.Module, error) {
	if uint64(index) >= uint64(len(k.modules)) || k.modules[index].Object == nil {
		return nil, fmt.Errorf("a question for a file of module %d, which has none", index)
	}
	return k.modules[index], nil
}

// debugOf finds the separate debug file of a module, once.
func (k *Responder) debugOf(index uint32) (*object.Found, error) {
	if f := k.debug[index]; f != nil {
		return f, nil
	}
	m, err := k.module(index)
	if err != nil {
		return nil, err
	}
	found := m.Code.FindDebug()
	k.debug[index] = &found
	return &found, nil
}

func (k *Responder) findDebug(index uint32, a *pb.Answer) error {
	found, err := k.debugOf(index)
	if err != nil {
		return err
	}
	out := &pb.DebugAnswer{Path: []byte(found.Path), Checked: found.Checked, Problem: []byte(found.Problem)}
	for _, t := range found.Tried {
		out.Tried = append(out.Tried, &pb.TriedFile{Path: []byte(t.Path), Reason: []byte(t.Reason), Kind: uint32(t.Kind)}) //nolint:gosec // a kind
	}
	if o := found.Object; o != nil {
		out.Found, out.BuildId, out.Size = true, slices.Clone(o.BuildID()), o.FileSize()
	}
	a.About = &pb.Answer_Debug{Debug: out}
	return nil
}

// file returns a file of a module.
func (k *Responder) file(q *pb.FileQuestion) (name string, data []byte, err error) {
	if q.GetKind() == pb.FileQuestion_SOURCE_MODULE {
		if i := q.GetModule(); uint64(i) < uint64(len(k.modules)) && k.modules[i].SourceModule != nil {
			data, err = k.modules[i].SourceModule()
			return "", data, err
		}
		return "", nil, fmt.Errorf("a question for the source module of module %d, which has none", q.GetModule())
	}
	m, err := k.module(q.GetModule())
	if err != nil {
		return "", nil, err
	}
	switch q.GetKind() {
	case pb.FileQuestion_OBJECT:
		return m.Object.Name(), m.Object.Data(), nil
	case pb.FileQuestion_DEBUG:
		found, err := k.debugOf(q.GetModule())
		if err == nil && found.Object == nil {
			err = fmt.Errorf("module %d has no separate debug file", q.GetModule())
		}
		if err != nil {
			return "", nil, err
		}
		return found.Object.Name(), found.Object.Data(), nil
	case pb.FileQuestion_COMPANION:
		list, _ := m.Code.Companions()
		for i := range list {
			if list[i].Suffix() == q.GetSuffix() {
				return list[i].Name(), list[i].Data(), nil
			}
		}
	}
	return "", nil, fmt.Errorf("a question for a file of module %d that it does not have", q.GetModule())
}
