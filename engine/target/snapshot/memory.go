// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/target/jsontext"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// scopeMembers says which members a scope has. The narrower of two scopes has
// the higher number.
type scopeMembers uint8

const (
	agentBit scopeMembers = 1 << iota
	queueBit
	dispatchBit
	groupBit
	waveBit
)

// A scope says which instance of an address space a piece of memory is of: that
// of the threads that have all its members.
type scope struct {
	members                      scopeMembers
	wave, agent, queue, dispatch string
	group                        [3]uint32
}

func compareScopes(a, b *scope) int {
	return cmp.Or(
		cmp.Compare(a.members, b.members),
		cmp.Compare(a.wave, b.wave),
		cmp.Compare(a.agent, b.agent),
		cmp.Compare(a.queue, b.queue),
		cmp.Compare(a.dispatch, b.dispatch),
		slices.Compare(a.group[:], b.group[:]),
	)
}

// tells says whether a scope tells one instance of a space from the others.
func (m scopeMembers) tells(s sdk.SpaceScope) bool {
	switch s {
	case sdk.ProcessScope:
		return true
	case sdk.AgentScope:
		return m&(agentBit|waveBit) != 0
	case sdk.GroupScope:
		return m&(groupBit|waveBit) != 0
	case sdk.WaveScope:
		return m&waveBit != 0
	}
	return false // a lane is in no scope
}

// A piece is bytes of an instance of an address space.
type piece struct {
	space  string // in lower case; "" is the default one
	scope  scope
	start  uint64
	size   uint64
	skip   uint64 // bytes of the member before those at start
	member *member
	index  int // in snapshot.json
}

// compareInstances orders pieces by the instance of a space that they are of.
func compareInstances(a, b *piece) int {
	return cmp.Or(cmp.Compare(a.space, b.space), compareScopes(&a.scope, &b.scope))
}

// memory is what the snapshot has of the address spaces.
type memory struct {
	pieces []piece        // by instance and start, without overlap
	scopes []scopeMembers // those that pieces have, the narrowest first
}

// addMemory puts the pieces of memory in order. Of two that overlap in one
// instance of a space, the one that starts first keeps the bytes that both
// claim; of two that start at one address, the one that is listed first.
func (s *Snapshot) addMemory(entries []pieceEntry) {
	list := make([]piece, 0, len(entries))
	for i := range entries {
		p, problem := s.piece(i, &entries[i])
		if problem != "" {
			s.problem("memory[%d]: %s: it is left out", i, problem)
			continue
		}
		if p.size > 0 {
			list = append(list, p)
		}
	}
	list = s.leaveOutAmbiguous(list)
	slices.SortFunc(list, func(a, b piece) int {
		return cmp.Or(compareInstances(&a, &b), cmp.Compare(a.start, b.start), cmp.Compare(a.index, b.index))
	})
	kept := list[:0]
	for _, p := range list {
		if n := len(kept); n > 0 && compareInstances(&kept[n-1], &p) == 0 && kept[n-1].start+kept[n-1].size > p.start {
			over := min(kept[n-1].start+kept[n-1].size-p.start, p.size)
			s.problem("memory[%d] overlaps memory[%d] in %#x bytes at address %#x: those of memory[%d] are taken",
				p.index, kept[n-1].index, over, p.start, kept[n-1].index)
			p.start, p.size, p.skip = p.start+over, p.size-over, p.skip+over
		}
		if p.size > 0 {
			kept = append(kept, p)
		}
	}
	s.memory.pieces = kept
	for i := range kept {
		if m := kept[i].scope.members; !slices.Contains(s.memory.scopes, m) {
			s.memory.scopes = append(s.memory.scopes, m)
		}
	}
	slices.SortFunc(s.memory.scopes, func(a, b scopeMembers) int { return cmp.Compare(b, a) })
}

// piece looks up what an entry of memory names.
func (s *Snapshot) piece(index int, e *pieceEntry) (p piece, problem string) {
	p = piece{scope: e.scope, start: e.address.Value, index: index}
	if problem := e.address.Problem(); problem != "" {
		return p, "address " + problem
	}
	if !isGlobal(e.space) {
		p.space = strings.ToLower(e.space)
		if problem := s.checkSpace(e); problem != "" {
			return p, problem
		}
	} else if e.scope.members != 0 {
		return p, "the default address space has one instance, and no scope"
	}
	m, err := s.archive.member(e.file)
	if err != nil {
		return p, err.Error()
	}
	p.member, p.size = m, m.size()
	if p.start+p.size < p.start {
		return p, fmt.Sprintf("%#x bytes at address %#x reach past the last address", p.size, p.start)
	}
	return p, ""
}

