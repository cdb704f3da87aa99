// SPDX-License-Identifier: Apache-2.0

package llvmir

import (
	"strconv"
	"strings"
	"sync"

	"github.com/unwindd/unwindd/internal/dw"
)

// Kind is a kind of specialized node.
type Kind struct {
	Name string // "DISubprogram"
	Was  string // "MDSubprogram", in LLVM 3.7; "" of kinds that came later
	// Fields are the fields that the document and its examples name, separated by blanks; a
	// node may have others.
	Fields string
}

// Kinds are the kinds that this package interprets, the document's kinds (LLVM r232566,
// "LangRef: Specialized Metadata Nodes") first. Nodes of other kinds are kept with their
// fields.
var Kinds = []Kind{
	{"DICompileUnit", "MDCompileUnit", "language file producer isOptimized flags runtimeVersion splitDebugFilename emissionKind enums retainedTypes subprograms globals imports"},
	{"DIFile", "MDFile", "filename directory"},
	{"DILocation", "MDLocation", "line column scope inlinedAt"},
	{"DIBasicType", "MDBasicType", "tag name size align encoding"},
	{"DIDerivedType", "MDDerivedType", "tag name scope file line baseType size align offset flags extraData"},
	{"DICompositeType", "MDCompositeType", "tag name scope file line size align offset flags baseType elements runtimeLang vtableHolder templateParams identifier"},
	{"DISubroutineType", "MDSubroutineType", "types flags"},
	{"DISubrange", "MDSubrange", "count lowerBound"},
	{"DIEnumerator", "MDEnumerator", "name value"},
	{"DITemplateTypeParameter", "MDTemplateTypeParameter", "name type"},
	{"DITemplateValueParameter", "MDTemplateValueParameter", "tag name type value"},
	{"DINamespace", "MDNamespace", "name scope file line"},
	{"DIGlobalVariable", "MDGlobalVariable", "name linkageName scope file line type isLocal isDefinition variable declaration"},
	{"DISubprogram", "MDSubprogram", "name linkageName scope file line type isLocal isDefinition scopeLine containingType virtuality virtualIndex flags isOptimized function templateParams declaration variables"},
	{"DILexicalBlock", "MDLexicalBlock", "scope file line column"},
	{"DILexicalBlockFile", "MDLexicalBlockFile", "scope file discriminator"},
	{"DILocalVariable", "MDLocalVariable", "tag name arg scope file line type flags expression"},
	{"DIExpression", "MDExpression", ""},
	{"DIObjCProperty", "MDObjCProperty", "name file line setter getter attributes type"},
	{"DIImportedEntity", "MDImportedEntity", "tag name scope entity line"},

	{"DIGlobalVariableExpression", "", "var expr"},
	{"DIArgList", "", ""},
	{"DILabel", "", "scope name file line column"},
	{"DIMacro", "", "type line name value"},
	{"DIMacroFile", "", "type line file nodes"},
}

// renamed maps the kinds of LLVM 3.7 to their current names.
var renamed = sync.OnceValue(func() map[string]string {
	names := map[string]string{}
	for _, k := range Kinds {
		if k.Was != "" {
			names[k.Was] = k.Name
		}
	}
	return names
})

// kindOf is the current name of a kind.
func kindOf(name string) string {
	if today, ok := renamed()[name]; ok {
		return today
	}
	return name
}

// The forms before LLVM 3.7. A descriptor is a tuple: in LLVM 3.6 of a string, which has
// the tag and more members with zero bytes between them, and nodes (the document's
// DIHeader); before that of the tag and all members.

// memberKind is how a member is written in these forms.
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

// member is a field of a descriptor. A field named "_" is left out.
type member struct {
	name string
	kind memberKind
}

// layout is the list of members of a descriptor.
type layout struct {
	kind     string
	header   *members // in the string
	operands *members // after the string
	plain    *members // after the tag, where there is no string
}

