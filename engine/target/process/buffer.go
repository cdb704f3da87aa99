// SPDX-License-Identifier: Apache-2.0

package process

import "os"

// A room is memory for what is copied. While threads stand still nothing is to be asked of
// the system for it, which takes longer than the copying: it is got and touched before.
type room struct {
	data []byte
	used int
}

const (
	// usualRoom is what is copied of most processes beside their threads, and usualThread
	// of a thread: its registers, of which the vectors have 3 to 11 kB, and its stack, in
	// which 4 kB are of the C library.
	usualRoom   = 256 << 10
	usualThread = 24 << 10
)

// prepare makes room for n bytes.
func (r *room) prepare(n int) {
	if len(r.data)-r.used >= n {
		return
	}
	r.data, r.used = make([]byte, n), 0
	for at := 0; at < n; at += os.Getpagesize() {
		r.data[at] = 1
	}
}

// take takes n bytes, which may hold anything.
func (r *room) take(n int) []byte {
	if len(r.data)-r.used < n {
		r.prepare(max(n, usualRoom))
	}
	r.used += n
	return r.data[r.used-n : r.used : r.used]
}

// giveBack gives back the last n bytes of what was taken last.
func (r *room) giveBack(n int) { r.used -= n }
