// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"fmt"

	"github.com/unwindd/unwindd/cfi"
	pb "github.com/unwindd/unwindd/sdk/archpb"
)

// MaxVariableDepth is how many levels of children a variable may have.
const MaxVariableDepth = 64

func encodeManagedFrames(list []ManagedFrame) (*pb.ManagedFrameList, error) {
	p := &pb.ManagedFrameList{
		Functions:      blobs(list, func(f *ManagedFrame) string { return f.Function }),
		Files:          blobs(list, func(f *ManagedFrame) string { return f.File }),
		Lines:          column(list, func(f *ManagedFrame) uint32 { return f.Line }),
		Columns:        column(list, func(f *ManagedFrame) uint32 { return f.Column }),
		Kinds:          column(list, func(f *ManagedFrame) pb.ManagedKind { return pb.ManagedKind(f.Kind) }),
		VariableCounts: column(list, func(f *ManagedFrame) uint32 { return uint32(len(f.Variables)) }), //nolint:gosec // a count
	}
	var all []*ManagedVariable // each before its children
	for i := range list {
		var err error
		if all, err = appendVariables(all, list[i].Variables, 1); err != nil {
			return nil, err
		}
	}
	if len(all) > 0 {
		p.Variables = &pb.ManagedVariables{
			Names:       blobs(all, func(v **ManagedVariable) string { return (*v).Name }),
			Types:       blobs(all, func(v **ManagedVariable) string { return (*v).Type }),
			Texts:       blobs(all, func(v **ManagedVariable) string { return (*v).Text }),
			Statuses:    column(all, func(v **ManagedVariable) pb.ManagedStatus { return pb.ManagedStatus((*v).Status) }),
			Parameters:  column(all, func(v **ManagedVariable) bool { return (*v).IsParam }),
			ChildCounts: column(all, func(v **ManagedVariable) uint32 { return uint32(len((*v).Children)) }), //nolint:gosec // a count
			More:        column(all, func(v **ManagedVariable) uint64 { return (*v).More }),
		}
	}
	return p, nil
}

