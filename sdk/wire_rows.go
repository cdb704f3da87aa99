// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
	pb "github.com/unwindd/unwindd/sdk/archpb"
)

func encodeRules(rules []cfi.RegisterRule) *pb.Rules {
	return &pb.Rules{
		Columns:     column(rules, func(r *cfi.RegisterRule) uint64 { return r.Column }),
		Kinds:       column(rules, func(r *cfi.RegisterRule) pb.RuleKind { return pb.RuleKind(r.Rule.Kind) }),
		Registers:   column(rules, func(r *cfi.RegisterRule) uint64 { return r.Rule.Register }),
		Offsets:     column(rules, func(r *cfi.RegisterRule) int64 { return r.Rule.Offset }),
		Expressions: blobs(rules, func(r *cfi.RegisterRule) []byte { return r.Rule.Expr }),
	}
}

// encodeOptionalRules encodes a nil list as absent, unlike an empty one.
func encodeOptionalRules(rules []cfi.RegisterRule) *pb.Rules {
	if rules == nil {
		return nil
	}
	return encodeRules(rules)
}

func decodeRules(p *pb.Rules) ([]cfi.RegisterRule, error) {
	d := decoder{message: "Rules"}
	n := d.entries("columns", len(p.GetColumns()))
	enums(&d, "kinds", p.GetKinds(), n, cfi.ValOffsetPerLane)
	d.length("registers", len(p.GetRegisters()), n)
	d.length("offsets", len(p.GetOffsets()), n)
	exprs := d.bytes("expressions", p.GetExpressions(), n)
	if d.err != nil || n == 0 {
		return nil, d.err
	}
	rules := make([]cfi.RegisterRule, n)
	for i := range rules {
		rules[i] = cfi.RegisterRule{
			Column: p.Columns[i],
			Rule: cfi.Rule{
				Kind:     cfi.RuleKind(p.Kinds[i]),
				Register: p.Registers[i],
				Offset:   p.Offsets[i],
				Expr:     exprs.next(),
			},
		}
	}
	return rules, nil
}

func decodeOptionalRules(p *pb.Rules) ([]cfi.RegisterRule, error) {
	if p == nil {
		return nil, nil
	}
	rules, err := decodeRules(p)
	if err == nil && rules == nil {
		rules = []cfi.RegisterRule{}
	}
	return rules, err
}

// flat concatenates the lists that the entries of a list have.
func flat[T, U any](list []T, get func(*T) []U) []U {
	var n int
	for i := range list {
		n += len(get(&list[i]))
	}
	if n == 0 {
		return nil
	}
	all := make([]U, 0, n)
	for i := range list {
		all = append(all, get(&list[i])...)
	}
	return all
}

// splitter splits lists that flat concatenated.
type splitter[U any] struct {
	all []U
}

// next returns the next n elements, nil for none.
func (s *splitter[U]) next(n uint32) []U {
	if n == 0 {
		return nil
	}
	v := s.all[:n:n]
	s.all = s.all[n:]
	return v
}

func encodeRows(rows []cfi.Row) *pb.Rows {
	return &pb.Rows{
		Starts:          column(rows, func(r *cfi.Row) uint64 { return r.Start }),
		Ends:            column(rows, func(r *cfi.Row) uint64 { return r.End }),
		CfaKinds:        column(rows, func(r *cfi.Row) pb.CFAKind { return pb.CFAKind(r.CFA.Kind) }),
		CfaRegisters:    column(rows, func(r *cfi.Row) uint64 { return r.CFA.Register }),
		CfaOffsets:      column(rows, func(r *cfi.Row) int64 { return r.CFA.Offset }),
		CfaSpaces:       column(rows, func(r *cfi.Row) uint64 { return uint64(r.CFA.Space) }),
		CfaExpressions:  blobs(rows, func(r *cfi.Row) []byte { return r.CFA.Expr }),
		RuleCounts:      column(rows, func(r *cfi.Row) uint32 { return uint32(len(r.Rules)) }),
		Rules:           encodeRules(flat(rows, func(r *cfi.Row) []cfi.RegisterRule { return r.Rules })),
		CallSiteCounts:  column(rows, func(r *cfi.Row) uint32 { return uint32(len(r.CallSite)) }),
		CallSites:       encodeRules(flat(rows, func(r *cfi.Row) []cfi.RegisterRule { return r.CallSite })),
		ReturnAddresses: column(rows, func(r *cfi.Row) uint64 { return r.ReturnAddress }),
		SignalFrames:    column(rows, func(r *cfi.Row) bool { return r.SignalFrame }),
		WindowSaves:     column(rows, func(r *cfi.Row) bool { return r.WindowSave }),
	}
}

func decodeRows(p *pb.Rows) ([]cfi.Row, error) {
	d := decoder{message: "Rows"}
	n := d.entries("starts", len(p.GetStarts()))
	d.length("ends", len(p.GetEnds()), n)
	enums(&d, "cfa_kinds", p.GetCfaKinds(), n, cfi.CFAExpression)
	d.length("cfa_registers", len(p.GetCfaRegisters()), n)
	d.length("cfa_offsets", len(p.GetCfaOffsets()), n)
	d.length("cfa_spaces", len(p.GetCfaSpaces()), n)
	exprs := d.bytes("cfa_expressions", p.GetCfaExpressions(), n)
	d.length("rule_counts", len(p.GetRuleCounts()), n)
	d.sum("rule_counts", p.GetRuleCounts(), len(p.GetRules().GetColumns()))
	d.length("call_site_counts", len(p.GetCallSiteCounts()), n)
	d.sum("call_site_counts", p.GetCallSiteCounts(), len(p.GetCallSites().GetColumns()))
	d.length("return_addresses", len(p.GetReturnAddresses()), n)
	d.length("signal_frames", len(p.GetSignalFrames()), n)
	d.length("window_saves", len(p.GetWindowSaves()), n)
	if d.err != nil {
		return nil, d.err
	}
	rules, err := decodeRules(p.GetRules())
	d.wrap("rules", err)
	callSites, err := decodeRules(p.GetCallSites())
	d.wrap("call_sites", err)
	if d.err != nil || n == 0 {
		return nil, d.err
	}
	ruleLists := splitter[cfi.RegisterRule]{rules}
	callSiteLists := splitter[cfi.RegisterRule]{callSites}
	rows := make([]cfi.Row, n)
	for i := range rows {
		rows[i] = cfi.Row{
			Start: p.Starts[i],
			End:   p.Ends[i],
			CFA: cfi.CFARule{
				Kind:     cfi.CFAKind(p.CfaKinds[i]),
				Register: p.CfaRegisters[i],
				Offset:   p.CfaOffsets[i],
				Space:    locexpr.AddressSpace(p.CfaSpaces[i]),
				Expr:     exprs.next(),
			},
			Rules:         ruleLists.next(p.RuleCounts[i]),
			CallSite:      callSiteLists.next(p.CallSiteCounts[i]),
			ReturnAddress: p.ReturnAddresses[i],
			SignalFrame:   p.SignalFrames[i],
			WindowSave:    p.WindowSaves[i],
		}
	}
	return rows, nil
}
