// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"errors"
	"fmt"
)

// ErrNoDebugInfo is returned for an object without .debug_info and .debug_line.
var ErrNoDebugInfo = errors.New("no debug information")

// FormatError is a fault of debug information and its place.
type FormatError struct {
	Section string
	Offset  uint64 // in the section
	Within  string // the part with the fault: "unit at 0x40"; "" where it is unknown
	Problem string // found and expected values
}

// Error returns the section, the place and the problem.
func (e *FormatError) Error() string {
	if e.Within == "" {
		return fmt.Sprintf("%s: offset %#x: %s", e.Section, e.Offset, e.Problem)
	}
	return fmt.Sprintf("%s: %s: offset %#x: %s", e.Section, e.Within, e.Offset, e.Problem)
}

// bad makes a FormatError.
func bad(section string, offset uint64, format string, args ...any) error {
	return &FormatError{section, offset, "", fmt.Sprintf(format, args...)}
}
