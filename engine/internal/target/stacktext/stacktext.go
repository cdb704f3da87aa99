// SPDX-License-Identifier: Apache-2.0

// Package stacktext reads stacks that are written as text: the output of perf script, and
// folded stacks, from which flame graphs are made.
package stacktext

import (
	"bytes"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
	"github.com/unwindd/unwindd/engine/trace"
)

// maxLine bounds the bytes of a line.
const maxLine = 1 << 20

// maxFrames bounds the frames of a stack, of which the innermost are kept.
const maxFrames = 1 << 14

// stopText is why the stacks of a text end.
var stopText = trace.Stopped{Reason: trace.StopEndOfStack, Detail: "the stack in the text ends here"}

// eachLine calls see with the lines of a text, without their ends, blank ones too. Longer ones
// than maxLine are a problem, and left out.
func eachLine(b *stacktree.Builder, data []byte, see func(number int, line []byte)) {
	for number := 1; len(data) > 0; number++ {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		if len(line) > maxLine {
			b.Problem("line %d has %d bytes, expected at most %d: it is left out", number, len(line), maxLine)
			continue
		}
		see(number, bytes.TrimSuffix(line, []byte("\r")))
	}
}

// headLines returns the lines of the first bytes of a file, without one that may be cut.
func headLines(head []byte, isWhole bool) [][]byte {
	lines := bytes.Split(head, []byte("\n"))
	if !isWhole || len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// notKernel are names of code in brackets that is not the kernel's.
var notKernel = []string{"[vdso", "[vsyscall]", "[heap]", "[stack", "[unknown]", "[anon", "[uprobes]", "[jit]", "[guest"}

// isKernelObject reports whether the name of a code object is the kernel's, or a module's of it.
func isKernelObject(name string) bool {
	if !strings.HasPrefix(name, "[") {
		base := name[strings.LastIndexByte(name, '/')+1:]
		return strings.HasPrefix(base, "vmlinux") || strings.HasSuffix(base, ".ko") || strings.Contains(base, ".ko.")
	}
	for _, other := range notKernel {
		if strings.HasPrefix(name, other) {
			return false
		}
	}
	return true
}
