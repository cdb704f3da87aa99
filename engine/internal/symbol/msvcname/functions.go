// SPDX-License-Identifier: Apache-2.0

package msvcname

// functionType is the type of a function, or of a member where it has qualifiers of its class.
type functionType struct {
	qualified
	convention string
	result     node // nil for constructors
	parameters []node
	isVoid     bool // without parameters, which is said
	isVariadic bool
	noThrow    bool
	reference  string // &, && behind the parameters
	isBare     bool   // nothing is known of parameters
	kind       functionKind
	isExternC  bool
}

func (t *functionType) before(w *writer) {
	if !w.NoAccess {
		w.text(t.kind.access)
	}
	if !w.NoMemberType {
		t.writeMember(w)
	}
	if !w.NoReturnType && t.result != nil {
		w.before(t.result)
		w.text(" ")
	}
	if !w.NoCallingConvention {
		w.convention(t.convention)
	}
}

// writeMember writes how the function is a member of its class.
func (t *functionType) writeMember(w *writer) {
	if t.kind.isStatic {
		w.text("static ")
	}
	if t.kind.isVirtual {
		w.text("virtual ")
	}
	if t.isExternC || t.kind.isBare {
		w.text(`extern "C" `)
	}
}

// convention writes a convention of calls.
func (w *writer) convention(s string) {
	w.space()
	w.text(s)
}

func (t *functionType) after(w *writer) {
	if !t.isBare {
		t.writeParameters(w)
	}
	w.qualifiers(t.is, " ")
	if t.noThrow {
		w.text(" noexcept")
	}
	w.text(t.reference)
	if !w.NoReturnType && t.result != nil {
		w.after(t.result)
	}
}

func (t *functionType) writeParameters(w *writer) {
	w.text("(")
	if t.isVoid {
		w.text("void")
	}
	w.list(t.parameters)
	if t.isVariadic {
		if len(t.parameters) > 0 {
			w.text(", ")
		}
		w.text("...")
	}
	w.text(")")
}

// functionType reads the type of a function.
func (r *reader) functionType(isMember bool) *functionType {
	t := &functionType{}
	if !r.deeper() {
		return t
	}
	defer r.up()
	if isMember {
		t.is = r.extra()
		r.cut(managed)
		if r.cut("G") {
			t.reference = " &"
		} else if r.cut("H") {
			t.reference = " &&"
		}
		t.is |= r.cv().is
	}
	t.convention = conventions[r.next()]
	if !r.cut(ended) {
		t.result = r.readType(mayHave)
	}
	r.parameters(t)
	t.noThrow = r.cut("_E")
	if !t.noThrow {
		r.must("Z")
	}
	return t
}

// parameters reads the types of parameters.
func (r *reader) parameters(t *functionType) {
	if r.cut("X") {
		t.isVoid = true
		return
	}
	for !r.isBad {
		switch {
		case r.cut(ended):
			return
		case r.cut("Z"):
			t.isVariadic = true
			return
		}
		t.parameters = append(t.parameters, r.parameter())
	}
}

// parameter reads the type of a parameter. Digits refer back to types of more than one character.
func (r *reader) parameter() node {
	if i, ok := r.reference(len(r.back.types)); ok {
		return r.back.types[i]
	}
	size := len(r.rest)
	p := r.readType(noQualifiers)
	if size-len(r.rest) > 1 && len(r.back.types) < maxNames {
		r.back.types = append(r.back.types, p)
	}
	return p
}

// function is a function with its name.
type function struct {
	name      node
	signature *functionType
	thunk     string // the text of adjustments; "" where it is no thunk
}

func (f *function) before(w *writer) {
	if f.thunk != "" {
		w.text("[thunk]: ")
	}
	w.before(f.signature)
	w.space()
	w.node(f.name)
	w.text(f.thunk)
}

func (f *function) after(w *writer) { w.after(f.signature) }

// function reads what follows the name of a function.
func (r *reader) function(name node) *function {
	r.cut("$$h") // code of ARM64EC
	isExternC := r.cut("$$J0")
	kind, ok := r.functionKind()
	if !ok {
		r.bad()
	}
	f := &function{name: name, signature: &functionType{isBare: true}}
	f.thunk = r.adjustments(kind.adjusts)
	if !kind.isBare {
		f.signature = r.functionType(!kind.isFree && !kind.isStatic)
	}
	f.signature.kind, f.signature.isExternC = kind, isExternC
	return f
}

// functionKind reads the code of a function's kind. The code that follows one in the alphabet is for
// far functions.
func (r *reader) functionKind() (kind functionKind, ok bool) {
	if kind, ok = lookUp(r, functionKinds, 3); ok {
		return kind, true
	}
	for n := min(3, len(r.rest)); n > 0; n-- {
		near := r.rest[:n-1] + string(rune(r.rest[n-1]-1))
		if kind, ok = functionKinds[near]; ok && !kind.isBare {
			r.rest = r.rest[n:]
			return kind, true
		}
	}
	return kind, false
}

// adjustments reads by what a thunk adjusts this. The numbers have 32 bits; the last one counts
// upwards.
func (r *reader) adjustments(kind byte) string {
	k, ok := thunks[kind]
	if !ok {
		return ""
	}
	var w writer
	w.text("`" + k.name + "{")
	for range k.displacements {
		w.numbers(int64(int32(r.signed()))) //nolint:gosec // as compilers have it
		w.text(", ")
	}
	w.numbers(int64(uint32(r.signed()))) //nolint:gosec // as compilers have it
	w.text("}'")
	return string(w.out)
}
