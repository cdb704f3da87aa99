// SPDX-License-Identifier: Apache-2.0

package spirv

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Op is the number of an instruction in a set of debug information (DebugInfo, 3.1). The
// sets that came after DebugInfo kept its numbers.
type Op uint32

// The instructions of DebugInfo.
const (
	DebugInfoNone Op = iota
	DebugCompilationUnit
	DebugTypeBasic
	DebugTypePointer
	DebugTypeQualifier
	DebugTypeArray
	DebugTypeVector
	DebugTypedef
	DebugTypeFunction
	DebugTypeEnum
	DebugTypeComposite
	DebugTypeMember
	DebugTypeInheritance
	DebugTypePtrToMember
	DebugTypeTemplate
	DebugTypeTemplateParameter
	DebugTypeTemplateTemplateParameter
	DebugTypeTemplateParameterPack
	DebugGlobalVariable
	DebugFunctionDeclaration
	DebugFunction
	DebugLexicalBlock
	DebugLexicalBlockDiscriminator
	DebugScope
	DebugNoScope
	DebugInlinedAt
	DebugLocalVariable
	DebugInlinedVariable
	DebugDeclare
	DebugValue
	DebugOperation
	DebugExpression
	DebugMacroDef
	DebugMacroUndef
)

// The instructions of OpenCL.DebugInfo.100 that DebugInfo does not have.
const (
	DebugImportedEntity Op = 34 + iota
	DebugSource
	DebugModuleINTEL
)

// The instructions of NonSemantic.Shader.DebugInfo.100 that neither of them has.
const (
	DebugFunctionDefinition Op = 101 + iota
	DebugSourceContinued
	DebugLine
	DebugNoLine
	DebugBuildIdentifier
	DebugStoragePath
	DebugEntryPoint
	DebugTypeMatrix
	// Instructions that its version 101 added.
	DebugTypeVectorIdEXT
	DebugTypeCooperativeMatrixKHR
)

// The instructions of NonSemantic.Shader.DebugInfo.200 that no other set has.
const (
	DebugModule Op = 200 + iota
	DebugTypeSubrange
	DebugTypeArrayDynamic
	DebugTypeString
)

// Kind is the kind of an operand.
type Kind uint8

// The kinds.
const (
	Ref               Kind = iota // the ID of an instruction
	Number                        // a literal number
	Flags                         // Debug Info Flags (DebugInfo, 3.2)
	Encoding                      // Base Type Attribute Encodings (3.3)
	Composite                     // Composite Types (3.4)
	Qualifier                     // Type Qualifiers (3.5)
	Operation                     // Debug Operations (3.6)
	StorageClass                  // of the core specification, 3.7
	SourceLanguage                // of the core specification, 3.2
	ImportedEntity                // Imported Entities of OpenCL.DebugInfo.100
	BuildIdentifier               // Build Identifier Flags of NonSemantic.Shader.DebugInfo.100
	EnumeratorPairs               // an ID of a value and one of a name
	FPEncoding                    // of the core specification, "FP Encoding"
	MemoryScope                   // of the core specification, "Scope <id>"
	MatrixUse                     // of SPV_KHR_cooperative_matrix
	ChecksumKind                  // of a file, in NonSemantic.Shader.DebugInfo.200
	ArgumentNumber                // a Number, which the LLVM/SPIR-V translator always writes as a literal
	operationOperands             // literal numbers that depend on the operation
)

// Parameter is a parameter of an instruction.
type Parameter struct {
	Name       string
	Kind       Kind
	IsOptional bool // it may be absent, with all later ones
	IsRepeated bool // any number of times, or none
}

// Layout is the list of operands of an instruction of a set.
type Layout struct {
	Op         Op
	Name       string // "DebugTypeBasic"
	Parameters []Parameter
}

// find is the index of a parameter; -1: it has none of that name.
func (l *Layout) find(name string) int {
	return slices.IndexFunc(l.Parameters, func(p Parameter) bool { return p.Name == name })
}

// required is the least number of operands.
func (l *Layout) required() int {
	n := slices.IndexFunc(l.Parameters, func(p Parameter) bool { return p.IsOptional || p.IsRepeated })
	if n < 0 {
		return len(l.Parameters)
	}
	return n
}

