// SPDX-License-Identifier: Apache-2.0

package llvmir

import (
	"strconv"
	"strings"
	"sync"
)

// A Kind is a kind of specialized node.
type Kind struct {
	Name string // "DISubprogram"
	Was  string // "MDSubprogram", in LLVM 3.7; "" of kinds that came later
	// Tags are the DWARF tags of its descriptors in the forms before that.
	Tags []uint64
	// Fields are those that the document and its examples name, with blanks between;
	// a node may have others.
	Fields string
}

// Kinds are the kinds that this package gives a meaning, those of the document
// (LLVM r232566, "LangRef: Specialized Metadata Nodes") first. Nodes of other
// kinds are kept with their fields.
var Kinds = []Kind{
	{"DICompileUnit", "MDCompileUnit", []uint64{0x11}, "language file producer isOptimized flags runtimeVersion splitDebugFilename emissionKind enums retainedTypes subprograms globals imports"},
	{"DIFile", "MDFile", []uint64{0x29}, "filename directory"},
	{"DILocation", "MDLocation", nil, "line column scope inlinedAt"},
	{"DIBasicType", "MDBasicType", []uint64{0x24}, "tag name size align encoding"},
	{"DIDerivedType", "MDDerivedType", []uint64{0x05, 0x0d, 0x0f, 0x10, 0x16, 0x1c, 0x1f, 0x26, 0x35, 0x37, 0x42}, "tag name scope file line baseType size align offset flags extraData"},
	{"DICompositeType", "MDCompositeType", []uint64{0x01, 0x02, 0x04, 0x13, 0x17}, "tag name scope file line size align offset flags baseType elements runtimeLang vtableHolder templateParams identifier"},
	{"DISubroutineType", "MDSubroutineType", []uint64{0x15}, "types flags"},
	{"DISubrange", "MDSubrange", []uint64{0x21}, "count lowerBound"},
	{"DIEnumerator", "MDEnumerator", []uint64{0x28}, "name value"},
	{"DITemplateTypeParameter", "MDTemplateTypeParameter", nil, "name type"},
	{"DITemplateValueParameter", "MDTemplateValueParameter", nil, "tag name type value"},
	{"DINamespace", "MDNamespace", nil, "name scope file line"},
	{"DIGlobalVariable", "MDGlobalVariable", []uint64{0x34}, "name linkageName scope file line type isLocal isDefinition variable declaration"},
	{"DISubprogram", "MDSubprogram", []uint64{0x2e}, "name linkageName scope file line type isLocal isDefinition scopeLine containingType virtuality virtualIndex flags isOptimized function templateParams declaration variables"},
	{"DILexicalBlock", "MDLexicalBlock", []uint64{0x0b}, "scope file line column"},
	{"DILexicalBlockFile", "MDLexicalBlockFile", nil, "scope file discriminator"},
	{"DILocalVariable", "MDLocalVariable", []uint64{0x100, 0x101}, "tag name arg scope file line type flags expression"},
	{"DIExpression", "MDExpression", []uint64{tagExpression}, ""},
	{"DIObjCProperty", "MDObjCProperty", nil, "name file line setter getter attributes type"},
	{"DIImportedEntity", "MDImportedEntity", nil, "tag name scope entity line"},

	{"DIGlobalVariableExpression", "", nil, "var expr"},
	{"DIArgList", "", nil, ""},
	{"DILabel", "", nil, "scope name file line column"},
	{"DIMacro", "", nil, "type line name value"},
	{"DIMacroFile", "", nil, "type line file nodes"},
}

// renamed has today's names of kinds by those of LLVM 3.7.
var renamed = sync.OnceValue(func() map[string]string {
	names := map[string]string{}
	for _, k := range Kinds {
		if k.Was != "" {
			names[k.Was] = k.Name
		}
	}
	return names
})

// kindOf is what a kind is called today.
func kindOf(name string) string {
	if today, ok := renamed()[name]; ok {
		return today
	}
	return name
}

// The forms before LLVM 3.7. A descriptor is a tuple: in LLVM 3.6 of a string,
// which has the tag and more members with zero bytes between them, and nodes
// (the document's DIHeader); before that of the tag and all members.