// members are a list of members, as text: NAME or NAME:KIND. It is parsed when it is first
// needed: most programs never see a module of these forms.
type members struct {
	text string
	once sync.Once
	read []member
}

// list returns the members; nil has none.
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

// The members are those in the document, "Debug information descriptors" (the part that it
// removes), and in its examples.
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

// layouts are the layouts by tag. Two kinds with one tag are told apart by findLayout.
var layouts = map[dw.Tag]*layout{
	dw.TagCompileUnit: &compileUnit, dw.TagFileType: &file, dw.TagVariable: &variable, dw.TagSubprogram: &subprogram, dw.TagLexicalBlock: &lexicalBlock, dw.TagBaseType: &basicType,
	dw.TagFormalParameter: &derivedType, dw.TagMember: &derivedType, dw.TagPointerType: &derivedType, dw.TagReferenceType: &derivedType, dw.TagTypedef: &derivedType, dw.TagPtrToMemberType: &derivedType,
	dw.TagConstType: &derivedType, dw.TagVolatileType: &derivedType, dw.TagRestrictType: &derivedType, dw.TagRvalueReferenceType: &derivedType, dw.TagInheritance: &derivedType,
	dw.TagArrayType: &compositeType, dw.TagClassType: &compositeType, dw.TagEnumerationType: &compositeType, dw.TagStructureType: &compositeType, dw.TagUnionType: &compositeType, dw.TagSubroutineType: &subroutineType,
	dw.TagSubrangeType: &subrange, dw.TagEnumerator: &enumerator, tagAutoVariable: &localVariable, tagArgVariable: &localVariable,
}

const (
	oldTypePlain  = "scope name:text file line:int size:int align:int offset:int flags:int "
	oldSubprogram = "scope name:text displayName:text linkageName:text file line:int type isLocal:bool isDefinition:bool virtuality:int virtualIndex:int containingType flags:int isOptimized:bool function:any templateParams declaration variables scopeLine:int"
)

// olderLayouts are the layouts of LLVM 3.2 to 3.5 that differ from the document's, of LLVM
// 3.6. The kinds of the members tell them apart.
var olderLayouts = map[dw.Tag][]*layout{
	dw.TagCompileUnit: {
		{kind: "DICompileUnit", plain: &members{text: "language:int file:node producer:text isOptimized:bool flags:text runtimeVersion:int enums retainedTypes subprograms globals imports splitDebugFilename:text"}},
		{kind: "DICompileUnit", plain: &members{text: "_ language:int filename:text directory:text producer:text isMain:bool isOptimized:bool flags:text runtimeVersion:int enums retainedTypes subprograms globals"}},
	},
	dw.TagFileType:        {{kind: "DIFile", plain: &members{text: "filename:text directory:text"}}},
	dw.TagVariable:        {{kind: "DIGlobalVariable", plain: &members{text: "_ scope name:text displayName:text linkageName:text file line:int type isLocal:bool isDefinition:bool variable:any declaration"}}},
	dw.TagSubprogram:      {{kind: "DISubprogram", plain: &members{text: "_ " + oldSubprogram}}, {kind: "DISubprogram", plain: &members{text: oldSubprogram}}},
	dw.TagLexicalBlock:    {{kind: "DILexicalBlock", plain: &members{text: "scope:node line:int column:int file uniqueID:int"}}},
	dw.TagBaseType:        {{kind: "DIBasicType", plain: &members{text: oldTypePlain + "encoding:encoding"}}},
	dw.TagFormalParameter: {&oldDerived}, dw.TagMember: {&oldDerived}, dw.TagPointerType: {&oldDerived}, dw.TagReferenceType: {&oldDerived}, dw.TagTypedef: {&oldDerived}, dw.TagPtrToMemberType: {&oldDerived},
	dw.TagConstType: {&oldDerived}, dw.TagVolatileType: {&oldDerived}, dw.TagRestrictType: {&oldDerived}, dw.TagRvalueReferenceType: {&oldDerived}, dw.TagInheritance: {&oldDerived},
	dw.TagArrayType: {&oldComposite}, dw.TagClassType: {&oldComposite}, dw.TagEnumerationType: {&oldComposite}, dw.TagStructureType: {&oldComposite}, dw.TagUnionType: {&oldComposite},
	dw.TagSubroutineType: {{kind: "DISubroutineType", plain: &members{text: oldTypePlain + "baseType types runtimeLang:int vtableHolder templateParams"}}},
}

