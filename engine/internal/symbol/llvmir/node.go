// SPDX-License-Identifier: Apache-2.0

package llvmir

import (
	"fmt"
	"strconv"
	"strings"
)

// maxNested bounds the nesting of nodes in the text.
const maxNested = 64

// Ref is a node by its offset in the text: of its definition, if it has a number, else of
// the node itself. 0 is no node.
type Ref uint32

// Node is a metadata node.
type Node struct {
	ID         string // "!12", "!llvm.dbg.cu"; "" for an inline node
	Ref        Ref
	IsDistinct bool
	// Kind is LLVM's current name of the node: "DISubprogram" also for an !MDSubprogram and
	// for a tuple that begins with its tag. Any other tuple is an "MDTuple", a string an
	// "MDString".
	Kind   string
	Fields []Field
}

// Field is a member of a node. The members of tuples, expressions and lists of arguments
// have no names.
type Field struct {
	Name  string
	Value Value
}

// ValueKind is the kind of a Value.
type ValueKind uint8

// The kinds of values.
const (
	NullValue   ValueKind = iota
	NumberValue           // 12, -1: Text
	StringValue           // "text", !"text": Text has it without quotes and escapes
	WordValue             // DW_TAG_member, true, DIFlagPublic | DIFlagVirtual: Text
	RefValue              // !12: ID
	NodeValue             // an inline node: Node
	IRValue               // a typed value, i32 12, void ()* @f: Text
)

// Value is the value of a field.
type Value struct {
	Kind ValueKind
	Text string
	ID   uint64
	Node *Node
}

// Field returns the value of a field by its name; NullValue where there is none.
func (n *Node) Field(name string) Value {
	for i := range n.Fields {
		if n.Fields[i].Name == name {
			return n.Fields[i].Value
		}
	}
	return Value{}
}

// Int is the number of a value, also of a typed value such as i32 12.
func (v *Value) Int() (int64, bool) {
	text := v.Text
	switch v.Kind {
	case NumberValue:
	case IRValue:
		var typ string
		if typ, text = splitTyped(v.Text); typ == "" || typ[0] != 'i' {
			return 0, false
		}
		switch text {
		case "true":
			return 1, true
		case "false":
			return 0, true
		}
	default:
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		u, err := strconv.ParseUint(text, 10, 64)
		return int64(u), err == nil
	}
	return n, true
}

// line is the number of a line or column; 0 where the value is none.
func (v *Value) line() int {
	n, ok := v.Int()
	if !ok || n < 0 || n > 1<<31-1 {
		return 0
	}
	return int(n)
}

// str is the text of a string; "" where the value is none.
func (v *Value) str() string {
	if v.Kind != StringValue {
		return ""
	}
	return v.Text
}

// IsTrue reports whether a value is the word true, or i1 true.
func (v *Value) IsTrue() bool {
	n, ok := v.Int()
	return v.Kind == WordValue && v.Text == "true" || ok && n == 1
}

// String is the value in the assembly language.
func (v *Value) String() string {
	switch v.Kind {
	case NullValue:
		return "null"
	case StringValue:
		return quote(v.Text)
	case RefValue:
		return "!" + strconv.FormatUint(v.ID, 10)
	case NodeValue:
		return v.Node.String()
	}
	return v.Text
}

// String is the node as LLVM prints it.
func (n *Node) String() string {
	var b strings.Builder
	if n.IsDistinct {
		b.WriteString("distinct ")
	}
	end := ")"
	switch n.Kind {
	case "MDTuple":
		b.WriteString("!{")
		end = "}"
	case "MDString":
		v := n.Field("")
		return b.String() + "!" + v.String()
	default:
		b.WriteString("!" + n.Kind + "(")
	}
	for i := range n.Fields {
		f := &n.Fields[i]
		if i > 0 {
			b.WriteString(", ")
		}
		if f.Name != "" {
			b.WriteString(f.Name + ": ")
		}
		if n.Kind == "MDTuple" && f.Value.Kind == StringValue {
			b.WriteByte('!')
		}
		b.WriteString(f.Value.String())
	}
	b.WriteString(end)
	return b.String()
}

