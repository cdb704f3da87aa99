// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
)

// document has the tables, between the markers.
const (
	document = "../../docs/performance.md"
	begin    = "<!-- written by make bench -->\n"
	end      = "<!-- end of what make bench writes -->\n"
)

// intoDocument puts the tables between the markers of the document.
func intoDocument(text []byte) error {
	old, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	changed, err := between(old, text)
	if err != nil {
		return fmt.Errorf("%s: %w", document, err)
	}
	return os.WriteFile(document, changed, 0o644)
}

// between replaces the text between the markers.
func between(old, text []byte) ([]byte, error) {
	before, rest, ok := bytes.Cut(old, []byte(begin))
	_, after, isClosed := bytes.Cut(rest, []byte(end))
	if !ok || !isClosed {
		return nil, fmt.Errorf("expected the lines %q and %q", begin, end)
	}
	return bytes.Join([][]byte{before, []byte(begin), []byte("\n"), bytes.TrimSpace(text), []byte("\n\n"), []byte(end), after}, nil), nil
}
