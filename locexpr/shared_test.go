// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// doubled is a composite of two parts that are the same composite, and so on:
// 2^levels parts of the register when written out.
func doubled(t *testing.T, levels int, reg string) Location {
	t.Helper()
	e := &Evaluator{Dialect: Canonical}
	var b strings.Builder
	b.WriteString(reg)
	for i := range levels {
		fmt.Fprintf(&b, "; LLVM_extend %d, 2", 32<<i)
	}
	l, err := e.Location(t.Context(), parsed(t, Canonical, b.String()), newTestMachine(LittleEndian, 64))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// parsed is the bytes of a text.
func parsed(t *testing.T, d *Dialect, text string) []byte {
	t.Helper()
	expr, err := Parse(text, TextOptions{Dialect: d})
	if err != nil {
		t.Fatal(err)
	}
	return expr
}

// within fails the test if f takes long, which is to say forever.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { f(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s takes too long", what)
	}
}

const sharedLevels = 24 // 16 million parts

func TestSharedPartsAreComparedOnce(t *testing.T) {
	a, b, other := doubled(t, sharedLevels, "regx 3"), doubled(t, sharedLevels, "regx 3"), doubled(t, sharedLevels, "regx 4")
	within(t, "comparing", func() {
		if !a.Equal(b) || !a.Place(0).Equal(b.Place(0)) {
			t.Error("equal locations are not")
		}
		if a.Equal(other) || a.Place(0).Equal(other.Place(0)) {
			t.Error("different locations are equal")
		}
	})
	// The same in different order, where some pairs are equal.
	mixed := func(first, second Location) Location {
		return CompositeLocation([]Part{{32, first}, {32, second}, {32, first}})
	}
	if mixed(a, b).Equal(mixed(a, other)) || !mixed(a, b).Equal(mixed(b, a)) || mixed(a, other).Equal(mixed(other, a)) {
		t.Error("locations of shared parts are compared wrongly")
	}
}

func TestTextOfSharedPartsIsBounded(t *testing.T) {
	l := doubled(t, 14, "regx 3")
	text := ""
	large := doubled(t, sharedLevels, "regx 3")
	within(t, "writing", func() { text = large.String() })
	if len(text) > maxText+1000 || !strings.Contains(text, " more}") {
		t.Errorf("%d bytes, that end in %q", len(text), text[max(0, len(text)-100):])
	}
	if full := l.String(); strings.Contains(full, "more") || strings.Count(full, "register 3") != 1<<14 {
		t.Errorf("%d of %d parts are written", strings.Count(full, "register 3"), 1<<14)
	}
	// Bytes that parts share.
	e := &Evaluator{Dialect: Canonical}
	expr := parsed(t, Canonical, "implicit_value "+hex.EncodeToString(make([]byte, 50000))+"; LLVM_extend 8, 4000")
	shared, err := e.Location(t.Context(), expr, newTestMachine(LittleEndian, 64))
	if err != nil {
		t.Fatal(err)
	}
	if text := shared.String(); len(text) > maxText+1000 || !strings.Contains(text, "more bytes") {
		t.Errorf("%d bytes", len(text))
	}
}

