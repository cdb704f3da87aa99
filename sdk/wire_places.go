// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/locexpr"
	pb "github.com/unwindd/unwindd/sdk/archpb"
)

// The places of a target's registers and memory, of a thread and of each of its lanes.

func encodeSavedRegisters(list []SavedRegisters) *pb.SavedRegisters {
	return &pb.SavedRegisters{
		Firsts:    column(list, func(s *SavedRegisters) uint32 { return s.First }),
		Counts:    column(list, func(s *SavedRegisters) uint32 { return s.Count }),
		Addresses: column(list, func(s *SavedRegisters) uint64 { return s.Address }),
		Intos:     unlessZero(column(list, func(s *SavedRegisters) uint64 { return uint64(s.Into) })),
	}
}

func decodeSavedRegisters(d *decoder, field string, p *pb.SavedRegisters) []SavedRegisters {
	n := d.entries(field+".firsts", len(p.GetFirsts()))
	d.length(field+".counts", len(p.GetCounts()), n)
	d.length(field+".addresses", len(p.GetAddresses()), n)
	intos := sparse(d, field+".intos", p.GetIntos(), n)
	return listOf(d, n, func(i int) SavedRegisters {
		return SavedRegisters{First: p.Firsts[i], Count: p.Counts[i], Address: p.Addresses[i], Into: locexpr.AddressSpace(intos[i])}
	})
}

func encodeSpaceMemory(list []SpaceMemory) *pb.SpaceMemory {
	return &pb.SpaceMemory{
		Spaces:    column(list, func(m *SpaceMemory) uint64 { return uint64(m.Space) }),
		Starts:    column(list, func(m *SpaceMemory) uint64 { return m.Start }),
		Sizes:     column(list, func(m *SpaceMemory) uint64 { return m.Size }),
		Addresses: column(list, func(m *SpaceMemory) uint64 { return m.Address }),
		Intos:     unlessZero(column(list, func(m *SpaceMemory) uint64 { return uint64(m.Into) })),
	}
}

func decodeSpaceMemory(d *decoder, field string, p *pb.SpaceMemory) []SpaceMemory {
	n := d.entries(field+".spaces", len(p.GetSpaces()))
	d.length(field+".starts", len(p.GetStarts()), n)
	d.length(field+".sizes", len(p.GetSizes()), n)
	d.length(field+".addresses", len(p.GetAddresses()), n)
	intos := sparse(d, field+".intos", p.GetIntos(), n)
	return listOf(d, n, func(i int) SpaceMemory {
		return SpaceMemory{
			Space: locexpr.AddressSpace(p.Spaces[i]), Start: p.Starts[i], Size: p.Sizes[i], Address: p.Addresses[i],
			Into: locexpr.AddressSpace(intos[i]),
		}
	})
}

// encodeLaneStates encodes the lanes of threads; nil where none has a state of its own.
func encodeLaneStates(list []TargetThread) (*pb.LaneStates, error) {
	lanes := flat(list, func(t *TargetThread) []LaneState { return t.LaneStates })
	if len(lanes) == 0 {
		return nil, nil
	}
	var registers *pb.RegistersColumn
	if slices.ContainsFunc(lanes, func(l LaneState) bool { return len(l.Registers.Numbers) > 0 }) {
		var err error
		if registers, err = encodeRegisters(lanes, func(l *LaneState) *Registers { return &l.Registers }); err != nil {
			return nil, fmt.Errorf("LaneStates: %w", err)
		}
	}
	return &pb.LaneStates{
		Registers:    registers,
		Counts:       column(list, func(t *TargetThread) uint32 { return uint32(len(t.LaneStates)) }), //nolint:gosec // a count
		Lanes:        column(lanes, func(l *LaneState) uint32 { return l.Lane }),
		SavedCounts:  column(lanes, func(l *LaneState) uint32 { return uint32(len(l.Saved)) }), //nolint:gosec // a count
		Saved:        encodeSavedRegisters(flat(lanes, func(l *LaneState) []SavedRegisters { return l.Saved })),
		MemoryCounts: column(lanes, func(l *LaneState) uint32 { return uint32(len(l.Memory)) }), //nolint:gosec // a count
		Memory:       encodeSpaceMemory(flat(lanes, func(l *LaneState) []SpaceMemory { return l.Memory })),
	}, nil
}

// laneStates checks the lanes of threads, and returns how many each thread has.
func (d *threadsPart) laneStates(p *pb.LaneStates) (counts []uint32) {
	if p == nil {
		return make([]uint32, d.n)
	}
	n := d.entries("lane_states.lanes", len(p.GetLanes()))
	d.length("lane_states.counts", len(p.GetCounts()), d.n)
	d.sum("lane_states.counts", p.GetCounts(), n)
	saved := splitter[SavedRegisters]{decodeSavedRegisters(&d.decoder, "lane_states.saved", p.GetSaved())}
	d.length("lane_states.saved_counts", len(p.GetSavedCounts()), n)
	d.sum("lane_states.saved_counts", p.GetSavedCounts(), len(saved.all))
	memory := splitter[SpaceMemory]{decodeSpaceMemory(&d.decoder, "lane_states.memory", p.GetMemory())}
	d.length("lane_states.memory_counts", len(p.GetMemoryCounts()), n)
	d.sum("lane_states.memory_counts", p.GetMemoryCounts(), len(memory.all))
	var registers []Registers
	if p.GetRegisters() != nil {
		var err error
		if registers, err = decodeRegisters(p.GetRegisters(), n); err != nil {
			d.wrap("lane_states.registers", err)
		}
	}
	d.lanes.all = listOf(&d.decoder, n, func(i int) LaneState {
		l := LaneState{Lane: p.Lanes[i], Saved: saved.next(p.SavedCounts[i]), Memory: memory.next(p.MemoryCounts[i])}
		if registers != nil {
			l.Registers = registers[i]
		}
		return l
	})
	return p.GetCounts()
}
