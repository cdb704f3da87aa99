// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxLine bounds a line, in bytes: generated code has lines of any length.
const maxLine = 1000

// text is a text with the offset of each 1024th line: there may be any number of lines, and
// stacks may request one after the other.
type text struct {
	all   string
	marks []uint32 // offsets of the lines 1, 1025, ...
	count int      // number of lines
}

const marked = 1 << 10

// newText indexes a text. A line break at its end begins no line.
func newText(all string) text {
	t := text{all: all}
	for offset := 0; offset < len(all); t.count++ {
		if t.count%marked == 0 {
			t.marks = append(t.marks, uint32(offset)) //nolint:gosec // of at most maxFile bytes
		}
		end := strings.IndexByte(all[offset:], '\n')
		if end < 0 {
			end = len(all) - offset
		}
		offset += end + 1
	}
	return t
}

// around returns count lines of a text with line in the middle, or all if there are fewer. Near
// the end of the text there are more before line.
func (t *text) around(line, count int) (first int, lines []string, err error) {
	if line < 1 || line > t.count {
		return 0, nil, fmt.Errorf("line %d is not among its %d lines", line, t.count)
	}
	first = max(min(line-count/2, t.count-count+1), 1)
	last := min(first+count-1, t.count)
	rest := t.all[t.marks[(first-1)/marked]:]
	for n := (first-1)/marked*marked + 1; n <= last; n++ {
		var one string
		one, rest, _ = strings.Cut(rest, "\n")
		if n >= first {
			lines = append(lines, cut(strings.TrimSuffix(one, "\r")))
		}
	}
	return first, lines, nil
}

// cut truncates a line that is too long between two characters, and marks it.
func cut(line string) string {
	if len(line) <= maxLine {
		return line
	}
	end := maxLine
	for end > maxLine-utf8.UTFMax && !utf8.RuneStart(line[end]) {
		end--
	}
	return fmt.Sprintf("%s... (%d more bytes)", line[:end], len(line)-end)
}
