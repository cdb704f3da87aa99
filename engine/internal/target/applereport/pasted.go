// SPDX-License-Identifier: Apache-2.0

package applereport

import (
	"bytes"

	"github.com/unwindd/unwindd/engine/internal/filekind"
)

// pasted returns the text of a report without what it has from where it was pasted: a fence of Markdown before it, and
// what stands before each line, as blanks or marks of a quotation.
func pasted(data []byte) []byte {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); len(trimmed) > 0 {
		if n := filekind.FenceLen(string(trimmed[:min(len(trimmed), filekind.HeadSize)])); n > 0 {
			data = trimmed[n:]
		}
	}
	mark := markOf(data)
	if len(mark) == 0 {
		return data
	}
	out := make([]byte, 0, len(data))
	blank := bytes.TrimRight(mark, " \t")
	for line := range bytes.Lines(data) {
		if rest, ok := bytes.CutPrefix(line, mark); ok {
			line = rest
		} else if len(blank) > 0 {
			line = bytes.TrimPrefix(line, blank)
		}
		out = append(out, line...)
	}
	return out
}

// markOf returns what stands before the first line with a key of a report, among the first bytes of a text.
func markOf(data []byte) []byte {
	for line := range bytes.Lines(data[:min(len(data), filekind.HeadSize)]) {
		n := filekind.MarkLen(string(line))
		if filekind.HasReportKey(string(line[n:])) {
			return line[:n]
		}
	}
	return nil
}
