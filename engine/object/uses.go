// SPDX-License-Identifier: Apache-2.0

package object

import "unsafe"

// Retain adds a use of the object, which is open, and returns it: it stays open until
// Close was called once more. It may be called concurrently. An object that LaidOut
// made has no uses of its own: it is open as long as the one that it was made of.
func (o *Object) Retain() *Object {
	o.retain()
	return o
}

// retain adds a use; false where there is none left, so that the object is closed.
func (o *Object) retain() bool {
	for {
		n := o.uses.Load()
		if n <= 0 {
			return false
		}
		if o.uses.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Close gives back one use: the one that opening it gave, or one of Retain. The last
// one unmaps the file, and nothing that the object gave may be used any more. Close
// of an object without uses does nothing; but each user closes once only, since the
// others' uses look the same.
func (o *Object) Close() error {
	if o.laidOut || !o.release() {
		return nil
	}
	if o.forget != nil {
		o.forget()
	}
	if o.mapping == nil {
		return nil
	}
	return o.mapping.Close()
}

// release takes a use away, and says whether it was the last one.
func (o *Object) release() bool {
	for {
		n := o.uses.Load()
		if n <= 0 {
			return false
		}
		if o.uses.CompareAndSwap(n, n-1) {
			return n == 1
		}
	}
}

// GiveBack takes the pages of a part of the mapped file out of this process, as
// Mapping.GiveBack does. Bytes that lie elsewhere stay as they are.
func (o *Object) GiveBack(part []byte) {
	if o == nil || o.mapping == nil || len(part) == 0 {
		return
	}
	at, start := uintptr(unsafe.Pointer(unsafe.SliceData(part))), o.mapping.start()
	if at >= start && at-start < uintptr(len(o.mapping.data)) {
		o.mapping.GiveBack(uint64(at-start), uint64(at-start)+uint64(len(part)))
	}
}
