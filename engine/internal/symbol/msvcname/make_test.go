// SPDX-License-Identifier: Apache-2.0

package msvcname

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// maker makes names by the rules of the decoration, also such that no program would have. Digits that
// refer back may refer to nothing: then tools refuse the name.
type maker struct {
	*rand.Rand
	depth int
}

// one returns one of some texts.
func (m *maker) one(texts ...string) string { return texts[m.IntN(len(texts))] }

// some returns some of what a function makes, one after another.
func (m *maker) some(most int, what func() string) string {
	var b strings.Builder
	for range m.IntN(most + 1) {
		b.WriteString(what())
	}
	return b.String()
}

// within returns what a function makes, or a text where it would be nested too deeply.
func (m *maker) within(what func() string, instead string) string {
	if m.depth > 6 {
		return instead
	}
	m.depth++
	defer func() { m.depth-- }()
	return what()
}

func (m *maker) word() string {
	return m.one("a", "b1", "_c", "name", "a_very_long_name", "<lambda_1>", "<unnamed-type-x>", "$S1", "operator", "std") + "@"
}

func (m *maker) number() string {
	return m.one("0", "3", "9", "A@", "BA@", "?1", "?BC@", "PPPPPPPM@", "HPPPPPPP@")
}

// digit makes one that refers back, or where there may be nothing a text.
func (m *maker) digit(instead string) string {
	return m.one(instead, instead, instead, "0", "0", "1")
}

func (m *maker) typeName() string {
	switch m.IntN(5) {
	case 0:
		return m.digit("t@")
	case 1:
		return m.within(m.template, "t@")
	}
	return m.word()
}

func (m *maker) scope() string {
	switch m.IntN(9) {
	case 0:
		return m.digit("s@")
	case 1:
		return m.within(m.template, "t@")
	case 2:
		return m.one("?A@", "?A0x12ab@", "?A0xcd34@")
	case 3:
		return m.within(func() string { return "?" + m.one("0", "1", "9", "@", "BA@", "CP@") + "?" + m.symbol() }, "s@")
	}
	return m.word()
}

func (m *maker) path() string { return m.typeName() + m.some(3, m.scope) + "@" }

func (m *maker) template() string {
	name := m.one(m.word(), m.word(), "?"+m.one(operatorCodes...))
	return "?$" + name + m.some(4, m.argument) + "@"
}

func (m *maker) argument() string {
	switch m.IntN(16) {
	case 0:
		return m.one("$S", "$$V", "$$Z", "$$$V")
	case 1:
		return "$$Y" + m.path()
	case 2:
		return "$$B" + m.array()
	case 3:
		return "$$C" + m.cv() + m.aType()
	case 4:
		return "$0" + m.number()
	case 5:
		return m.one("$F"+m.number()+m.number(), "$G"+m.number()+m.number()+m.number())
	case 6:
		return m.within(func() string { return m.one("$1", "$E") + m.symbol() }, "H")
	case 7:
		return m.within(func() string { return "$H" + m.symbol() + m.number() }, "D")
	case 9:
		return m.within(func() string { return "$I" + m.symbol() + m.number() + m.number() }, "D")
	case 10:
		return "$J" + m.number() + m.number() + m.number()
	case 8:
		return m.within(func() string { return m.one("$$A6", "$$A8@@"+m.this()) + m.function() }, "D")
	case 11:
		return "$M" + m.aType() + "0" + m.number()
	}
	return m.aType()
}

func (m *maker) cv() string { return m.one("A", "A", "A", "B", "C", "D") }

func (m *maker) extra() string { return m.one("", "E", "E", "EI", "EF", "I", "F", "EIF") }

func (m *maker) array() string {
	return m.one("Y0"+m.one("0", "2", "A@", "BA@"), "Y1"+m.one("07", "BA@A@"), "Y2333") + m.one("", "", "$$CB", "$$CA") + m.aType()
}

// bases are the codes of simple types that llvm-undname reads. operatorCodes are the codes of
// operators.
var (
	bases         = slices.DeleteFunc(codes(primitives), func(code string) bool { return code == "_L" || code == "_M" })
	operatorCodes = codes(operators)
)

func (m *maker) aType() string {
	switch m.IntN(12) {
	case 0, 1, 2:
		return m.one(m.one(bases...), "H", "D")
	case 3, 4:
		return m.one("T", "U", "V", "W4") + m.path()
	case 5, 6:
		return m.within(func() string { return m.one("P", "Q", "R", "S", "A", "A", "$$Q") + m.extra() + m.cv() + m.aType() }, "H")
	case 7:
		return m.within(func() string { return m.one("P6", "Q6", "A6") + m.function() }, "N")
	case 8:
		return m.within(func() string { return "P8" + m.path() + m.this() + m.function() }, "N")
	case 9:
		return "PE" + m.one("Q", "R", "S", "T") + m.path() + m.one("H", "PEAD", "Y03H")
	case 10:
		return m.within(func() string { return m.one("P", "A", "Q") + m.extra() + m.cv() + m.array() }, "PEAD")
	}
	return m.one("?"+m.word()+"@", "PEAX", "PE__ptrauth1A@ENC@AH")
}

