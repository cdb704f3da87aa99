// SPDX-License-Identifier: Apache-2.0

package cxxname

// A precedence orders operators, from those that bind most.
type precedence uint8

const (
	precPrimary precedence = iota
	precPostfix
	precUnary
	precCast
	precMember
	precMultiply
	precAdd
	precShift
	precSpaceship
	precRelation
	precEquality
	precAnd
	precXor
	precOr
	precAndIf
	precOrIf
	precConditional
	precAssign
	precComma
	precDefault
)

// An operatorKind says what operands an operator has.
type operatorKind uint8

const (
	operatorPrefix operatorKind = iota
	operatorPostfix
	operatorBinary
	operatorIndex
	operatorMember // . -> .* ->*
	operatorNew
	operatorDelete
	operatorCall
	operatorCast
	operatorConditional
	// Those from here on cannot be functions.
	operatorNamedCast
	operatorOf    // sizeof, alignof, typeid of an expression
	operatorOfAny // the same of a type
)

// An operator is one of those of ABI 5.1.5 and 5.1.6.
type operator struct {
	code   string
	symbol string
	kind   operatorKind
	prec   precedence
	// isUnnamed is true of . and .*, which cannot be functions.
	isUnnamed bool
}

// gnuSymbol is the operator as binutils write it in an expression.
func (op *operator) gnuSymbol() string {
	switch op.kind {
	case operatorOf, operatorOfAny, operatorDelete:
		return op.symbol + " "
	}
	if op.code == "aw" {
		return op.symbol + " "
	}
	return op.symbol
}

// operators have the operators by their codes.
var operators = func() map[string]*operator {
	list := []operator{
		{"aN", "&=", operatorBinary, precAssign, false}, {"aS", "=", operatorBinary, precAssign, false},
		{"aa", "&&", operatorBinary, precAndIf, false}, {"ad", "&", operatorPrefix, precUnary, false},
		{"an", "&", operatorBinary, precAnd, false}, {"at", "alignof", operatorOfAny, precUnary, false},
		{"aw", "co_await", operatorPrefix, precUnary, false}, {"az", "alignof", operatorOf, precUnary, false},
		{"cc", "const_cast", operatorNamedCast, precPostfix, false}, {"cl", "()", operatorCall, precPostfix, false},
		{"cm", ",", operatorBinary, precComma, false}, {"co", "~", operatorPrefix, precUnary, false},
		{"cp", "()", operatorCall, precPostfix, false}, {"cv", "", operatorCast, precCast, false},
		{"dV", "/=", operatorBinary, precAssign, false}, {"da", "delete[]", operatorDelete, precUnary, false},
		{"dc", "dynamic_cast", operatorNamedCast, precPostfix, false}, {"de", "*", operatorPrefix, precUnary, false},
		{"dl", "delete", operatorDelete, precUnary, false}, {"ds", ".*", operatorMember, precMember, true},
		{"dt", ".", operatorMember, precPostfix, true}, {"dv", "/", operatorBinary, precMultiply, false},
		{"eO", "^=", operatorBinary, precAssign, false}, {"eo", "^", operatorBinary, precXor, false},
		{"eq", "==", operatorBinary, precEquality, false}, {"ge", ">=", operatorBinary, precRelation, false},
		{"gt", ">", operatorBinary, precRelation, false}, {"ix", "[]", operatorIndex, precPostfix, false},
		{"lS", "<<=", operatorBinary, precAssign, false}, {"le", "<=", operatorBinary, precRelation, false},
		{"ls", "<<", operatorBinary, precShift, false}, {"lt", "<", operatorBinary, precRelation, false},
		{"mI", "-=", operatorBinary, precAssign, false}, {"mL", "*=", operatorBinary, precAssign, false},
		{"mi", "-", operatorBinary, precAdd, false}, {"ml", "*", operatorBinary, precMultiply, false},
		{"mm", "--", operatorPostfix, precPostfix, false}, {"na", "new[]", operatorNew, precUnary, false},
		{"ne", "!=", operatorBinary, precEquality, false}, {"ng", "-", operatorPrefix, precUnary, false},
		{"nt", "!", operatorPrefix, precUnary, false}, {"nw", "new", operatorNew, precUnary, false},
		{"oR", "|=", operatorBinary, precAssign, false}, {"oo", "||", operatorBinary, precOrIf, false},
		{"or", "|", operatorBinary, precOr, false}, {"pL", "+=", operatorBinary, precAssign, false},
		{"pl", "+", operatorBinary, precAdd, false}, {"pm", "->*", operatorMember, precMember, false},
		{"pp", "++", operatorPostfix, precPostfix, false}, {"ps", "+", operatorPrefix, precUnary, false},
		{"pt", "->", operatorMember, precPostfix, false}, {"qu", "?", operatorConditional, precConditional, false},
		{"rM", "%=", operatorBinary, precAssign, false}, {"rS", ">>=", operatorBinary, precAssign, false},
		{"rc", "reinterpret_cast", operatorNamedCast, precPostfix, false}, {"rm", "%", operatorBinary, precMultiply, false},
		{"rs", ">>", operatorBinary, precShift, false}, {"sc", "static_cast", operatorNamedCast, precPostfix, false},
		{"ss", "<=>", operatorBinary, precSpaceship, false}, {"st", "sizeof", operatorOfAny, precUnary, false},
		{"sz", "sizeof", operatorOf, precUnary, false}, {"te", "typeid", operatorOf, precPostfix, false},
		{"ti", "typeid", operatorOfAny, precPostfix, false},
	}
	m := make(map[string]*operator, len(list))
	for i := range list {
		m[list[i].code] = &list[i]
	}
	return m
}()
