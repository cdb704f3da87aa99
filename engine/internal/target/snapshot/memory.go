// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// scopeMembers is the set of members that a scope has. The narrower of two scopes has the higher
// number.
type scopeMembers uint8

const (
	agentBit scopeMembers = 1 << iota
	queueBit
	dispatchBit
	groupBit
	waveBit
	laneBit
)

// scope identifies the instance of an address space that a piece of memory belongs to: the
// instance of the threads that have all its members.
type scope struct {
	members                      scopeMembers
	wave, agent, queue, dispatch string
	group                        [3]uint32
	lane                         uint32
}

func compareScopes(a, b *scope) int {
	return cmp.Or(
		cmp.Compare(a.members, b.members),
		cmp.Compare(a.wave, b.wave),
		cmp.Compare(a.agent, b.agent),
		cmp.Compare(a.queue, b.queue),
		cmp.Compare(a.dispatch, b.dispatch),
		slices.Compare(a.group[:], b.group[:]),
		cmp.Compare(a.lane, b.lane),
	)
}

// distinguishes reports whether a scope with these members identifies one instance of a space.
func (m scopeMembers) distinguishes(s sdk.SpaceScope) bool {
	switch s {
	case sdk.ProcessScope:
		return true
	case sdk.AgentScope:
		return m&(agentBit|waveBit) != 0
	case sdk.GroupScope:
		return m&(groupBit|waveBit) != 0
	case sdk.WaveScope:
		return m&waveBit != 0
	case sdk.LaneScope:
		return m&waveBit != 0 && m&laneBit != 0
	}
	return false
}

// piece is a range of memory of an instance of an address space.
type piece struct {
	space  string // in lower case; "" is the default space
	scope  scope
	start  uint64
	size   uint64
	skip   uint64 // offset of the byte at start in the member
	member *member
	index  int // in snapshot.json
}

// compareInstances orders pieces by the instance of a space that they belong to.
func compareInstances(a, b *piece) int {
	return cmp.Or(cmp.Compare(a.space, b.space), compareScopes(&a.scope, &b.scope))
}

// memory has the snapshot's pieces of all address spaces.
type memory struct {
	pieces []piece        // by instance and start, without overlap
	scopes []scopeMembers // of the pieces, the narrowest first
}

// addMemory sorts the pieces of memory. Of two that overlap in one instance of a space, the one
// that starts first keeps the bytes that both have; of two that start at one address, the one
// that is listed first.
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
	list = s.dropAmbiguous(list)
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

// piece looks up the member and the space that an entry of memory names.
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

// checkSpace returns why no thread of any architecture can have a piece; "" if one can.
func (s *Snapshot) checkSpace(e *pieceEntry) (problem string) {
	for _, a := range s.archs.list {
		if a.desc == nil {
			continue
		}
		space, ok := a.space(e.space)
		if ok && e.scope.members.distinguishes(space.Scope) {
			return ""
		}
		if ok {
			want := map[sdk.SpaceScope]string{
				sdk.AgentScope: "its scope names no agent",
				sdk.GroupScope: "its scope names neither group nor wave",
				sdk.WaveScope:  "its scope names no wave",
				sdk.LaneScope:  "its scope names no lane of a wave, and memory of lanes that have it in common is given in the address space that they share",
			}
			problem = fmt.Sprintf("address space %s: %s", space.Name, want[space.Scope])
		}
	}
	if problem == "" {
		problem = fmt.Sprintf("no architecture of the snapshot has an address space %q", jsontext.Clip(e.space))
	}
	return problem
}

// scopeOf returns the scope with these members that a thread is in.
func (s *Snapshot) scopeOf(t *trace.Thread, members scopeMembers) (sc scope, ok bool) {
	sc.members = members
	if members&waveBit != 0 {
		if t.ID == "" || s.repeated[t.Handle] {
			return sc, false
		}
		sc.wave = t.ID
	}
	if members&laneBit != 0 {
		if len(t.LaneStates) == 0 {
			return sc, false
		}
		sc.lane = t.Lead
	}
	if members&^(waveBit|laneBit) == 0 {
		return sc, true
	}
	if t.Wave == nil || members&groupBit != 0 && !t.Wave.HasGroup {
		return sc, false
	}
	if members&groupBit != 0 {
		sc.group = t.Wave.Group
	}
	for _, m := range []struct {
		bit   scopeMembers
		value string
		dest  *string
	}{{agentBit, t.Wave.Agent, &sc.agent}, {queueBit, t.Wave.Queue, &sc.queue}, {dispatchBit, t.Wave.Dispatch, &sc.dispatch}} {
		if members&m.bit == 0 {
			continue
		}
		if m.value == "" {
			return sc, false
		}
		*m.dest = m.value
	}
	return sc, true
}

