// SPDX-License-Identifier: Apache-2.0

package msvcname

// primitives are the types without a structure, by their codes.
var primitives = map[string]string{
	"X": "void", "D": "char", "C": "signed char", "E": "unsigned char", "F": "short", "G": "unsigned short",
	"H": "int", "I": "unsigned int", "J": "long", "K": "unsigned long", "M": "float", "N": "double", "O": "long double",
	"_N": "bool", "_J": "__int64", "_K": "unsigned __int64", "_W": "wchar_t", "_Q": "char8_t", "_S": "char16_t", "_U": "char32_t",
	"_L": "__int128", "_M": "unsigned __int128", "_P": "auto", "_T": "decltype(auto)", "$$T": "std::nullptr_t",
}

// tags are the keywords of types with a name.
var tags = map[string]string{"T": "union", "U": "struct", "V": "class", "W4": "enum"}

// A pointerKind is a kind of pointer or reference.
type pointerKind struct {
	mark string
	is   qualifiers // of the pointer itself
}

var pointers = map[string]pointerKind{
	"P": {"*", 0}, "Q": {"*", isConst}, "R": {"*", isVolatile}, "S": {"*", isConst | isVolatile},
	"A": {"&", 0}, "$$Q": {"&&", 0},
}

// managed follows the code of a pointer or reference to a thing that is counted or collected: of C++/CX
// and C++/CLI. managedMarks are their marks.
const managed = "$A"

var managedMarks = map[string]string{"*": "^", "&": "%", "&&": "%%"}

// A cvKind has the qualifiers of a thing that is pointed to.
type cvKind struct {
	is       qualifiers
	isMember bool // the pointer is one to a member
}

var cvKinds = map[byte]cvKind{
	'A': {0, false}, 'B': {isConst, false}, 'C': {isVolatile, false}, 'D': {isConst | isVolatile, false},
	'Q': {0, true}, 'R': {isConst, true}, 'S': {isVolatile, true}, 'T': {isConst | isVolatile, true},
}

// extras are the codes between a pointer's code and that of the thing that is pointed to, in their
// order. A pointer with 64 bits is not told.
var extras = []struct {
	code string
	is   qualifiers
}{{"E", 0}, {"I", isRestrict}, {"F", isUnaligned}}

// A functionKind is a kind of function, whatever its type.
type functionKind struct {
	access              string
	isStatic, isVirtual bool
	isFree              bool // in no class
	isBare              bool // extern "C", without a type
	adjusts             byte // the kind of thunk: 0, or a code of adjustments
}

// The kinds of thunks.
const (
	adjustsStatic   = 'G' // by a number of bytes
	adjustsVtordisp = '$'
	adjustsEx       = 'R' // by a vtordisp, and one in a virtual base
)

const (
	private, protected, public = "private: ", "protected: ", "public: "
)

// thunks are the kinds of thunks, with how many displacements they have before the number of bytes.
var thunks = map[byte]struct {
	name          string
	displacements int
}{adjustsStatic: {"adjustor", 0}, adjustsVtordisp: {"vtordisp", 1}, adjustsEx: {"vtordispex", 3}}

// functionKinds are the kinds of functions. A pair of codes is for near and far ones.
var functionKinds = map[string]functionKind{
	"A": {access: private}, "C": {access: private, isStatic: true}, "E": {access: private, isVirtual: true}, "G": {access: private, adjusts: adjustsStatic},
	"I": {access: protected}, "K": {access: protected, isStatic: true}, "M": {access: protected, isVirtual: true}, "O": {access: protected, isVirtual: true, adjusts: adjustsStatic},
	"Q": {access: public}, "S": {access: public, isStatic: true}, "U": {access: public, isVirtual: true}, "W": {access: public, isVirtual: true, adjusts: adjustsStatic},
	"Y": {isFree: true}, "9": {isFree: true, isBare: true},
	"$0": {access: private, isVirtual: true, adjusts: adjustsVtordisp}, "$R0": {access: private, isVirtual: true, adjusts: adjustsEx},
	"$2": {access: protected, isVirtual: true, adjusts: adjustsVtordisp}, "$R2": {access: protected, isVirtual: true, adjusts: adjustsEx},
	"$4": {access: public, isVirtual: true, adjusts: adjustsVtordisp}, "$R4": {access: public, isVirtual: true, adjusts: adjustsEx},
}

