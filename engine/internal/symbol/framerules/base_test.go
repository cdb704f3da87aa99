// SPDX-License-Identifier: Apache-2.0

package framerules

import (
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/symbol"
)

func TestVariablesAreAddressedFromTheValueThatAProgramGives(t *testing.T) {
	for program, want := range map[string]string{
		"": ".raSearch",
		"$T0 .raSearch = $eip $T0 ^ = $esp $T0 4 + =":                                   ".raSearch",
		"$T0 $ebp = $eip $T0 4 + ^ = $ebp $T0 ^ = $esp $T0 8 + =":                       "$ebp",
		"$T1 $ebp 4 + = $T0 $T1 4 - 8 @ = $eip $T1 ^ = $esp $T1 4 + = $ebp $T1 4 - ^ =": "$ebp 4 + 4 - 8 @",
		"$eip .raSearch ^ = $esp .raSearch 4 + =":                                       "",
	} {
		tokens, err := Base(&symbol.FrameData{Program: program})
		if got := strings.Join(tokens, " "); err != nil || got != want {
			t.Errorf("%q: %q (%v), expected %q", program, got, err, want)
		}
	}
	if _, err := Base(&symbol.FrameData{Program: "$T0 +"}); err == nil {
		t.Error("a program without operands has no error")
	}
}
