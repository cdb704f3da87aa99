// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/unwindd/unwindd/sdk"
)

// Object is a code object of the architecture, with the engine's request for it.
type Object struct {
	Name    string // in findings
	Request sdk.OpenObjectRequest
	// Read returns a section of a handle in Request, as Engine.ReadSection does. The
	// result is not changed.
	Read func(object uint64, section string) ([]byte, error)
	// Functions are functions of it with their code.
	Functions []sdk.CodeRange
}

// objectEngine is a target with a code object and nothing else. change changes sections
// that are read; nil: they are unchanged.
type objectEngine struct {
	emptyEngine
	object *Object
	change func([]byte) []byte
}

// ReadSection implements sdk.Engine.
func (e objectEngine) ReadSection(_ context.Context, object uint64, name string) ([]byte, error) {
	b, err := e.object.Read(object, name)
	if err == nil && e.change != nil {
		b = e.change(b)
	}
	return b, err
}

// The bounds of requests about one object: functions in one call, and bytes of their
// code in total.
const (
	maxFunctions    = 256
	maxFunctionCode = 8 << 20
)

// objects opens the sample objects and requests rows of their functions.
func (v *verifier) objects() {
	for i := range v.samples {
		o := &v.samples[i]
		e := objectEngine{object: o}
		v.openSample(e, o.Name, true)
		code := 0
		for functions := o.Functions; len(functions) > 0 && code < maxFunctionCode; {
			n := min(len(functions), maxFunctions)
			requested := slices.Clone(functions[:n])
			functions = functions[n:]
			for j := range requested {
				requested[j].PC = requested[j].Start + uint64(len(requested[j].Code)/2)
				code += len(requested[j].Code)
			}
			what := fmt.Sprintf("%d functions of %s", n, o.Name)
			answer, ok := v.frameRulesOf(e, what, &sdk.FrameRulesRequest{Object: o.Request.Object, Functions: requested})
			v.unanswered(Error, "FrameRules", what)
			if !ok {
				break
			}
			v.reasons(what+": ", requested, answer)
		}
	}
}

// openSample opens an object, whole or damaged.
func (v *verifier) openSample(e objectEngine, what string, isWhole bool) {
	req := e.object.Request
	answer, ok := ask(v.session, "OpenObject", what, func(ctx context.Context) (*sdk.OpenObjectAnswer, error) {
		return v.arch.OpenObject(ctx, v.offer(e), &req)
	}, func(a *sdk.OpenObjectAnswer) error { return a.Validate(v.desc, &req) })
	if isWhole {
		v.unanswered(Error, "OpenObject", what)
	}
	if !ok {
		return
	}
	for i := range answer.Tables {
		subject := fmt.Sprintf("OpenObject of %s: Tables[%d].Rows", what, i)
		v.rowCycles(subject, answer.Tables[i].Rows)
		if isWhole {
			v.rowExpressions(subject, answer.Tables[i].Rows)
		}
	}
	if isWhole {
		v.ruleExpressions(fmt.Sprintf("OpenObject of %s: DefaultRules", what), answer.DefaultRules)
		v.checkVariables(e.object, answer)
		v.objectDialects(e.object, answer)
	}
	file, err := e.ReadSection(v.ctx, req.Object, "")
	for i, n := range answer.Nested {
		if err == nil && n.Offset == 0 && n.Size == uint64(len(file)) {
			v.findLater("cycles", "Name only objects that are smaller than the file that they are in.",
				"OpenObject of %s: Nested[%d] is the whole file", what, i)
		}
	}
}

// damageKind is a way to damage bytes.
type damageKind struct {
	name   string
	change func(r *rand.Rand, b []byte) []byte
}

var damageKinds = []damageKind{
	{"every section empty", func(*rand.Rand, []byte) []byte { return nil }},
	{"every section cut in half", func(_ *rand.Rand, b []byte) []byte { return b[:len(b)/2] }},
	{"every section without its last byte", func(_ *rand.Rand, b []byte) []byte { return b[:max(len(b)-1, 0)] }},
	{"every section a byte longer", func(_ *rand.Rand, b []byte) []byte { return append(slices.Clone(b), 0xff) }},
	{"zeros", func(_ *rand.Rand, b []byte) []byte { return make([]byte, len(b)) }},
	{"ones", func(_ *rand.Rand, b []byte) []byte { return bytes.Repeat([]byte{0xff}, len(b)) }},
	{"some bytes changed", func(r *rand.Rand, b []byte) []byte {
		return changed(r, b, 1+len(b)/500, func(place []byte) { place[0] = byte(r.Uint32()) })
	}},
	{"some words huge", func(r *rand.Rand, b []byte) []byte {
		return changed(r, b, 1+len(b)/2000, func(place []byte) { copy(place, []byte{0xff, 0xff, 0xff, 0x7f}) })
	}},
}

// changed returns a copy of bytes with count places changed.
func changed(r *rand.Rand, b []byte, count int, change func(place []byte)) []byte {
	b = slices.Clone(b)
	for range count {
		if len(b) > 0 {
			change(b[r.IntN(len(b)):])
		}
	}
	return b
}

// maxDamaged is for how many functions of a damaged object rows are requested.
const maxDamaged = 32

// damage opens the sample objects and targets as if their files were damaged. An error is a good
// answer, and so is any valid one.
func (v *verifier) damage() {
	for i := range v.samples {
		o := &v.samples[i]
		for round := range 2 * len(damageKinds) {
			w := damageKinds[round%len(damageKinds)]
			r := rand.New(rand.NewPCG(uint64(i), uint64(round)))
			e := objectEngine{object: o, change: func(b []byte) []byte { return w.change(r, b) }}
			what := fmt.Sprintf("%s, %s", o.Name, w.name)
			v.openSample(e, what, false)
			requested := slices.Clone(o.Functions[:min(len(o.Functions), maxDamaged)])
			for j := range requested {
				requested[j].Code = w.change(r, requested[j].Code)
			}
			v.frameRulesOf(e, "functions of "+what, &sdk.FrameRulesRequest{Object: o.Request.Object, Functions: requested})
		}
		v.wrongHeaders(o)
	}
	v.damageTargets()
}

// wrongHeaders opens an object whose headers describe sections that are not there.
func (v *verifier) wrongHeaders(o *Object) {
	liar := *o
	liar.Name = o.Name + ", sections of sizes that they do not have"
	liar.Request.Sections = slices.Clone(o.Request.Sections)
	for i := range liar.Request.Sections {
		liar.Request.Sections[i].Size = math.MaxUint64 - uint64(i)
	}
	v.openSample(objectEngine{object: &liar}, liar.Name, false)

	liar.Name = o.Name + ", its sections at the end of the address space"
	for i := range liar.Request.Sections {
		liar.Request.Sections[i].Address = math.MaxUint64 - uint64(i)
	}
	v.openSample(objectEngine{object: &liar}, liar.Name, false)

	none := *o
	none.Name, none.Request.Sections, none.Request.Symbols = o.Name+", no sections", nil, nil
	v.openSample(objectEngine{object: &none}, none.Name, false)
}