// conventions are the conventions of calls. A code that is not here has no word.
var conventions = map[byte]string{
	'A': "__cdecl", 'B': "__cdecl", 'C': "__pascal", 'D': "__pascal", 'E': "__thiscall", 'F': "__thiscall", 'G': "__stdcall", 'H': "__stdcall",
	'I': "__fastcall", 'J': "__fastcall", 'M': "__clrcall", 'N': "__clrcall", 'O': "__eabi", 'P': "__eabi", 'Q': "__vectorcall",
	'S': "__attribute__((__swiftcall__)) ", 'W': "__attribute__((__swiftasynccall__)) ", 'w': "__regcall",
}

// operators are the names of functions without an identifier, by their codes. Those that are read by
// functions of their own are not here.
var operators = map[string]string{
	"2": "operator new", "3": "operator delete", "4": "operator=", "5": "operator>>", "6": "operator<<", "7": "operator!", "8": "operator==",
	"9": "operator!=", "A": "operator[]", "C": "operator->", "D": "operator*", "E": "operator++", "F": "operator--", "G": "operator-",
	"H": "operator+", "I": "operator&", "J": "operator->*", "K": "operator/", "L": "operator%", "M": "operator<", "N": "operator<=",
	"O": "operator>", "P": "operator>=", "Q": "operator,", "R": "operator()", "S": "operator~", "T": "operator^", "U": "operator|",
	"V": "operator&&", "W": "operator||", "X": "operator*=", "Y": "operator+=", "Z": "operator-=",
	"_0": "operator/=", "_1": "operator%=", "_2": "operator>>=", "_3": "operator<<=", "_4": "operator&=", "_5": "operator|=", "_6": "operator^=",
	"_D": "`vbase dtor'", "_E": "`vector deleting dtor'", "_F": "`default ctor closure'", "_G": "`scalar deleting dtor'",
	"_H": "`vector ctor iterator'", "_I": "`vector dtor iterator'", "_J": "`vector vbase ctor iterator'", "_K": "`virtual displacement map'",
	"_L": "`eh vector ctor iterator'", "_M": "`eh vector dtor iterator'", "_N": "`eh vector vbase ctor iterator'", "_O": "`copy ctor closure'",
	"_T": "`local vftable ctor closure'", "_U": "operator new[]", "_V": "operator delete[]",
	"__A": "`managed vector ctor iterator'", "__B": "`managed vector dtor iterator'", "__C": "`EH vector copy ctor iterator'",
	"__D": "`EH vector vbase copy ctor iterator'", "__G": "`vector copy ctor iterator'", "__H": "`vector vbase copy constructor iterator'",
	"__I": "`managed vector vbase copy constructor iterator'", "__L": "operator co_await", "__M": "operator<=>",
}

// A specialName is one that is no function with a name: how it is read, and its text.
type specialName struct {
	read func(r *reader, text string) node
	text string
}

// specialNames are read by a prefix of their names; set in init, since their functions read names
// again.
var specialNames map[string]specialName

func init() { //nolint:gochecknoinits // a cycle of initialization otherwise
	specialNames = map[string]specialName{
		"??_7": {(*reader).table, "`vftable'"}, "??_8": {(*reader).table, "`vbtable'"}, "??_S": {(*reader).table, "`local vftable'"},
		"??_R4": {(*reader).table, "`RTTI Complete Object Locator'"}, "??_R0": {(*reader).typeDescriptor, "`RTTI Type Descriptor'"},
		"??_R1": {(*reader).baseDescriptor, "`RTTI Base Class Descriptor at ("},
		"??_R2": {(*reader).untyped, "`RTTI Base Class Array'"}, "??_R3": {(*reader).untyped, "`RTTI Class Hierarchy Descriptor'"},
		"??_9": {(*reader).vcall, "`vcall'{"}, "??_B": {(*reader).guard, "`local static guard'"}, "??__J": {(*reader).guard, "`local static thread guard'"},
		"??_C@_": {(*reader).literal, ""}, "??__E": {(*reader).initializer, "`dynamic initializer for "},
		"??__F": {(*reader).initializer, "`dynamic atexit destructor for "},
	}
}
