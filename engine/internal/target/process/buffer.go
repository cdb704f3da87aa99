// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import "os"

// buffer is memory for the copy. It is allocated and touched before the threads stand still,
// as that takes longer than the copying.
type buffer struct {
	data []byte
	used int
}

const (
	// usualBuffer is the size of most copies without their threads, and usualThread the size
	// of a thread: its registers, of which the vectors have 3 to 11 kB, and its stack, of
	// which the C library has 4 kB.
	usualBuffer = 256 << 10
	usualThread = 24 << 10
)

// prepare allocates n bytes, unless they are left.
func (b *buffer) prepare(n int) {
	if len(b.data)-b.used >= n {
		return
	}
	b.data, b.used = make([]byte, n), 0
	for i := 0; i < n; i += os.Getpagesize() {
		b.data[i] = 1
	}
}

// take returns n bytes with any content.
func (b *buffer) take(n int) []byte {
	if len(b.data)-b.used < n {
		b.prepare(max(n, usualBuffer))
	}
	b.used += n
	return b.data[b.used-n : b.used : b.used]
}

// putBack returns the last n bytes of the last take to the buffer.
func (b *buffer) putBack(n int) { b.used -= n }