// checkSpace says why no thread of any architecture can have a piece.
func (s *Snapshot) checkSpace(e *pieceEntry) (problem string) {
	for _, a := range s.archs.list {
		if a.desc == nil {
			continue
		}
		space, ok := a.space(e.space)
		if ok && e.scope.members.tells(space.Scope) {
			return ""
		}
		if ok {
			want := map[sdk.SpaceScope]string{
				sdk.AgentScope: "its scope names no agent",
				sdk.GroupScope: "its scope names neither group nor wave",
				sdk.WaveScope:  "its scope names no wave",
				sdk.LaneScope:  "memory of lanes is given in the address space that they share",
			}
			problem = fmt.Sprintf("address space %s: %s", space.Name, want[space.Scope])
		}
	}
	if problem == "" {
		problem = fmt.Sprintf("no architecture of the snapshot has an address space %q", jsontext.Clip(e.space))
	}
	return problem
}

// project is the scope with some members that a thread is in.
func (s *Snapshot) project(t *target.Thread, members scopeMembers) (sc scope, ok bool) {
	sc.members = members
	who := &s.identities[t.Handle]
	if members&waveBit != 0 {
		if t.ID == "" || who.isRepeated {
			return sc, false
		}
		sc.wave = t.ID
	}
	if members&^waveBit == 0 {
		return sc, true
	}
	if t.Wave == nil || members&groupBit != 0 && !t.Wave.HasGroup {
		return sc, false
	}
	if members&groupBit != 0 {
		sc.group = t.Wave.Group
	}
	for _, m := range []struct {
		bit  scopeMembers
		from string
		to   *string
	}{{agentBit, t.Wave.Agent, &sc.agent}, {queueBit, t.Wave.Queue, &sc.queue}, {dispatchBit, t.Wave.Dispatch, &sc.dispatch}} {
		if members&m.bit == 0 {
			continue
		}
		if m.from == "" {
			return sc, false
		}
		*m.to = m.from
	}
	return sc, true
}

// leaveOutAmbiguous leaves out the pieces of a work-group where several groups
// are meant: groups of different dispatches may have the same coordinates.
func (s *Snapshot) leaveOutAmbiguous(list []piece) []piece {
	const unseen, several = -1, -2
	owners := map[scope]int{}
	var masks []scopeMembers
	for i := range list {
		sc := &list[i].scope
		if sc.members&groupBit == 0 || sc.members&waveBit != 0 {
			continue
		}
		owners[*sc] = unseen
		if !slices.Contains(masks, sc.members) {
			masks = append(masks, sc.members)
		}
	}
	if len(masks) == 0 {
		return list
	}
	for i, t := range s.threads {
		for _, members := range masks {
			sc, ok := s.project(t, members)
			if !ok {
				continue
			}
			owner, ok := owners[sc]
			switch {
			case !ok || owner == several:
			case owner == unseen:
				owners[sc] = i
			default:
				if a, b := s.threads[owner].Wave, t.Wave; a.Agent != b.Agent || a.Queue != b.Queue || a.Dispatch != b.Dispatch {
					owners[sc] = several
				}
			}
		}
	}
	return slices.DeleteFunc(list, func(p piece) bool {
		ambiguous := owners[p.scope] == several
		if ambiguous {
			s.problem("memory[%d]: several dispatches have a group %v: it is left out", p.index, p.scope.group)
		}
		return ambiguous
	})
}

// find finds the piece of an instance of a space that has an address; nil
// where none has. next is where the next piece begins.
func (m *memory) find(space string, sc *scope, address uint64) (p *piece, next uint64) {
	key := piece{space: space, scope: *sc}
	i := sort.Search(len(m.pieces), func(i int) bool {
		p := &m.pieces[i]
		c := compareInstances(p, &key)
		return c > 0 || c == 0 && p.start > address
	})
	next = ^uint64(0)
	if i < len(m.pieces) && compareInstances(&m.pieces[i], &key) == 0 {
		next = m.pieces[i].start
	}
	if i == 0 {
		return nil, next
	}
	p = &m.pieces[i-1]
	if compareInstances(p, &key) != 0 || address-p.start >= p.size {
		return nil, next
	}
	return p, next
}