var (
	oldDerived   = layout{kind: "DIDerivedType", plain: &members{text: oldTypePlain + "baseType extraData:any"}}
	oldComposite = layout{kind: "DICompositeType", plain: &members{text: oldTypePlain + "baseType elements runtimeLang:int vtableHolder templateParams"}}
	// block35 is the lexical block of LLVM 3.5, which has an additional member.
	block35 = layout{kind: "DILexicalBlock", plain: &members{text: "file scope:node line:int column:int discriminator:int uniqueID:int"}}
)

// plainLayouts are the layouts that a descriptor of a tag and a number of members may have
// where there is no string.
func plainLayouts(tag dw.Tag, count int) []*layout {
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

// fewestOfBlock is the least number of members of a lexical block: one with fewer is of a
// file.
const fewestOfBlock = 4

// Tags of LLVM that DWARF does not have.
const (
	tagAutoVariable dw.Tag = 0x100
	tagArgVariable  dw.Tag = 0x101
	tagExpression   dw.Tag = 0x102
)

// tagWord returns the name of a tag for nodes that have a field for it; "" for other tags.
func tagWord(tag dw.Tag) string {
	switch tag {
	case tagAutoVariable:
		return "DW_TAG_auto_variable"
	case tagArgVariable:
		return "DW_TAG_arg_variable"
	}
	switch layouts[tag] {
	case &basicType, &derivedType, &compositeType:
		return tag.String()
	}
	return ""
}

// encodingName returns the name of the encoding with the number text; "" where it has none.
func encodingName(text string) string {
	number, err := strconv.ParseUint(text, 10, 8)
	if err != nil {
		return ""
	}
	return dw.ATEName(uint8(number))
}

// oldVersion is added to the tag of a descriptor by LLVM before 3.6.
const oldVersion = 12 << 16

// describe sets the kind and the names of the fields of a tuple that is a descriptor. The
// document lets information be appended to any descriptor ("Debug information
// descriptors"): members after the known ones have no names.
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
	tag, operands := dw.Tag(number&0xffff), n.Fields[1:]
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

// decisive is how many members are compared to tell layouts apart. Modules written by hand
// may have later members wrong.
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

// canBe reports whether a value may be a member's value.
func (m *member) canBe(v *Value) bool {
	number, isNumber := v.Int()
	isNode := v.Kind == RefValue || v.Kind == NodeValue
	switch m.kind {
	case nodeMember:
		return isNode
	case asIs: // 0 represents null, and a string the type that it identifies
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
	number, err := strconv.ParseUint(text, 16, 16)
	tag := dw.Tag(number)
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

// isInteger reports whether a text is a number.
func isInteger(text string) bool {
	v := Value{Kind: NumberValue, Text: text}
	_, ok := v.Int()
	return ok
}

// name sets the names of the fields, and converts values to the current form.
func (n *Node) name(l *layout, tag dw.Tag, names []member, values []Field) {
	n.Kind = l.kind
	fields := make([]Field, 0, len(values)+1)
	if word := tagWord(tag); word != "" {
		fields = append(fields, Field{"tag", Value{Kind: WordValue, Text: word}})
	}
	for i := range values {
		if i >= len(names) { // appended
			fields = append(fields, values[i])
			continue
		}
		if names[i].name == "_" { // without a meaning
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

// plainNumber removes the type from a typed number.
func plainNumber(v Value) Value {
	if v.Kind == IRValue {
		if number, ok := v.Int(); ok {
			return Value{Kind: NumberValue, Text: strconv.FormatInt(number, 10)}
		}
	}
	return v
}