// most is the greatest number of operands; -1: any number.
func (l *Layout) most() int {
	if n := len(l.Parameters); n > 0 && l.Parameters[n-1].IsRepeated {
		return -1
	}
	return len(l.Parameters)
}

// Set is an extended instruction set of debug information.
type Set struct {
	Name string // as in OpExtInstImport
	// ReadAs is the known set whose tables are used for an unknown version; "": the set
	// itself is known.
	ReadAs string
	// HasConstants is set where numbers are not literals but IDs of constants.
	HasConstants bool

	layouts   map[Op]*Layout
	others    map[Op][]*Layout // that producers write too, told apart by the operands
	encodings map[uint32]encoding
}

// Layout returns the operands of an instruction; nil: the set has none with that number.
func (s *Set) Layout(op Op) *Layout { return s.layouts[op] }

// Ops returns the numbers of the set's instructions, in order.
func (s *Set) Ops() []Op {
	var ops []Op
	for op := range s.layouts {
		ops = append(ops, op)
	}
	slices.Sort(ops)
	return ops
}

// row is an instruction and its operands, each a name and the letter of its kind, with ?
// for an optional one and * for any number of them.
type row struct {
	op       Op
	name     string
	operands string
}

// kindLetters are the letters of kinds in rows.
var kindLetters = map[byte]Kind{
	'r': Ref, 'n': Number, 'f': Flags, 'e': Encoding, 'c': Composite, 'q': Qualifier, 'o': Operation, 's': StorageClass,
	'l': SourceLanguage, 'i': ImportedEntity, 'b': BuildIdentifier, 'p': EnumeratorPairs, 'x': operationOperands,
	't': FPEncoding, 'm': MemoryScope, 'u': MatrixUse, 'k': ChecksumKind, 'a': ArgumentNumber,
}

// debugInfoRows are the instructions of DebugInfo, chapter 4.
var debugInfoRows = []row{
	{DebugInfoNone, "DebugInfoNone", ""},
	{DebugCompilationUnit, "DebugCompilationUnit", "Source:r Version:n DWARFVersion:n"},
	{DebugTypeBasic, "DebugTypeBasic", "Name:r Size:r Encoding:e"},
	{DebugTypePointer, "DebugTypePointer", "BaseType:r StorageClass:s Flags:f"},
	{DebugTypeQualifier, "DebugTypeQualifier", "BaseType:r TypeQualifier:q"},
	{DebugTypeArray, "DebugTypeArray", "BaseType:r ComponentCounts:r*"},
	{DebugTypeVector, "DebugTypeVector", "BaseType:r ComponentCount:n"},
	{DebugTypedef, "DebugTypedef", "Name:r BaseType:r Source:r Line:n Column:n Parent:r"},
	{DebugTypeFunction, "DebugTypeFunction", "ReturnType:r ParameterTypes:r*"},
	{DebugTypeEnum, "DebugTypeEnum", "Name:r UnderlyingType:r Source:r Line:n Column:n Parent:r Size:r Flags:f Enumerators:p*"},
	{DebugTypeComposite, "DebugTypeComposite", "Name:r Tag:c Source:r Line:n Column:n Parent:r Size:r Flags:f Members:r*"},
	{DebugTypeMember, "DebugTypeMember", "Name:r Type:r Source:r Line:n Column:n Parent:r Offset:r Size:r Flags:f Value:r?"},
	{DebugTypeInheritance, "DebugTypeInheritance", "Child:r Parent:r Offset:r Size:r Flags:f"},
	{DebugTypePtrToMember, "DebugTypePtrToMember", "MemberType:r Parent:r"},
	{DebugTypeTemplate, "DebugTypeTemplate", "Target:r Parameters:r*"},
	{DebugTypeTemplateParameter, "DebugTypeTemplateParameter", "Name:r ActualType:r Value:r Source:r Line:n Column:n"},
	{DebugTypeTemplateTemplateParameter, "DebugTypeTemplateTemplateParameter", "Name:r TemplateName:r Source:r Line:n Column:n"},
	{DebugTypeTemplateParameterPack, "DebugTypeTemplateParameterPack", "Name:r Source:r Line:n Column:n TemplateParameters:r*"},
	{DebugGlobalVariable, "DebugGlobalVariable", "Name:r Type:r Source:r Line:n Column:n Parent:r LinkageName:r Variable:r Flags:f StaticMemberDeclaration:r?"},
	{DebugFunctionDeclaration, "DebugFunctionDeclaration", "Name:r Type:r Source:r Line:n Column:n Parent:r LinkageName:r Flags:f"},
	{DebugFunction, "DebugFunction", "Name:r Type:r Source:r Line:n Column:n Parent:r LinkageName:r Flags:f ScopeLine:n Function:r Declaration:r?"},
	{DebugLexicalBlock, "DebugLexicalBlock", "Source:r Line:n Column:n Parent:r Name:r?"},
	{DebugLexicalBlockDiscriminator, "DebugLexicalBlockDiscriminator", "Source:r Discriminator:n Parent:r"},
	{DebugScope, "DebugScope", "Scope:r InlinedAt:r?"},
	{DebugNoScope, "DebugNoScope", ""},
	{DebugInlinedAt, "DebugInlinedAt", "Line:n Scope:r Inlined:r?"},
	{DebugLocalVariable, "DebugLocalVariable", "Name:r Type:r Source:r Line:n Column:n Parent:r ArgNumber:a?"},
	{DebugInlinedVariable, "DebugInlinedVariable", "Variable:r Inlined:r"},
	{DebugDeclare, "DebugDeclare", "LocalVariable:r Variable:r Expression:r"},
	{DebugValue, "DebugValue", "LocalVariable:r Value:r Expression:r Indexes:r*"},
	{DebugOperation, "DebugOperation", "OpCode:o Operands:x*"},
	{DebugExpression, "DebugExpression", "Operations:r*"},
	{DebugMacroDef, "DebugMacroDef", "Source:r Line:n Name:r Value:r?"},
	{DebugMacroUndef, "DebugMacroUndef", "Source:r Line:n Macro:r"},
}

