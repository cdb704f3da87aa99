// SPDX-License-Identifier: Apache-2.0

package x86code

import (
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/unwindd/unwindd/locexpr"
)

// maxAssembled bounds the number of expressions that are kept. A program has few: the
// places of registers in a handful of frames.
const maxAssembled = 4096

// assembled are expressions by their texts.
var assembled = struct {
	sync.Mutex
	byText map[string][]byte
}{byText: map[string][]byte{}}

// Expression assembles the text of an expression, in the canonical dialect. The
// caller must not change what it returns.
func Expression(text string) []byte {
	assembled.Lock()
	defer assembled.Unlock()
	expr, ok := assembled.byText[text]
	if ok {
		return expr
	}
	expr, err := locexpr.Parse(text, locexpr.TextOptions{Dialect: locexpr.Canonical})
	if err != nil {
		panic(fmt.Sprintf("%q: %v", text, err)) // every text is from this package
	}
	expr = slices.Clip(expr)
	if len(assembled.byText) >= maxAssembled {
		clear(assembled.byText)
	}
	assembled.byText[text] = expr
	return expr
}

// RegisterText is the text for a register's value plus offset.
func RegisterText(register uint32, offset int64) string {
	const withOpcode = 32 // registers have an opcode of their own
	if register < withOpcode {
		return "breg" + strconv.Itoa(int(register)) + " " + strconv.FormatInt(offset, 10)
	}
	return "bregx " + strconv.Itoa(int(register)) + " " + strconv.FormatInt(offset, 10)
}

// AddText is the text that adds n to the top of the stack, behind other operations.
func AddText(n int64) string {
	switch {
	case n > 0:
		return "; plus_uconst " + strconv.FormatInt(n, 10)
	case n < 0:
		return "; consts " + strconv.FormatInt(n, 10) + "; plus"
	}
	return ""
}

// WordText is the text for the word in memory at a register plus offset.
func WordText(register uint32, offset int64) string {
	return RegisterText(register, offset) + "; deref"
}

// ChooseText is the text that computes yes where condition is not zero, else no.
func ChooseText(condition, yes, no string) string {
	const skipSize = 3
	return fmt.Sprintf("%s; bra %d; %s; skip %d; %s", condition, len(Expression(no))+skipSize, no, len(Expression(yes)), yes)
}

// registerPlus is the expression for a register's value plus offset.
func registerPlus(register uint32, offset int64) []byte {
	return Expression(RegisterText(register, offset))
}

// loaded is the expression for the word in memory at a register plus offset, plus n.
func loaded(register uint32, offset, n int64) []byte {
	return Expression(WordText(register, offset) + AddText(n))
}