// A memberKind says how a member is written there.
type memberKind uint8

const (
	asIs       memberKind = iota // a node, a typed value, or null
	textMember                   // a string
	intMember                    // a number
	boolMember                   // i1
	encodingMember
	lineAndArgument // the line in 24 bits, and the argument's number above it
	nodeMember      // a node
	anyMember       // a node, null, or any typed value
)

// A member is a field of a descriptor. One whose name is "_" is left out.
type member struct {
	name string
	kind memberKind
}

// A layout says what the members of a descriptor are.
type layout struct {
	kind     string
	header   *members // of the string
	operands *members // behind it
	plain    *members // behind the tag, where there is no string
}

// members are a list of members, as text: NAME or NAME:KIND. It is read when it is
// first needed: most programs never see a module of these forms.
type members struct {
	text string
	once sync.Once
	read []member
}

// list are the members; nil of none.
func (m *members) list() []member {
	if m == nil {
		return nil
	}
	m.once.Do(func() { m.read = readMembers(m.text) })
	return m.read
}

func readMembers(text string) []member {
	var list []member
	for _, word := range strings.Fields(text) {
		name, kind, _ := strings.Cut(word, ":")
		list = append(list, member{name, map[string]memberKind{
			"": asIs, "text": textMember, "int": intMember, "bool": boolMember, "encoding": encodingMember, "line+arg": lineAndArgument, "node": nodeMember, "any": anyMember,
		}[kind]})
	}
	return list
}

const (
	typeHeader = "name:text line:int size:int align:int offset:int flags:int"
	typePlain  = "file scope name:text line:int size:int align:int offset:int flags:int "
)

// The members are those of the document, "Debug information descriptors" (the
// part that it removes), and of its examples.
var (
	compileUnit = layout{
		"DICompileUnit",
		&members{text: "language:int producer:text isOptimized:bool flags:text runtimeVersion:int splitDebugFilename:text emissionKind:int"},
		&members{text: "file enums retainedTypes subprograms globals imports"},
		&members{text: "file language:int producer:text isOptimized:bool flags:text runtimeVersion:int enums retainedTypes subprograms globals imports splitDebugFilename:text emissionKind:int"},
	}
	file     = layout{"DIFile", nil, &members{text: "file"}, &members{text: "file:node"}}
	variable = layout{
		"DIGlobalVariable",
		&members{text: "name:text displayName:text linkageName:text line:int isLocal:bool isDefinition:bool"},
		&members{text: "scope file type variable:any declaration"},
		nil,
	}
	subprogram = layout{
		"DISubprogram",
		&members{text: "name:text displayName:text linkageName:text line:int isLocal:bool isDefinition:bool virtuality:int virtualIndex:int flags:int isOptimized:bool scopeLine:int"},
		&members{text: "file scope type containingType function:any templateParams declaration variables"},
		&members{text: "file scope name:text displayName:text linkageName:text line:int type isLocal:bool isDefinition:bool virtuality:int virtualIndex:int containingType flags:int isOptimized:bool function:any templateParams declaration variables scopeLine:int"},
	}
	lexicalBlock = layout{
		"DILexicalBlock",
		&members{text: "line:int column:int uniqueID:int"}, &members{text: "file scope"},
		&members{text: "file scope:node line:int column:int uniqueID:int"},
	}
	lexicalBlockFile = layout{"DILexicalBlockFile", &members{text: "discriminator:int"}, &members{text: "file scope"}, &members{text: "file scope:node discriminator:int"}}
	basicType        = layout{"DIBasicType", &members{text: typeHeader + " encoding:encoding"}, &members{text: "file scope"}, &members{text: typePlain + "encoding:encoding"}}
	derivedType      = layout{"DIDerivedType", &members{text: typeHeader}, &members{text: "file scope baseType extraData:any"}, &members{text: typePlain + "baseType extraData:any"}}
	compositeHeader  = &members{text: typeHeader + " runtimeLang:int"}
	compositeType    = layout{
		"DICompositeType", compositeHeader,
		&members{text: "file scope baseType elements vtableHolder templateParams identifier:text"},
		&members{text: typePlain + "baseType elements runtimeLang:int vtableHolder templateParams identifier:text"},
	}
	subroutineType = layout{
		"DISubroutineType", compositeHeader,
		&members{text: "file scope baseType types vtableHolder templateParams identifier:text"},
		&members{text: typePlain + "baseType types runtimeLang:int vtableHolder templateParams identifier:text"},
	}
	subrange      = layout{"DISubrange", &members{text: "lowerBound:int upperBound:int"}, nil, nil}
	enumerator    = layout{"DIEnumerator", &members{text: "name:text value:int"}, nil, nil}
	localVariable = layout{
		"DILocalVariable", &members{text: "name:text line:line+arg flags:int"}, &members{text: "scope file type inlinedAt"},
		&members{text: "scope name:text file line:line+arg type flags:int inlinedAt"},
	}
)

