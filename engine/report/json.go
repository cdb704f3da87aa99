// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"

	"github.com/unwindd/unwindd/internal/escape"
)

// WriteJSON writes a report as one JSON value and a newline.
func (r *Report) WriteJSON(w io.Writer) error { return WriteJSON(w, r) }

// WriteJSON writes a value as the commands do: indented, and without the
// escapes that only HTML needs. What no terminal should get is escaped.
func WriteJSON(w io.Writer, v any) error {
	b, err := escape.AppendJSON(nil, v, " ")
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}
