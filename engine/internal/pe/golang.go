// SPDX-License-Identifier: Apache-2.0

package pe

import "bytes"

// goBuildID begins the text that Go's linker writes before the first function (cmd/link,
// textbuildid).
var goBuildID = []byte("\xff Go build ID: \"")

// IsGo reports whether Go's linker made the file. Its functions preserve no register.
func (f *File) IsGo() bool {
	s := f.Section(".text")
	return s != nil && bytes.HasPrefix(f.source.upTo(s.RVA, uint64(len(goBuildID))), goBuildID)
}