// TestTraceIsBounded goes round with a large entry on the stack, and with many.
func TestTraceIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"shared parts": "regx 3" + strings.Repeat("; LLVM_extend 8, 2", 20) + "; lit0; drop; skip -5",
		"bytes":        "implicit_value " + hex.EncodeToString(make([]byte, 30000)) + "; lit0; drop; skip -5",
		"entries":      "lit0" + strings.Repeat("; dup", 1000) + "; lit0; drop; skip -5",
		"blocks":       "lit0; drop; GNU_entry_value " + hex.EncodeToString(make([]byte, 30000)) + "; drop; skip -30010",
	} {
		t.Run(name, func(t *testing.T) {
			size, cut := 0, 0
			e := &Evaluator{Dialect: Canonical, Trace: func(s Step) {
				size += len(s.Op)
				for _, entry := range s.Stack {
					size += len(entry)
				}
				if len(s.Stack) > 0 && strings.HasSuffix(s.Stack[0], " more") {
					cut++
				}
			}}
			m := newTestMachine(LittleEndian, 64)
			m.entry = func([]byte) (Value, error) { return GenericValue(1), nil }
			expr := parsed(t, Canonical, text)
			within(t, "tracing", func() {
				if _, err := e.Location(t.Context(), expr, m); !errors.Is(err, ErrLimit) {
					t.Errorf("%v, expected %v", err, ErrLimit)
				}
			})
			if size > 2*maxTraced {
				t.Errorf("%d bytes", size)
			}
			if cut == 0 && name != "blocks" {
				t.Errorf("%d bytes, and nothing is said to be left out", size)
			}
		})
	}
}

// TestPartsAreBoundedInAll has evaluations within each other make parts.
func TestPartsAreBoundedInAll(t *testing.T) {
	e := &Evaluator{Dialect: Canonical}
	inner := parsed(t, Canonical, "LLVM_undefined; LLVM_extend 8, 4000")
	evaluated := 0
	ctx := &askingContext{cfa: func() (Location, error) {
		evaluated++
		return e.Derive().Location(t.Context(), inner, NoContext{})
	}}
	expr := parsed(t, Canonical, strings.Repeat("call_frame_cfa; ", 100))
	if _, err := e.Location(t.Context(), expr, ctx); !errors.Is(err, ErrLimit) || evaluated != 17 {
		t.Errorf("%d evaluations: %v, expected %v in the 17th", evaluated, err, ErrLimit)
	}
	// The next one has all of them again.
	if _, err := e.Location(t.Context(), inner, NoContext{}); err != nil {
		t.Error(err)
	}
}

// TestPlacesOfListsAreBounded calls a list of which every entry calls another
// list, and so on: 256^4 places.
func TestPlacesOfListsAreBounded(t *testing.T) {
	e := &Evaluator{}
	call := parsed(t, DWARF5, "call2 0")
	ctx := &callingLists{e: e}
	list := func(expr []byte) *LocationLists {
		s := &LocationLists{Section: ".debug_loclists"}
		for range maxListMatches {
			s.Data = append(append(s.Data, byte(ListDefaultLocation), byte(len(expr))), expr...)
		}
		s.Data = append(s.Data, byte(ListEnd))
		return s
	}
	ctx.lists = []*LocationLists{list(call), list(call), list(call), list(nil)}
	within(t, "evaluating the list", func() {
		l, err := e.EvaluateList(t.Context(), ctx.lists[0], 0, 0, ctx)
		if !errors.Is(err, ErrLimit) {
			t.Errorf("%d places: %v, expected %v", l.NumPlaces(), err, ErrLimit)
		}
	})
	ctx.lists, ctx.evaluated = ctx.lists[2:], 0
	if l, err := e.EvaluateList(t.Context(), ctx.lists[0], 0, 0, ctx); !errors.Is(err, ErrLimit) && l.NumPlaces() > 1<<16 {
		t.Errorf("%d places: %v", l.NumPlaces(), err)
	}
	if ctx.evaluated*maxListMatches > 1<<16 {
		t.Errorf("%d lists of %d entries were read", ctx.evaluated, maxListMatches)
	}
}

// callingLists has a list for each level of calls.
type callingLists struct {
	NoContext
	e         *Evaluator
	lists     []*LocationLists
	level     int
	evaluated int
}

func (c *callingLists) ProgramLocation() (uint64, error) { return 0x100, nil }

func (c *callingLists) CallEntry(context.Context, EntryRef) (Callee, error) {
	c.level++
	defer func() { c.level-- }()
	c.evaluated++
	l, err := c.e.EvaluateList(context.Background(), c.lists[c.level], 0, 0, c)
	return Callee{Kind: CalleeLocation, Location: l}, err
}
