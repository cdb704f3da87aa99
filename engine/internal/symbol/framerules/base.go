// SPDX-License-Identifier: Apache-2.0

package framerules

import "github.com/unwindd/unwindd/engine/internal/symbol"

// Base returns the value that the program of frame data gives to $T0, from which variables are
// addressed, in postfix notation: of $ebp, $esp, $ebx, numbers, operators, and .raSearch, the place of
// the return address. Without a program it is .raSearch; nil: the program does not set $T0.
func Base(d *symbol.FrameData) ([]string, error) {
	if d.Program == "" {
		return []string{search}, nil
	}
	p := program{data: d}
	if err := p.run(d.Program); err != nil {
		return nil, err
	}
	return p.variables["$T0"], nil
}
