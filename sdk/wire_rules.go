package sdk

import (
	"github.com/unwindd/unwindd/cfi"
	pb "github.com/unwindd/unwindd/sdk/archpb"
)

func encodeFrameRulesRequest(r *FrameRulesRequest) *pb.FrameRulesRequest {
	return &pb.FrameRulesRequest{
		Object:  r.Object,
		Pcs:     column(r.Functions, func(c *CodeRange) uint64 { return c.PC }),
		Starts:  column(r.Functions, func(c *CodeRange) uint64 { return c.Start }),
		Code:    blobs(r.Functions, func(c *CodeRange) []byte { return c.Code }),
		Bounded: column(r.Functions, func(c *CodeRange) bool { return c.Bounded }),
		Names:   blobs(r.Functions, func(c *CodeRange) string { return c.Name }),
		Exact:   column(r.Functions, func(c *CodeRange) bool { return c.Exact }),
	}
}

func decodeFrameRulesRequest(p *pb.FrameRulesRequest) (*FrameRulesRequest, error) {
	d := decoder{message: "FrameRulesRequest"}
	n := d.entries("pcs", len(p.GetPcs()))
	d.length("starts", len(p.GetStarts()), n)
	code := d.bytes("code", p.GetCode(), n)
	d.length("bounded", len(p.GetBounded()), n)
	names := d.texts("names", p.GetNames(), n)
	d.length("exact", len(p.GetExact()), n)
	if d.err != nil {
		return nil, d.err
	}
	r := &FrameRulesRequest{Object: p.GetObject()}
	if n > 0 {
		r.Functions = make([]CodeRange, n)
	}
	for i := range r.Functions {
		r.Functions[i] = CodeRange{
			PC: p.Pcs[i], Start: p.Starts[i], Code: code.next(),
			Bounded: p.Bounded[i], Name: names.next(), Exact: p.Exact[i],
		}
	}
	return r, nil
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
	}
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
	if d.err != nil {
		return nil, d.err
	}
	gaps := make([]RowGap, n)
	for i := range gaps {
		gaps[i] = RowGap{Start: p.Starts[i], End: p.Ends[i], Reason: reasons.next()}
	}
	return gaps, nil
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
	if d.err != nil {
		return nil, d.err
	}
	rows, err := decodeRows(p.GetRows())
	d.wrap("rows", err)
	gaps, err := decodeRowGaps(p.GetGaps())
	d.wrap("gaps", err)
	if d.err != nil {
		return nil, d.err
	}
	lists, gapLists := splitter[cfi.Row]{rows}, splitter[RowGap]{gaps}
	a := &FrameRulesAnswer{}
	if n > 0 {
		a.Functions = make([]FrameRules, n)
	}
	for i := range a.Functions {
		a.Functions[i] = FrameRules{
			Rows: lists.next(p.RowCounts[i]), Reason: reasons.next(), Trampoline: p.Trampolines[i],
			Complete: p.Complete[i], Gaps: gapLists.next(p.GapCounts[i]),
		}
	}
	return a, nil
}