// appendVariables appends trees of variables to a list, each variable before its children.
func appendVariables(list []*ManagedVariable, trees []ManagedVariable, depth int) (_ []*ManagedVariable, err error) {
	if depth > MaxVariableDepth && len(trees) > 0 {
		return nil, fmt.Errorf("ManagedFrame.Variables: more than %d levels of children", MaxVariableDepth)
	}
	for i := range trees {
		list = append(list, &trees[i])
		if list, err = appendVariables(list, trees[i].Children, depth+1); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func decodeManagedFrames(p *pb.ManagedFrameList) ([]ManagedFrame, error) {
	d := decoder{message: "ManagedFrameList"}
	n := d.entries("lines", len(p.GetLines()))
	functions, files := d.texts("functions", p.GetFunctions(), n), d.texts("files", p.GetFiles(), n)
	d.length("columns", len(p.GetColumns()), n)
	enums(&d, "kinds", p.GetKinds(), n, Entry)
	d.length("variable_counts", len(p.GetVariableCounts()), n)
	variables, err := newVariableTrees(p.GetVariables())
	d.wrap("variables", err)
	frames := listOf(&d, n, func(i int) ManagedFrame {
		return ManagedFrame{
			Function: functions.next(), File: files.next(), Line: p.Lines[i], Column: p.Columns[i], Kind: ManagedKind(p.Kinds[i]), //nolint:gosec // checked
			Variables: variables.next(&d, p.VariableCounts[i], 1),
		}
	})
	if variables.left() > 0 {
		d.fail("variables", "%d more than the frames and their variables have", variables.left())
	}
	if d.err != nil {
		return nil, d.err
	}
	return frames, nil
}

// variableTrees makes trees of a list in which each variable is before its children.
type variableTrees struct {
	p                   *pb.ManagedVariables
	names, types, texts textCursor
	used                int
}

func newVariableTrees(p *pb.ManagedVariables) (*variableTrees, error) {
	d := decoder{message: "ManagedVariables"}
	n := d.entries("child_counts", len(p.GetChildCounts()))
	t := &variableTrees{p: p, names: d.texts("names", p.GetNames(), n), types: d.texts("types", p.GetTypes(), n), texts: d.texts("texts", p.GetTexts(), n)}
	enums(&d, "statuses", p.GetStatuses(), n, ValueUnreadable)
	d.length("parameters", len(p.GetParameters()), n)
	d.length("more", len(p.GetMore()), n)
	return t, d.err
}

// left returns how many variables are in no tree yet.
func (t *variableTrees) left() int { return len(t.p.GetChildCounts()) - t.used }

// next returns the next n trees; nil after an error.
func (t *variableTrees) next(d *decoder, n uint32, depth int) []ManagedVariable {
	switch {
	case d.err != nil || n == 0:
		return nil
	case uint64(n) > uint64(t.left()): //nolint:gosec // not negative
		d.fail("variables", "%d, expected %d more", len(t.p.GetChildCounts()), uint64(n)-uint64(t.left())) //nolint:gosec // not negative
		return nil
	case depth > MaxVariableDepth:
		d.fail("variables", "more than %d levels of children", MaxVariableDepth)
		return nil
	}
	trees := make([]ManagedVariable, n)
	for i := range trees {
		k := t.used
		if t.left() == 0 {
			d.fail("variables", "%d, expected more: children are missing", k)
			return nil
		}
		t.used++
		trees[i] = ManagedVariable{
			Name: t.names.next(), Type: t.types.next(), Text: t.texts.next(), Status: ManagedStatus(t.p.Statuses[k]), //nolint:gosec // checked
			IsParam: t.p.Parameters[k], More: t.p.More[k],
		}
		trees[i].Children = t.next(d, t.p.ChildCounts[k], depth+1)
	}
	return trees
}

func encodeCodeRulesRequest(r *CodeRulesRequest) *pb.CodeRulesRequest {
	return &pb.CodeRulesRequest{Runtime: r.Runtime, Pcs: r.PCs}
}

func decodeCodeRulesRequest(p *pb.CodeRulesRequest) (*CodeRulesRequest, error) {
	d := decoder{message: "CodeRulesRequest"}
	d.entries("pcs", len(p.GetPcs()))
	return result(&d, &CodeRulesRequest{Runtime: p.GetRuntime(), PCs: p.GetPcs()})
}

func encodeCodeRulesAnswer(a *CodeRulesAnswer) (*pb.CodeRulesAnswer, error) {
	frames, err := encodeManagedFrames(flat(a.Code, func(c *CodeRules) []ManagedFrame { return c.Frames }))
	return &pb.CodeRulesAnswer{
		Starts:      column(a.Code, func(c *CodeRules) uint64 { return c.Start }),
		Ends:        column(a.Code, func(c *CodeRules) uint64 { return c.End }),
		RowCounts:   column(a.Code, func(c *CodeRules) uint32 { return uint32(len(c.Rows)) }), //nolint:gosec // a count
		Rows:        encodeRows(flat(a.Code, func(c *CodeRules) []cfi.Row { return c.Rows })),
		FrameCounts: column(a.Code, func(c *CodeRules) uint32 { return uint32(len(c.Frames)) }), //nolint:gosec // a count
		Frames:      frames,
		Reasons:     blobs(a.Code, func(c *CodeRules) string { return c.Reason }),
	}, err
}

func decodeCodeRulesAnswer(p *pb.CodeRulesAnswer) (*CodeRulesAnswer, error) {
	d := decoder{message: "CodeRulesAnswer"}
	n := d.entries("starts", len(p.GetStarts()))
	d.length("ends", len(p.GetEnds()), n)
	d.length("row_counts", len(p.GetRowCounts()), n)
	d.length("frame_counts", len(p.GetFrameCounts()), n)
	reasons := d.texts("reasons", p.GetReasons(), n)
	rows, err := decodeRows(p.GetRows())
	d.wrap("rows", err)
	d.sum("row_counts", p.GetRowCounts(), len(rows))
	frames, err := decodeManagedFrames(p.GetFrames())
	d.wrap("frames", err)
	d.sum("frame_counts", p.GetFrameCounts(), len(frames))
	rowLists, frameLists := splitter[cfi.Row]{rows}, splitter[ManagedFrame]{frames}
	return result(&d, &CodeRulesAnswer{Code: listOf(&d, n, func(i int) CodeRules {
		return CodeRules{
			Start: p.Starts[i], End: p.Ends[i], Reason: reasons.next(),
			Rows: rowLists.next(p.RowCounts[i]), Frames: frameLists.next(p.FrameCounts[i]),
		}
	})})
}

func encodeManagedFramesRequest(r *ManagedFramesRequest) *pb.ManagedFramesRequest {
	frames := flat(r.Threads, func(t *NativeStack) []NativeFrame { return t.Frames })
	return &pb.ManagedFramesRequest{
		Runtime: r.Runtime, Variables: r.Variables, Depth: r.Depth, Elements: r.Elements,
		Threads:     column(r.Threads, func(t *NativeStack) uint64 { return t.Thread }),
		Cut:         column(r.Threads, func(t *NativeStack) bool { return t.IsCut }),
		FrameCounts: column(r.Threads, func(t *NativeStack) uint32 { return uint32(len(t.Frames)) }), //nolint:gosec // a count
		Frames: &pb.NativeFrames{
			Pcs:       column(frames, func(f *NativeFrame) uint64 { return f.PC }),
			Cfas:      column(frames, func(f *NativeFrame) uint64 { return f.CFA }),
			HasCfa:    column(frames, func(f *NativeFrame) bool { return f.HasCFA }),
			InModule:  column(frames, func(f *NativeFrame) bool { return f.InModule }),
			Functions: blobs(frames, func(f *NativeFrame) string { return f.Function }),
		},
	}
}

func decodeManagedFramesRequest(p *pb.ManagedFramesRequest) (*ManagedFramesRequest, error) {
	d := decoder{message: "ManagedFramesRequest"}
	n := d.entries("threads", len(p.GetThreads()))
	d.length("frame_counts", len(p.GetFrameCounts()), n)
	d.length("cut", len(p.GetCut()), n)
	f := p.GetFrames()
	m := d.entries("frames.pcs", len(f.GetPcs()))
	d.sum("frame_counts", p.GetFrameCounts(), m)
	d.length("frames.cfas", len(f.GetCfas()), m)
	d.length("frames.has_cfa", len(f.GetHasCfa()), m)
	d.length("frames.in_module", len(f.GetInModule()), m)
	functions := d.texts("frames.functions", f.GetFunctions(), m)
	frames := splitter[NativeFrame]{listOf(&d, m, func(i int) NativeFrame {
		return NativeFrame{PC: f.Pcs[i], CFA: f.Cfas[i], HasCFA: f.HasCfa[i], InModule: f.InModule[i], Function: functions.next()}
	})}
	return result(&d, &ManagedFramesRequest{
		Runtime: p.GetRuntime(), Variables: p.GetVariables(), Depth: p.GetDepth(), Elements: p.GetElements(),
		Threads: listOf(&d, n, func(i int) NativeStack {
			return NativeStack{Thread: p.Threads[i], Frames: frames.next(p.FrameCounts[i]), IsCut: p.Cut[i]}
		}),
	})
}
