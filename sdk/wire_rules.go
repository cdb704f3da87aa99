// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"slices"

	"github.com/unwindd/unwindd/cfi"
	pb "github.com/unwindd/unwindd/sdk/archpb"
)

func encodeFrameRulesRequest(r *FrameRulesRequest) *pb.FrameRulesRequest {
	p := &pb.FrameRulesRequest{
		Object:  r.Object,
		Pcs:     column(r.Functions, func(c *CodeRange) uint64 { return c.PC }),
		Starts:  column(r.Functions, func(c *CodeRange) uint64 { return c.Start }),
		Code:    blobs(r.Functions, func(c *CodeRange) []byte { return c.Code }),
		Bounded: column(r.Functions, func(c *CodeRange) bool { return c.Bounded }),
		Names:   blobs(r.Functions, func(c *CodeRange) string { return c.Name }),
		Exact:   column(r.Functions, func(c *CodeRange) bool { return c.Exact }),
		Exits:   column(r.Functions, func(c *CodeRange) bool { return c.Exits }),
	}
	if parts := flat(r.Functions, func(c *CodeRange) []CodePart { return c.Parts }); len(parts) > 0 {
		p.PartCounts = column(r.Functions, func(c *CodeRange) uint32 { return uint32(len(c.Parts)) }) //nolint:gosec // a count
		p.PartStarts = column(parts, func(c *CodePart) uint64 { return c.Start })
		p.PartCode = blobs(parts, func(c *CodePart) []byte { return c.Code })
	}
	return p
}

// decodeCodeParts sets the parts of functions.
func decodeCodeParts(p *pb.FrameRulesRequest, functions []CodeRange) error {
	if len(p.GetPartCounts()) == 0 {
		return nil
	}
	d := decoder{message: "FrameRulesRequest"}
	d.length("part_counts", len(p.GetPartCounts()), len(functions))
	n := d.entries("part_starts", len(p.GetPartStarts()))
	d.sum("part_counts", p.GetPartCounts(), n)
	code := d.bytes("part_code", p.GetPartCode(), n)
	rest := splitter[CodePart]{listOf(&d, n, func(i int) CodePart { return CodePart{p.PartStarts[i], code.next()} })}
	if d.err != nil {
		return d.err
	}
	for i := range functions {
		functions[i].Parts = rest.next(p.PartCounts[i])
	}
	return nil
}

func decodeFrameRulesRequest(p *pb.FrameRulesRequest) (*FrameRulesRequest, error) {
	d := decoder{message: "FrameRulesRequest"}
	n := d.entries("pcs", len(p.GetPcs()))
	d.length("starts", len(p.GetStarts()), n)
	code := d.bytes("code", p.GetCode(), n)
	d.length("bounded", len(p.GetBounded()), n)
	names := d.texts("names", p.GetNames(), n)
	d.length("exact", len(p.GetExact()), n)
	d.length("exits", len(p.GetExits()), n)
	functions := listOf(&d, n, func(i int) CodeRange {
		return CodeRange{
			PC: p.Pcs[i], Start: p.Starts[i], Code: code.next(),
			Bounded: p.Bounded[i], Name: names.next(), Exact: p.Exact[i],
			Exits: p.Exits[i],
		}
	})
	if d.err != nil {
		return nil, d.err
	}
	return &FrameRulesRequest{Object: p.GetObject(), Functions: functions}, decodeCodeParts(p, functions)
}

func encodeFrameRulesAnswer(a *FrameRulesAnswer) *pb.FrameRulesAnswer {
	return &pb.FrameRulesAnswer{
		RowCounts:   column(a.Functions, func(f *FrameRules) uint32 { return uint32(len(f.Rows)) }),
		Rows:        encodeRows(flat(a.Functions, func(f *FrameRules) []cfi.Row { return f.Rows })),
		Reasons:     blobs(a.Functions, func(f *FrameRules) string { return f.Reason }),
		Trampolines: column(a.Functions, func(f *FrameRules) bool { return f.Trampoline }),
		Complete:    column(a.Functions, func(f *FrameRules) bool { return f.Complete }),
		GapCounts:   column(a.Functions, func(f *FrameRules) uint32 { return uint32(len(f.Gaps)) }),
		Gaps:        encodeRowGaps(flat(a.Functions, func(f *FrameRules) []RowGap { return f.Gaps })),
		Exits:       encodeCodeExits(a.Functions),
		Uncalled:    column(a.Functions, func(f *FrameRules) bool { return f.Uncalled }),

		Contradictions: encodeContradictions(a.Functions),
	}
}

// encodeContradictions returns nil where no function has contradictions.
func encodeContradictions(functions []FrameRules) *pb.Contradictions {
	ranges := flat(functions, func(f *FrameRules) []RowGap { return f.Contradictions })
	if len(ranges) == 0 {
		return nil
	}
	return &pb.Contradictions{
		Counts: column(functions, func(f *FrameRules) uint32 { return uint32(len(f.Contradictions)) }),
		Ranges: encodeRowGaps(ranges),
	}
}

