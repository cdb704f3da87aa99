// SPDX-License-Identifier: Apache-2.0

package amdgpu_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"path/filepath"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/internal/gcn"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/sdk"
)

// brokenRules is AMDGPU with rows that are wrong by one save slot.
type brokenRules struct {
	sdk.Architecture
	broken *int
	change func(p gcn.Processor, rows []cfi.Row) int
	p      gcn.Processor
}

func (b brokenRules) FrameRules(ctx context.Context, e sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	a, err := b.Architecture.FrameRules(ctx, e, req)
	if err == nil {
		for i := range a.Functions {
			*b.broken += b.change(b.p, a.Functions[i].Rows)
		}
	}
	return a, err
}

// TestJudgeSeesRulesThatAreWrong breaks the rules that code was read to: the
// judge must find each of the breakages.
func TestJudgeSeesRulesThatAreWrong(t *testing.T) {
	gcn.Need(t)
	each := func(rows []cfi.Row, do func(rule *cfi.RegisterRule) bool) (n int) {
		for i := range rows {
			rows[i].Rules = slices.Clone(rows[i].Rules)
			for k := range rows[i].Rules {
				if do(&rows[i].Rules[k]) {
					n++
				}
			}
		}
		return n
	}
	for _, m := range []struct {
		name   string
		change func(p gcn.Processor, rows []cfi.Row) int
	}{
		{"nothing", func(gcn.Processor, []cfi.Row) int { return 0 }},
		{"a return address in the next lane", func(_ gcn.Processor, rows []cfi.Row) int {
			return each(rows, func(rule *cfi.RegisterRule) bool { return rule.Column == 16 && nextSlot(&rule.Rule, 4) })
		}},
		{"a scalar register in the next lane", func(_ gcn.Processor, rows []cfi.Row) int {
			return each(rows, func(rule *cfi.RegisterRule) bool {
				return rule.Column >= 65 && rule.Column < 96 && nextSlot(&rule.Rule, 4)
			})
		}},
		{"a vector register in the next slot", func(p gcn.Processor, rows []cfi.Row) int {
			return each(rows, func(rule *cfi.RegisterRule) bool {
				return rule.Column >= 1536 && nextSlot(&rule.Rule, 4*p.Lanes)
			})
		}},
		{"a clobbered register kept", func(_ gcn.Processor, rows []cfi.Row) int {
			return each(rows, func(rule *cfi.RegisterRule) bool {
				if rule.Rule.Kind != cfi.Undefined || rule.Column < 32 {
					return false
				}
				rule.Rule = cfi.Rule{Kind: cfi.SameValue}
				return true
			})
		}},
	} {
		t.Run(m.name, func(t *testing.T) {
			p := gcn.Processors[0]
			device, _ := gcn.Program(t, p, 1, "-O2")
			out := filepath.Join(t.TempDir(), "k.co")
			gcn.Compile(t, p, out, []string{device}, "-O2")
			broken := 0
			j := newJudge(t, gcn.Open(t, p, out), brokenRules{amdgpu.New(), &broken, m.change, p})
			if err := j.ExecuteAll(1, p.Lanes-9, func() error { return nil }); err != nil {
				t.Fatal(err)
			}
			t.Log(broken, "rules broken,", len(j.Problems), "problems")
			if m.name == "nothing" {
				if len(j.Problems) > 0 {
					t.Error(j.Problems)
				}
				return
			}
			if broken == 0 || len(j.Problems) == 0 {
				t.Errorf("%d rules were broken, and %d problems seen", broken, len(j.Problems))
			}
		})
	}
}

// nextSlot adds an increment to the first offset of a rule; false where it has none.
func nextSlot(rule *cfi.Rule, increment int) bool {
	switch rule.Kind {
	case cfi.Offset:
		rule.Offset += int64(increment)
		return true
	case cfi.Expression:
		offset := bytes.Index(rule.Expr, []byte{dw.OpLLVMUser, dw.UserOffsetUconst})
		if offset < 0 {
			return false
		}
		old, size := binary.Uvarint(rule.Expr[offset+2:])
		rule.Expr = slices.Concat(rule.Expr[:offset+2], binary.AppendUvarint(nil, old+uint64(increment)), rule.Expr[offset+2+size:]) //nolint:gosec // positive
		return true
	}
	return false
}
