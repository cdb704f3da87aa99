// SPDX-License-Identifier: Apache-2.0

// Package perfdata reads the recordings of Linux' perf: perf.data files, the output of
// perf record to a pipe, and the two formats in which a runtime describes its JIT code
// (perf-PID.map and jitdump).
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
// Records are in the order of time within each buffer that perf emptied, but not
// across buffers. The file is divided into runs, in each of which time does not go
// back, and the runs are merged. So the order is right with and without
// FINISHED_ROUND, and memory grows with the runs, not with the records. Records of the
// same time stay in the order of the file; unpacked records come after the others. A
// record without a time has the time of the record before it. Runs beyond [MaxRuns]
// stay in the order of the file, and a problem says so.
//
// # Memory
//
// Samples refer to the mapped file: Stack, Registers and Chain are not copied
// and are read inside object.Guard, as the file may be truncated meanwhile. They are
// valid until File.Close. A released batch is reused. Reading a sample allocates
// nothing unless there is something wrong with it.
//
// The output of perf record -z is unpacked into a temporary file, once, when the
// recording is opened.
//
// # Problems
//
// Every sample is delivered. Fields that cannot be read are zero, and Problem says
// why. A file that is truncated, or has records of impossible sizes, is read up to
// that place, which File.Problems names.
//
// The format is described in include/uapi/linux/perf_event.h and
// tools/perf/Documentation/perf.data-file-format.txt of the Linux sources.
package perfdata
