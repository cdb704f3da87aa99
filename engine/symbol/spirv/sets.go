package spirv

import (
	"fmt"
	"slices"
	"strings"
)

// An Op is the number of an instruction in a set of debug information
// (DebugInfo, 3.1). The sets that came after DebugInfo kept its numbers.
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

// The instructions of NonSemantic.Shader.DebugInfo.100 that neither has.
const (
	DebugFunctionDefinition Op = 101 + iota
	DebugSourceContinued
	DebugLine
	DebugNoLine
	DebugBuildIdentifier
	DebugStoragePath
	DebugEntryPoint
	DebugTypeMatrix
)

// A Kind says what an operand is.
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
	operationOperands             // literal numbers that depend on the operation
)

// A Parameter is what an instruction has at one place.
type Parameter struct {
	Name     string
	Kind     Kind
	Optional bool // it may be absent, with all that follow
	Repeated bool // any number of them, none included
}

// A Layout is what operands an instruction of a set has.
type Layout struct {
	Op         Op
	Name       string // "DebugTypeBasic"
	Parameters []Parameter
}

// find is the index of a parameter; -1: it has none of that name.
func (l *Layout) find(name string) int {
	return slices.IndexFunc(l.Parameters, func(p Parameter) bool { return p.Name == name })
}

// required is how many operands there are at least.
func (l *Layout) required() int {
	n := slices.IndexFunc(l.Parameters, func(p Parameter) bool { return p.Optional || p.Repeated })
	if n < 0 {
		return len(l.Parameters)
	}
	return n
}

// most is how many operands there are at most; -1: any number.
func (l *Layout) most() int {
	if n := len(l.Parameters); n > 0 && l.Parameters[n-1].Repeated {
		return -1
	}
	return len(l.Parameters)
}

// A Set is an extended instruction set of debug information.
type Set struct {
	Name string // as OpExtInstImport has it
	// Constants says that numbers are not literals but IDs of constants.
	Constants bool

	layouts   map[Op]*Layout
	others    map[Op][]*Layout // that producers write too, told by the operands
	encodings map[uint32]encoding
}

// Layout returns the operands of an instruction; nil: the set has none of that
// number.
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

// A row is an instruction and its operands, each a name and the letter of its
// kind, with ? for one that may be absent and * for any number of them.
type row struct {
	op       Op
	name     string
	operands string
}

// The letters of kinds.
var kindLetters = map[byte]Kind{
	'r': Ref, 'n': Number, 'f': Flags, 'e': Encoding, 'c': Composite, 'q': Qualifier, 'o': Operation, 's': StorageClass,
	'l': SourceLanguage, 'i': ImportedEntity, 'b': BuildIdentifier, 'p': EnumeratorPairs, 'x': operationOperands,
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
	{DebugLocalVariable, "DebugLocalVariable", "Name:r Type:r Source:r Line:n Column:n Parent:r ArgNumber:n?"},
	{DebugInlinedVariable, "DebugInlinedVariable", "Variable:r Inlined:r"},
	{DebugDeclare, "DebugDeclare", "LocalVariable:r Variable:r Expression:r"},
	{DebugValue, "DebugValue", "LocalVariable:r Value:r Expression:r Indexes:r*"},
	{DebugOperation, "DebugOperation", "OpCode:o Operands:x*"},
	{DebugExpression, "DebugExpression", "Operations:r*"},
	{DebugMacroDef, "DebugMacroDef", "Source:r Line:n Name:r Value:r?"},
	{DebugMacroUndef, "DebugMacroUndef", "Source:r Line:n Macro:r"},
}

// openCLRows are what OpenCL.DebugInfo.100 has otherwise than DebugInfo, or more.
var openCLRows = []row{
	{DebugCompilationUnit, "DebugCompilationUnit", "Version:n DWARFVersion:n Source:r Language:l"},
	{DebugTypeFunction, "DebugTypeFunction", "Flags:f ReturnType:r ParameterTypes:r*"},
	{DebugTypeComposite, "DebugTypeComposite", "Name:r Tag:c Source:r Line:n Column:n Parent:r LinkageName:r Size:r Flags:f Members:r*"},
	{DebugLocalVariable, "DebugLocalVariable", "Name:r Type:r Source:r Line:n Column:n Parent:r Flags:f ArgNumber:n?"},
	{DebugImportedEntity, "DebugImportedEntity", "Name:r Tag:i Source:r Entity:r Line:n Column:n Parent:r"},
	{DebugSource, "DebugSource", "File:r Text:r?"},
	{DebugModuleINTEL, "DebugModuleINTEL", "Name:r Source:r Parent:r Line:n ConfigurationMacros:r IncludePath:r APINotesFile:r IsDeclaration:n"},
}

// shaderRows are what NonSemantic.Shader.DebugInfo.100 has otherwise than
// OpenCL.DebugInfo.100, or more.
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

// grammarRows are what the machine-readable grammar of DebugInfo has otherwise
// than its document.
var grammarRows = []row{
	{DebugValue, "DebugValue", "Value:r Expression:r Indexes:r*"},
}

// translatorRows are what the LLVM/SPIR-V translator writes otherwise than the
// documents: the numbers of two instructions are exchanged, one has an operand
// more, and one has two in another order.
var translatorRows = []row{
	{DebugTypeTemplateTemplateParameter, "DebugTypeTemplateParameterPack", "Name:r Source:r Line:n Column:n TemplateParameters:r*"},
	{DebugTypeTemplateParameterPack, "DebugTypeTemplateTemplateParameter", "Name:r TemplateName:r Source:r Line:n Column:n"},
	{DebugImportedEntity, "DebugImportedEntity", "Name:r Tag:i Reserved:n Source:r Entity:r Line:n Column:n Parent:r"},
	{DebugModuleINTEL, "DebugModuleINTEL", "Name:r Source:r Line:n Parent:r ConfigurationMacros:r IncludePath:r APINotesFile:r IsDeclaration:n"},
}

// Sets are the sets that are read.
var Sets = []*Set{
	newSet("DebugInfo", false, debugInfoEncodings, [][]row{debugInfoRows}, grammarRows),
	newSet("SPIRV.debug", false, openCLEncodings, [][]row{debugInfoRows, openCLRows}, translatorRows),
	newSet("OpenCL.DebugInfo.100", false, openCLEncodings, [][]row{debugInfoRows, openCLRows}, translatorRows),
	newSet("NonSemantic.Shader.DebugInfo.100", true, openCLEncodings, [][]row{debugInfoRows, openCLRows, shaderRows}, translatorRows),
}

func setByName(name string) *Set {
	if i := slices.IndexFunc(Sets, func(s *Set) bool { return s.Name == name }); i >= 0 {
		return Sets[i]
	}
	return nil
}

func newSet(name string, constants bool, encodings map[uint32]encoding, tables [][]row, others []row) *Set {
	s := &Set{Name: name, Constants: constants, layouts: map[Op]*Layout{}, others: map[Op][]*Layout{}, encodings: encodings}
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

// layout takes a row of this package's tables apart.
func (r row) layout() *Layout {
	l := &Layout{Op: r.op, Name: r.name}
	for _, word := range strings.Fields(r.operands) {
		name, kind, _ := strings.Cut(word, ":")
		p := Parameter{Name: name, Optional: strings.HasSuffix(kind, "?"), Repeated: strings.HasSuffix(kind, "*")}
		var ok bool
		if p.Kind, ok = kindLetters[kind[0]]; !ok {
			panic(fmt.Sprintf("spirv: %s: no kind %q", r.name, kind))
		}
		l.Parameters = append(l.Parameters, p)
	}
	return l
}