// from finds the bytes of an instance of a space from an address on; none
// where the snapshot has none there. next is where the next piece begins.
func (m *memory) from(space string, sc *scope, address uint64) (b []byte, next uint64, err error) {
	p, next := m.find(space, sc, address)
	if p == nil {
		return nil, next, nil
	}
	data, err := p.member.bytes()
	if err != nil {
		return nil, next, err
	}
	return data[p.skip+(address-p.start):], next, nil
}

// global finds bytes of the default address space from an address on. of is the
// module whose code object has them; nil: a piece has them.
func (s *Snapshot) global(address uint64) (b []byte, of *target.Module, err error) {
	var everywhere scope
	b, next, err := s.memory.from("", &everywhere, address)
	if len(b) == 0 && err == nil {
		b, of, _ = s.files.At(address)
		// A piece that begins within these bytes has the better claim.
		b = b[:min(uint64(len(b)), next-address)]
	}
	return b, of, err
}

// readGlobal reads the default address space.
func (s *Snapshot) readGlobal(address uint64, buf []byte) (int, error) {
	return read(address, buf, func(at uint64) ([]byte, error) {
		b, _, err := s.global(at)
		return b, err
	})
}

// read fills buf from address on with what from finds.
func read(address uint64, buf []byte, from func(at uint64) ([]byte, error)) (n int, err error) {
	err = object.Guard(func() error {
		for n < len(buf) {
			at := address + uint64(n)
			if at < address {
				return nil
			}
			b, err := from(at)
			if err != nil || len(b) == 0 {
				return err
			}
			n += copy(buf[n:], b)
		}
		return nil
	})
	switch {
	case err != nil:
		return n, fmt.Errorf("address %#x: %w", address+uint64(n), err)
	case n < len(buf):
		return n, fmt.Errorf("%w: %#x", target.ErrNoMemory, address+uint64(n))
	}
	return n, nil
}

// ReadScoped reads the instance of an address space that belongs to a thread:
// the memory whose scope the thread is in. Where several scopes have an
// address, it is that of the narrowest: a wave's before that of its group,
// dispatch, queue and agent, and that before memory without a scope.
func (s *Snapshot) ReadScoped(space locexpr.AddressSpace, thread *target.Thread, address uint64, buf []byte) (int, error) {
	if space == locexpr.DefaultSpace {
		return s.readGlobal(address, buf)
	}
	if thread == nil || thread.Handle >= uint64(len(s.threads)) || s.threads[thread.Handle] != thread {
		return 0, fmt.Errorf("address space %d, address %#x, of a thread that is not of the snapshot: %w", space, address, target.ErrNoMemory)
	}
	a := s.archs.byName[thread.Arch]
	if a == nil || a.desc == nil {
		return 0, fmt.Errorf("address space %d, address %#x: the architecture of %s is not known: %w", space, address, threadName(thread), target.ErrNoMemory)
	}
	info, ok := a.desc.Space(space)
	if !ok {
		return 0, fmt.Errorf("architecture %s has no address space %d: %w", a.desc.Name, space, target.ErrNoMemory)
	}
	name := strings.ToLower(info.Name)
	n, err := read(address, buf, func(at uint64) ([]byte, error) {
		limit := ^uint64(0)
		for _, members := range s.memory.scopes {
			sc, ok := s.project(thread, members)
			if !ok || !members.tells(info.Scope) {
				continue
			}
			b, next, err := s.memory.from(name, &sc, at)
			if err != nil {
				return nil, err
			}
			if len(b) > 0 {
				return b[:min(uint64(len(b)), limit-at)], nil
			}
			limit = min(limit, next)
		}
		return nil, nil
	})
	if err != nil {
		return n, fmt.Errorf("%s of %s: %w", info.Name, threadName(thread), err)
	}
	return n, nil
}

// Mapped says whether an address of the default space is known to be mapped,
// and whether as code: a snapshot knows that of its modules alone.
func (s *Snapshot) Mapped(address uint64) (mapped, executable bool) {
	i := sort.Search(len(s.placed), func(i int) bool { return s.placed[i].Start > address })
	if i > 0 && address-s.placed[i-1].Start < s.placed[i-1].Size {
		return true, s.placed[i-1].Executable
	}
	var everywhere scope
	if p, _ := s.memory.find("", &everywhere, address); p != nil {
		return true, false
	}
	if _, at, _ := s.Around(address); at != nil {
		return true, at.IsExecutable
	}
	return false, false
}
