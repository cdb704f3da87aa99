// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/locexpr"
)

// registers is a context of registers of 32 bits.
type registers struct{ locexpr.NoContext }

func (registers) Register(_ context.Context, n uint64) (locexpr.Location, error) {
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
			result, err := ev.Evaluate(t.Context(), expr, registers{}, locexpr.LocationKind)
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

// spacious is a context whose address spaces have addresses of 64 bits.
type spacious struct{ registers }

func (spacious) SpaceBits(locexpr.AddressSpace) (uint32, bool) { return 64, true }

// TestResultsOfEveryKind writes each kind of value and of place.
func TestResultsOfEveryKind(t *testing.T) {
	for _, c := range []struct{ expr, text, json string }{
		{"lit5", "value generic 0x5", `{"kind":"value","value":{"type":"generic","hex":"0x5"}}`},
		{"implicit_pointer 0x30, 0; deref", "value generic implicit-pointer 0x30+0",
			`{"kind":"value","value":{"type":"generic","implicit_pointer":{"storage":"implicit-pointer","address":"0x30+0"}}}`},
		{"lit3; LLVM_aspace_implicit_pointer 0x30, -2; deref_size 8", "value unsigned 64 implicit-pointer local 0x30-2",
			`{"kind":"value","value":{"type":"unsigned 64","implicit_pointer":{"storage":"implicit-pointer","space":"local","address":"0x30-2"}}}`},
		{"implicit_pointer 0x30, 0", "implicit-pointer 0x30+0", `{"kind":"location","places":[{"storage":"implicit-pointer","address":"0x30+0"}]}`},
		{"implicit_pointer 0x30, 0; LLVM_offset_uconst 1", "implicit-pointer 0x30+0 bit 8",
			`{"kind":"location","places":[{"storage":"implicit-pointer","address":"0x30+0","bit_offset":8}]}`},
		{"LLVM_undefined", "undefined", `{"kind":"location","places":[{"storage":"undefined"}]}`},
		{"implicit_value 2a00; LLVM_offset_uconst 1", "implicit 2a00 bit 8", `{"kind":"location","places":[{"storage":"implicit","bit_offset":8,"bytes":"2a00"}]}`},
		{"reg3; GNU_uninit", "register 3\nuninitialized",
			`{"kind":"location","places":[{"storage":"register","register":"3","thread":"1","frame":0,"bit_offset":0}],"uninitialized":true}`},
	} {
		expr, err := locexpr.Parse(c.expr, locexpr.TextOptions{Dialect: locexpr.Canonical})
		if err != nil {
			t.Fatalf("%s: %v", c.expr, err)
		}
		ev := locexpr.Evaluator{Dialect: locexpr.Canonical}
		result, err := ev.Evaluate(t.Context(), expr, spacious{}, locexpr.AnyKind)
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		var e Evaluation
		e.SetResult(result, locexpr.LittleEndian, EvalNames{
			Register: func(uint64) (string, bool) { return "", false },
			Space:    func(s locexpr.AddressSpace) (string, bool) { return "local", s == 3 },
			Thread:   func(uint64) string { return "1" },
		})
		var text bytes.Buffer
		if err := e.WriteText(&text); err != nil || text.String() != c.text+"\n" {
			t.Errorf("%s: %q, %v, expected %q", c.expr, text.String(), err, c.text)
		}
		if js, err := json.Marshal(&e); err != nil || string(js) != c.json {
			t.Errorf("%s: %s, %v, expected %s", c.expr, js, err, c.json)
		}
	}
}
