// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
)

// maxSource bounds the bytes of a source file whose lines are shown.
const maxSource = 64 << 20

// sourceFile is the source file that was read last.
type sourceFile struct {
	path, text string
}

func (c *sourceFile) read(path string) string {
	if c.path == path {
		return c.text
	}
	*c = sourceFile{path: path}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() > maxSource {
		return ""
	}
	if b, err := os.ReadFile(path); err == nil {
		c.text = string(b)
	}
	return c.text
}

// context is the lines of source around a frame's position, each with its number, as written
// formats them; "" where none are requested or the source is missing.
func (s *Writer) context(f *trace.Symbol, written func(line string) string) string {
	lines := s.options.Context
	if lines <= 0 || f.File == "" {
		return ""
	}
	text := f.Source
	if text == "" {
		// The path is looked up as it is written.
		text = s.source.read(s.path(f, f.File))
	}
	first := max(1, int64(f.Line)-lines/2)
	last := first + min(lines, math.MaxInt64-first) - 1
	width := int(math.Ceil(math.Log10(float64(last))))
	var out strings.Builder
	for n := int64(1); n <= last && text != ""; n++ {
		line, rest, _ := strings.Cut(text, "\n")
		text = rest
		if n < first {
			continue
		}
		mark := "  : "
		if n == int64(f.Line) {
			mark = " >: "
		}
		fmt.Fprintf(&out, "%*d%s%s\n", width, n, mark, written(strings.TrimSuffix(line, "\r")))
	}
	return out.String()
}
