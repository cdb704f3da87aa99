// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"github.com/unwindd/unwindd/engine/trace"
)

// This file documents the format of a part.
//
// A part begins with partMagic, whose last byte is the version. Then comes a stream of zstd,
// with its checksum. In it numbers are LEB128 as of encoding/binary, and texts have their
// length before them:
//
//	the index of the part, their count, and how many frames a stack may have
//	the division: how many processes, and of each its ID and how many samples it has
//	the samples of the part, in the order of the recording:
//	    how many frames, from the outermost on, are shared with the sample before on the same
//	        trail (of TID modulo trailCount)
//	    how many others there are, and these, from the outermost on: 0 and a new frame, or
//	        the number of one that was there, from 1
//	    why the stack ends: 0 and a new reason, or the number of one that was there, from 1
//	the modules: how many, and of each the number of one of its frames, and its findings
//	what went wrong with the plugin: how many texts, and these
//
// A frame is its kind, with 8 added where it is exact, how it was found, the distance back from
// its PC to the address that names it, and its PC, as a difference from that of the new frame
// before. A frame in a module also has its address in the code object, and the distance before
// PC of an address at which the process of the sample has the module. A frame of a virtual
// machine has its context. That of a language runtime has its number in the recording as PC. The reader finds the module by the recorded mappings.

var partMagic = [8]byte{'U', 'N', 'W', 'P', 'A', 'R', 'T', 1}

const (
	exactFlag = 8
	// maxInside is how far before the PC of a frame its module is looked for: the longest
	// distance of a call, of all architectures, is far below.
	maxInside = 64
	// maxPartFrames bounds the frames of a stack. A record has 64 KiB, with a word at least for
	// each.
	maxPartFrames = 1 << 16
	// maxPartTexts bounds lists of texts, and maxPartText the bytes of one.
	maxPartTexts = 1 << 8
	maxPartText  = 1 << 14
	// partWindow bounds the window of zstd.
	partWindow = 1 << 20
)

// stopReasons are the reasons by their numbers in a part.
var stopReasons = []trace.StopReason{
	trace.StopOutermost, trace.StopEndOfStack, trace.StopNoModule, trace.StopNoRow, trace.StopNoProgress, trace.StopFrameLimit,
	trace.StopPluginFailed, trace.StopNoMemory,
}

// partTrail is the stack of the sample before, from its outermost frame on, as numbers of
// frames.
type partTrail []uint32
