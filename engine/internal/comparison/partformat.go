// SPDX-License-Identifier: Apache-2.0

package comparison

import "errors"

// This file documents the format of a part.
//
// A part begins with partMagic, whose last byte is the version, and ends with the CRC-32C of all bytes before it,
// its lowest byte first. Between them numbers are LEB128 as of encoding/binary, those that may be negative with the sign in
// the last bit. A text has its length before it, and a list how many elements it has. Numbers of texts, frames, nodes, shapes
// and sets count from 0, in the order of the part:
//
//	the sum of 1 where threads are compared, and 2 where only those that crashed are compared
//	the texts, of which the first is empty
//	the frames: the numbers of the texts of the function, its short name, the module, the runtime and the file; the offset;
//	    line and column, which may be negative; and the sum of 1 for an inlined call, 2 for a frame of a wave and 4 for a guess
//	the nodes but the root, by lines: how far before the node its parent is, and the number of its frame. No parent has
//	    two children of one frame.
//	the shapes, each a list of runs: the numbers of the texts of the role and of why the stack ends; the number of the node,
//	    and twice the number of threads, with 1 added where they crashed
//	the sets of modules, each a list of modules: the numbers of the texts of the name and the build ID
//	the targets:
//	    how many bytes the path has in common with the one before, at most maxSharedPath, and the rest as a text
//	    the numbers of the texts of the host, and of why the target was not read
//	    the PID, which may be negative
//	    the start time, and the time at which its stacks were taken: 0 where it is not known; else 1 more than the nanoseconds
//	        in the second, and the seconds since 1970, which may be negative
//	    lists of the numbers of texts: labels, names and values in turn; facts; problems
//	    the numbers of the shape and of the set of modules
//	    the IDs of the threads, in the order of the runs of the shape. They are sorted in each run. Of an ID that is a number:
//	        twice its difference to the number before, where 0 is before the first; the difference may be negative. Of another
//	        one: twice its length and 1, and its bytes.
//	the notes of the caller: the key, and the data, as texts
//
// The shape and the set of a target that was not read are 0, which are empty.

// ErrPart is wrapped by the errors for data that is no part of a comparison.
var ErrPart = errors.New("not a part of a comparison")

var partMagic = [8]byte{'U', 'N', 'W', 'C', 'M', 'P', 'R', 1}

// IsPart reports whether data begins as a part does, of any version.
func IsPart(data []byte) bool {
	n := len(partMagic) - 1
	return len(data) >= n && string(data[:n]) == string(partMagic[:n])
}

// Options of a part.
const (
	byThreadOption = 1 << iota
	crashedOption
	allOptions = 1<<iota - 1
)

// Flags of frames.
const (
	inlinedFlag = 1 << iota
	waveFlag
	guessFlag
	allFlags = 1<<iota - 1
)

// maxSharedPath bounds the bytes that a path has in common with the one before, so that a short part has no long paths.
const maxSharedPath = 255

// checksumSize is how many bytes the checksum has.
const checksumSize = 4