// dropAmbiguous leaves out pieces whose scope stands for several work-groups: groups of
// different dispatches may have the same coordinates.
func (s *Snapshot) dropAmbiguous(list []piece) []piece {
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
	for i, t := range s.threads.All() {
		for _, members := range masks {
			sc, ok := s.scopeOf(t, members)
			if !ok {
				continue
			}
			owner, ok := owners[sc]
			switch {
			case !ok || owner == several:
			case owner == unseen:
				owners[sc] = i
			default:
				if a, b := s.threads.At(owner).Wave, t.Wave; a.Agent != b.Agent || a.Queue != b.Queue || a.Dispatch != b.Dispatch {
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

// find returns the piece of an instance of a space that has an address; nil if none has. next is
// the start of the next piece.
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

// bytesAt returns the bytes that the snapshot has of an instance of a space from an address on.
// next is the start of the next piece.
func (m *memory) bytesAt(space string, sc *scope, address uint64) (b []byte, next uint64, err error) {
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

// global returns bytes of the default address space from an address on. module is the module
// whose code object has them; nil if a piece has them.
func (s *Snapshot) global(address uint64) (b []byte, module *target.Module, err error) {
	var everywhere scope
	b, next, err := s.memory.bytesAt("", &everywhere, address)
	if len(b) == 0 && err == nil {
		b, module, _ = s.files.At(address)
		// A piece that begins within these bytes comes first.
		b = b[:min(uint64(len(b)), next-address)]
	}
	return b, module, err
}

// readGlobal reads the default address space.
func (s *Snapshot) readGlobal(address uint64, buf []byte) (int, error) {
	return target.ReadBytes(address, buf, func(next uint64) ([]byte, error) {
		b, _, err := s.global(next)
		return b, err
	})
}

// ReadScoped reads a thread's instance of an address space: the memory whose scope the thread is
// in. If several scopes have an address, the narrowest counts: a wave before
// its group, dispatch, queue and agent, and these before memory without a scope.
func (s *Snapshot) ReadScoped(space locexpr.AddressSpace, thread *trace.Thread, address uint64, buf []byte) (int, error) {
	if space == locexpr.DefaultSpace {
		return s.readGlobal(address, buf)
	}
	if thread == nil || !s.isOwn(thread) {
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
	n, err := target.ReadBytes(address, buf, func(current uint64) ([]byte, error) {
		limit := ^uint64(0)
		for _, members := range s.memory.scopes {
			sc, ok := s.scopeOf(thread, members)
			if !ok || !members.distinguishes(info.Scope) {
				continue
			}
			b, next, err := s.memory.bytesAt(name, &sc, current)
			if err != nil {
				return nil, err
			}
			if len(b) > 0 {
				return b[:min(uint64(len(b)), limit-current)], nil
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

// isOwn reports whether a thread is one of the snapshot, or is one as a lane has it.
func (s *Snapshot) isOwn(thread *trace.Thread) bool {
	if thread.Handle >= uint64(s.threads.Len()) {
		return false
	}
	own := s.threads.At(int(thread.Handle))
	return own == thread || len(own.LaneStates) > 0 && own.ID == thread.ID && own.Arch == thread.Arch
}

// Mapped reports whether an address of the default space is known to be mapped, and whether as
// executable, which a snapshot knows of its modules and mappings alone.
func (s *Snapshot) Mapped(address uint64) (mapped, executable bool) {
	i := sort.Search(len(s.placed), func(i int) bool { return s.placed[i].Start > address })
	if i > 0 && address-s.placed[i-1].Start < s.placed[i-1].Size {
		return true, s.placed[i-1].Executable
	}
	var everywhere scope
	if p, _ := s.memory.find("", &everywhere, address); p != nil {
		return true, false
	}
	if _, mapping, _ := s.Around(address); mapping != nil {
		return true, mapping.IsExecutable
	}
	return false, false
}
