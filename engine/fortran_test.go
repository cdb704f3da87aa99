// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/enginetest"
	"github.com/unwindd/unwindd/internal/subject"
)

// TestArraysOfFortran prints arrays that only their descriptors describe, and arrays that
// lie column by column.
func TestArraysOfFortran(t *testing.T) {
	core := subject.Core(t, subject.Build(t, "arrays"))
	out := enginetest.Text(t, core, func(a *enginetest.Ask) { a.Stack.Locals, a.Stack.Globals = true, []string{"table"} })
	for _, want := range []string{
		"table = {{7, 7, 7}, {7, 9, 7}, {7, 7, 7}}", "a = {12, 9, 6, 3}", "b = {{1, 2, 3}, {4, 5, 6}}", `name = "hello"`, "local = {4, 4, 4, 4}",
		"p = {x = 3, y = -4}", "ptr = {1, 3}", "some = {50, 60, 70, 80}", "none = <the array has no elements yet: DW_AT_allocated is 0>",
		"m = {{1, 2, 3}, {4, 5, 6}}",
	} {
		if !strings.Contains(out, " "+want+"\n") {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}
