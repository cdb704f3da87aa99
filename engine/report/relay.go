// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// maxRelayed bounds a line that Relay takes, in bytes.
const maxRelayed = 1 << 24

// Relay copies text that a Printer of another program has written, and trusts none of it:
// unprintable characters are escaped as a Printer does, except tabs, and changes of colour
// where color is set.
func Relay(w io.Writer, r io.Reader, color bool) error {
	p := NewPrinter(w)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxRelayed)
	for lines.Scan() {
		p.printf("%s\n", relayed(lines.Text(), color))
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("a line of more than %d bytes came", maxRelayed)
	}
	return errors.Join(err, p.Flush())
}