// layouts are the layouts by tag. Those of two kinds with one tag are told apart
// by findLayout.
var layouts = map[uint64]*layout{
	0x11: &compileUnit, 0x29: &file, 0x34: &variable, 0x2e: &subprogram, 0x0b: &lexicalBlock, 0x24: &basicType,
	0x05: &derivedType, 0x0d: &derivedType, 0x0f: &derivedType, 0x10: &derivedType, 0x16: &derivedType, 0x1f: &derivedType,
	0x26: &derivedType, 0x35: &derivedType, 0x37: &derivedType, 0x42: &derivedType, 0x1c: &derivedType,
	0x01: &compositeType, 0x02: &compositeType, 0x04: &compositeType, 0x13: &compositeType, 0x17: &compositeType, 0x15: &subroutineType,
	0x21: &subrange, 0x28: &enumerator, 0x100: &localVariable, 0x101: &localVariable,
}

const (
	oldTypePlain  = "scope name:text file line:int size:int align:int offset:int flags:int "
	oldSubprogram = "scope name:text displayName:text linkageName:text file line:int type isLocal:bool isDefinition:bool virtuality:int virtualIndex:int containingType flags:int isOptimized:bool function:any templateParams declaration variables scopeLine:int"
)

// olderLayouts are what LLVM 3.2 to 3.5 write where the document, of LLVM 3.6, has
// other members. The kinds of the members tell them apart.
var olderLayouts = map[uint64][]*layout{
	0x11: {
		{kind: "DICompileUnit", plain: &members{text: "language:int file:node producer:text isOptimized:bool flags:text runtimeVersion:int enums retainedTypes subprograms globals imports splitDebugFilename:text"}},
		{kind: "DICompileUnit", plain: &members{text: "_ language:int filename:text directory:text producer:text isMain:bool isOptimized:bool flags:text runtimeVersion:int enums retainedTypes subprograms globals"}},
	},
	0x29: {{kind: "DIFile", plain: &members{text: "filename:text directory:text"}}},
	0x34: {{kind: "DIGlobalVariable", plain: &members{text: "_ scope name:text displayName:text linkageName:text file line:int type isLocal:bool isDefinition:bool variable:any declaration"}}},
	0x2e: {{kind: "DISubprogram", plain: &members{text: "_ " + oldSubprogram}}, {kind: "DISubprogram", plain: &members{text: oldSubprogram}}},
	0x0b: {{kind: "DILexicalBlock", plain: &members{text: "scope:node line:int column:int file uniqueID:int"}}},
	0x24: {{kind: "DIBasicType", plain: &members{text: oldTypePlain + "encoding:encoding"}}},
	0x05: {&oldDerived}, 0x0d: {&oldDerived}, 0x0f: {&oldDerived}, 0x10: {&oldDerived}, 0x16: {&oldDerived}, 0x1f: {&oldDerived},
	0x26: {&oldDerived}, 0x35: {&oldDerived}, 0x37: {&oldDerived}, 0x42: {&oldDerived}, 0x1c: {&oldDerived},
	0x01: {&oldComposite}, 0x02: {&oldComposite}, 0x04: {&oldComposite}, 0x13: {&oldComposite}, 0x17: {&oldComposite},
	0x15: {{kind: "DISubroutineType", plain: &members{text: oldTypePlain + "baseType types runtimeLang:int vtableHolder templateParams"}}},
}