// quote is a string as LLVM prints it.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\\':
			b.WriteString(`\\`)
		case c < ' ' || c > '~' || c == '"':
			fmt.Fprintf(&b, `\%02X`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// nodeAt reads the node that is defined, or written, at an offset.
func (m *Module) nodeAt(offset int) (Node, error) {
	r := reader{Module: m, lexer: lexer{data: m.source, pos: offset}}
	t := r.next()
	if (t.kind == nodeToken || t.kind == nameToken) && r.is(r.peek(), '=') {
		r.next()
		n, err := r.node(0)
		n.Ref, n.ID = Ref(offset), string(r.text(t))
		return n, err
	}
	r.pos = offset
	return r.node(0)
}

// reader reads nodes.
type reader struct {
	*Module
	lexer
}

func (r *reader) wrong(t token, expected string) error {
	if t.kind == endToken {
		return r.complain(t.start, "%s expected, found the end of the text", expected)
	}
	return r.complain(t.start, "%s expected, found %s", expected, shorten(r.text(t)))
}

// node reads an inline node.
func (r *reader) node(depth int) (Node, error) {
	if depth > maxNested {
		return Node{}, r.complain(r.pos, "nodes within %d nodes", maxNested)
	}
	var n Node
	t := r.next()
	for t.kind == wordToken {
		switch string(r.text(t)) {
		case "distinct":
			n.IsDistinct = true
		case "metadata":
		default:
			return n, r.wrong(t, "a metadata node")
		}
		t = r.next()
	}
	n.Ref = Ref(t.start)
	var err error
	switch {
	case t.kind == metaString:
		n.Kind = "MDString"
		n.Fields = []Field{{Value: Value{Kind: StringValue, Text: unquote(r.text(t))}}}
	case t.kind == bangToken && r.is(r.peek(), '{'):
		r.next()
		n.Kind = "MDTuple"
		n.Fields, err = r.fields('}', depth)
		if err == nil {
			n.describe()
		}
	case t.kind == nameToken && r.is(r.peek(), '('):
		r.next()
		n.Kind = kindOf(string(r.text(t)[1:]))
		n.Fields, err = r.fields(')', depth)
	default:
		return n, r.wrong(t, "a metadata node")
	}
	return n, err
}

// fields reads members up to the bracket end, which it reads too.
func (r *reader) fields(end byte, depth int) ([]Field, error) {
	var list []Field
	if r.is(r.peek(), end) {
		r.next()
		return nil, nil
	}
	for {
		var f Field
		if t := r.peek(); t.kind == labelToken {
			r.next()
			f.Name = unquote(r.text(t))
		}
		var err error
		if f.Value, err = r.value(depth); err != nil {
			return list, err
		}
		list = append(list, f)
		t := r.next()
		if r.is(t, end) {
			return list, nil
		}
		if !r.is(t, ',') {
			return list, r.wrong(t, fmt.Sprintf("a comma or %q", end))
		}
	}
}

// isAtEnd reports whether a token ends a member.
func (r *reader) isAtEnd(t token) bool {
	if t.kind != otherToken {
		return false
	}
	switch r.data[t.start] {
	case ',', ')', '}', ']':
		return true
	}
	return false
}

// value reads a member, up to the token that ends it.
func (r *reader) value(depth int) (Value, error) {
	start := r.pos
	t := r.next()
	if t.kind == wordToken && string(r.text(t)) == "metadata" {
		start = r.pos
		t = r.next()
	}
	switch {
	case t.kind == bangToken, t.kind == nameToken,
		t.kind == wordToken && string(r.text(t)) == "distinct":
		r.pos = start
		n, err := r.node(depth + 1)
		return Value{Kind: NodeValue, Node: &n}, err
	case t.kind == nodeToken:
		id, err := strconv.ParseUint(string(r.text(t)[1:]), 10, 32)
		if err != nil {
			return Value{}, r.complain(t.start, "node number %s, at most 4294967295 expected", shorten(r.text(t)))
		}
		return Value{Kind: RefValue, ID: id}, nil
	case t.kind == metaString, t.kind == stringToken:
		return Value{Kind: StringValue, Text: unquote(r.text(t))}, nil
	case t.kind == endToken, r.isAtEnd(t):
		return Value{}, r.wrong(t, "a value")
	case t.kind == numberToken && r.isAtEnd(r.peek()):
		return Value{Kind: NumberValue, Text: string(r.text(t))}, nil
	case t.kind == wordToken && r.isAtEnd(r.peek()):
		text := string(r.text(t))
		if text == "null" {
			return Value{}, nil
		}
		return Value{Kind: WordValue, Text: text}, nil
	case t.kind == wordToken && r.is(r.peek(), '|'):
		return r.flags(t)
	}
	end, err := r.skipValue(t)
	if err != nil {
		return Value{}, err
	}
	text := string(r.data[t.start:end])
	if strings.IndexByte(text, '\n') >= 0 {
		text = strings.Join(strings.Fields(text), " ")
	}
	return Value{Kind: IRValue, Text: text}, nil
}

// flags reads words with "|" between them.
func (r *reader) flags(first token) (Value, error) {
	words := []string{string(r.text(first))}
	for r.is(r.peek(), '|') {
		r.next()
		t := r.next()
		if t.kind != wordToken && t.kind != numberToken {
			return Value{}, r.wrong(t, "a flag")
		}
		words = append(words, string(r.text(t)))
	}
	return Value{Kind: WordValue, Text: strings.Join(words, " | ")}, nil
}

// skipValue skips a type and a value, whose first token is read, and returns the offset of
// their end.
func (r *reader) skipValue(t token) (end int, err error) {
	var stack []byte
	for {
		if t.kind == otherToken {
			switch c := r.data[t.start]; c {
			case '(', '[', '{', '<':
				if len(stack) == maxDepth {
					return 0, r.complain(t.start, "brackets within %d brackets", maxDepth)
				}
				stack = append(stack, closing[c])
				if c == '<' {
					stack[len(stack)-1] = '>'
				}
			case ')', ']', '}', '>':
				if len(stack) == 0 || stack[len(stack)-1] != c {
					return 0, r.wrong(t, "a value")
				}
				stack = stack[:len(stack)-1]
			}
		}
		end = t.end
		if p := r.peek(); len(stack) == 0 && r.isAtEnd(p) {
			return end, nil
		} else if p.kind == endToken {
			return 0, r.wrong(p, "the end of a value")
		}
		t = r.next()
	}
}

// splitTyped splits "i32 12" into its type and its value.
func splitTyped(text string) (typ, value string) {
	l := lexer{data: []byte(text)}
	t := l.next()
	switch {
	case t.kind == wordToken, t.kind == localToken:
	case l.is(t, '{'), l.is(t, '['), l.is(t, '<'):
		if !l.skipGroup() {
			return "", text
		}
	default:
		return "", text
	}
	for {
		end := l.pos
		t = l.next()
		switch {
		case l.is(t, '*'):
		case t.kind == wordToken && string(l.text(t)) == "addrspace" && l.is(l.peek(), '('):
			l.next()
			l.skipGroup()
		case l.is(t, '('):
			l.skipGroup()
		default:
			return strings.TrimSpace(text[:end]), strings.TrimSpace(text[end:])
		}
	}
}

// skipGroup skips a group whose bracket is read, and reports whether it ends.
func (l *lexer) skipGroup() bool {
	for depth := 1; depth > 0; {
		t := l.next()
		switch {
		case t.kind == endToken:
			return false
		case t.kind != otherToken:
			continue
		}
		switch l.data[t.start] {
		case '(', '[', '{', '<':
			depth++
		case ')', ']', '}', '>':
			depth--
		}
	}
	return true
}

// ref returns the node that a value refers to; 0 where it refers to none.
func (m *Module) ref(v *Value) Ref {
	switch v.Kind {
	case RefValue:
		if offset, ok := m.definition(v.ID); ok {
			return Ref(offset)
		}
	case NodeValue:
		return v.Node.Ref
	}
	return 0
}

// refAt returns the node that is written at an offset: a reference, or the node itself.
func (m *Module) refAt(offset uint32) Ref {
	l := lexer{data: m.source, pos: int(offset)}
	t := l.next()
	if t.kind != nodeToken {
		return Ref(offset)
	}
	id, err := strconv.ParseUint(string(l.text(t)[1:]), 10, 32)
	if err != nil {
		return 0
	}
	def, ok := m.definition(id)
	if !ok {
		return 0
	}
	return Ref(def)
}

// open reads the node of a reference. ok is false where there is none, or where it cannot
// be read.
func (m *Module) open(r Ref) (n Node, ok bool) {
	if r == 0 {
		return n, false
	}
	n, err := m.nodeAt(int(r))
	return n, err == nil
}
