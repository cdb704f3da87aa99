// SPDX-License-Identifier: Apache-2.0

// Package perfdata reads the recordings of Linux' perf: perf.data files, what
// perf record writes to a pipe, and the two forms in which a runtime says what
// code it made (perf-PID.map and jitdump).
//
// Open maps a file, reads its header, and goes once over the headers and times
// of its records. A Reader then delivers every SAMPLE record, in the order of
// time, in batches, each sample with the state of its process at that time:
//
//	f, err := perfdata.Open("perf.data")
//	r := f.Reader()
//	for {
//		batch, err := r.Next()
//		if err == io.EOF {
//			break
//		}
//		// walk batch.Samples, on any goroutine
//		batch.Release()
//	}
//
// # Order
//
// Records of a file are in the order of time for each buffer that perf emptied,
// not among them. The file is divided into runs, which are as long as time does
// not go back, and the runs are merged. So the order is right with and without
// FINISHED_ROUND, and memory grows with the runs, not with the records. Of
// records of one time the one that comes first in the file is the first; those
// of compressed records come after the others. A record that has no time has
// that of the record before it. Of more than [MaxRuns] runs, what is beyond them
// stays in the order of the file, and a problem says so.
//
// # Memory
//
// Samples refer to the mapped file: Stack, Registers and Chain are not copied
// and are read inside object.Guard, for the file may be cut meanwhile. They are
// valid until File.Close. A batch that was released is used again. Reading a
// sample allocates nothing unless there is something wrong with it.
//
// What perf record -z wrote is unpacked into a temporary file, once, when the
// recording is opened.
//
// # What is wrong
//
// Every sample is delivered. What of it cannot be read is zero, and Problem says
// why. A file that was cut, or whose records say sizes that cannot be, is read as
// far as it goes, and File.Problems says where that is.
//
// The format is that of include/uapi/linux/perf_event.h and of
// tools/perf/Documentation/perf.data-file-format.txt of the Linux sources.
package perfdata