// openCLRows are the differences of OpenCL.DebugInfo.100 from DebugInfo.
var openCLRows = []row{
	{DebugCompilationUnit, "DebugCompilationUnit", "Version:n DWARFVersion:n Source:r Language:l"},
	{DebugTypeFunction, "DebugTypeFunction", "Flags:f ReturnType:r ParameterTypes:r*"},
	{DebugTypeComposite, "DebugTypeComposite", "Name:r Tag:c Source:r Line:n Column:n Parent:r LinkageName:r Size:r Flags:f Members:r*"},
	{DebugLocalVariable, "DebugLocalVariable", "Name:r Type:r Source:r Line:n Column:n Parent:r Flags:f ArgNumber:a?"},
	{DebugImportedEntity, "DebugImportedEntity", "Name:r Tag:i Source:r Entity:r Line:n Column:n Parent:r"},
	{DebugSource, "DebugSource", "File:r Text:r?"},
	{DebugModuleINTEL, "DebugModuleINTEL", "Name:r Source:r Parent:r Line:n ConfigurationMacros:r IncludePath:r APINotesFile:r IsDeclaration:n"},
}

// shaderRows are the differences of NonSemantic.Shader.DebugInfo.100 from
// OpenCL.DebugInfo.100.
var shaderRows = []row{
	{DebugTypeBasic, "DebugTypeBasic", "Name:r Size:r Encoding:e Flags:f"},
	{DebugTypeMember, "DebugTypeMember", "Name:r Type:r Source:r Line:n Column:n Offset:r Size:r Flags:f Value:r?"},
	{DebugTypeInheritance, "DebugTypeInheritance", "Parent:r Offset:r Size:r Flags:f"},
	{DebugFunction, "DebugFunction", "Name:r Type:r Source:r Line:n Column:n Parent:r LinkageName:r Flags:f ScopeLine:n Declaration:r?"},
	{DebugDeclare, "DebugDeclare", "LocalVariable:r Variable:r Expression:r Indexes:r*"},
	{DebugFunctionDefinition, "DebugFunctionDefinition", "Function:r Definition:r"},
	{DebugSourceContinued, "DebugSourceContinued", "Text:r"},
	{DebugLine, "DebugLine", "Source:r LineStart:n LineEnd:n ColumnStart:n ColumnEnd:n"},
	{DebugNoLine, "DebugNoLine", ""},
	{DebugBuildIdentifier, "DebugBuildIdentifier", "Identifier:r Flags:b"},
	{DebugStoragePath, "DebugStoragePath", "Path:r"},
	{DebugEntryPoint, "DebugEntryPoint", "EntryPoint:r CompilationUnit:r CompilerSignature:r CommandLineArguments:r"},
	{DebugTypeMatrix, "DebugTypeMatrix", "VectorType:r VectorCount:n ColumnMajor:r"},
}

