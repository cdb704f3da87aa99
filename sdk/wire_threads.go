// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"fmt"

	"github.com/unwindd/unwindd/locexpr"
	pb "github.com/unwindd/unwindd/sdk/archpb"
)

func encodeBindThreadsRequest(r *BindThreadsRequest) (*pb.BindThreadsRequest, error) {
	registers, err := encodeRegisters(r.Threads, func(t *ThreadState) *Registers { return &t.Registers })
	if err != nil {
		return nil, fmt.Errorf("BindThreadsRequest.Threads: %w", err)
	}
	spaces := flat(r.Threads, func(t *ThreadState) []SpaceBase { return t.Spaces })
	return &pb.BindThreadsRequest{
		Threads:     column(r.Threads, func(t *ThreadState) uint64 { return t.Thread }),
		Registers:   registers,
		Processors:  blobs(r.Threads, func(t *ThreadState) string { return t.Processor }),
		Lanes:       column(r.Threads, func(t *ThreadState) uint32 { return t.Lanes }),
		SpaceCounts: column(r.Threads, func(t *ThreadState) uint32 { return uint32(len(t.Spaces)) }),
		Spaces:      column(spaces, func(s *SpaceBase) uint64 { return uint64(s.Space) }),
		SpaceBases:  column(spaces, func(s *SpaceBase) uint64 { return s.Base }),
	}, nil
}

func decodeBindThreadsRequest(p *pb.BindThreadsRequest) (*BindThreadsRequest, error) {
	d := decoder{message: "BindThreadsRequest"}
	n := d.entries("threads", len(p.GetThreads()))
	processors := d.texts("processors", p.GetProcessors(), n)
	d.length("lanes", len(p.GetLanes()), n)
	d.length("space_counts", len(p.GetSpaceCounts()), n)
	spaceLists := splitter[SpaceBase]{decodeSpaceBases(&d, p)}
	d.sum("space_counts", p.GetSpaceCounts(), len(spaceLists.all))
	registers, err := decodeRegisters(p.GetRegisters(), n)
	d.wrap("registers", err)
	threads := listOf(&d, n, func(i int) ThreadState {
		return ThreadState{
			Thread: p.Threads[i], Registers: registers[i], Processor: processors.next(),
			Lanes: p.Lanes[i], Spaces: spaceLists.next(p.SpaceCounts[i]),
		}
	})
	return result(&d, &BindThreadsRequest{Threads: threads})
}

// decodeSpaceBases decodes the bases of a message's threads.
func decodeSpaceBases(d *decoder, p interface {
	GetSpaces() []uint64
	GetSpaceBases() []uint64
}) []SpaceBase {
	n := d.entries("spaces", len(p.GetSpaces()))
	d.length("space_bases", len(p.GetSpaceBases()), n)
	return listOf(d, n, func(i int) SpaceBase {
		return SpaceBase{Space: locexpr.AddressSpace(p.GetSpaces()[i]), Base: p.GetSpaceBases()[i]}
	})
}

func encodeBindThreadsAnswer(a *BindThreadsAnswer) *pb.BindThreadsAnswer {
	widths := flat(a.Threads, func(b *ThreadBinding) []RegisterWidth { return b.Widths })
	maps := flat(a.Threads, func(b *ThreadBinding) []SpaceMap { return b.Maps })
	ranges := flat(maps, func(m *SpaceMap) []MapRange { return m.Ranges })
	return &pb.BindThreadsAnswer{
		Pcs:           column(a.Threads, func(b *ThreadBinding) uint64 { return b.PC }),
		Lanes:         column(a.Threads, func(b *ThreadBinding) uint32 { return b.Lanes }),
		ActiveLanes:   blobs(a.Threads, func(b *ThreadBinding) []byte { return b.ActiveLanes }),
		ActiveUnknown: column(a.Threads, func(b *ThreadBinding) bool { return b.ActiveUnknown }),
		WidthCounts:   column(a.Threads, func(b *ThreadBinding) uint32 { return uint32(len(b.Widths)) }),
		Widths: &pb.Widths{
			Firsts: column(widths, func(w *RegisterWidth) uint32 { return w.First }),
			Counts: column(widths, func(w *RegisterWidth) uint32 { return w.Count }),
			Bits:   column(widths, func(w *RegisterWidth) uint32 { return w.Bits }),
		},
		ReturnAddressMasks: column(a.Threads, func(b *ThreadBinding) uint64 { return b.ReturnAddressMask }),
		Agents:             blobs(a.Threads, func(b *ThreadBinding) string { return b.Agent }),
		Groups:             blobs(a.Threads, func(b *ThreadBinding) string { return b.Group }),
		Waves:              blobs(a.Threads, func(b *ThreadBinding) string { return b.Wave }),
		MapCounts:          column(a.Threads, func(b *ThreadBinding) uint32 { return uint32(len(b.Maps)) }),
		Maps: &pb.Maps{
			Spaces:      column(maps, func(m *SpaceMap) uint64 { return uint64(m.Space) }),
			RangeCounts: column(maps, func(m *SpaceMap) uint32 { return uint32(len(m.Ranges)) }),
			Ranges: &pb.MapRanges{
				Kinds:     column(ranges, func(r *MapRange) pb.MapKind { return pb.MapKind(r.Kind) }),
				Starts:    column(ranges, func(r *MapRange) uint64 { return r.Start }),
				Sizes:     column(ranges, func(r *MapRange) uint64 { return r.Size }),
				Into:      column(ranges, func(r *MapRange) uint64 { return uint64(r.Into) }),
				Bases:     column(ranges, func(r *MapRange) uint64 { return r.Base }),
				Elements:  column(ranges, func(r *MapRange) uint32 { return r.Element }),
				Strides:   column(ranges, func(r *MapRange) uint64 { return r.Stride }),
				Registers: column(ranges, func(r *MapRange) uint32 { return r.Register }),
			},
		},
		Problems: blobs(a.Threads, func(b *ThreadBinding) string { return b.Problem }),
	}
}

