// SPDX-License-Identifier: Apache-2.0

package llvmir

import (
	"errors"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/trace"
)

const (
	// maxInlined bounds a chain of inlined calls.
	maxInlined = 128
	// maxScopes bounds the nesting of scopes.
	maxScopes = 256
	// maxQualifiers bounds the namespaces and types around a function.
	maxQualifiers = 64
)

// errScopes is returned where scopes nest in a circle, or too deep.
var errScopes = fmt.Errorf("more than %d scopes around one", maxScopes)

// scope is a scope of a location.
type scope struct {
	function Ref // the DISubprogram around it, or itself; 0: none is found
	parent   Ref // the scope around it; 0: it is a function
	file     sourceFile
	// Of a DILexicalBlockFile.
	discriminator uint64
	err           error // why the fields are empty
	frame         trace.Symbol
	id            string
}

// sourceFile is a file of the source.
type sourceFile struct {
	path    string // relative to compDir where that is set
	compDir string // the directory that makes the path absolute
	source  string // its text, if it is in the module
}

// join joins the path of a file and a directory.
func join(directory, name string) sourceFile {
	if name == "" || directory == "" || isAbsolute(name) {
		return sourceFile{path: name}
	}
	separator := "/"
	if !strings.Contains(directory, "/") && strings.Contains(directory, `\`) {
		separator = `\`
	}
	return sourceFile{path: strings.TrimSuffix(directory, separator) + separator + name, compDir: directory}
}

func isAbsolute(name string) bool {
	return strings.HasPrefix(name, "/") || strings.HasPrefix(name, `\`) ||
		len(name) > 2 && name[1] == ':' && (name[2] == '\\' || name[2] == '/')
}

// file reads the value of the field file: a DIFile, or the pair of a name and a directory
// that descriptors have.
func (m *Module) file(v Value) sourceFile {
	for range 4 { // a descriptor of a file leads to a pair
		n, ok := m.valueNode(&v)
		if !ok {
			break
		}
		switch n.Kind {
		case "DIFile":
			name, directory, source := n.Field("filename"), n.Field("directory"), n.Field("source")
			if name.Kind == StringValue {
				f := join(directory.str(), name.str())
				f.source = source.str()
				return f
			}
			v = n.Field("file")
			continue
		case "MDTuple":
			if len(n.Fields) == 2 && n.Fields[0].Value.Kind == StringValue {
				return join(n.Fields[1].Value.str(), n.Fields[0].Value.str())
			}
		}
		break
	}
	return sourceFile{}
}

// valueNode is the node that a value is or refers to.
func (m *Module) valueNode(v *Value) (Node, bool) {
	if v.Kind == NodeValue {
		return *v.Node, true
	}
	return m.open(m.ref(v))
}

// scope reads a scope, and the scopes around it, and caches them.
func (m *Module) scope(r Ref) *scope {
	var path []*scope
	var refs []Ref
	var err error
	function := Ref(0)
	for ref := r; ; {
		m.kept.Lock()
		known := m.scopes[ref]
		m.kept.Unlock()
		if known != nil && len(path) == 0 {
			return known
		} else if known != nil {
			function, err = known.function, known.err
			break
		}
		if len(path) == maxScopes {
			err = errScopes
			break
		}
		s := m.readScope(ref)
		path, refs = append(path, s), append(refs, ref)
		if s.err != nil || s.function != 0 {
			function, err = s.function, s.err
			break
		}
		ref = s.parent
	}
	m.kept.Lock()
	defer m.kept.Unlock()
	for i, s := range path {
		s.function, s.err = function, err
		if i > 0 && errors.Is(err, errScopes) {
			break // outer ones may end
		}
		m.scopes[refs[i]] = s
	}
	return path[0]
}

// readScope reads a scope, without the scopes around it.
func (m *Module) readScope(r Ref) *scope {
	s := &scope{}
	n, ok := m.open(r)
	if !ok {
		s.err = errors.New("a scope is not defined")
		return s
	}
	s.id = n.ID
	switch n.Kind {
	case "DISubprogram":
		s.function = r
		s.frame = m.functionFrame(&n)
	case "DILexicalBlock", "DILexicalBlockFile":
		d, outer := n.Field("discriminator"), n.Field("scope")
		s.discriminator, s.parent = uint64(d.line()), m.ref(&outer)
	default:
		s.err = fmt.Errorf("the scope %s is a %s", s.id, n.Kind)
	}
	s.file = m.file(n.Field("file"))
	return s
}

// functionFrame returns the names and the declaration of a DISubprogram.
func (m *Module) functionFrame(n *Node) trace.Symbol {
	name, linkage, line := n.Field("name"), m.linkageName(n), n.Field("line")
	f := trace.Symbol{Name: name.str(), StartFile: m.file(n.Field("file")).path, StartLine: line.line()}
	if linkage == "" {
		f.Function = m.qualified(n)
		return f
	}
	f.Function = symbol.Demangle(linkage)
	if f.LinkageName = linkage; f.Function == linkage {
		f.LinkageName = ""
	}
	return f
}

// linkageName is the linker's name of a function, which may be in its declaration.
func (m *Module) linkageName(n *Node) string {
	v := n.Field("linkageName")
	if s := v.str(); s != "" {
		return strings.TrimPrefix(s, "\x01")
	}
	d := n.Field("declaration")
	if n, ok := m.valueNode(&d); ok && n.Kind == "DISubprogram" {
		v = n.Field("linkageName")
		return strings.TrimPrefix(v.str(), "\x01")
	}
	return ""
}

// qualified is the name of a node after the names of the namespaces and types around it.
func (m *Module) qualified(n *Node) string {
	v := n.Field("name")
	name := v.str()
	for range maxQualifiers {
		outer := n.Field("scope")
		around, ok := m.valueNode(&outer)
		if !ok && outer.Kind == StringValue { // a type by its identifier, until LLVM 3.9
			around, ok = m.open(Ref(m.identified()[outer.Text]))
		}
		if !ok {
			break
		}
		part := around.Field("name")
		switch around.Kind {
		case "DINamespace":
			if part.str() == "" {
				name = "(anonymous namespace)::" + name
			} else {
				name = part.str() + "::" + name
			}
		case "DICompositeType":
			if part.str() != "" {
				name = part.str() + "::" + name
			}
		default:
			return name
		}
		if len(name) > 1<<12 {
			break
		}
		n = &around
	}
	return name
}

// findIdentifiers are the types that have an identifier.
func (m *Module) findIdentifiers() map[string]uint64 {
	types := map[string]uint64{}
	for n, err := range m.Nodes() {
		if v := n.Field("identifier"); err == nil && n.Kind == "DICompositeType" && v.str() != "" {
			types[v.str()] = uint64(n.Ref)
		}
	}
	return types
}

// linkFunctions are the DISubprograms by their functions, which named their DISubprogram
// only from LLVM 3.7 on.
func (m *Module) linkFunctions() map[string]uint64 {
	functions := map[string]uint64{}
	for n, err := range m.Nodes() {
		if err != nil || n.Kind != "DISubprogram" {
			continue
		}
		if v := n.Field("function"); v.Kind == IRValue {
			_, name := splitTyped(v.Text)
			functions[strings.TrimPrefix(unquote([]byte(name)), "\x01")] = uint64(n.Ref)
		}
	}
	return functions
}

// subprogram is the DISubprogram of a function; 0 where there is none.
func (m *Module) subprogram(f *Function) Ref {
	if f.dbg != 0 {
		return m.refAt(f.dbg)
	}
	return Ref(m.linked()[f.Name()])
}

// call reads the location of an inlined call, and caches it.
func (m *Module) call(r Ref) (location, error) {
	m.kept.Lock()
	c, ok := m.calls[r]
	m.kept.Unlock()
	if ok {
		return c.location, c.err
	}
	c.location, c.err = m.location(r)
	m.kept.Lock()
	m.calls[r] = c
	m.kept.Unlock()
	return c.location, c.err
}

// keptCall is a cached result of call.
type keptCall struct {
	location
	err error
}

// locationAt reads a location; depth is greater than 0 for an inlined call, which call
// reads.
func (m *Module) locationAt(r Ref, depth int) (location, error) {
	if depth > 0 {
		return m.call(r)
	}
	return m.location(r)
}

// location is a node DILocation, or a tuple with the same fields.
type location struct {
	line, column int
	scope        Ref
	inlinedAt    Ref
}

// location reads a location. The error names the node that is there instead.
func (m *Module) location(r Ref) (l location, err error) {
	n, ok := m.open(r)
	if !ok {
		return l, fmt.Errorf("the location is not defined")
	}
	var line, column, scope, inlined Value
	switch {
	case n.Kind == "DILocation":
		line, column, scope, inlined = n.Field("line"), n.Field("column"), n.Field("scope"), n.Field("inlinedAt")
	case n.Kind == "MDTuple" && len(n.Fields) == 4: // of LLVM before 3.7
		line, column, scope, inlined = n.Fields[0].Value, n.Fields[1].Value, n.Fields[2].Value, n.Fields[3].Value
		if _, ok := line.Int(); !ok {
			return l, fmt.Errorf("a location is expected, found a %s", n.Kind)
		}
	default:
		return l, fmt.Errorf("a location is expected, found a %s", n.Kind)
	}
	l = location{line.line(), column.line(), m.ref(&scope), m.ref(&inlined)}
	if l.scope == 0 {
		err = fmt.Errorf("the scope of the location is not defined")
	} else if inlined.Kind != NullValue && l.inlinedAt == 0 {
		err = fmt.Errorf("the call that the location was inlined with is not defined")
	}
	return l, err
}

// chain appends the frames of a location, innermost first, with their scopes. With an error
// there are none: a part of a chain would be a wrong one.
func (m *Module) chain(p *symbol.Position, loc Ref) error {
	for depth := 0; loc != 0 || depth == 0; depth++ {
		if depth == maxInlined {
			return fmt.Errorf("more than %d inlined calls", maxInlined)
		}
		l, err := m.locationAt(loc, depth)
		if err != nil {
			return err
		}
		s := m.scope(l.scope)
		if s.err != nil {
			return s.err
		}
		function := m.scope(s.function)
		f := function.frame
		f.File, f.CompDir, f.Source = s.file.path, s.file.compDir, s.file.source
		f.Line, f.Column, f.Discriminator = l.line, l.column, s.discriminator
		f.Inlined = l.inlinedAt != 0
		p.Frames = append(p.Frames, f)
		p.Scopes = append(p.Scopes, s.id)
		loc = l.inlinedAt
	}
	return nil
}

// position is the origin of an instruction in the source.
func (m *Module) position(f *Function, index int) symbol.Position {
	inst := &f.instructions[index]
	p := symbol.Position{Function: f.Name(), Instruction: index, Offset: m.line(int(inst.start))}
	if inst.dbg != 0 {
		err := m.chain(&p, m.refAt(inst.dbg))
		if err == nil {
			return p
		}
		m.problem(int(inst.dbg), "instruction %s+%d: %v", p.Function, index, err)
		p.Frames, p.Scopes = nil, nil
	}
	if s := m.scope(m.subprogram(f)); s.err == nil && s.function != 0 {
		p.Frames, p.Scopes = append(p.Frames, s.frame), append(p.Scopes, "")
		return p
	}
	frame := trace.Symbol{Function: symbol.Demangle(p.Function)}
	if frame.Function != p.Function {
		frame.LinkageName = p.Function
	}
	p.Frames, p.Scopes = append(p.Frames, frame), append(p.Scopes, "")
	return p
}