var (
	oldDerived   = layout{kind: "DIDerivedType", plain: &members{text: oldTypePlain + "baseType extraData:any"}}
	oldComposite = layout{kind: "DICompositeType", plain: &members{text: oldTypePlain + "baseType elements runtimeLang:int vtableHolder templateParams"}}
	// block35 is the lexical block of LLVM 3.5, which has a member more.
	block35 = layout{kind: "DILexicalBlock", plain: &members{text: "file scope:node line:int column:int discriminator:int uniqueID:int"}}
)

// plainLayouts are the layouts that a descriptor of a tag and so many members may
// have where there is no string.
func plainLayouts(tag uint64, count int) []*layout {
	var list []*layout
	switch l := layouts[tag]; {
	case l == &lexicalBlock && count < fewestOfBlock:
		list = append(list, &lexicalBlockFile)
	case l == &lexicalBlock && count == len(block35.plain.list()):
		list = append(list, &block35)
	case l != nil && l.plain != nil:
		list = append(list, l)
	}
	return append(list, olderLayouts[tag]...)
}

// fewestOfBlock is how many members a lexical block has at least: one with fewer
// is of a file.
const fewestOfBlock = 4

// tags are the tags whose nodes say theirs.
var tags = map[uint64]string{
	0x01: "DW_TAG_array_type", 0x02: "DW_TAG_class_type", 0x04: "DW_TAG_enumeration_type", 0x05: "DW_TAG_formal_parameter",
	0x0d: "DW_TAG_member", 0x0f: "DW_TAG_pointer_type", 0x10: "DW_TAG_reference_type", 0x13: "DW_TAG_structure_type",
	0x16: "DW_TAG_typedef", 0x17: "DW_TAG_union_type", 0x1c: "DW_TAG_inheritance", 0x1f: "DW_TAG_ptr_to_member_type",
	0x24: "DW_TAG_base_type", 0x26: "DW_TAG_const_type", 0x35: "DW_TAG_volatile_type", 0x37: "DW_TAG_restrict_type",
	0x42: "DW_TAG_rvalue_reference_type", 0x100: "DW_TAG_auto_variable", 0x101: "DW_TAG_arg_variable",
}

// encodings are the encodings of basic types (DWARF 5, 7.8).
var encodings = map[string]uint8{
	"DW_ATE_address": 1, "DW_ATE_boolean": 2, "DW_ATE_complex_float": 3, "DW_ATE_float": 4, "DW_ATE_signed": 5, "DW_ATE_signed_char": 6,
	"DW_ATE_unsigned": 7, "DW_ATE_unsigned_char": 8, "DW_ATE_imaginary_float": 9, "DW_ATE_UTF": 0x10,
}

func encodingName(number string) string {
	for name, value := range encodings {
		if strconv.Itoa(int(value)) == number {
			return name
		}
	}
	return ""
}

// oldVersion is what LLVM before 3.6 added to the tag of a descriptor.
const oldVersion = 12 << 16

// describe gives a tuple that is a descriptor its kind and its fields' names. The
// document lets information be appended to any descriptor ("Debug information
// descriptors"): members behind those that are known have no names.
func (n *Node) describe() {
	if len(n.Fields) == 0 {
		return
	}
	first := &n.Fields[0].Value
	if first.Kind == StringValue {
		n.describeHeader(strings.Split(first.Text, "\x00"))
		return
	}
	number, ok := first.Int()
	if !ok || first.Kind != IRValue || number&^0xffff != oldVersion {
		return
	}
	tag, operands := uint64(number)&0xffff, n.Fields[1:]
	if tag == tagExpression {
		n.describeExpression(operands)
		return
	}
	for _, l := range plainLayouts(tag, len(operands)) {
		if !l.canHave(operands) {
			continue
		}
		n.name(l, tag, l.plain.list(), operands)
		if plain := l.plain.list(); l == &localVariable && len(operands) > len(plain) {
			n.describeAddress(len(operands) - len(plain))
		}
		return
	}
}

// decisive is how many members are compared to tell layouts apart. Modules that
// people wrote by hand have later members wrong.
const decisive = 8