// grammarRows are the differences of DebugInfo's machine-readable grammar from its
// document.
var grammarRows = []row{
	{DebugValue, "DebugValue", "Value:r Expression:r Indexes:r*"},
}

// translatorRows are the differences of the LLVM/SPIR-V translator from the documents: the
// numbers of two instructions are exchanged, one has an additional operand, and one has two
// in another order.
var translatorRows = []row{
	{DebugTypeTemplateTemplateParameter, "DebugTypeTemplateParameterPack", "Name:r Source:r Line:n Column:n TemplateParameters:r*"},
	{DebugTypeTemplateParameterPack, "DebugTypeTemplateTemplateParameter", "Name:r TemplateName:r Source:r Line:n Column:n"},
	{DebugImportedEntity, "DebugImportedEntity", "Name:r Tag:i Reserved:n Source:r Entity:r Line:n Column:n Parent:r"},
	{DebugModuleINTEL, "DebugModuleINTEL", "Name:r Source:r Line:n Parent:r ConfigurationMacros:r IncludePath:r APINotesFile:r IsDeclaration:n"},
}

// shader101Rows are the additions of version 101 of NonSemantic.Shader.DebugInfo ("Version
// 101 Extension" of its document).
var shader101Rows = []row{
	{DebugTypeBasic, "DebugTypeBasic", "Name:r Size:r Encoding:e Flags:f FPEncoding:t?"},
	{DebugTypeVectorIdEXT, "DebugTypeVectorIdEXT", "ComponentType:r ComponentCount:n"},
	{DebugTypeCooperativeMatrixKHR, "DebugTypeCooperativeMatrixKHR", "ComponentType:r Scope:m Rows:n Columns:n Use:u"},
}

// shader200Rows are the differences of NonSemantic.Shader.DebugInfo.200 from version 101.
// The set is the LLVM/SPIR-V translator's own, for C++ and Fortran; no document describes
// it. Each count of an array is a DebugTypeSubrange there.
var shader200Rows = []row{
	{DebugCompilationUnit, "DebugCompilationUnit", "Version:n DWARFVersion:n Source:r Language:l Producer:r?"},
	{DebugFunction, "DebugFunction", "Name:r Type:r Source:r Line:n Column:n Parent:r LinkageName:r Flags:f ScopeLine:n Declaration:r? TargetFunctionName:r?"},
	{DebugLexicalBlock, "DebugLexicalBlock", "Source:r Line:n Column:n Parent:r Name:r? InlineNamespace:r?"},
	{DebugInlinedAt, "DebugInlinedAt", "Line:n Column:n Scope:r Inlined:r?"},
	{DebugSource, "DebugSource", "File:r ChecksumKind:k? ChecksumValue:r? Text:r?"},
	{DebugModule, "DebugModule", "Name:r Source:r Line:n Parent:r ConfigurationMacros:r IncludePath:r APINotesFile:r IsDeclaration:n"},
	{DebugTypeSubrange, "DebugTypeSubrange", "LowerBound:r UpperBound:r Count:r Stride:r?"},
	{DebugTypeArrayDynamic, "DebugTypeArrayDynamic", "BaseType:r DataLocation:r Associated:r Allocated:r Rank:r ComponentCounts:r*"},
	{DebugTypeString, "DebugTypeString", "Name:r BaseType:r DataLocation:r Size:r LengthAddress:r LengthSize:r?"},
}

// older200Rows are the rows that earlier translators wrote in a set of version 200: they had no
// columns of calls, wrote the base classes with the class, and had no checksums between a
// file and its text.
var older200Rows = []row{
	{DebugInlinedAt, "DebugInlinedAt", "Line:n Scope:r Inlined:r?"},
	{DebugSource, "DebugSource", "File:r Text:r?"},
	{DebugTypeInheritance, "DebugTypeInheritance", "Child:r Parent:r Offset:r Size:r Flags:f"},
}