func (m *maker) this() string { return m.extra() + m.one("", "", "G", "H") + m.cv() }

// function makes a function's type.
func (m *maker) function() string {
	result := m.one("X", "@", "", "?"+m.cv())
	if result != "X" && result != "@" {
		result += m.within(m.aType, "H")
	}
	return m.one("A", "E", "G", "I", "Q", "S", "W", "M", "C", "O") + result + m.parameters() + m.one("Z", "Z", "Z", "_E")
}

func (m *maker) parameters() string {
	list := m.some(4, func() string {
		if m.IntN(3) == 0 {
			return m.digit("PEAX")
		}
		return m.within(m.aType, "H")
	})
	if list == "" {
		return m.one("X", "@", "Z")
	}
	return list + m.one("@", "@", "Z")
}

// symbolName makes the name of a function or variable without its scopes.
func (m *maker) symbolName() string {
	switch m.IntN(12) {
	case 0:
		return m.digit("v@")
	case 1:
		return "?" + m.one("0", "1", "B", "__Kw@", "H")
	case 2, 3:
		return "?" + m.one(operatorCodes...)
	case 4, 5, 6:
		return m.within(m.template, "t@")
	case 7:
		return m.within(func() string { return "?$?" + m.one("0", "1", "B") + m.some(2, m.argument) + "@" }, "t@")
	}
	return m.word()
}

func codes(table map[string]string) []string { return slices.Sorted(maps.Keys(table)) }

// symbol makes a whole name.
func (m *maker) symbol() string {
	if m.IntN(8) == 0 {
		return m.special()
	}
	return "?" + m.declared()
}

func (m *maker) declared() string {
	name := m.symbolName() + m.some(3, m.scope) + "@"
	switch m.IntN(8) {
	case 0, 1:
		return name + m.variable()
	case 2:
		return name + m.one("G"+m.number(), "O"+m.number(), "W"+m.number(), "$4"+m.number()+m.number(), "$R2"+m.number()+m.number()+m.number()+m.number()) + m.this() + m.function()
	case 3, 4:
		return name + m.one("", "", "", "$$J0") + m.one("A", "E", "F", "I", "N", "Q", "Q", "U", "V") + m.this() + m.function()
	case 5:
		return name + "9"
	}
	return name + m.one("Y", "Y", "Z", "S", "C", "L") + m.function()
}

func (m *maker) variable() string {
	t := m.within(m.aType, "PEAH")
	end := m.cv()
	if strings.IndexByte("PQRSA$", t[0]) >= 0 {
		end = m.extra() + end
	}
	if strings.HasPrefix(t, "P8") || len(t) > 3 && t[:2] == "PE" && strings.IndexByte("QRST", t[2]) >= 0 {
		end += m.path() // the class, once more
	}
	return m.one("0", "1", "2", "3", "4") + t + end
}

// special makes a name that is no function's or variable's.
func (m *maker) special() string {
	path := m.typeName() + m.some(2, m.scope) + "@"
	switch m.IntN(9) {
	case 0:
		return m.one("??_7", "??_8", "??_S", "??_R4") + path + m.one("6", "7") + m.cv() + m.some(2, func() string { return m.path() }) + "@"
	case 1:
		return "??_R0" + m.one("", "?A", "?B") + m.aType() + "@8"
	case 2:
		return "??_R1" + m.one("A@", "3", "BA@") + m.one("?0", "A@") + "A@EA@" + path + "8"
	case 3:
		return m.one("??_R2", "??_R3") + path + "8"
	case 4:
		return "??_9" + path + "$B" + m.one("A@", "7", "BA@") + "A" + m.one("A", "E", "G")
	case 5:
		return m.one("??_B", "??__J") + path + m.one("5", "51", "5BA@", "4IA")
	case 6:
		return m.one("??__E", "??__F") + m.one(m.word()+m.some(2, m.scope)+"@Y"+m.function(), "?"+m.word()+m.some(2, m.scope)+"@"+m.one("2", "3")+"HA@@Y"+m.function())
	case 7:
		return "??@0123456789abcdef0123456789abcdef@" + m.one("", "??_R4@")
	}
	return m.literal()
}

// literal makes the name of a string.
func (m *maker) literal() string {
	char := func() string {
		return m.one("a", "Z", "7", "_", "?0", "?3", "?5", "?9", "?a", "?Z", "?$AA", "?$AA", "?$CC", "?$PP", "?$AK")
	}
	if m.IntN(2) == 0 {
		return "??_C@_0" + m.one("3", "7", "M@", "BA@", "CA@", "EA@", "BAA@") + "HASHHASH@" + m.some(70, char) + "@"
	}
	return "??_C@_1" + m.one("7", "M@", "BA@", "CA@", "EA@", "BAA@") + "HASHHASH@" + m.some(16, func() string { return char() + char() }) + "@"
}