// canHave tells layouts apart by the kinds of their first members.
func (l *layout) canHave(operands []Field) bool {
	plain := l.plain.list()
	for i := range min(len(operands), len(plain), decisive) {
		v := &operands[i].Value
		if !plain[i].canBe(v) {
			return false
		}
		// A string and null are the name and the file of before LLVM 3.3, not the
		// identifier of a scope and no name.
		if i > 0 && plain[i].kind == textMember && v.Kind == NullValue && plain[i-1].kind == asIs && operands[i-1].Value.Kind == StringValue {
			return false
		}
	}
	return true
}

// canBe says whether a value can be that of a member.
func (m *member) canBe(v *Value) bool {
	number, isNumber := v.Int()
	isNode := v.Kind == RefValue || v.Kind == NodeValue
	switch m.kind {
	case nodeMember:
		return isNode
	case asIs: // 0 stands for null, and a string for the type that it identifies
		return isNode || v.Kind == NullValue || isNumber && number == 0 || v.Kind == StringValue && m.name != "file"
	case textMember:
		return v.Kind == StringValue || v.Kind == NullValue
	case intMember, boolMember, encodingMember, lineAndArgument:
		return isNumber || v.Kind == NullValue
	case anyMember:
	}
	return true
}

// describeHeader is describe for the form with a string.
func (n *Node) describeHeader(parts []string) {
	text, ok := strings.CutPrefix(parts[0], "0x")
	tag, err := strconv.ParseUint(text, 16, 16)
	if !ok || err != nil {
		return
	}
	l := layouts[tag]
	header := make([]Field, len(parts)-1)
	if l == &lexicalBlock && len(header) < len(lexicalBlock.header.list()) {
		l = &lexicalBlockFile
	}
	var known []member
	if l != nil {
		known = l.header.list()
	}
	for i, part := range parts[1:] {
		v := Value{Kind: NumberValue, Text: part}
		isKnown := i < len(known)
		if isKnown && known[i].kind == textMember || !isKnown && !isInteger(part) {
			v.Kind = StringValue
		}
		header[i] = Field{Value: v}
	}
	if tag == tagExpression {
		n.describeExpression(header)
		return
	}
	if l == nil {
		return
	}
	operands := n.Fields[1:]
	n.Fields = nil
	n.name(l, tag, known, header)
	fields := n.Fields
	n.name(l, 0, l.operands.list(), operands)
	n.Fields = append(fields, n.Fields...)
}

// isInteger says whether a text is a number.
func isInteger(text string) bool {
	v := Value{Kind: NumberValue, Text: text}
	_, ok := v.Int()
	return ok
}

// name gives the fields their names, and values today's form.
func (n *Node) name(l *layout, tag uint64, names []member, values []Field) {
	n.Kind = l.kind
	fields := make([]Field, 0, len(values)+1)
	if word := tags[tag]; word != "" {
		fields = append(fields, Field{"tag", Value{Kind: WordValue, Text: word}})
	}
	for i := range values {
		if i >= len(names) { // appended
			fields = append(fields, values[i])
			continue
		}
		if names[i].name == "_" { // it means nothing
			continue
		}
		v := values[i].Value
		switch names[i].kind {
		case boolMember:
			text := "false"
			if v.IsTrue() {
				text = "true"
			}
			v = Value{Kind: WordValue, Text: text}
		case encodingMember:
			v = plainNumber(v)
			if name := encodingName(v.Text); name != "" {
				v = Value{Kind: WordValue, Text: name}
			}
		case lineAndArgument:
			if number, ok := v.Int(); ok {
				v = Value{Kind: NumberValue, Text: strconv.FormatInt(number&0xffffff, 10)}
				if argument := number >> 24; argument > 0 {
					fields = append(fields, Field{"arg", Value{Kind: NumberValue, Text: strconv.FormatInt(argument, 10)}})
				}
			}
		case intMember:
			v = plainNumber(v)
		case asIs, textMember, nodeMember, anyMember:
		}
		fields = append(fields, Field{names[i].name, v})
	}
	n.Fields = fields
}

// plainNumber is a typed number without its type.
func plainNumber(v Value) Value {
	if v.Kind == IRValue {
		if number, ok := v.Int(); ok {
			return Value{Kind: NumberValue, Text: strconv.FormatInt(number, 10)}
		}
	}
	return v
}
