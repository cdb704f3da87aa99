// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/locexpr"
)

// registers is a context of registers of 32 bits.
type registers struct{ locexpr.NoContext }

func (registers) Register(n uint64) (locexpr.Location, error) {
	return locexpr.RegisterLocation(n, locexpr.Scope{Lane: -1}), nil
}

func (registers) RegisterBits(uint64) (uint32, bool) { return 1 << 16, true }

// TestPlacesAreBounded writes locations whose parts are shared, and ones whose
// parts are not.
func TestPlacesAreBounded(t *testing.T) {
	lanes := func(parts int) string {
		var b strings.Builder
		for i := range 64 * parts {
			b.WriteString("regx " + strconv.Itoa(i%7) + "; bit_piece 32, " + strconv.Itoa(i%64*32) + "; ")
		}
		return b.String()
	}
	for _, c := range []struct {
		name, expr string
		registers  int // that are written; 0: as many as fit
	}{
		{"64 lanes of 64 parts", lanes(64), 4096},
		{"16 uses of a composite", lanes(3) + "LLVM_piece_end; LLVM_extend 6144, 16", 192 * 16},
		{"1000 of 1000 of 1000 of 1000", "regx 3" + strings.Repeat("; LLVM_extend 32, 1000", 4), 0},
		{"30 levels of two", "regx 3" + strings.Repeat("; LLVM_extend 32, 2", 30), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			expr, err := locexpr.Parse(c.expr, locexpr.TextOptions{Dialect: locexpr.Canonical})
			if err != nil {
				t.Fatal(err)
			}
			ev := locexpr.Evaluator{Dialect: locexpr.Canonical}
			result, err := ev.Evaluate(expr, registers{}, locexpr.LocationKind)
			if err != nil {
				t.Fatal(err)
			}
			var e Evaluation
			e.SetResult(result, locexpr.LittleEndian, EvalNames{
				Register: func(uint64) (string, bool) { return "", false },
				Space:    func(locexpr.AddressSpace) (string, bool) { return "", false },
				Thread:   func(uint64) string { return "1" },
			})
			var text, js bytes.Buffer
			if err := e.WriteText(&text); err != nil {
				t.Fatal(err)
			}
			if err := e.WriteJSON(&js); err != nil {
				t.Fatal(err)
			}
			said := strings.Contains(text.String(), "parts more") && strings.Contains(js.String(), `"more_parts"`)
			n := strings.Count(js.String(), `"storage": "register"`)
			if c.registers != 0 && (n != c.registers || said) {
				t.Errorf("%d registers, expected all %d; left out: %v", n, c.registers, said)
			}
			if c.registers == 0 && (n > maxPlaces || n < maxPlaces/4 || !said) {
				t.Errorf("%d registers, expected about %d; said: %v", n, maxPlaces, said)
			}
			if n != strings.Count(text.String(), "register ") || js.Len() > 32<<20 || text.Len() > 32<<20 {
				t.Errorf("%d bytes of text, %d of JSON", text.Len(), js.Len())
			}
		})
	}
}
