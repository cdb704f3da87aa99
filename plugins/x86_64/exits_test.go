// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"context"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// rangeAt is a range of code at 0x1000, in hexadecimal digits, and a PC in it.
func rangeAt(t *testing.T, digits string, pc uint64) sdk.CodeRange {
	t.Helper()
	code, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return sdk.CodeRange{PC: pc, Start: 0x1000, Code: code, Exact: true}
}

func rulesOf(t *testing.T, r sdk.CodeRange) sdk.FrameRules {
	t.Helper()
	req := &sdk.FrameRulesRequest{Functions: []sdk.CodeRange{r}}
	answer, err := New().FrameRules(context.Background(), nil, req)
	if err == nil {
		err = answer.Validate(Description(), req)
	}
	if err != nil {
		t.Fatal(err)
	}
	return answer.Functions[0]
}

func TestExitsOfCode(t *testing.T) {
	for _, c := range []struct {
		name, code string
		bounded    bool
		want       sdk.CodeExits
	}{
		{"a return", "c3", true, sdk.CodeExits{}},
		{"calls are not followed", "e8 00 10 00 00 ff d0 c3", true, sdk.CodeExits{}},
		{"a tail jump", "48 83 c4 08 e9 f7 0f 00 00", true, sdk.CodeExits{Jumps: []uint64{0x2000}}},
		{"a branch to the unlikely part", "85 ff 0f 84 f8 0f 00 00 c3", true, sdk.CodeExits{Jumps: []uint64{0x2000}}},
		{"a branch inside", "85 ff 74 01 c3 31 c0 c3", true, sdk.CodeExits{}},
		{"an entry of a linkage table", "f3 0f 1e fa ff 25 f6 0f 00 00", true, sdk.CodeExits{Slots: []uint64{0x2000}}},
		{"a jump through a register", "ff e0", true, sdk.CodeExits{Open: true}},
		{"a jump through an object", "48 8b 07 ff 60 18", true, sdk.CodeExits{Open: true}},
		{"a call at the end does not return", "50 e8 f9 0f 00 00", true, sdk.CodeExits{}},
		{"a call at the end of what was read", "50 e8 f9 0f 00 00", false, sdk.CodeExits{Jumps: []uint64{0x1006}}},
		{"code that runs on", "31 c0", true, sdk.CodeExits{Jumps: []uint64{0x1002}}},
		{"a return to what was pushed", "50 c3", true, sdk.CodeExits{Open: true}},
		{"a thunk against speculation", "e8 07 00 00 00 f3 90 0f ae e8 eb f9 48 89 04 24 c3", true, sdk.CodeExits{Open: true}},
		{"no instruction", "06", true, sdk.CodeExits{Open: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rangeAt(t, c.code, 0x1000)
			r.Bounded, r.Exits = c.bounded, true
			got := rulesOf(t, r)
			if diff := cmp.Diff(sdk.FrameRules{Exits: &c.want}, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// A call of musl's __clone and of its _start, and one that is like it but for what
// marks the deepest frame.
func TestDeepestFrames(t *testing.T) {
	for _, c := range []struct {
		name, code string
		call       uint64 // the address after it
		deepest    bool
	}{
		{"the first function of a thread", "31 ed 5f 41 ff d1 89 c7 31 c0 b0 3c 0f 05 f4", 0x1006, true},
		{"no return from the call", "48 31 ed ff d0 f4", 0x1005, true},
		{"rbp is kept", "5f 41 ff d1 89 c7 31 c0 b0 3c 0f 05 f4", 0x1004, false},
		{"another system call", "31 ed 5f 41 ff d1 89 c7 31 c0 b0 3b 0f 05 f4", 0x1006, false},
		{"it returns", "31 ed 5f 41 ff d1 31 c0 c3", 0x1006, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rangeAt(t, c.code, c.call-1)
			r.Exact = false
			rules := rulesOf(t, r)
			deepest := len(rules.Rows) == 1 && isUndefined(&rules.Rows[0], uint64(rip))
			if deepest != c.deepest {
				t.Errorf("%+v, expected the deepest frame: %v", rules, c.deepest)
			}
		})
	}
}

func isUndefined(row *cfi.Row, column uint64) bool {
	rule, ok := row.Rule(column)
	return ok && rule.Kind == cfi.Undefined
}

// The code is that of OpenJDK 17 on x86-64, where a bytecode that called a method goes
// on, and where the interpreter leaves a native method.
func TestRowsOfJavasInterpreter(t *testing.T) {
	const restore = "48 8b 65 f0 48 c7 45 f0 00 00 00 00 4c 8b 6d c0 4c 8b 75 c8 41 0f b7 4d 01"
	const leave = "41 83 bf a8 03 00 00 02 75 01 90 4c 8b 5d f8 c9 5f 49 8b e3 ff e7"
	for _, c := range []struct {
		name, code  string
		interpreter bool
	}{
		{"after a method", "ff e0" + restore, true},
		{"after a native method", "ff d0" + leave, true},
		{"after no call", "31 c0" + leave, false},
		{"words that are not beside each other", "ff d0" + strings.Replace(restore, "75 c8", "75 d0", 1), false},
		{"a function that ends with leave", "ff d0 c9 c3", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rangeAt(t, c.code, 0x1001)
			r.Exact = false
			rules := rulesOf(t, r)
			interpreter := false
			if len(rules.Rows) == 1 {
				sp, ok := rules.Rows[0].Rule(uint64(rsp))
				interpreter = ok && sp.Kind == cfi.ValExpression
			}
			if interpreter != c.interpreter {
				t.Errorf("%+v, expected the interpreter: %v", rules, c.interpreter)
			}
		})
	}
}

func TestCodeThatIsNotCalled(t *testing.T) {
	for _, c := range []struct {
		name, code string
		uncalled   bool
	}{
		{"to the top of a stack of its own", "48 89 d8 48 83 c5 08 ff 65 00", true},
		{"to where an object says", "4c 89 f3 ff 23", true},
		{"a table", "ff 24 c5 00 20 00 00", false},
		{"a method", "48 8b 07 ff 60 18", false},
		{"a return", "c3", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if rules := rulesOf(t, rangeAt(t, c.code, 0x1000)); rules.Uncalled != c.uncalled {
				t.Errorf("%+v, expected uncalled: %v", rules, c.uncalled)
			}
		})
	}
}
