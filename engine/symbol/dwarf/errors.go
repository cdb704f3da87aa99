// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"errors"
	"fmt"
)

// ErrNoDebugInfo says that an object has no .debug_info.
var ErrNoDebugInfo = errors.New("no debug information")

// A FormatError says where debug information is not what it must be.
type FormatError struct {
	Section string
	Offset  uint64 // in the section
	Within  string // what the offset is in: "unit at 0x40"; "" where nothing is known
	Problem string // what was found, and what was expected
}

// Error gives the section, the place and the problem.
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
