// SPDX-License-Identifier: Apache-2.0

package job

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// Descriptions of a server are checked before they are used.
func TestDescriptionsOfAServerAreChecked(t *testing.T) {
	d, err := x86_64.New().Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := func(d ...*sdk.Description) string {
		b, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if list, err := ReadArchitectures(strings.NewReader(text(d))); err != nil || len(list) != 1 || list[0].Name != d.Name {
		t.Errorf("%v, %v", list, err)
	}
	bad := *d
	bad.PC = 12345
	for report, want := range map[string]string{text(d, &bad): "[1]: Description.PC", "[null]": "[0] is null", "{": "EOF", text(d)[:100]: "EOF"} {
		if list, err := ReadArchitectures(strings.NewReader(report)); err == nil || list != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, %v; expected %s", report, list, err, want)
		}
	}
}

func FuzzReadArchitectures(f *testing.F) {
	f.Add(`[{"Name":"a"}]`)
	f.Add(`[null]`)
	f.Fuzz(func(t *testing.T, report string) {
		list, err := ReadArchitectures(strings.NewReader(report))
		for _, d := range list {
			if err != nil || d.Validate() != nil {
				t.Error("a description that is not valid")
			}
		}
	})
}