// Sets are the sets that are read, the versions of one from its oldest to its newest. They
// are built on first use.
var Sets = sync.OnceValue(func() []*Set {
	shader := [][]row{debugInfoRows, openCLRows, shaderRows}
	shader101 := append(slices.Clip(shader), shader101Rows)
	return []*Set{
		newSet("DebugInfo", false, debugInfoEncodings, [][]row{debugInfoRows}, grammarRows),
		newSet("SPIRV.debug", false, openCLEncodings, [][]row{debugInfoRows, openCLRows}, translatorRows),
		newSet("OpenCL.DebugInfo.100", false, openCLEncodings, [][]row{debugInfoRows, openCLRows}, translatorRows),
		newSet("NonSemantic.Shader.DebugInfo.100", true, openCLEncodings, shader, translatorRows),
		newSet("NonSemantic.Shader.DebugInfo.101", true, openCLEncodings, shader101, translatorRows),
		newSet("NonSemantic.Shader.DebugInfo.200", true, openCLEncodings, append(slices.Clip(shader101), shader200Rows), append(slices.Clip(translatorRows), older200Rows...)),
	}
})

// formerNames are names that sets had before they were published.
var formerNames = map[string]string{
	"NonSemantic.Vulkan.DebugInfo.100": "NonSemantic.Shader.DebugInfo.100",
	"NonSemantic.Kernel.DebugInfo.100": "NonSemantic.Shader.DebugInfo.200",
}

// setByName is the set of a name. An unknown version is read as the newest known one that
// is not newer than it; a name without a number, or older than all, as the newest of all.
// nil: it is no set of debug information, or one of another kind.
func setByName(name string) *Set {
	var before, newest *Set
	for _, s := range Sets() {
		family, known := cutVersion(s.Name)
		rest, isVersion := strings.CutPrefix(name, family)
		switch {
		case s.Name == name:
			return s
		case s.Name == formerNames[name]:
			before = s
		case isVersion && (rest == "" || rest[0] == '.'):
			if _, version := cutVersion(name); known <= version {
				before = s
			}
			newest = s
		}
	}
	best := cmp.Or(before, newest)
	if best == nil {
		return nil
	}
	other := *best
	other.Name, other.ReadAs = name, best.Name
	return &other
}

// setNames lists the sets that are read.
func setNames() string {
	sets := Sets()
	names := make([]string, len(sets))
	for i, s := range sets {
		names[i] = s.Name
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// cutVersion cuts the version off the name of a set; 0: it has no number.
func cutVersion(name string) (family string, version uint64) {
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		if v, err := strconv.ParseUint(name[i+1:], 10, 64); err == nil {
			return name[:i], v
		}
	}
	return name, 0
}

func newSet(name string, constants bool, encodings map[uint32]encoding, tables [][]row, others []row) *Set {
	s := &Set{Name: name, HasConstants: constants, layouts: map[Op]*Layout{}, others: map[Op][]*Layout{}, encodings: encodings}
	for _, table := range tables {
		for _, r := range table {
			s.layouts[r.op] = r.layout()
		}
	}
	if constants {
		delete(s.layouts, DebugModuleINTEL)
	}
	for _, r := range others {
		if s.layouts[r.op] != nil {
			s.others[r.op] = append(s.others[r.op], r.layout())
		}
	}
	return s
}

// layout parses a row of this package's tables.
func (r row) layout() *Layout {
	l := &Layout{Op: r.op, Name: r.name}
	for _, word := range strings.Fields(r.operands) {
		name, kind, _ := strings.Cut(word, ":")
		p := Parameter{Name: name, IsOptional: strings.HasSuffix(kind, "?"), IsRepeated: strings.HasSuffix(kind, "*")}
		var ok bool
		if p.Kind, ok = kindLetters[kind[0]]; !ok {
			panic(fmt.Sprintf("spirv: %s: no kind %q", r.name, kind))
		}
		l.Parameters = append(l.Parameters, p)
	}
	return l
}
