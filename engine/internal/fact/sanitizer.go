// SPDX-License-Identifier: Apache-2.0

package fact

import (
	"fmt"
	"strings"
)

// sanitizers are the beginnings of names of functions of sanitizers' libraries.
var sanitizers = []string{"__asan", "__hwasan", "__lsan", "__msan", "__tsan", "__ubsan", "__sanitizer"}

// The names of the functions that UndefinedBehaviorSanitizer's checks call begin and end so:
// __ubsan_handle_divrem_overflow_abort.
const (
	handlesBehavior = "__ubsan_handle_"
	abortsBehavior  = "_abort"
)

// sanitizer explains why a sanitizer aborted: the text of its report, which AddressSanitizer
// copies into memory that a function of it has a pointer to, or the check.
func (c *crash) sanitizer() string {
	isThere := false
	for i := 1; i < len(c.stack.Frames) && i < maxNamed; i++ {
		f := &c.stack.Frames[i]
		name := linkageName(f)
		if check, ok := strings.CutPrefix(name, handlesBehavior); ok {
			return "UndefinedBehaviorSanitizer: " + strings.ReplaceAll(strings.TrimSuffix(check, abortsBehavior), "_", " ") + c.whereInProgram()
		}
		function := nameAt(f)
		switch is := beginsWith(function, sanitizers); {
		case is:
			isThere = true
		case isThere && function != "":
			return ""
		}
		if !isThere {
			continue
		}
		for _, word := range c.frameWords(&c.stack.Frames[i-1], f) {
			if text := c.report(word); text != "" {
				return text + c.whereInProgram()
			}
		}
	}
	return ""
}

// reportAlign is the alignment of the memory of a report, which is mapped for it alone.
const reportAlign = 1 << 12

// report returns what a sanitizer's report at an address found, and the access, from its first
// lines.
func (c *crash) report(address uint64) string {
	if address == 0 || address%reportAlign != 0 {
		return ""
	}
	text, _ := c.text(address, maxText)
	_, found, ok := strings.Cut(text, "==ERROR: ")
	if !ok || text[0] != '=' {
		return ""
	}
	found, rest, _ := strings.Cut(found, "\n")
	found, _, _ = strings.Cut(found, " at pc ")
	found, _, _ = strings.Cut(found, " (pc ")
	access, _, _ := strings.Cut(rest, "\n")
	if access, _, ok = strings.Cut(access, " at 0x"); ok {
		found += fmt.Sprintf(" (%s)", access)
	}
	return found
}
