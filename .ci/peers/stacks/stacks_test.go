// SPDX-License-Identifier: Apache-2.0

package stacks

import (
	"slices"
	"testing"
)

func TestUnwindd(t *testing.T) {
	list, exe, err := Unwindd([]byte(`{"modules":[{"path":"/p"}],"threads":[{"id":"7","crashed":true,"frames":[
		{"pc":"0x10","found_by":"context","module":0,"function":"f"}, {"pc":"0x10","inlined":true,"function":"g"},
		{"pc":"0x20","found_by":"call-site","function":"h"}, {"pc":"0x30","found_by":"scan"}],"stopped":{"reason":"outermost","detail":"why"}}]}`))
	if err != nil || exe != "/p" || len(list) != 1 {
		t.Fatal(list, exe, err)
	}
	s := list["7"]
	if !slices.Equal(s.PCs, []uint64{0x10, 0x20, 0x30}) || !slices.Equal(s.Text, []string{"f in /p", "h", ""}) || s.Stopped != "outermost: why" || !s.IsCrashed {
		t.Errorf("%+v", s)
	}
	s = s.WithoutTailCalls()
	if !slices.Equal(s.PCs, []uint64{0x10, 0x30}) || !IsGuess(s.Found[1]) || Common(s.PCs, []uint64{0x10, 0x20}) != 1 {
		t.Errorf("%+v", s)
	}
}
