// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"io"
)

// WriteJSON writes a report as one JSON value and a newline.
func (r *Report) WriteJSON(w io.Writer) error { return WriteJSON(w, r) }

// WriteJSON writes a value as the commands do: indented, and without the
// escapes that only HTML needs.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(v)
}