func decodeBindThreadsAnswer(p *pb.BindThreadsAnswer) (*BindThreadsAnswer, error) {
	d := decoder{message: "BindThreadsAnswer"}
	n := d.entries("pcs", len(p.GetPcs()))
	d.length("lanes", len(p.GetLanes()), n)
	active := d.bytes("active_lanes", p.GetActiveLanes(), n)
	d.length("active_unknown", len(p.GetActiveUnknown()), n)
	d.length("width_counts", len(p.GetWidthCounts()), n)
	widthLists := splitter[RegisterWidth]{decodeWidths(&d, p.GetWidths())}
	d.sum("width_counts", p.GetWidthCounts(), len(widthLists.all))
	d.length("return_address_masks", len(p.GetReturnAddressMasks()), n)
	agents := d.texts("agents", p.GetAgents(), n)
	groups := d.texts("groups", p.GetGroups(), n)
	waves := d.texts("waves", p.GetWaves(), n)
	d.length("map_counts", len(p.GetMapCounts()), n)
	mapLists := splitter[SpaceMap]{decodeMaps(&d, p.GetMaps())}
	d.sum("map_counts", p.GetMapCounts(), len(mapLists.all))
	problems := d.texts("problems", p.GetProblems(), n)
	threads := listOf(&d, n, func(i int) ThreadBinding {
		return ThreadBinding{
			PC: p.Pcs[i], Lanes: p.Lanes[i], ActiveLanes: active.next(), ActiveUnknown: p.ActiveUnknown[i],
			Widths:            widthLists.next(p.WidthCounts[i]),
			ReturnAddressMask: p.ReturnAddressMasks[i],
			Agent:             agents.next(), Group: groups.next(), Wave: waves.next(),
			Maps:    mapLists.next(p.MapCounts[i]),
			Problem: problems.next(),
		}
	})
	return result(&d, &BindThreadsAnswer{Threads: threads})
}

func decodeWidths(d *decoder, p *pb.Widths) []RegisterWidth {
	n := d.entries("widths.firsts", len(p.GetFirsts()))
	d.length("widths.counts", len(p.GetCounts()), n)
	d.length("widths.bits", len(p.GetBits()), n)
	return listOf(d, n, func(i int) RegisterWidth {
		return RegisterWidth{First: p.Firsts[i], Count: p.Counts[i], Bits: p.Bits[i]}
	})
}

func decodeMaps(d *decoder, p *pb.Maps) []SpaceMap {
	n := d.entries("maps.spaces", len(p.GetSpaces()))
	d.length("maps.range_counts", len(p.GetRangeCounts()), n)
	r := p.GetRanges()
	m := d.entries("maps.ranges.starts", len(r.GetStarts()))
	d.sum("maps.range_counts", p.GetRangeCounts(), m)
	enums(d, "maps.ranges.kinds", r.GetKinds(), m, OpaqueMap)
	d.length("maps.ranges.sizes", len(r.GetSizes()), m)
	d.length("maps.ranges.into", len(r.GetInto()), m)
	d.length("maps.ranges.bases", len(r.GetBases()), m)
	d.length("maps.ranges.elements", len(r.GetElements()), m)
	d.length("maps.ranges.strides", len(r.GetStrides()), m)
	d.length("maps.ranges.registers", len(r.GetRegisters()), m)
	lists := splitter[MapRange]{listOf(d, m, func(i int) MapRange {
		return MapRange{
			Kind: MapKind(r.Kinds[i]), Start: r.Starts[i], Size: r.Sizes[i],
			Into: locexpr.AddressSpace(r.Into[i]), Base: r.Bases[i],
			Element: r.Elements[i], Stride: r.Strides[i], Register: r.Registers[i],
		}
	})}
	return listOf(d, n, func(i int) SpaceMap {
		return SpaceMap{Space: locexpr.AddressSpace(p.Spaces[i]), Ranges: lists.next(p.RangeCounts[i])}
	})
}
