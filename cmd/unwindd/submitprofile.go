// SPDX-License-Identifier: Apache-2.0

package main

import "io"

// This file submits recordings.

const (
	// partBytes is the size of a recording for which a part pays. Each part's worker gets all of
	// the recording, which takes longer than walking it (docs/scaling.md): a smaller one is not
	// faster in parts.
	partBytes = 512 << 20
	// usualParts is the default bound of the parts of a recording.
	usualParts = 16
)

// partsOf returns the number of parts of a recording, by --parts, else by its size. A
// recording that is packed, or is a folder or a series, is not divided.
func (f *submitFlags) partsOf(size int64, isPlain bool) int {
	switch {
	case !isPlain:
		return 1
	case f.parts > 0:
		return f.parts
	}
	return int(min(size/partBytes+1, usualParts))
}

// isPlainRecording reports whether a file begins as a recording does.
func isPlainRecording(file io.ReaderAt) bool {
	var b [8]byte
	_, err := file.ReadAt(b[:], 0)
	return err == nil && (string(b[:]) == "PERFILE2" || string(b[:]) == "2ELIFREP")
}