// decodeContradictions sets the contradictions of functions.
func decodeContradictions(p *pb.Contradictions, functions []FrameRules) error {
	if p == nil {
		return nil
	}
	d := decoder{message: "Contradictions"}
	d.length("counts", len(p.GetCounts()), len(functions))
	d.sum("counts", p.GetCounts(), len(p.GetRanges().GetStarts()))
	ranges, err := decodeRowGaps(p.GetRanges())
	d.wrap("ranges", err)
	if d.err != nil {
		return d.err
	}
	lists := splitter[RowGap]{ranges}
	for i := range functions {
		functions[i].Contradictions = lists.next(p.Counts[i])
	}
	return nil
}

// encodeCodeExits returns nil where no function has exits.
func encodeCodeExits(functions []FrameRules) *pb.CodeExits {
	if !slices.ContainsFunc(functions, func(f FrameRules) bool { return f.Exits != nil }) {
		return nil
	}
	all := make([]CodeExits, len(functions))
	for i := range functions {
		if e := functions[i].Exits; e != nil {
			all[i] = *e
		}
	}
	return &pb.CodeExits{
		Known:      column(functions, func(f *FrameRules) bool { return f.Exits != nil }),
		Open:       column(all, func(e *CodeExits) bool { return e.Open }),
		JumpCounts: column(all, func(e *CodeExits) uint32 { return uint32(len(e.Jumps)) }),
		Jumps:      flat(all, func(e *CodeExits) []uint64 { return e.Jumps }),
		SlotCounts: column(all, func(e *CodeExits) uint32 { return uint32(len(e.Slots)) }),
		Slots:      flat(all, func(e *CodeExits) []uint64 { return e.Slots }),
	}
}

// decodeCodeExits sets the exits of functions.
func decodeCodeExits(p *pb.CodeExits, functions []FrameRules) error {
	if p == nil {
		return nil
	}
	d, n := decoder{message: "CodeExits"}, len(functions)
	d.length("known", len(p.GetKnown()), n)
	d.length("open", len(p.GetOpen()), n)
	d.length("jump_counts", len(p.GetJumpCounts()), n)
	d.sum("jump_counts", p.GetJumpCounts(), len(p.GetJumps()))
	d.length("slot_counts", len(p.GetSlotCounts()), n)
	d.sum("slot_counts", p.GetSlotCounts(), len(p.GetSlots()))
	if d.err != nil {
		return d.err
	}
	jumps, slots := splitter[uint64]{p.GetJumps()}, splitter[uint64]{p.GetSlots()}
	for i := range functions {
		e := CodeExits{Jumps: jumps.next(p.JumpCounts[i]), Slots: slots.next(p.SlotCounts[i]), Open: p.Open[i]}
		if p.Known[i] {
			functions[i].Exits = &e
		}
	}
	return nil
}

func encodeRowGaps(gaps []RowGap) *pb.RowGaps {
	return &pb.RowGaps{
		Starts:  column(gaps, func(g *RowGap) uint64 { return g.Start }),
		Ends:    column(gaps, func(g *RowGap) uint64 { return g.End }),
		Reasons: blobs(gaps, func(g *RowGap) string { return g.Reason }),
	}
}

func decodeRowGaps(p *pb.RowGaps) ([]RowGap, error) {
	d := decoder{message: "RowGaps"}
	n := d.entries("starts", len(p.GetStarts()))
	d.length("ends", len(p.GetEnds()), n)
	reasons := d.texts("reasons", p.GetReasons(), n)
	gaps := listOf(&d, n, func(i int) RowGap { return RowGap{Start: p.Starts[i], End: p.Ends[i], Reason: reasons.next()} })
	return gaps, d.err
}

func decodeFrameRulesAnswer(p *pb.FrameRulesAnswer) (*FrameRulesAnswer, error) {
	d := decoder{message: "FrameRulesAnswer"}
	n := d.entries("row_counts", len(p.GetRowCounts()))
	d.sum("row_counts", p.GetRowCounts(), len(p.GetRows().GetStarts()))
	reasons := d.texts("reasons", p.GetReasons(), n)
	d.length("trampolines", len(p.GetTrampolines()), n)
	d.length("complete", len(p.GetComplete()), n)
	d.length("gap_counts", len(p.GetGapCounts()), n)
	d.sum("gap_counts", p.GetGapCounts(), len(p.GetGaps().GetStarts()))
	d.length("uncalled", len(p.GetUncalled()), n)
	if d.err != nil {
		return nil, d.err
	}
	rows, err := decodeRows(p.GetRows())
	d.wrap("rows", err)
	gaps, err := decodeRowGaps(p.GetGaps())
	d.wrap("gaps", err)
	lists, gapLists := splitter[cfi.Row]{rows}, splitter[RowGap]{gaps}
	a := &FrameRulesAnswer{Functions: listOf(&d, n, func(i int) FrameRules {
		return FrameRules{
			Rows: lists.next(p.RowCounts[i]), Reason: reasons.next(), Trampoline: p.Trampolines[i],
			Complete: p.Complete[i], Gaps: gapLists.next(p.GapCounts[i]),
			Uncalled: p.Uncalled[i],
		}
	})}
	d.wrap("exits", decodeCodeExits(p.GetExits(), a.Functions))
	d.wrap("contradictions", decodeContradictions(p.GetContradictions(), a.Functions))
	return result(&d, a)
}
