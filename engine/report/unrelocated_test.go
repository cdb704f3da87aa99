// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"io"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/report"
)

// unrelocated is alpha.o with relocations of a type that no machine has.
const unrelocated = "testdata/unrelocated.o"

// TestWhatCannotBeRelocatedIsAProblem has a file of whose sections with addresses none can
// be relocated.
func TestWhatCannotBeRelocatedIsAProblem(t *testing.T) {
	o, d := described(t, unrelocated)
	expressions, err := report.NewObjectExpressions(o, d, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := callFrames(t, unrelocated)
	for name, write := range map[string]func(io.Writer) error{
		"rows": c.WriteRowsJSON, "entries": c.WriteCFIJSON,
		"expressions": expressions.WriteJSON,
	} {
		var list struct{ Problems []string }
		readJSON(t, write, &list)
		if said := strings.Join(list.Problems, "\n"); len(list.Problems) != 2 || strings.Count(said, "relocation type 250 of machine 36902 is not known") != 2 {
			t.Errorf("%s: problems %q", name, list.Problems)
		}
	}
}
