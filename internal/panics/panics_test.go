// SPDX-License-Identifier: Apache-2.0

package panics

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

type machine struct{ registers []int }

func (m *machine) read(i int) int { return m.registers[i] }

func recovered(f func()) (said string) {
	defer func() { said = Line(fmt.Sprint(recover()), Place()) }()
	f()
	return ""
}

func TestPlace(t *testing.T) {
	for name, c := range map[string]struct {
		f    func()
		want string
	}{
		"an error":           {func() { panic(errors.New("boom")) }, "boom, at panics.TestPlace.func1 (panics_test.go:LINE), called by panics.recovered (panics_test.go:LINE)"},
		"one of the runtime": {func() { (&machine{}).read(7) }, "runtime error: index out of range [7] with length 0, at panics.(*machine).read (panics_test.go:LINE), called by panics.TestPlace.func2 (panics_test.go:LINE)"},
		"a signal":           {func() { (*machine)(nil).read(7) }, "runtime error: invalid memory address or nil pointer dereference, at panics.(*machine).read (panics_test.go:LINE), called by panics.TestPlace.func3 (panics_test.go:LINE)"},
		"a long value":       {func() { panic(strings.Repeat("é", 1000)) }, strings.Repeat("é", maxValue/2) + "..., at panics.TestPlace.func4 (panics_test.go:LINE), called by panics.recovered (panics_test.go:LINE)"},
	} {
		if got := withoutLines(recovered(c.f)); got != c.want {
			t.Errorf("%s: %s\nexpected %s", name, got, c.want)
		}
	}
	if got := Line("boom", ""); got != "boom" {
		t.Errorf("without calls: %s", got)
	}
}

// withoutLines puts LINE where a line's number is.
func withoutLines(s string) string {
	parts := strings.Split(s, "_test.go:")
	for i := 1; i < len(parts); i++ {
		parts[i] = "LINE" + strings.TrimLeft(parts[i], "0123456789")
	}
	return strings.Join(parts, "_test.go:")
}
