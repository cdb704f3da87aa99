// SPDX-License-Identifier: Apache-2.0

// Package applereport reads the reports of macOS and iOS as targets: crash reports as JSON (.ips) and as
// text (.crash), and the call trees of sample and spindump. A report has the frames of each thread and no
// memory: the frames are kept as they were recorded, and are named by the files of their images where these
// are found.
package applereport
